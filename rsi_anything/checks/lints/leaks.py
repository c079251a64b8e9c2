"""Leaks: nothing that the judge alone may know is in the image, and no name in it promises an answer."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.task.contract import Start
from harness.task.folder import Entry
from harness.task.problems import printable
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.lints.dockerfile import Instruction, instructions
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.rules import raised

LEAST_BYTES = 32
"""Smaller files are alike by chance: an empty `__init__.py`, a one-line data file."""
LEAST_LINE = 12
"""Characters of a line that is told from another; shorter ones recur in any data."""
LEAST_LINES = 5
LEAST_PART = 0.02
"""Lines, and part of the judge's data, in one file of the image that are no accident."""
LARGE_PART = 0.2
"""Part of the judge's data that is a leak for certain; below it a person has to look."""
_WORDS = re.compile(rb"[A-Za-z0-9\x80-\xff]")
_DATA = frozenset({".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".dat", ".lst", ".labels", ".yaml", ".yml"})
_CODE = frozenset(
    {".py", ".pyi", ".sh", ".r", ".jl", ".c", ".h", ".cc", ".cpp", ".cu", ".rs", ".go", ".js", ".ts", ".md"}
)
_ANSWERS = re.compile(
    r"(?i)(?:^|[_.-])(?:answers?|ground[_-]?truth|hidden|solutions?|answer[_-]?key|private[_-]?tests?"
    r"|(?:labels?|gold|held[_-]?out|holdout|expected[_-]?outputs?)(?!.*\.(?:py|pyi|r|jl|cc|cpp|h|rs|js|ts)$))(?:[_.-]|$)"
)
_PRIVATE_PLACES = re.compile(r"/(?:tests|solution)(?:/|$)")
_TELLING = re.compile(r"(?i)secret|passw|token|api_?key|credential|private_?key|(?:^|_)(?:answer|label|gold)s?(?:_|$)")

_COUNTED = re.compile(r"(?i)tokenizer|(?:max|min|num|n|pad|eos|bos|unk|mask|sep|cls|new|per)_?tokens?|tokens_per")
"""Tokens of text, not of access."""


def leaks(material: Material) -> Iterator[Finding]:
    """Yield what crosses from the judge's side into the image."""
    yield from _same_files(material)
    yield from _same_lines(material)
    yield from _names(material)
    for instruction in instructions(material.text("environment/Dockerfile") or ""):
        yield from _copies(material, instruction)
        yield from _values(instruction)


def _digests(material: Material, top: str) -> dict[bytes, str]:
    """Return one path for each content below a folder, leaving out what is small enough to recur by chance."""
    found: dict[bytes, str] = {}
    for entry in material.below(top):
        content = material.content(entry.path) if entry.size >= LEAST_BYTES else None
        if content is not None:
            found.setdefault(hashlib.sha256(content).digest(), entry.path)
    return found


def _same_files(material: Material) -> Iterator[Finding]:
    image = _digests(material, "environment")
    contract = material.contract
    for digest, path in _digests(material, "tests").items():
        if digest in image:
            # Evaluation code may well be public; what it is given is not.
            mild = contract is None or PurePosixPath(path).suffix in _CODE
            reason = f"is also in the image as {printable(image[digest])}, where the agent can read it"
            weight = Severity.WARNING if mild else Severity.ERROR
            yield raised("lint/tests-in-image", reason, file=path, fix="keep it in tests/ alone", severity=weight)
    if contract is not None and contract.evaluation.start is Start.BASELINE:
        # The workspace starts as the author's solution: these files are meant to be the same.
        return
    weight = Severity.ERROR if contract is not None else Severity.WARNING
    for digest, path in _digests(material, "solution").items():
        if digest in image:
            reason = f"is also in the image as {printable(image[digest])}, so the answer lies in the workspace"
            fix = 'take it out of environment/, or set evaluation.start = "baseline"'
            yield raised("lint/solution-in-image", reason, file=path, fix=fix, severity=weight)


def _same_lines(material: Material) -> Iterator[Finding]:
    private: dict[bytes, str] = {}
    sizes: Counter[str] = Counter()
    for entry in material.below("tests"):
        if PurePosixPath(entry.path).suffix.lower() in _DATA:
            for line in _telling_lines(material, entry):
                sizes[private.setdefault(line, entry.path)] += 1
    if not private:
        return
    tests = set(_digests(material, "tests"))
    for entry in material.below("environment"):
        content = material.content(entry.path)
        if content is None or hashlib.sha256(content).digest() in tests:
            continue
        shared = {line for line in _telling_lines(material, entry) if line in private}
        for source, count in Counter(private[line] for line in shared).items():
            part = count / sizes[source]
            if count >= LEAST_LINES and part >= LEAST_PART:
                number = next(n for n, line in enumerate(content.split(b"\n"), start=1) if line.strip() in shared)
                reason = f"holds {count} lines ({part:.0%}) of {printable(source)}, which only the judge may know"
                fix = "split the data again, so that no example is on both sides"
                weight = Severity.ERROR if part >= LARGE_PART else Severity.WARNING
                place = entry.path
                yield raised("lint/labels-in-image", reason, file=place, line=number, fix=fix, severity=weight)


def _telling_lines(material: Material, entry: Entry) -> set[bytes]:
    """Return the lines that tell one example: long enough, with letters or digits, and only once in the file.

    What recurs within one side (a speaker's name in a play, a licence) recurs on both without being a leak.
    """
    content = material.content(entry.path)
    if content is None or b"\0" in content[:8192]:
        return set()
    counts = Counter(line.strip() for line in content.split(b"\n"))
    return {line for line, n in counts.items() if n == 1 and len(line) >= LEAST_LINE and _WORDS.search(line)}


def _names(material: Material) -> Iterator[Finding]:
    seen: set[str] = set()
    for entry in material.entries:
        parts = entry.path.split("/")
        if parts[0] != "environment":
            continue
        if ".git" in parts:
            repository = "/".join(parts[: parts.index(".git") + 1])
            if repository not in seen:
                seen.add(repository)
                reason = "a git history is in the image; it can hold the answer and later commits"
                fix = "copy the files without .git"
                yield raised("lint/git-in-image", reason, file=repository, fix=fix)
        elif entry.kind == "file" and (parts[-1] == "rsi-answers.toml" or _ANSWERS.search(parts[-1])):
            reason = "is named like something only the judge may know"
            yield raised("lint/answers-in-image", reason, file=entry.path, fix="move it to tests/, or rename it")


def _copies(material: Material, instruction: Instruction) -> Iterator[Finding]:
    if instruction.name not in {"COPY", "ADD"} or len(instruction.words) < 2:
        return
    *sources, target = instruction.words
    line = instruction.line
    if _PRIVATE_PLACES.match(target):
        reason = f"puts files into {printable(target)}, where the harness puts the judge's or the author's"
        fix = "leave /tests and /solution alone"
        yield raised("lint/copies-tests", reason, file="environment/Dockerfile", line=line, fix=fix)
    for source in sources:
        top = source.removeprefix("./").split("/", 1)[0]
        if source.startswith("../") or (top in {"tests", "solution"} and not _own(material, top)):
            reason = f"copies {printable(source)}, which lies outside of environment/"
            fix = "the image is built from environment/ alone"
            yield raised("lint/copies-tests", reason, file="environment/Dockerfile", line=line, fix=fix)


def _own(material: Material, top: str) -> bool:
    """Say whether the project has a folder of that name of its own."""
    return any(entry.path.startswith(f"environment/{top}/") for entry in material.entries)


def _values(instruction: Instruction) -> Iterator[Finding]:
    if instruction.name not in {"ARG", "ENV"}:
        return
    pairs = re.findall(r"([A-Za-z_]\w*)(?:=(\"[^\"]*\"|'[^']*'|\S*))?", instruction.text)
    if instruction.name == "ENV" and pairs and "=" not in instruction.text:
        pairs = [(pairs[0][0], instruction.text.split(None, 1)[-1])]
    for name, value in pairs:
        bare = value.strip("\"'")
        telling = _TELLING.search(name) is not None and _COUNTED.search(name) is None
        if telling and (instruction.name == "ARG" or len(bare) >= 6) and not bare.startswith(("$", "/")):
            reason = f"{instruction.name} {name} is kept in the image's layers, where the agent can read it"
            fix = "keep secrets and answers out of the build"
            yield raised("lint/secret-in-build", reason, file="environment/Dockerfile", line=instruction.line, fix=fix)
