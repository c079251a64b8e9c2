"""The shape of the folder: kinds of files, sizes, and names that every system can hold."""

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from harness.task.problems import printable
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.rules import raised

LARGE_FILE = 50 << 20
LARGE_TASK = 512 << 20
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
"""Names that one system keeps for itself, whatever follows the dot."""


def shape(material: Material) -> Iterator[Finding]:
    """Yield what is no plain file, too large, or badly named."""
    total = 0
    folded: dict[str, str] = {}
    root = Path(os.path.realpath(material.folder))
    for entry in material.entries:
        if entry.kind == "link":
            target = Path(os.path.realpath(material.folder / entry.path))
            if root not in target.parents or not target.exists():
                reason = "is a link that leads out of the task folder or nowhere"
                yield raised("lint/special-file", reason, file=entry.path, fix="put a copy of the file in its place")
        elif entry.kind not in {"file", "folder"}:
            reason = f"is a {entry.kind}"
            yield raised("lint/special-file", reason, file=entry.path, fix="remove it")
        elif entry.kind == "file":
            total += entry.size
            if entry.size > LARGE_FILE:
                reason = f"{entry.size >> 20:,} MiB in one file"
                yield raised("lint/large-file", reason, file=entry.path, fix="fetch it in the Dockerfile by checksum")
        wrong = _name(entry.path.rsplit("/", 1)[-1])
        if wrong:
            yield raised("lint/name", f"the name {wrong}", file=entry.path, fix="rename it")
        other = folded.setdefault(unicodedata.normalize("NFC", entry.path).casefold(), entry.path)
        if other != entry.path:
            reason = f"differs from {printable(other)} in case or accents alone"
            yield raised("lint/name", reason, file=entry.path, fix="rename one of them")
    if total > LARGE_TASK:
        reason = f"the task folder holds {total >> 20:,} MiB"
        fix = "fetch data in the Dockerfile by checksum"
        yield raised("lint/large-task", reason, file=".", fix=fix)


def _name(name: str) -> str:
    """Return what is wrong with a file's name, or an empty text."""
    if any(0xDC80 <= ord(char) <= 0xDCFF for char in name):
        return "is not UTF-8"
    if any(ord(char) < 32 or char in '<>:"|?*\\\x7f' for char in name):
        return "holds characters that some systems forbid"
    if name != name.strip(" ") or name.endswith("."):
        return "starts or ends with a space, or ends with a dot"
    if name.startswith("-"):
        return "starts with '-', so that tools take it for an option"
    if name.split(".", 1)[0].lower() in _DEVICES:
        return "is kept by one system for a device"
    return "is longer than 255 bytes" if len(name.encode()) > 255 else ""


_SCRIPTS = (".sh", ".bash", ".py")


def line_ends(material: Material) -> Iterator[Finding]:
    """Yield scripts whose line ends are not Unix's: their first line names an interpreter that is not there."""
    for entry in material.files:
        top = entry.path.split("/", 1)[0]
        if top in {"tests", "solution"} and entry.path.endswith(_SCRIPTS):
            first, _, _ = (material.content(entry.path) or b"").partition(b"\n")
            if first.startswith(b"#!") and first.endswith(b"\r"):
                reason = "has Windows line ends, so its interpreter is not found"
                yield raised("lint/line-ends", reason, file=entry.path, line=1, fix="save it with Unix line ends")
            elif first.endswith(b"\r") and not entry.path.endswith(".py"):
                reason = "has Windows line ends"
                weight = Severity.WARNING
                fix = "save it with Unix line ends"
                yield raised("lint/line-ends", reason, file=entry.path, line=1, fix=fix, severity=weight)
