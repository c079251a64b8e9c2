"""Fetching, against a repository on this disk: the one transport that a test may allow for it."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import InputError
from rsi_anything.project import checkout, fetch
from rsi_anything.project.address import Address
from rsi_anything.project.checkout import open_project


@pytest.fixture
def remote(repository: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(fetch._SETTINGS, "protocol.file.allow", "always")
    url = f"file://{repository.path}"
    monkeypatch.setattr(checkout.address, "parse", lambda _where: Address(url=url))
    return repository


@pytest.mark.parametrize("how", ["head", "branch", "full", "short"])
def test_one_commit_is_fetched(remote: Any, cache: Path, how: str) -> None:
    first = remote.commit({"a.py": "1\n"})
    remote.git("branch", "old")
    last = remote.commit({"a.py": "2\n"})
    named = {"head": None, "branch": "old", "full": first, "short": first[:10]}[how]
    project = open_project("https://example.invalid/x", named, cache=cache)
    assert project.commit == (last if how == "head" else first)
    assert project.read("a.py", 10) == (b"2\n" if how == "head" else b"1\n")
    assert project.dirty == ()
    assert [path.name[:1] for path in (cache / "checkouts").iterdir()] != ["."]


def test_an_unknown_commit_names_branches(remote: Any, cache: Path) -> None:
    remote.commit({"a.py": "1\n"})
    with pytest.raises(InputError, match="no commit") as caught:
        open_project("https://example.invalid/x", "mian", cache=cache)
    assert "main" in caught.value.next_step


def test_an_empty_remote(remote: Any, cache: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        open_project("https://example.invalid/x", None, cache=cache)


def test_a_remote_that_cannot_be_read(cache: Path) -> None:
    with pytest.raises(InputError, match="could not be read") as caught:
        open_project("https://localhost:1/owner/name.git", None, cache=cache)
    assert "git ls-remote" in caught.value.next_step
    assert list((cache / "checkouts").iterdir()) == []


def test_the_file_transport_is_closed_by_default(repository: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit({"a.py": "1\n"})
    monkeypatch.setattr(checkout.address, "parse", lambda _where: Address(url=f"file://{repository.path}"))
    with pytest.raises(InputError, match="not allowed"):
        open_project("https://example.invalid/x", None, cache=cache)


def test_a_url_has_no_working_tree(cache: Path) -> None:
    with pytest.raises(InputError, match="no working tree"):
        open_project("https://example.invalid/x", None, cache=cache, dirty=True)
