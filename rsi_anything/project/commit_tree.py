"""A tree read from one commit of a repository, through a private view of it."""

import subprocess
from collections.abc import Iterator
from types import TracebackType
from typing import IO, Self, cast

from rsi_anything.project.gitview import GitView, clean_environment, listing, treeish
from rsi_anything.project.tree import LICENCE, LONGEST_LICENCE, Entry, LeftOut, Limits, check_limits, shown, unusable

_CHUNK = 1024 * 1024
_LONGEST_TARGET = 4096


class CommitTree:
    """The files of one folder at one commit, read by one long-lived `git cat-file`; use it as a context."""

    def __init__(self, view: GitView, commit: str, folder: str, limits: Limits) -> None:
        self.left_out: list[LeftOut] = []
        self._view = view
        self._reader: subprocess.Popen[bytes] | None = None
        self.entries: list[Entry] = list(
            check_limits(self._list(treeish(commit, folder)), limits, f"commit {commit[:12]}")
        )
        self.entries = [self._with_target(entry) for entry in self.entries]
        self.above = self._licences(commit) if folder != "." else {}

    def __enter__(self) -> Self:
        """Return the tree."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the reader."""
        if self._reader is not None:
            for stream in (self._reader.stdin, self._reader.stdout):
                cast("IO[bytes]", stream).close()
            self._reader.kill()
            self._reader.wait()

    def _list(self, tree: str) -> Iterator[Entry]:
        """Yield entries while git lists them, so that a tree of endless copies ends at the limit."""
        with listing(self._view.path, "-l", tree) as items:
            for item in items:
                yield from self._entry(item)

    def _entry(self, item: bytes) -> Iterator[Entry]:
        head, _, name = item.partition(b"\t")
        mode, _, blob, size = head.decode("ascii").split()
        why = unusable(name)
        if mode == "160000":
            why = "it is a submodule, which is not fetched"
        elif not size.isdigit():
            why = "its content is not in this repository (a partial clone, or a damaged one)"
        if why is not None:
            self.left_out.append(LeftOut(shown(name), why))
            return
        link = "" if mode == "120000" else None
        yield Entry(name.decode("utf-8"), int(size), executable=mode == "100755", target=link, blob=blob)

    def _with_target(self, entry: Entry) -> Entry:
        if entry.target is None:
            return entry
        target = b"".join(self.content(entry)) if entry.size <= _LONGEST_TARGET else b"/"
        return Entry(entry.path, 0, target=target.decode("utf-8", "surrogateescape"))

    def _licences(self, commit: str) -> dict[str, bytes]:
        """Return the licence files at the commit's root."""
        listed = self._view.git("ls-tree", "-l", "-z", treeish(commit, ".")).stdout
        rows = [item.partition(b"\t") for item in listed.split(b"\0") if item.startswith(b"100")]
        found: dict[str, bytes] = {}
        for head, _, name in rows:
            blob, size = head.decode("ascii").split()[2:]
            if (
                unusable(name) is None
                and LICENCE.match(name.decode())
                and size.isdigit()
                and int(size) <= LONGEST_LICENCE
            ):
                found[name.decode()] = b"".join(self.content(Entry(name.decode(), int(size), blob=blob)))
        return found

    def content(self, entry: Entry) -> Iterator[bytes]:
        """Yield the content of a file at the commit, as git stores it."""
        if self._reader is None:
            self._reader = subprocess.Popen(
                ["git", f"--git-dir={self._view.path}", "cat-file", "--batch"],
                env=clean_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        asked, given = cast("IO[bytes]", self._reader.stdin), cast("IO[bytes]", self._reader.stdout)
        asked.write(entry.blob.encode("ascii") + b"\n")
        asked.flush()
        head = given.readline().split()
        if len(head) != 3 or head[1] != b"blob":
            raise FileNotFoundError(entry.path)
        left = int(head[2])
        while left > 0:
            chunk = given.read(min(_CHUNK, left))
            if not chunk:
                raise FileNotFoundError(entry.path)
            left -= len(chunk)
            yield chunk
        given.read(1)
