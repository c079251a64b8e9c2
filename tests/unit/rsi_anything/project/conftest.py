"""Repositories made on the spot, with a git that reads no one's configuration."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rsi_anything.project.checkout import Project, open_project

Content = str | bytes


class Repository:
    """A git repository in a folder; its commits have a fixed author and date."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, stdin: bytes | None = None) -> str:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.invalid",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.invalid",
            "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], env=env, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def write(self, files: dict[str, Content]) -> None:
        for name, content in files.items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, files: dict[str, Content], message: str = "step") -> str:
        self.write(files)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def commit_tree(self, listing: bytes) -> str:
        """Commit a tree made by hand, which need not be one that git itself would make."""
        tree = self.git("mktree", "-z", stdin=listing)
        commit = self.git("commit-tree", "-m", "made by hand", tree)
        self.git("update-ref", "refs/heads/main", commit)
        return commit

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "source" / "repo")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def project_of(tmp_path: Path) -> Callable[[dict[str, Content]], Project]:
    """Return a function that makes a project from a plain folder."""

    def make(files: dict[str, Content], name: str = "sample") -> Project:
        folder = tmp_path / "plain" / name
        for path, content in files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
        return open_project(str(folder), None, cache=tmp_path / "cache")

    return make
