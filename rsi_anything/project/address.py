"""What a person typed for a project: a local path or a git URL, and what may be written down of it."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from harness.errors import InputError, RefusedError

_SCP = re.compile(r"(?P<user>[A-Za-z0-9_.-]+)@(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]*):(?P<path>(?!//)[^\s]+)\Z")
_HOST = re.compile(r"([0-9A-Fa-f]*:[0-9A-Fa-f:.]*|[A-Za-z0-9][A-Za-z0-9_.-]*)\Z")
_TRANSPORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ALLOWED = "an https:// or ssh:// address, git@host:path, file:///path or a folder"


@dataclass(frozen=True)
class Address:
    """Either a local `path` or a remote `url`, never both."""

    path: Path | None = None
    url: str | None = None


def parse(where: str) -> Address:
    """Return the address that was meant; anything git would run a program for is refused."""
    if not where or any(ord(char) < 32 or ord(char) == 127 for char in where):
        raise InputError(
            "the project's address is empty or holds control characters",
            where=repr(where),
            next_step=f"Give {_ALLOWED}.",
        )
    if _TRANSPORT.match(where):
        raise RefusedError(
            "this kind of git address can start programs, so it is not used", where=where, next_step=f"Give {_ALLOWED}."
        )
    if _SCHEME.match(where):
        return _from_url(where)
    if Path(where).expanduser().exists():
        return Address(path=Path(where).expanduser())
    if _SCP.match(where):
        return Address(url=where)
    if where.startswith("-"):
        raise InputError("a project's address cannot begin with '-'", where=where, next_step=f"Give {_ALLOWED}.")
    return Address(path=Path(where).expanduser())


def _from_url(where: str) -> Address:
    try:
        parts = urlsplit(where)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        raise InputError(f"not an address: {error}", next_step=f"Give {_ALLOWED}.") from error
    scheme = parts.scheme.lower()
    if scheme == "file":
        if parts.netloc not in {"", "localhost"}:
            raise InputError("a file:// address names a host", where=public(where), next_step="Write file:///path.")
        return Address(path=Path(unquote(parts.path)))
    if scheme not in {"https", "ssh"}:
        raise RefusedError(f"{scheme}:// addresses are not used", where=public(where), next_step=f"Give {_ALLOWED}.")
    if parts.password is not None or (scheme == "https" and parts.username is not None):
        raise RefusedError(
            "the address holds a user name or a password, which other users of this machine could read",
            where=public(where),
            next_step="Give it without, and let git's credential helper answer.",
        )
    if not _HOST.match(parts.hostname or "") or (parts.username or "").startswith("-"):
        raise InputError("the address has no usable host name", where=public(where), next_step=f"Give {_ALLOWED}.")
    if parts.query or parts.fragment:
        raise InputError("the address has a query or a fragment", where=public(where), next_step="Leave it out.")
    return Address(url=where)


def public(url: str) -> str:
    """Return the URL without user, password, query and fragment; `git@` of an ssh address stays."""
    if _SCP.match(url) or not _SCHEME.match(url):
        return url
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    keep = "git@" if parts.scheme == "ssh" and parts.netloc.startswith("git@") else ""
    return urlunsplit((parts.scheme, keep + host, parts.path, "", ""))


def published(url: str | None) -> str:
    """Return what may be recorded as a project's repository: a public URL, or `local`."""
    if url is None or any(ord(char) < 32 for char in url):
        return "local"
    if _SCP.match(url):
        return url
    try:
        return public(url) if urlsplit(url).scheme in {"https", "http", "ssh", "git"} else "local"
    except ValueError:
        return "local"
