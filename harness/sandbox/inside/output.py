"""Copies what a process writes to a file of the host up to a bound and drops the rest, so that it never waits."""

import os

_CHUNK = 1 << 16
MARK = b"\n[output cut here: its bound is reached]\n"


def open_output(path: str) -> int:
    """Open the file that output is added to; a link in its place is refused."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


class Pump:
    """One pipe and the file it is copied to."""

    def __init__(self, source: int | None, output: int, room: int) -> None:
        """`source` is None where the bytes are given to `keep` by somebody who reads them elsewhere."""
        if source is not None:
            os.set_blocking(source, False)
        self.source = source
        self.output = output
        self.room = room
        self.cut = False

    def once(self) -> bool:
        """Copy what is there; return whether there was anything. At the end of the pipe `source` becomes None."""
        if self.source is None:
            return False
        try:
            chunk = os.read(self.source, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            os.close(self.source)
            self.source = None
            return False
        self.keep(chunk)
        return True

    def keep(self, chunk: bytes) -> None:
        """Write as much of these bytes as there is room for; say once in the file that the rest is left out."""
        kept = chunk[: self.room]
        lost = len(chunk) > self.room
        try:
            while kept:
                written = os.write(self.output, kept)
                self.room -= written
                kept = kept[written:]
            if lost and not self.cut:
                self.cut = True
                os.write(self.output, MARK)
        except OSError:
            self.room = 0  # the host's disk is full; the process must not wait for it

    def drain(self) -> None:
        """Copy what a process wrote before it ended; what background children go on writing is not waited for."""
        for _ in range(32):  # a pipe holds 16 chunks at most
            if not self.once():
                return

    def close(self) -> None:
        """Close the file."""
        os.close(self.output)
