"""Reads a git repository that may be hostile, through a private repository of our own.

The private one borrows the objects and copies the refs. The repository's own configuration, hooks, filters, attributes
and replacements never count, because git never runs with it.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from harness.errors import InputError, PrerequisiteError, RsiError
from rsi_anything.project.tree import shown

HASH = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_REF = re.compile(r"refs/(heads|tags|remotes)/[^\x00-\x20~^:?*\[\\\x7f]+\Z")
_MOST_REFS = 20_000
_MOST_COMPARED = 500_000
_PATIENCE_SEC = 600
_POINTER = b"version https://git-lfs.github.com/spec/"


def clean_environment() -> dict[str, str]:
    """Return an environment in which git reads no configuration but the private repository's and asks nobody."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "XDG_CONFIG_HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def run_git(arguments: list[str], *, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git with a clean environment; its exit status is the caller's to judge."""
    try:
        return subprocess.run(
            ["git", *arguments],
            env=env or clean_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE_SEC,
        )
    except FileNotFoundError as error:
        raise PrerequisiteError("git is not installed", next_step="Install git, then try again.") from error
    except subprocess.TimeoutExpired as error:
        what = f"git {arguments[1]} took more than {_PATIENCE_SEC} s"
        raise RsiError(what, where=arguments[0], next_step="Check the repository with `git fsck`.") from error


def git_folder(path: Path) -> tuple[Path, Path] | None:
    """Return the git folder and the common git folder of a path, or None where it is no repository itself."""
    inner = path / ".git"
    found = path
    if inner.is_dir():
        found = inner
    elif inner.is_file():
        text = inner.read_bytes()[:4096].decode("utf-8", "surrogateescape").strip()
        if not text.startswith("gitdir: "):
            return None
        found = path / text.removeprefix("gitdir: ")
    common = found
    if (found / "commondir").is_file():
        common = found / (found / "commondir").read_bytes()[:4096].decode("utf-8", "surrogateescape").strip()
    if not ((found / "HEAD").is_file() and (common / "objects").is_dir() and (common / "refs").is_dir()):
        return None
    return found.resolve(), common.resolve()


def read_refs(git_dir: Path, common: Path) -> dict[str, str]:
    """Return branches, tags and remote branches with their hashes, and HEAD where it has a commit."""
    refs: dict[str, str] = {}
    packed = common / "packed-refs"
    if packed.is_file() and not packed.is_symlink():
        with packed.open("rb") as file:
            for line in file:
                value, _, name = line.decode("utf-8", "replace").strip().partition(" ")
                if HASH.match(value) and _usable_ref(name) and len(refs) < _MOST_REFS:
                    refs[name] = value
    for kind in ("heads", "tags", "remotes"):
        for folder, _, names in os.walk(common / "refs" / kind):
            for name in names:
                file_path = Path(folder, name)
                ref = file_path.relative_to(common).as_posix()
                value = _first_line(file_path)
                if HASH.match(value) and _usable_ref(ref) and len(refs) < _MOST_REFS:
                    refs[ref] = value
    head = _first_line(git_dir / "HEAD")
    head = refs.get(head.removeprefix("ref: ").strip(), "") if head.startswith("ref: ") else head
    if HASH.match(head):
        refs["HEAD"] = head
    return refs


def _usable_ref(name: str) -> bool:
    return bool(_REF.match(name)) and ".." not in name and "@{" not in name and not name.endswith((".lock", "/", "."))


def _first_line(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(1024).decode("utf-8", "replace").partition("\n")[0].strip()


class GitView:
    """A private bare repository that sees another one's objects and refs; use it as a context."""

    def __init__(self, *, git_dir: Path | None, common: Path | None, parent: Path) -> None:
        """Make the view in a new folder below `parent`; without a git folder it starts empty, to be fetched into."""
        self.source = git_dir
        self.refs = read_refs(git_dir, common) if git_dir and common else {}
        parent.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=".view-", dir=parent))
        long_hash = any(len(value) == 64 for value in self.refs.values())
        done = run_git(
            [
                "init",
                "--quiet",
                "--bare",
                "--template=",
                f"--object-format={'sha256' if long_hash else 'sha1'}",
                str(self.path),
            ]
        )
        if done.returncode:
            self.close()
            raise RsiError("git could not make a repository", where=str(self.path), next_step=_said(done.stderr))
        if common is not None:
            self._borrow(common)

    def _borrow(self, common: Path) -> None:
        objects = str(common / "objects")
        if "\n" in objects:
            raise InputError(
                "the path of the repository holds a newline", where=repr(objects), next_step="Rename the folder."
            )
        quoted = '"' + objects.replace("\\", "\\\\").replace('"', '\\"') + '"'
        (self.path / "objects" / "info").mkdir(exist_ok=True)
        (self.path / "objects" / "info" / "alternates").write_bytes(os.fsencode(quoted) + b"\n")
        refs = sorted((name, value) for name, value in self.refs.items() if name != "HEAD")
        (self.path / "packed-refs").write_text("".join(f"{value} {name}\n" for name, value in refs), encoding="utf-8")
        if "HEAD" in self.refs:
            (self.path / "HEAD").write_text(self.refs["HEAD"] + "\n", encoding="ascii")

    def __enter__(self) -> Self:
        """Return the view."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the private repository."""
        self.close()

    def close(self) -> None:
        """Remove the private repository."""
        shutil.rmtree(self.path, ignore_errors=True)

    def git(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git on the private repository."""
        return run_git([f"--git-dir={self.path}", *arguments], env=env)

    def resolve(self, revision: str) -> str | None:
        """Return the full hash of a commit, branch or tag, or None where there is none of that name."""
        if not revision or revision.startswith("-") or any(ord(char) <= 32 for char in revision):
            return None
        for name in (revision, f"refs/remotes/origin/{revision}"):
            done = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            found = done.stdout.decode("ascii", "replace").strip()
            if done.returncode == 0 and HASH.match(found):
                return found
        return None

    def has_folder(self, commit: str, folder: str) -> bool:
        """Say whether the commit's tree has this folder (`.` is the root)."""
        return self.git("cat-file", "-t", treeish(commit, folder)).stdout.strip() == b"tree"

    def folders(self, commit: str, parent: str) -> list[str]:
        """Return the names of the folders directly below `parent`."""
        listed = self.git("ls-tree", "-d", "-z", "--name-only", treeish(commit, parent)).stdout
        return [shown(name) for name in listed.split(b"\0") if name]

    def changed(self, worktree: Path, folder: str) -> list[str]:
        """Return the paths of a working tree, in a folder of it, that differ from HEAD, untracked ones included."""
        env = self._worktree_environment(worktree)
        flags = ["--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all", "--untracked-files=normal"]
        done = self.git("status", *flags, "--", folder, env=env)
        if done.returncode:
            raise RsiError("git could not compare the working tree", where=str(worktree), next_step=_said(done.stderr))
        names = [item[3:] for item in done.stdout.split(b"\0") if len(item) > 3]
        return sorted(shown(name) for name in names if not self._is_pointer(name))

    def worktree_files(self, worktree: Path) -> list[bytes]:
        """Return the names of all tracked and untracked files of a working tree, ignored ones left out."""
        env = self._worktree_environment(worktree)
        done = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard", env=env)
        if done.returncode:
            raise RsiError("git could not list the working tree", where=str(worktree), next_step=_said(done.stderr))
        return sorted({name for name in done.stdout.split(b"\0") if name})

    def _worktree_environment(self, worktree: Path) -> dict[str, str]:
        """Return an environment with a private copy of the index, so that nothing of the project is written."""
        env = {**clean_environment(), "GIT_WORK_TREE": str(worktree), "GIT_INDEX_FILE": str(self.path / "index")}
        if (self.path / "index").exists() or self.source is None:
            return env
        self._refuse_endless(worktree)
        for name in ("index", "info/exclude"):
            if (self.source / name).is_file() and not (self.source / name).is_symlink():
                (self.path / name).parent.mkdir(exist_ok=True)
                # With its time: git compares it with the files' to see which of them it must look into.
                shutil.copy2(self.source / name, self.path / name)
        if self.git("ls-files", "-z", "--cached", env=env).returncode:
            (self.path / "index").unlink(missing_ok=True)  # unreadable here, such as one half of a split index
        if not (self.path / "index").exists():
            self.git("read-tree", "HEAD", env=env)
        return env

    def _refuse_endless(self, worktree: Path) -> None:
        """Stop before a tree of endless copies is read into an index."""
        with listing(self.path, "HEAD") as names:
            if any(count > _MOST_COMPARED for count, _ in enumerate(names)):
                raise InputError(
                    f"the repository holds more than {_MOST_COMPARED} files, too many to compare",
                    where=str(worktree),
                    next_step="Give a bare clone of it.",
                )

    def _is_pointer(self, name: bytes) -> bool:
        """Say whether HEAD has a Git LFS pointer here: the working tree then differs by design."""
        done = run_git([f"--git-dir={self.path}", "cat-file", "-s", os.fsdecode(b"HEAD:" + name)])
        if done.returncode or int(done.stdout) > 1024:
            return False
        return run_git([f"--git-dir={self.path}", "cat-file", "blob", os.fsdecode(b"HEAD:" + name)]).stdout.startswith(
            _POINTER
        )

    def remote_url(self) -> str | None:
        """Return the URL of `origin` as the repository's configuration has it, read as plain data."""
        if self.source is None:
            return None
        common = git_common(self.source)
        done = run_git(["config", "--file", str(common / "config"), "--no-includes", "--get", "remote.origin.url"])
        return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


def git_common(git_dir: Path) -> Path:
    """Return the git folder that holds configuration and objects, which differs for an added worktree."""
    named = git_dir / "commondir"
    return git_dir / _first_line(named) if named.is_file() else git_dir


def treeish(commit: str, folder: str) -> str:
    """Return what git calls a folder at a commit; `.` is the root."""
    return f"{commit}^{{tree}}" if folder == "." else f"{commit}:{folder}"


def _said(stderr: bytes) -> str:
    lines = [line for line in shown(stderr.replace(b"\n", b"\r")).split("\\r") if line.strip()]
    return ("git said: " + lines[-1][:300]) if lines else "Run `git fsck` in the repository."


@contextmanager
def listing(git_dir: Path, *arguments: str) -> Iterator[Iterator[bytes]]:
    """Give the items of `git ls-tree -r` one by one; git ends when the reader has seen enough."""
    command = ["git", f"--git-dir={git_dir}", "ls-tree", "-r", "-z", "--full-tree", *arguments]
    with subprocess.Popen(
        command, env=clean_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        try:
            yield _split_zero(cast("IO[bytes]", running.stdout))
        finally:
            running.kill()


def _split_zero(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(65536):
        *items, rest = (rest + chunk).split(b"\0")
        yield from items
