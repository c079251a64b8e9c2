"""The files of a task as the lints see them: listed once, read through caps, no link followed."""

import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from harness.task.contract import Contract
from harness.task.digest import ignored
from harness.task.folder import Entry, entries
from harness.task.harbor import TaskConfig

MOST_SCANNED = 16 << 20
"""Bytes of one file that are read; what is larger is named as not scanned."""
MOST_LISTED = 200_000
_TOOLS = (".git", ".hg", ".venv", "node_modules")
"""Folders beside the task's own that a checkout may hold and no task contains."""


@dataclass
class Material:
    """One task folder. Paths are relative to it, with `/` between parts."""

    folder: Path
    config: TaskConfig | None = None
    contract: Contract | None = None
    _texts: dict[str, bytes | None] = field(default_factory=dict)

    @cached_property
    def entries(self) -> list[Entry]:
        """Everything in the folder, in a fixed order, without what tools leave behind."""
        found = []
        for entry in entries(self.folder):
            if entry.path.split("/", 1)[0] not in _TOOLS and not ignored(entry.path):
                found.append(entry)
            if len(found) > MOST_LISTED:
                break
        return found

    @cached_property
    def files(self) -> list[Entry]:
        """The regular files."""
        return [entry for entry in self.entries if entry.kind == "file"]

    def below(self, top: str) -> list[Entry]:
        """Return the regular files below a folder of the task."""
        return [entry for entry in self.files if entry.path.startswith(f"{top}/")]

    def content(self, path: str) -> bytes | None:
        """Return a file's content, or None where it is missing, too large or no regular file."""
        if path not in self._texts:
            self._texts[path] = _read(self.folder, path)
        return self._texts[path]

    def text(self, path: str) -> str | None:
        """Return a file's text with bad bytes replaced, or None where it is missing, too large or binary."""
        content = self.content(path)
        return None if content is None or b"\0" in content[:8192] else content.decode("utf-8", errors="replace")


def _read(folder: Path, path: str) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(folder / path, flags), "rb") as file:
            info = os.fstat(file.fileno())
            if not stat.S_ISREG(info.st_mode) or info.st_size > MOST_SCANNED:
                return None
            return file.read(MOST_SCANNED)
    except OSError:
        # Missing, a link, or not readable by us: other rules name these.
        return None
