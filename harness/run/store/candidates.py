"""The candidates' text as a bare git repository: one commit a submission; `git log -p` shows what an agent tried.

It is a view for people; the snapshots are the record. Names and contents are hostile: they reach git as data of one
fast-import stream, and no hook, filter or attribute is in force.
"""

import os
import re
import subprocess
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.errors import PrerequisiteError, RsiError
from harness.run.store.hostile import clean_text, printable
from harness.run.store.snapshot import Entry, Snapshot, SnapshotStore
from harness.run.verdict import Verdict

MAX_TEXT = 1 << 20
"""A larger file is listed, not shown."""
MAX_TOTAL = 32 << 20
"""Most text of one candidate."""
MAX_MESSAGE = 4 << 10
OTHER_FILES = "OTHER_FILES.txt"
"""Lists the files that are not shown as they are."""
TIMEOUT_SEC = 120

_HEAD = "refs/heads/main"
_ATTRIBUTES = "* diff -text -filter -ident -working-tree-encoding -export-ignore -export-subst\n"
_CONFIG = ("log.mailmap=false", "core.fsync=all", "gc.auto=0", "fastimport.unpackLimit=1000")
_DOT_GIT = re.compile(
    r"(\.git|git~[0-9]+|\.gitmodules|(gitmod|gi7eba)~[0-9]+)([ .:].*)?",  # the short names are NTFS's
    re.IGNORECASE | re.DOTALL,
)
_ESCAPED = re.compile(r"%([0-9A-F]{2})(.*)", re.DOTALL)


