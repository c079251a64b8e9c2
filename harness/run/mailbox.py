"""The mailbox of a run: a folder shared with the box, through which an agent hands in and reads where it stands.

The agent writes `inbox/ID.req` and reads `outbox/ID.reply`; nothing in the inbox is trusted. Work done for one poll is
bounded, whatever lies there.
"""

import contextlib
import heapq
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from harness.errors import RsiError
from harness.run.store.hostile import Unreadable, clean_text, open_folder, read_regular
from harness.sandbox.base import Mount

TARGET = "/run/rsi"
"""Where a box sees the mailbox, unless RSI_MAILBOX says otherwise."""
SCRIPTS = ("rsi-submit", "rsi-status")
MAX_MESSAGE = 4 << 10
MAX_LOOK = 200_000
"""Most names that one poll looks at."""
MAX_REQUESTS = 100
"""Most requests that one poll returns."""
MAX_SWEPT = 1000
"""Most foreign files that one poll deletes."""

_ID = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Request:
    """An agent's wish to hand in."""

    id: str
    message: str


class Mailbox:
    """The host's side of a mailbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self._outbox = folder / "outbox"
        self._bin = folder / "bin"

    def create(self) -> None:
        """Make the folders and put the scripts there; done again, it repairs them."""
        try:
            for folder, mode in (
                (self.folder, 0o755),
                (self.inbox, 0o1777),
                (self._outbox, 0o755),
                (self._bin, 0o755),
            ):
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(mode)
            for name in SCRIPTS:
                source = resources.files("harness.run") / "scripts" / name
                _replace(self._bin, name, source.read_bytes(), 0o755)
        except OSError as error:
            raise _cannot("set up", error, self.folder) from error

    def mounts(self) -> tuple[Mount, ...]:
        """Return what a box must see below TARGET; the agent can write the inbox alone."""
        return (
            Mount(self.inbox, f"{TARGET}/inbox", read_only=False),
            Mount(self._outbox, f"{TARGET}/outbox"),
            Mount(self._bin, f"{TARGET}/bin"),
        )

    def requests(self) -> list[Request]:
        """Return the requests that have no reply yet, oldest first; whatever else lies in the inbox is swept away."""
        try:
            inbox = open_folder(self.inbox)
        except Unreadable:
            # An agent that broke its own inbox cannot hand in; nobody else is hurt.
            return []
        try:
            return self._read(inbox)
        finally:
            os.close(inbox)

    def reply(self, id: str, code: int, text: str) -> bool:  # noqa: A002 - the word of the journal and of the files
        """Answer a request; `code` becomes rsi-submit's exit status. Return False where it has an answer already."""
        _check_id(id)
        content = f"{code}\n{text.rstrip()}\n".encode("utf-8", "replace")
        try:
            written = _replace(self._outbox, f"{id}.reply", content, 0o644, keep=True)
        except OSError as error:
            raise _cannot("write to", error, self._outbox) from error
        self._discard(id)
        return written

    def replied(self, id: str) -> bool:  # noqa: A002 - the word of the journal and of the files
        """Say whether a request has its answer."""
        _check_id(id)
        return os.path.lexists(self._outbox / f"{id}.reply")

    def status(self, text: str, data: Mapping[str, Any]) -> None:
        """Replace what rsi-status prints: `text` for people, `data` for programs."""
        encoded = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2).encode("utf-8", "replace")
        try:
            _replace(self._outbox, "status.txt", (text.rstrip() + "\n").encode("utf-8", "replace"), 0o644)
            _replace(self._outbox, "status.json", encoded + b"\n", 0o644)
        except OSError as error:
            raise _cannot("write to", error, self._outbox) from error

    def _read(self, inbox: int) -> list[Request]:
        found = []
        for name in self._names(inbox):
            # The times are the agent's own and only put its own requests in order.
            try:
                when = os.stat(name, dir_fd=inbox, follow_symlinks=False).st_mtime_ns
                content = read_regular(inbox, name, MAX_MESSAGE, cut=True)
            except FileNotFoundError:
                continue
            except (OSError, Unreadable):
                _sweep(inbox, [name])
                continue
            if content is not None:
                message = clean_text(content.decode("utf-8", "replace"), MAX_MESSAGE)
                found.append((when, Request(name.removesuffix(".req"), message)))
        return [request for _, request in sorted(found, key=lambda each: (each[0], each[1].id))]

    def _names(self, inbox: int) -> list[str]:
        """Return the names of open requests; an id of rsi-submit begins with the time, so the first are the oldest."""
        names: list[str] = []
        foreign: list[str] = []
        with os.scandir(inbox) as entries:
            for seen, entry in enumerate(entries):
                name = entry.name
                if seen >= MAX_LOOK:
                    break
                if name.startswith("."):
                    continue
                if name.endswith(".req") and _ID.fullmatch(name[:-4]):
                    names.append(name)
                elif len(foreign) < MAX_SWEPT:
                    foreign.append(name)
        _sweep(inbox, foreign)
        first = heapq.nsmallest(MAX_REQUESTS, names)
        answered = [name for name in first if self.replied(name[:-4])]
        _sweep(inbox, answered)
        return [name for name in first if name not in answered]

    def _discard(self, id: str) -> None:  # noqa: A002 - the word of the journal and of the files
        with contextlib.suppress(Unreadable):
            inbox = open_folder(self.inbox)
            try:
                _sweep(inbox, [f"{id}.req"])
            finally:
                os.close(inbox)


def _check_id(id: str) -> None:  # noqa: A002 - the word of the journal and of the files
    if not _ID.fullmatch(id):
        raise ValueError(f"{id!r} is no id of a request")


def _sweep(inbox: int, names: list[str]) -> None:
    """Delete entries; one that will not go, such as a filled folder, stays and counts as nothing."""
    for name in names:
        try:
            os.unlink(name, dir_fd=inbox)
        except OSError:
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=inbox)


def _replace(folder: Path, name: str, content: bytes, mode: int, *, keep: bool = False) -> bool:
    """Write a file whole or not at all; with `keep`, one that is there stays, and False is returned.

    We are the only writer of these folders, so that looking first is enough.
    """
    if keep and os.path.lexists(folder / name):
        return False
    part = folder / f".{name}.part"
    part.unlink(missing_ok=True)
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fchmod(fd, mode)
        os.fsync(fd)
    part.rename(folder / name)
    return True


def _cannot(what: str, error: OSError, where: Path) -> RsiError:
    return RsiError(
        f"cannot {what} the mailbox: {error.strerror}",
        where=str(where),
        next_step="make room or mend the disk, then rsi resume RUN",
    )
