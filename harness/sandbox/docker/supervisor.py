"""The companion on the host of one command in a container: it outlives the engine and keeps output and exit code.

It speaks to the socket itself, with the standard library alone, so that it starts in a few milliseconds. It reads its
request from stdin and says on stdout that the command runs.

Request: folder, socket, exec (its id), output, max_output, oom (file of the kernel's count, or "").
"""

import json
import marshal
import os
import select
import socket
import sys
import time
from http.client import HTTPConnection, HTTPException
from typing import Any

from harness.sandbox.docker import memory
from harness.sandbox.inside.output import Pump, open_output
from harness.sandbox.inside.plain import write_whole

_LOOK_SEC = 1.0
"""How often the engine is asked whether a command ended whose output a child of it holds open."""
_PATIENCE_SEC = 30.0
"""How long an engine that does not answer is asked again for an exit code."""


class Connection(HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def begin(path: str, exec_id: str) -> tuple[socket.socket, bytes]:
    """Start the command; return the connection on which its output comes, and what has come with the answer.

    Raises:
        OSError: the engine refused or does not answer.
    """
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    held.connect(path)
    body = b'{"Detach": false, "Tty": false}'
    head = (
        f"POST /exec/{exec_id}/start HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    held.sendall(head.encode("ascii") + body)
    said = b""
    while b"\r\n\r\n" not in said:
        chunk = held.recv(4096)
        if not chunk:
            break
        said += chunk
    answer, _, rest = said.partition(b"\r\n\r\n")
    status = answer.split(b" ", 2)[1:2]
    if status not in ([b"101"], [b"200"]):
        raise OSError(f"{answer[:200].decode(errors='replace')} {rest[:300].decode(errors='replace')}".strip())
    return held, rest


def inspect(path: str, exec_id: str) -> dict[str, Any] | None:
    """Return what the engine says of the command; None where it does not answer or knows it no more."""
    connection = Connection(path, timeout=10)
    try:
        connection.request("GET", f"/exec/{exec_id}/json")
        answer = connection.getresponse()
        text = answer.read()
        found = json.loads(text) if answer.status == 200 else None
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return found if isinstance(found, dict) else None


class Frames:
    """Takes the frames apart in which an engine sends output: 1 byte stream, 3 unused, 4 length, then the bytes."""

    def __init__(self) -> None:
        self._kept = b""
        self._left = 0

    def feed(self, data: bytes) -> bytes:
        """Return the output that is in the next bytes of the connection."""
        found = []
        data = self._kept + data
        self._kept = b""
        while data:
            if self._left == 0:
                if len(data) < 8:
                    self._kept = data
                    break
                self._left = int.from_bytes(data[4:8], "big")
                data = data[8:]
                continue
            piece = data[: self._left]
            self._left -= len(piece)
            data = data[len(piece) :]
            found.append(piece)
        return b"".join(found)


def follow(held: socket.socket, rest: bytes, pump: Pump, request: dict[str, Any]) -> None:
    """Copy the output until it ends, or until the command ended and nothing of it comes any more."""
    frames = Frames()
    pump.keep(frames.feed(rest))
    held.setblocking(False)
    poll = select.poll()
    poll.register(held, select.POLLIN)
    while True:
        if not poll.poll(_LOOK_SEC * 1000):
            seen = inspect(request["socket"], request["exec"])
            if seen is not None and not seen.get("Running"):
                return
            continue
        try:
            chunk = held.recv(1 << 16)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not chunk:
            return
        pump.keep(frames.feed(chunk))


def exit_code(request: dict[str, Any]) -> int | None:
    """Return the command's exit code; None where container or engine are gone."""
    deadline = time.monotonic() + _PATIENCE_SEC
    pause = 0.001
    while time.monotonic() < deadline:
        seen = inspect(request["socket"], request["exec"])
        if seen is not None and not seen.get("Running") and seen.get("ExitCode") is not None:
            return int(seen["ExitCode"])
        time.sleep(pause)
        pause = min(0.2, pause * 2)
    return None


def main() -> None:
    """Say on stdout who this is, start the command that is then asked for on stdin, and follow it to its end."""
    if os.fork():
        os._exit(0)  # so that the engine has no child to wait for
    os.setsid()
    os.write(1, f"{os.getpid()}\n".encode())
    request = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the engine that started this process
    before = memory.count(request["oom"]) if request["oom"] else None
    output = open_output(request["output"])
    held, rest = begin(request["socket"], request["exec"])
    write_whole(f"{request['folder']}/started", "\n")
    os.write(1, b"ready")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    follow(held, rest, Pump(None, output, request["max_output"]), request)
    after = memory.count(request["oom"]) if request["oom"] else None
    code = exit_code(request)
    if code is not None:
        starved = code != 0 and before is not None and after is not None and after > before
        write_whole(f"{request['folder']}/ended", f"{code} {int(starved)}\n")
    os._exit(0)
