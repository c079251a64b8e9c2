"""Fetches one commit of a remote repository into a private view, with GitPython."""

import os
from typing import Any

from harness.errors import InputError, PrerequisiteError
from rsi_anything.project.address import public
from rsi_anything.project.gitview import HASH, GitView
from rsi_anything.project.tree import shown

_PATIENCE_SEC = 1800
# The person's own git configuration stays in force here (proxies, credential helpers); these settings win over it.
_SETTINGS = {
    "protocol.allow": "never",
    "protocol.https.allow": "always",
    "protocol.ssh.allow": "always",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "fetch.recurseSubmodules": "false",
    "transfer.fsckObjects": "true",
    "transfer.bundleURI": "false",
    "gc.auto": "0",
}


def remote_refs(view: GitView, url: str) -> dict[str, str]:
    """Ask the remote for HEAD, branches and tags with their hashes."""
    listed = _git(view, url, ["ls-remote", "--", url])
    refs: dict[str, str] = {}
    for line in listed.splitlines():
        value, _, name = line.partition("\t")
        if HASH.match(value) and (name == "HEAD" or name.startswith(("refs/heads/", "refs/tags/"))):
            refs[name] = value
    return refs


def fetch(view: GitView, url: str, refs: dict[str, str], commit: str | None) -> str | None:
    """Bring the commit (HEAD where it is None) into the view and return its full hash, or None where it is unknown."""
    wanted = commit or "HEAD"
    names = (wanted, f"refs/heads/{wanted}", f"refs/tags/{wanted}")
    exact = next((refs[name] for name in names if name in refs), wanted if HASH.match(wanted) else None)
    if exact is not None:
        try:
            _git(view, url, ["fetch", "--quiet", "--no-tags", "--depth=1", "--", url, exact])
        except InputError:
            if exact in refs.values():
                raise
        else:
            return view.resolve(exact)
    # A short hash, or a host that gives no single commits: everything is needed.
    _git(view, url, ["fetch", "--quiet", "--", url, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"])
    return view.resolve(wanted)


def _git(view: GitView, url: str, arguments: list[str]) -> str:
    try:
        import git  # takes 100 ms, and only a remote project needs it
    except ImportError as error:
        raise PrerequisiteError("git is not installed", next_step="Install git, then try again.") from error

    settings = [part for key, value in _SETTINGS.items() for part in ("-c", f"{key}={value}")]
    # No terminal (a new session) means that neither git nor ssh can stop and ask for a password.
    quiet: dict[str, Any] = {"start_new_session": True, "kill_after_timeout": _PATIENCE_SEC}
    env = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_CONFIG_COUNT": "0"}
    env |= {"GIT_OBJECT_DIRECTORY": str(view.path / "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
    try:
        command = ["git", f"--git-dir={view.path}", *settings, *arguments]
        return str(git.Git(str(view.path)).execute(command, env=env, **quiet))
    except git.exc.GitCommandNotFound as error:
        raise PrerequisiteError("git is not installed", next_step="Install git, then try again.") from error
    except git.exc.GitCommandError as error:
        raise InputError(
            f"the repository could not be read: {_reason(str(error.stderr))}",
            where=public(url),
            next_step="Check the address, your network and your access: `git ls-remote ADDRESS` must work.",
        ) from error


def _reason(stderr: str) -> str:
    lines = [line.strip().strip("'") for line in stderr.splitlines() if line.strip()]
    found = next(
        (line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "ssh:"))), lines[-1] if lines else ""
    )
    return shown(found.encode("utf-8", "surrogateescape"))[:300] or "git failed without a word"
