"""Session files: an unfinished interview on disk, whole at any moment, in one folder a session.

<sessions>/<name>/session.json    replaced as a whole at each accepted answer
<sessions>/<name>/lock            held by the one process that has the session open
"""

import fcntl
import json
import os
import re
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from harness import paths
from harness.errors import InputError, RefusedError, RsiError
from rsi_anything.contract.draft import Draft, draft_from_json
from rsi_anything.contract.fields import nearest
from rsi_anything.contract.spec import SLUG

VERSION = 1


@dataclass(frozen=True)
class Setting:
    """What an interview is about; it stays the same over its whole life."""

    project: str
    """Absolute path or URL."""
    out: str | None
    """Folder the task is written to, where it was named on the command line."""
    created: float
    """Seconds since the epoch."""


class Session:
    """One interview on disk, locked for this process until `close`."""

    def __init__(self, folder: Path, lock: IO[str], setting: Setting, draft: Draft, at: str) -> None:
        self.folder = folder
        self.setting = setting
        self.draft = draft
        self.at = at
        self._lock = lock

    @property
    def name(self) -> str:
        """Name that comes after --resume."""
        return self.folder.name

    def save(self, draft: Draft, at: str) -> None:
        """Replace the file as a whole, on disk when this returns; on an error the old one stands."""
        data = {
            "version": VERSION,
            "project": self.setting.project,
            "out": self.setting.out,
            "created": self.setting.created,
            "at": at,
            "answers": draft.as_json(),
        }
        try:
            _replace(self.folder / "session.json", json.dumps(data, ensure_ascii=False, indent=1) + "\n")
        except OSError as error:
            raise RsiError(
                f"the answer could not be saved: {error.strerror}", where=str(self.folder), next_step="make room there"
            ) from error
        self.draft, self.at = draft, at

    def send_to(self, out: str) -> None:
        """Remember another folder to write to."""
        self.setting = replace(self.setting, out=out)
        self.save(self.draft, self.at)

    def discard(self) -> None:
        """Delete the session: its answers are in the task now."""
        shutil.rmtree(self.folder)
        self.close()

    def close(self) -> None:
        """Let others open the session."""
        self._lock.close()


def create(name: str, setting: Setting, draft: Draft) -> Session:
    """Start a session under this name, or the next free one: name-2, name-3."""
    base = slug(name)
    number = 1
    while True:
        folder = paths.sessions() / (base if number == 1 else f"{base}-{number}")
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            break
        except FileExistsError:
            number += 1
        except OSError as error:
            raise RsiError(
                f"no conversation can be started: {error.strerror}",
                where=str(folder),
                next_step="set RSI_HOME elsewhere",
            ) from error
    session = Session(folder, _locked(folder), setting, draft, "")
    session.save(draft, "")
    return session


def resume(name: str) -> Session:
    """Open the session of this name; raises InputError where there is none, RefusedError where it is open elsewhere."""
    require(name)
    folder = paths.sessions() / name
    lock = _locked(folder)
    try:
        setting, draft, at = _read(folder / "session.json")
    except BaseException:
        lock.close()
        raise
    return Session(folder, lock, setting, draft, at)


def require(name: str) -> None:
    """Raise InputError where there is no session of this name."""
    known = names()
    if name not in known:
        near = nearest(name, known)
        listed = f"there are {', '.join(known[:5])}" if known else "start one with `rsi new PROJECT`"
        raise InputError(f"there is no conversation {name!r}", next_step=f"did you mean {near}?" if near else listed)


def names() -> list[str]:
    """Return the names of all sessions, the one worked on last first."""
    files = [file for file in paths.sessions().glob("*/session.json") if SLUG.match(file.parent.name)]
    return [file.parent.name for file in sorted(files, key=lambda file: (-file.stat().st_mtime, file.parent.name))]


def about(project: str) -> list[str]:
    """Return the names of unfinished sessions about a project; one that cannot be read is about none."""
    found = []
    for name in names():
        try:
            setting, _, _ = _read(paths.sessions() / name / "session.json")
        except InputError:
            continue
        if setting.project == project:
            found.append(name)
    return found


def slug(text: str) -> str:
    """Return a text as a task name: lower-case letters, digits and hyphens."""
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:50].rstrip("-")
    return cleaned if SLUG.match(cleaned) else "task"


def _locked(folder: Path) -> IO[str]:
    lock = (folder / "lock").open("w", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise RefusedError(
            f"the conversation {folder.name!r} is open in another terminal", where=str(folder), next_step="go on there"
        ) from error
    return lock


def _read(file: Path) -> tuple[Setting, Draft, str]:
    try:
        data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise InputError(
                f"the conversation was written by another version ({data['version']})",
                where=str(file),
                next_step="start again with `rsi new PROJECT`",
            )
        setting = Setting(data["project"], data["out"], data["created"])
        return setting, draft_from_json(data["answers"]), data["at"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the conversation's file cannot be read ({type(error).__name__})",
            where=str(file),
            next_step="start a new conversation with `rsi new PROJECT`",
        ) from error


def _replace(file: Path, text: str) -> None:
    """Write a file so that after a crash at any moment either the old or the new one is there, whole."""
    temporary = file.with_name(file.name + ".new")
    with temporary.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def new_setting(project: str, out: str | None) -> Setting:
    """Return the setting of an interview that starts now."""
    return Setting(project, out, time.time())