class CandidateRepo:
    """The repository of one run, `candidates.git` in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def commit(
        self,
        number: int,
        store: SnapshotStore,
        snapshot: Snapshot | None,
        *,
        message: str,
        verdict: Verdict,
        metric: float | None = None,
        when: float = 0.0,
    ) -> str:
        """Commit a submission and return the commit's hash; one that was committed before stays as it is.

        `message` is the agent's own, `when` the Unix time of handing in. Without a snapshot the commit shows no change.
        Raises a PrerequisiteError where there is no git.
        """
        self._prepare()
        tag = f"refs/tags/submission-{number}"
        if done := self._resolve(tag):
            return done
        self._unlock()
        parent = self._resolve(_HEAD)
        digest = snapshot.digest if snapshot is not None else "none"
        said = _message(number, message, verdict, metric, digest)
        try:
            files = b"".join(_files(store, snapshot.entries())) if snapshot is not None else None
        except OSError as error:
            raise _cannot(f"cannot read a candidate: {error.strerror}", store.folder) from error
        self._git(
            "fast-import", "--quiet", "--date-format=raw", "--done", stdin=_stream(said, files, parent, tag, when)
        )
        committed = self._resolve(tag)
        if committed is None:
            raise _cannot("git kept no commit", self.folder)
        return committed

    def _prepare(self) -> None:
        attributes = self.folder / "info" / "attributes"
        if attributes.exists():
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # No template: it could bring hooks.
        self._git("init", "--bare", "--quiet", "--template=", "--initial-branch=main")
        for setting in _CONFIG:
            self._git("config", *setting.split("=", 1))
        attributes.parent.mkdir(exist_ok=True)
        # Wins over any .gitattributes of a candidate, which could hide its own changes from `git log -p`.
        attributes.write_text(_ATTRIBUTES)

    def _unlock(self) -> None:
        """Remove locks of a git that was killed; nobody else writes here."""
        for lock in (*self.folder.glob("*.lock"), *(self.folder / "refs").rglob("*.lock")):
            lock.unlink(missing_ok=True)

    def _resolve(self, name: str) -> str | None:
        found = self._git("rev-parse", "--quiet", "--verify", name, may_fail=True)
        return found.decode().strip() or None

    def _git(self, *arguments: str, stdin: bytes = b"", may_fail: bool = False) -> bytes:
        try:
            done = subprocess.run(
                ["git", *arguments],
                input=stdin,
                capture_output=True,
                env=self._environment(),
                cwd=self.folder,
                timeout=TIMEOUT_SEC,
                check=False,
            )
        except FileNotFoundError as error:
            raise PrerequisiteError(
                "git is missing", next_step="install git; a run keeps its candidates in it"
            ) from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RsiError(
                f"git {arguments[0]} failed: {error}", where=str(self.folder), next_step="rsi doctor"
            ) from error
        if done.returncode and not may_fail:
            said = clean_text(done.stderr.decode("utf-8", "replace"), 500).strip().splitlines()
            what = f"git {arguments[0]} failed: {said[0] if said else f'exit {done.returncode}'}"
            raise _cannot(what, self.folder)
        return done.stdout

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "GIT_DIR": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }


def _stream(said: str, files: bytes | None, parent: str | None, tag: str, when: float) -> bytes:
    """Return the fast-import stream of one commit."""
    at = f"{max(int(when), 0)} +0000"
    return b"".join(
        [
            f"commit {_HEAD}\nmark :1\nauthor agent <agent@localhost> {at}\n".encode(),
            f"committer RSI-Anything <rsi-anything@localhost> {at}\n".encode(),
            _data(said.encode("utf-8", "replace")),
            f"from {parent}\n".encode() if parent else b"",
            b"deleteall\n" + files if files is not None else b"",
            f"reset {tag}\nfrom :1\n\ndone\n".encode(),
        ]
    )


def _message(number: int, message: str, verdict: Verdict, metric: float | None, digest: str) -> str:
    shown = "" if metric is None else f", {metric!r}"
    lines = [f"Submission {number}: {verdict.value}{shown}", ""]
    # Indented, so that no agent can write a line that looks like one of ours.
    said = clean_text(message, MAX_MESSAGE).strip()
    lines += [*(f"    {line}".rstrip() for line in said.splitlines()), ""] if said else []
    lines.append(f"Verdict: {verdict.value}")
    if metric is not None:
        lines.append(f"Metric: {metric!r}")
    return "\n".join([*lines, f"Snapshot: {digest}"]) + "\n"


def _files(store: SnapshotStore, entries: Iterable[Entry]) -> Iterator[bytes]:
    notes = []
    taken = set()
    total = 0
    for entry in entries:
        shown = "/".join(_holdable(part) for part in entry.path.split("/"))
        taken.add(shown.partition("/")[0])
        content = (
            store.object(entry).read_bytes() if entry.size < MAX_TEXT and total + entry.size <= MAX_TOTAL else None
        )
        if content is None or not _is_text(content):
            notes.append(f"{entry.sha256}  {entry.size}  {printable(entry.path, 1024)}")
            continue
        if shown != entry.path:
            notes.append(
                f"{entry.sha256}  {entry.size}  {printable(entry.path, 1024)}  shown as {printable(shown, 1024)}"
            )
        total += entry.size
        yield _modify(shown, content, executable=entry.executable)
    if notes:
        name = OTHER_FILES
        while name in taken:
            name = f"_{name}"
        listed = "sha256, bytes, path\n" + "\n".join(notes) + "\n"
        yield _modify(name, listed.encode("utf-8", "replace"), executable=False)


def _modify(path: str, content: bytes, *, executable: bool) -> bytes:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'M {"100755" if executable else "100644"} inline "{quoted}"\n'.encode() + _data(content)


def _data(content: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(content), content)


def _is_text(content: bytes) -> bool:
    if b"\0" in content:
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _holdable(part: str) -> str:
    """Return a name that git agrees to hold: where some file system sees `.git` in it, its first letter is escaped."""
    escaped = _ESCAPED.match(part)
    if _is_forbidden(part) or (escaped and _is_forbidden(chr(int(escaped[1], 16)) + escaped[2])):
        return f"%{ord(part[0]):02X}{part[1:]}".replace("\\", "%5C")
    return part


def _is_forbidden(part: str) -> bool:
    plain = "".join(c for c in part if unicodedata.category(c) != "Cf")
    return any(_DOT_GIT.fullmatch(piece) for piece in plain.split("\\"))


def _cannot(what: str, where: Path) -> RsiError:
    return RsiError(what, where=str(where), next_step="make room or mend the disk, then rsi resume RUN")
