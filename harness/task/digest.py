"""Digests by which tasks, tests and environments are recognised: of what they mean, not of how they are written.

The digest of a folder covers paths, kinds, executable bits and contents of files and links; empty folders, times and
owners do not count, since no repository keeps them. The digest of a task covers task.toml as values (comments, order
and layout do not count, a default that is written out does), without the measured `[metadata.rsi.reference]`.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import InputError
from harness.task.folder import PARTS, Entry, entries

_IGNORED = re.compile(r"(?:.*/)?(?:__pycache__(?:/.*)?|[^/]*\.pyc|\.DS_Store|\.[^/]*\.sw[a-p])\Z", re.DOTALL)


def ignored(path: str) -> bool:
    """Say whether a path is what tools leave behind by themselves and no part of a task."""
    return _IGNORED.match(path) is not None


def digest_tree(folder: Path) -> str:
    """Return the sha256 of a folder in hex; of an empty tree where there is no such folder."""
    whole = hashlib.sha256()
    if not folder.is_dir():
        return whole.hexdigest()
    found = [entry for entry in entries(folder) if entry.kind != "folder" and not ignored(entry.path)]
    for entry in sorted(found, key=lambda entry: os.fsencode(entry.path)):
        for field in _fields(folder, entry):
            # The length goes before each field, so that no two trees read the same.
            whole.update(len(field).to_bytes(8, "big") + field)
    return whole.hexdigest()


def digest_file(path: Path) -> bytes:
    """Return the sha256 of a regular file; no link is followed."""
    content = hashlib.sha256()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{path.name} is no regular file", where=str(path), next_step="remove it")
            while chunk := file.read(1 << 20):
                content.update(chunk)
    except OSError as error:
        reason = f"cannot read {path.name}: {error.strerror}"
        raise InputError(reason, where=str(path), next_step="check that the file may be read") from error
    return content.digest()


def _fields(folder: Path, entry: Entry) -> tuple[bytes, ...]:
    path = folder / entry.path
    if entry.kind == "link":
        return (os.fsencode(entry.path), b"link", b"", os.fsencode(path.readlink()))
    if entry.kind != "file":
        raise InputError(f"{entry.path} is a {entry.kind}", where=str(path), next_step="remove it")
    return (os.fsencode(entry.path), b"file", b"x" if entry.mode & 0o111 else b"", digest_file(path))


def digest_task(folder: Path, data: Mapping[str, Any], instruction: str) -> str:
    """Return the sha256 of a task: its values, the text an agent reads and the folders of `PARTS`."""
    parts = {name: digest_tree(folder / name) for name in PARTS}
    whole = {"config": _plain(without_reference(data)), "instruction": instruction, "parts": parts}
    text = json.dumps(whole, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def without_reference(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a task's values without what is measured, so that measuring leaves the task what it is."""
    metadata = data.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("rsi"), Mapping):
        return dict(data)
    contract = {key: value for key, value in metadata["rsi"].items() if key != "reference"}
    return {**data, "metadata": {**metadata, "rsi": contract}}


def _plain(value: Any) -> Any:
    """Return TOML values as JSON in one way alone: 3 and 3.0 are the same, dates are tagged text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return {"date": value.isoformat()}
