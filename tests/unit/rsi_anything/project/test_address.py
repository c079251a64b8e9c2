from pathlib import Path

import pytest

from harness.errors import InputError, RefusedError
from rsi_anything.project.address import Address, parse, public, published


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/owner/name.git",
        "https://example.com:8443/owner/name",
        "ssh://git@example.com/owner/name",
        "ssh://git@[2001:db8::1]/owner/name",
        "git@example.com:owner/name.git",
    ],
)
def test_remote_addresses_are_kept(url: str) -> None:
    assert parse(url) == Address(url=url)


def test_file_addresses_and_paths_are_local(tmp_path: Path) -> None:
    assert parse(f"file://{tmp_path}") == Address(path=tmp_path)
    assert parse(str(tmp_path)) == Address(path=tmp_path)
    odd = tmp_path / "git@host:name"
    odd.mkdir()
    assert parse(str(odd)) == Address(path=odd)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% /tmp/pwned",
        "fd::17",
        "http://example.com/x",
        "git://example.com/x",
        "ftp://example.com/x",
        "https://user:secret@example.com/x",
        "https://token@example.com/x",
    ],
)
def test_addresses_that_could_do_harm_are_refused(url: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse(url)
    assert caught.value.next_step
    assert "secret" not in " ".join(caught.value.lines())


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a\nb",
        "https://-oProxyCommand=x/y",
        "ssh://-oProxyCommand=x/y",
        "https:///path",
        "https://example.com/x?token=1",
        "https://example.com:port/x",
        "file://elsewhere/x",
        "--upload-pack=x",
    ],
)
def test_broken_addresses_say_what_to_give(url: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(url)
    assert caught.value.next_step


def test_credentials_are_stripped() -> None:
    assert public("https://user:secret@example.com/x.git?token=1#f") == "https://example.com/x.git"
    assert public("ssh://git@example.com/x") == "ssh://git@example.com/x"
    assert published("https://user:secret@example.com/x.git") == "https://example.com/x.git"
    assert published("git@example.com:o/n.git") == "git@example.com:o/n.git"


@pytest.mark.parametrize("url", [None, "/home/me/x", "../x", "file:///x", "ext::sh -c x", "https://[broken"])
def test_what_is_not_public_is_local(url: str | None) -> None:
    assert published(url) == "local"
