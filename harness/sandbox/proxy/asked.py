"""Reads what a client of the proxy asks for; the client is hostile."""

import re
from dataclasses import dataclass

MAX_HEAD = 32 << 10
"""Most bytes of a request's head."""

_LINE = re.compile(rb"([A-Z]{1,16}) (\S{1,8192}) HTTP/1\.([01])\Z")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[ \t]*([^\r\n\0]*)\Z")
_PLACE = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?\Z")
_HOP = frozenset((b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"upgrade"))


class Refused(Exception):
    """The request is not carried out; the text is for the client and for the log."""


@dataclass(frozen=True)
class Asked:
    """One request: where it goes, and what is sent there first; nothing for a tunnel."""

    host: str
    port: int
    tunnel: bool
    head: bytes = b""


def read(head: bytes) -> Asked:
    """Return what a whole head, up to the empty line, asks for.

    Raises:
        Refused: it is no request that a proxy carries out.
    """
    first, *rest = head.split(b"\r\n")
    line = _LINE.match(first)
    if line is None:
        raise Refused("this is no HTTP request to a proxy")
    headers = [_HEADER.match(each) for each in rest if each]
    if not all(headers):
        raise Refused("a header is malformed")
    method, target = line[1], line[2].decode("latin-1")
    if method == b"CONNECT":
        host, port = place(target, None)
        return Asked(host, port, tunnel=True)
    if not target.lower().startswith("http://"):
        raise Refused("only CONNECT and http:// addresses are carried out")
    authority, slash, path = target[7:].partition("/")
    host, port = place(authority, 80)
    kept = [each[0] for each in headers if each and each[1].lower() not in {*_HOP, b"host"}]
    lines = [
        method + b" /" + path.encode("latin-1") + b" HTTP/1.1" if slash else method + b" / HTTP/1.1",
        b"Host: " + authority.encode("latin-1"),  # the client's own Host could name another site
        *kept,
        b"Connection: close",  # a second request on this connection would not be looked at
    ]
    return Asked(host, port, tunnel=False, head=b"\r\n".join(lines) + b"\r\n\r\n")


def place(text: str, port: int | None) -> tuple[str, int]:
    """Return host and port of an authority; `port` is meant where it names none.

    Raises:
        Refused: it is no host and port.
    """
    found = _PLACE.match(text)
    number = int(found[2]) if found and found[2] else port
    if found is None or number is None or not 0 < number < 65536:
        raise Refused(f"{text[:100]!r} is no host and port")
    return found[1].strip("[]"), number
