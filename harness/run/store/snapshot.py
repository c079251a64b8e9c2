"""Candidates, frozen and stored by content.

While work runs, `precopy` copies what changed into a side folder; once work is frozen, `take` reads only what changed
since, so that the freeze is short; `settle` then makes the snapshot durable. Objects are never changed in place.

    objects/ab/cdef...   content by sha256, mode 0444; executables apart under cdef...x, mode 0555
    snapshots/DIGEST.json   what a snapshot holds; its own sha256 names it
    ahead/               copied ahead, not part of any snapshot yet
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.run.store.copying import Copied, Copier, Source, flush, flush_sources
from harness.run.store.globs import Globs
from harness.run.store.walker import CandidateFault, Found, InvalidCandidate, Scope, StoreError, walk
from harness.task.contract import Boundary

ROUNDS = 3
"""How often `take` reads a file again that changed although work is frozen."""


class Entry(NamedTuple):
    """One file of a snapshot."""

    path: str
    sha256: str
    size: int
    executable: bool

    @property
    def key(self) -> str:
        """Name of its object."""
        return self.sha256 + ("x" if self.executable else "")


@dataclass(frozen=True)
class Snapshot:
    """A frozen candidate. `digest` names it; the same files give the same digest."""

    digest: str
    files: int
    size: int
    """Bytes of all files together."""
    manifest: bytes = field(repr=False)

    def entries(self) -> list[Entry]:
        """Return its files, sorted by path."""
        return [Entry(*each) for each in json.loads(self.manifest)["files"]]


class SnapshotStore:
    """All candidates of a run. One engine writes it; any number of processes may read what was settled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        self._manifests = folder / "snapshots"
        self._copier = Copier(folder / "ahead", self._objects)
        self._known: dict[str, Copied] = {}
        self._scope: tuple[Boundary, str, Scope] | None = None
        self._last: Snapshot | None = None
        self._changed = True
        """Whether anything differs from what `_last` holds."""

    def precopy(self, workdir: int, boundary: Boundary, *, inside: str = "") -> int:
        """Copy ahead what changed, while work runs; return how many files were copied.

        Never raises for what the candidate does: what is not to be had now is left to `take`. `inside` is the workdir's
        path as code in the box sees it.
        """
        try:
            found = self._walk(workdir, boundary, inside)
        except CandidateFault:
            return 0
        source = flush_sources(workdir, len(found.unknown))
        copied = 0
        for path, seen in found.unknown:
            old = self._known.get(path)
            try:
                new = self._copier.copy(workdir, path, seen, old, source)
            except CandidateFault:
                continue
            if new is not None:
                self._learn(path, old, new)
                copied += 1
        self._forget(found)
        used = {each.key for each in self._known.values()}
        if self._last is not None:
            used.update(entry.key for entry in self._last.entries())
        self._copier.drop_unused(used)
        self._copier.flush()
        return copied

    def take(self, workdir: int, boundary: Boundary, *, inside: str = "") -> Snapshot:
        """Return the candidate as it is now, while work is frozen; `settle` must follow before anything relies on it.

        Raises InvalidCandidate or BoundaryViolation for the candidate's faults, StoreError for the host's.
        """
        for _ in range(ROUNDS):
            found = self._walk(workdir, boundary, inside)
            if self._read(workdir, found):
                break
        else:
            raise InvalidCandidate("files kept changing while they were handed in; stop what writes them first")
        self._forget(found)
        if self._last is None or self._changed:
            self._last = self._snapshot(found)
            self._changed = False
        return self._last

    def settle(self, snapshot: Snapshot) -> None:
        """Write a snapshot to disk for good; done again, it changes nothing. Takes no part of the freeze."""
        target = self._manifests / f"{snapshot.digest}.json"
        try:
            if target.exists():
                return
            self._copier.move({entry.key for entry in snapshot.entries()})
            self._manifests.mkdir(parents=True, exist_ok=True)
            part = self._manifests / f".{snapshot.digest}.part"
            part.write_bytes(snapshot.manifest)
            flush(part)
            part.rename(target)
            flush(self._manifests)
        except OSError as error:
            raise _cannot("keep", error, self.folder) from error

    def load(self, digest: str) -> Snapshot:
        """Return a settled snapshot."""
        path = self._manifests / f"{digest}.json"
        try:
            manifest = path.read_bytes()
        except OSError as error:
            raise _cannot("read", error, path) from error
        if hashlib.sha256(manifest).hexdigest() != digest:
            raise StoreError(
                "a snapshot's list of files was changed", where=str(path), next_step="restore it from a copy"
            )
        files = json.loads(manifest)["files"]
        return Snapshot(digest, len(files), sum(each[2] for each in files), manifest)

    def digests(self) -> list[str]:
        """Return the digests of all settled snapshots."""
        return sorted(path.stem for path in self._manifests.glob("*.json"))

    def verify(self, digest: str) -> list[str]:
        """Return what is wrong with a settled snapshot, in words; empty means that every byte is as it was taken."""
        try:
            entries = self.load(digest).entries()
        except StoreError as error:
            return [error.what]
        problems = []
        for entry in entries:
            path = self.object(entry)
            try:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                problems.append(f"{entry.path}: {error.strerror}")
                continue
            if found != entry.sha256:
                problems.append(f"{entry.path}: its content was changed in the store")
        return problems

    def object(self, entry: Entry) -> Path:
        """Return the file that holds an entry's content; it must never be changed."""
        return self._objects / entry.key[:2] / entry.key[2:]

    def materialise(self, snapshot: Snapshot, dest: Path, *, link: bool = True) -> Path:
        """Build the tree of a settled snapshot in a new folder and return it.

        With `link` the files are hard links to the store's own, read-only and not to be changed; else they are copies.
        """
        try:
            dest.mkdir(parents=True)
            dest.chmod(0o755)
            made = {""}
            for entry in snapshot.entries():
                folder = entry.path.rpartition("/")[0]
                if folder not in made:
                    made.update(_folders(dest, folder))
                _place(self.object(entry), dest / entry.path, executable=entry.executable, link=link)
        except OSError as error:
            raise _cannot("lay out", error, dest) from error
        return dest

    def _walk(self, workdir: int, boundary: Boundary, inside: str) -> Found:
        if self._scope is None or self._scope[:2] != (boundary, inside):
            most = int(boundary.max_mb * (1 << 20))
            scope = Scope(Globs(boundary.deliver), Globs(boundary.frozen), most, boundary.max_files, inside)
            self._scope = (boundary, inside, scope)
            self._known, self._changed = {}, True
        return walk(workdir, self._scope[2], self._known)

    def _read(self, workdir: int, found: Found) -> bool:
        """Read what is not known as it is; return False where a file changed meanwhile."""
        for path, seen in found.unknown:
            old = self._known.get(path)
            new = self._copier.copy(workdir, path, seen, old, Source.FROZEN)
            if new is None:
                return False
            self._learn(path, old, new)
        return True

    def _learn(self, path: str, old: Copied | None, new: Copied) -> None:
        self._known[path] = new
        if old is None or old.key != new.key:
            self._changed = True

    def _forget(self, found: Found) -> None:
        """Drop what is gone from the workdir."""
        if len(self._known) > len(found.paths):
            there = set(found.paths)
            self._known = {path: each for path, each in self._known.items() if path in there}
            self._changed = True

    def _snapshot(self, found: Found) -> Snapshot:
        known = self._known
        manifest = (
            b'{"version": 1, "files": [\n' + b",\n".join([known[path].line for path in sorted(found.paths)]) + b"\n]}\n"
        )
        return Snapshot(hashlib.sha256(manifest).hexdigest(), len(found.paths), found.size, manifest)


def _folders(dest: Path, folder: str) -> Iterator[str]:
    """Make a folder and those above it below `dest`, readable for the judge whatever our umask is."""
    path = ""
    for part in folder.split("/"):
        path = f"{path}/{part}" if path else part
        made = dest / path
        if not made.is_dir():
            made.mkdir()
            made.chmod(0o755)
        yield path


def _place(source: Path, target: Path, *, executable: bool, link: bool) -> None:
    if link:
        try:
            os.link(source, target)
        except OSError as error:
            if not error.errno or target.exists() or not source.exists():
                raise
        else:
            return
    shutil.copyfile(source, target)
    target.chmod(0o755 if executable else 0o644)


def _cannot(what: str, error: OSError, where: Path) -> StoreError:
    return StoreError(
        f"cannot {what} a candidate: {error.strerror}",
        where=str(where),
        next_step="make room or mend the disk, then rsi resume RUN",
    )
