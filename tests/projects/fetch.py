"""Lays the real projects into a folder, one git checkout each, at the commits that their answers name.

    python tests/projects/fetch.py DIR [NAME ...]

With RSI_TEST_PROJECTS, repositories come from that folder (OWNER/NAME or NAME, with or without .git, bare or not);
without it, from their public addresses. Nothing of a project is run here.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Text:
    """A file that a project downloads when it is run, taken from another repository and committed on top."""

    base: str
    """Commit of the project that it is laid upon."""
    project: str
    commit: str
    source: str
    target: str
    sha256: str


TEXTS = {
    "nanogpt": Text(
        base="3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
        project="https://github.com/karpathy/char-rnn",
        commit="6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e",
        source="data/tinyshakespeare/input.txt",
        target="data/shakespeare_char/input.txt",
        sha256="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    )
}


def git(*arguments: str, cwd: Path | None = None) -> bytes:
    """Run git without anybody's configuration, on repositories that another user may own."""
    environment = {
        **os.environ,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in IDENTITY.items()},
    }
    command = ["git", "-c", "safe.directory=*", "-c", f"core.hooksPath={os.devnull}", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, check=True, stdout=subprocess.PIPE).stdout


# The commit that adds a text has the same hash wherever it is made.
IDENTITY = {"NAME": "RSI-Anything", "EMAIL": "tests@rsi-anything.invalid", "DATE": "2026-01-01T00:00:00+0000"}


def place_of(url: str) -> str:
    """Return where a repository is cloned from: the folder of mirrors where one is given, else its address."""
    mirrors = os.environ.get("RSI_TEST_PROJECTS")
    if not mirrors:
        return url
    owner, name = url.rstrip("/").split("/")[-2:]
    for path in (f"{owner}/{name}", name):
        for found in (Path(mirrors, path), Path(mirrors, path + ".git")):
            if found.is_dir():
                return str(found.resolve())
    raise SystemExit(f"{mirrors} holds no {owner}/{name}: clone {url} there, or unset RSI_TEST_PROJECTS")


def names() -> list[str]:
    """Return the names of all projects: the folders with answers beside this script."""
    return sorted(path.parent.name for path in HERE.glob("*/answers.toml"))


def fetch(name: str, into: Path) -> Path:
    """Make a checkout of one project below `into` anew; return its path."""
    source = tomllib.loads((HERE / name / "answers.toml").read_text(encoding="utf-8"))["source"]
    text, checkout = TEXTS.get(name), into / name
    shutil.rmtree(checkout, ignore_errors=True)
    git("clone", "--quiet", "--no-checkout", place_of(source["project"]), str(checkout))
    git("remote", "set-url", "origin", source["project"], cwd=checkout)
    git("checkout", "--quiet", "--detach", text.base if text else source["commit"], cwd=checkout)
    if text:
        content = text_of(text, into)
        (checkout / text.target).write_bytes(content)
        git("add", "--force", text.target, cwd=checkout)
        git("commit", "--quiet", "--no-gpg-sign", "-m", f"Add {text.target}", cwd=checkout)
    head = git("rev-parse", "HEAD", cwd=checkout).decode().strip()
    if head != source["commit"]:
        raise SystemExit(f"{name} is at {head}, its answers say {source['commit']}")
    return checkout


def text_of(text: Text, into: Path) -> bytes:
    """Return the content of a text, checked against its digest."""
    store = into / ".texts.git"
    shutil.rmtree(store, ignore_errors=True)
    git("clone", "--quiet", "--bare", place_of(text.project), str(store))
    content = git("show", f"{text.commit}:{text.source}", cwd=store)
    shutil.rmtree(store)
    if hashlib.sha256(content).hexdigest() != text.sha256:
        raise SystemExit(f"{text.source} of {text.project} is not the text the answers were written for")
    return content


def main() -> None:
    """Fetch the projects named on the command line, or all; print where each lies."""
    parser = argparse.ArgumentParser(description="Lay the real projects into a folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="projects; all where none is named")
    options = parser.parse_args()
    unknown = set(options.names) - set(names())
    if unknown:
        raise SystemExit(f"no project is called {', '.join(sorted(unknown))}; there are {', '.join(names())}")
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.names or names():
        sys.stdout.write(f"{name}\t{fetch(name, options.folder)}\n")


if __name__ == "__main__":
    main()
