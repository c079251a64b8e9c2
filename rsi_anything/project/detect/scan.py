"""Chooses which files of a project are worth reading, and reads each of them once, in bounded amounts."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from rsi_anything.project.checkout import Project
from rsi_anything.project.evidence import Evidence
from rsi_anything.project.export import FileEntry

WHOLE = 1024 * 1024
HEAD = 64 * 1024
LIGHT = 8 * 1024

_SKIPPED = frozenset(
    {
        "vendor",
        "vendored",
        "third_party",
        "thirdparty",
        "node_modules",
        ".venv",
        "venv",
        "site-packages",
        "build",
        "dist",
    }
    | {
        "__pycache__",
        ".tox",
        ".nox",
        ".eggs",
        ".git",
        ".hg",
        ".svn",
        ".idea",
        ".vscode",
        ".mypy_cache",
        ".pytest_cache",
    }
)
_SUFFIXES = {
    "python": {".py", ".pyw"},
    "notebook": {".ipynb"},
    "prose": {".md", ".rst", ".markdown", ".mdx"},
    "shell": {".sh", ".bash", ".slurm", ".sbatch", ".zsh"},
    "config": {".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".gin"},
}
_KIND_OF = {suffix: kind for kind, suffixes in _SUFFIXES.items() for suffix in suffixes}
_IMPORTANT = re.compile(
    r"train|main|run|fit|experiment|finetune|pretrain|optim|config|model|eval|bench|demo|search", re.IGNORECASE
)
_ASIDE = re.compile(r"(^|/)(tests?|docs?|examples?|benchmarks?|ci|\.github|legacy|deprecated|old)(/|$)", re.IGNORECASE)
_MOST_FILES = {"python": 200, "prose": 40, "shell": 60, "config": 120, "notebook": 40, "make": 20, "needs": 40}
_MOST_BYTES = {"python": 800_000, "prose": 1_500_000, "shell": 600_000, "config": 1_500_000, "notebook": 2_000_000}
_NEEDS = re.compile(
    r"(^|/)(requirements[^/]*\.(txt|in)|requirements/[^/]+\.txt|pyproject\.toml|setup\.(py|cfg)|Pipfile|environment[^/]*\.ya?ml"
    r"|conda[^/]*\.ya?ml|\.python-version|runtime\.txt|python_env\.ya?ml|Dockerfile[^/]*)\Z"
)


@dataclass(frozen=True)
class SourceFile:
    """The text of one file, decoded once; `whole` says whether all of it is here, `exact` whether it is UTF-8."""

    path: str
    size: int
    kind: str
    text: str
    whole: bool
    exact: bool

    @cached_property
    def starts(self) -> list[int]:
        """Return the offset of each line's first character, lines ending at a newline."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @cached_property
    def line_count(self) -> int:
        """Return how many lines there are, a last empty one not counted."""
        return len(self.starts) - (1 if self.text.endswith("\n") or not self.text else 0)

    def line_at(self, offset: int) -> int:
        """Return the number of the line at an offset, from 1."""
        return bisect_right(self.starts, offset)

    def lines(self) -> list[str]:
        """Return the lines without their ends."""
        return self.text.split("\n")

    def evidence(self, line_from: int, fact: str, line_to: int | None = None) -> Evidence:
        """Return evidence in this file; lines that Python counts differently are kept within the file."""
        first = max(1, min(line_from, self.line_count))
        last = max(first, min(line_to or line_from, self.line_count))
        return Evidence(self.path, first, last, fact) if self.line_count else Evidence(self.path, 0, 0, fact)


@dataclass(frozen=True)
class Scan:
    """The files of a project sorted by kind, and the texts that were read."""

    project: Project
    by_kind: dict[str, list[FileEntry]]
    texts: dict[str, list[SourceFile]]
    light: list[tuple[str, bytes]]
    """Path and first bytes of the Python files that were not read in full."""
    notes: tuple[str, ...]

    def files(self, *kinds: str) -> list[SourceFile]:
        """Return the texts of some kinds."""
        return [file for kind in kinds for file in self.texts.get(kind, [])]


def scan(project: Project) -> Scan:
    """Sort the project's files and read those that matter."""
    by_kind: dict[str, list[FileEntry]] = {}
    for entry in project.files:
        if not is_aside(entry.path):
            by_kind.setdefault(kind_of(entry.path), []).append(entry)
    texts: dict[str, list[SourceFile]] = {}
    light: list[tuple[str, bytes]] = []
    notes: list[str] = []
    for kind, most in _MOST_FILES.items():
        ranked = sorted(by_kind.get(kind, []), key=_rank)
        chosen, rest = _within(ranked, most, _MOST_BYTES.get(kind, 1_000_000))
        texts[kind] = [file for entry in chosen if (file := read_text(project, entry, kind)) is not None]
        if rest:
            notes.append(
                f"{len(rest)} of {len(ranked)} {kind} files were not read in full, as they seem to matter least."
            )
        if kind == "python":
            light = [(entry.path, _read(project, entry.path, LIGHT)) for entry in rest]
    return Scan(project, by_kind, texts, light, tuple(notes))


def is_aside(path: str) -> bool:
    """Say whether a path is in a folder of other people's code or of build products."""
    return not _SKIPPED.isdisjoint(path.split("/")[:-1])


def kind_of(path: str) -> str:
    """Return the kind of a file by its name alone."""
    name = path.rpartition("/")[2]
    if _NEEDS.search(path):
        return "needs"
    if name.lower() in {"makefile", "gnumakefile", "justfile"} or name.endswith(".mk"):
        return "make"
    if name.lower().startswith("readme"):
        return "prose"
    return _KIND_OF.get(os.path.splitext(name)[1].lower(), "other")  # noqa: PTH122 - a path object costs 10 times more


def _rank(entry: FileEntry) -> tuple[bool, int, bool, int, str]:
    depth = entry.path.count("/")
    return bool(_ASIDE.search(entry.path)), min(depth, 3), not _IMPORTANT.search(entry.path), depth, entry.path


def _within(ranked: list[FileEntry], most: int, most_bytes: int) -> tuple[list[FileEntry], list[FileEntry]]:
    chosen: list[FileEntry] = []
    rest: list[FileEntry] = []
    room = most_bytes
    for entry in ranked:
        cost = entry.size if entry.size <= WHOLE else HEAD
        if len(chosen) < most and cost <= room:
            room -= cost
            chosen.append(entry)
        else:
            rest.append(entry)
    return chosen, rest


def read_text(project: Project, entry: FileEntry, kind: str) -> SourceFile | None:
    """Return a file's text, all of it up to 1 MiB and the head of a larger one; None where it is binary."""
    raw = _read(project, entry.path, entry.size if entry.size <= WHOLE else HEAD)
    if b"\0" in raw[:8192]:
        return None
    whole = len(raw) >= entry.size
    try:
        return SourceFile(entry.path, entry.size, kind, raw.decode("utf-8"), whole, exact=True)
    except UnicodeDecodeError:
        return SourceFile(entry.path, entry.size, kind, raw.decode("utf-8", "replace"), whole, exact=False)


def _read(project: Project, path: str, most: int) -> bytes:
    try:
        return project.read(path, most)
    except OSError:
        return b""  # the copy was damaged meanwhile: nothing is found in it


def unique(items: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return evidence without repeats, at most eight pieces of it."""
    return tuple(dict.fromkeys(items))[:8]
