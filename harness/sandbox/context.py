"""What a COPY takes from a build context: files matched by globs, less .dockerignore, never anything outside."""

import fnmatch
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.sandbox.dockerfile import Instruction

_MAX_FILES = 100_000


@dataclass(frozen=True)
class Item:
    """One file, link or folder to be copied; `target` is relative to the destination."""

    source: Path
    target: str
    mode: int
    """File type and permissions, as in st_mode."""
    link: str = ""

    @property
    def is_folder(self) -> bool:
        """Say whether it is a folder."""
        return stat.S_ISDIR(self.mode)


def glob_to_regex(pattern: str) -> str:
    """Return a glob of paths as a regular expression: `*` stays within one part, `**` crosses them."""
    found = ""
    for piece in re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern):
        if piece == "**/":
            found += "(?:.*/)?"
        elif piece == "**":
            found += ".*"
        elif piece == "*":
            found += "[^/]*"
        elif piece == "?":
            found += "[^/]"
        elif piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
            found += fnmatch.translate(piece).removeprefix("(?s:").removesuffix(")\\Z").removesuffix(r")\z")
        else:
            found += re.escape(piece)
    return found


class Ignore:
    """The rules of a .dockerignore; the last rule that matches decides."""

    def __init__(self, folder: Path) -> None:
        self.rules: list[tuple[re.Pattern[str], bool]] = []
        try:
            lines = (folder / ".dockerignore").read_text("utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        for line in (line.strip() for line in lines):
            if not line or line.startswith("#"):
                continue
            kept = line.startswith("!")
            pattern = line.removeprefix("!").strip().strip("/")
            self.rules.append((re.compile(glob_to_regex(pattern) + "(?:/.*)?"), kept))

    def ignores(self, path: str) -> bool:
        """Say whether a path relative to the context is left out."""
        ignored = False
        for rule, kept in self.rules:
            if rule.fullmatch(path):
                ignored = not kept
        return ignored


class Context:
    """A build context."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.ignore = Ignore(self.folder)

    def sources(self, instruction: Instruction, pattern: str) -> list[Path]:
        """Return what one source of a COPY matches, at least one; leaving the context is an error."""
        clean = pattern.lstrip("/").removeprefix("./").rstrip("/") or "."
        if ".." in clean.split("/"):
            raise instruction.refuse(f"{pattern} leaves the build context")
        if clean == ".":
            return [self.folder]
        is_glob = re.search(r"[*?\[]", clean) is not None
        found = sorted(self.folder.glob(clean)) if is_glob else [self.folder / clean]
        kept = [path for path in found if os.path.lexists(path) and not self._left_out(path)]
        if not kept:
            raise instruction.refuse(f"{pattern} matches nothing in the build context")
        return [self._inside(instruction, path) for path in kept]

    def _left_out(self, path: Path) -> bool:
        """Say whether a path is ignored, unless it is a folder of which a later rule keeps a part."""
        inner = path.relative_to(self.folder).as_posix()
        return self.ignore.ignores(inner) and not (path.is_dir() and any(kept for _, kept in self.ignore.rules))

    def _inside(self, instruction: Instruction, path: Path) -> Path:
        real = path.resolve()
        if real != self.folder and self.folder not in real.parents:
            raise instruction.refuse(f"{path.relative_to(self.folder)} is a link that leaves the build context")
        return real

    def items(self, instruction: Instruction, source: Path, name: str) -> Iterator[Item]:
        """Yield a file under `name`, or a folder's contents below it, folders before what is in them."""
        info = source.lstat()
        if not stat.S_ISDIR(info.st_mode):
            yield self._item(instruction, source, name, info)
            return
        waiting = [(source, name)]
        count = 0
        while waiting:
            folder, target = waiting.pop()
            for path in sorted(folder.iterdir()):
                count += 1
                if count > _MAX_FILES:
                    raise instruction.refuse(f"more than {_MAX_FILES} files")
                inner = f"{target}/{path.name}".lstrip("/")
                info = path.lstat()
                is_folder = stat.S_ISDIR(info.st_mode)
                if is_folder:
                    waiting.append((path, inner))
                if not self.ignore.ignores(path.relative_to(self.folder).as_posix()):
                    yield self._item(instruction, path, inner, info)

    def _item(self, instruction: Instruction, path: Path, target: str, info: os.stat_result) -> Item:
        shown = path.relative_to(self.folder)
        if stat.S_ISLNK(info.st_mode):
            link = str(path.readlink())
            if link.startswith("/"):
                raise instruction.refuse(f"{shown} is an absolute link")
            self._inside(instruction, path)
            return Item(path, target, info.st_mode, link)
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            raise instruction.refuse(f"{shown} is neither file, folder nor link")
        return Item(path, target, info.st_mode)


def digest(items: list[Item]) -> str:
    """Return a digest of names, kinds, permissions and contents."""
    whole = hashlib.sha256()
    for item in items:
        whole.update(f"{item.target}\0{item.mode:o}\0{item.link}\0".encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(item.mode):
            with item.source.open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()
