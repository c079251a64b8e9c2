"""What research finds: typed findings, each with its evidence, a confidence between 0 and 1 and the reason for it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from rsi_anything.project.evidence import Evidence

Scalar = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Base of all findings."""

    evidence: tuple[Evidence, ...]
    confidence: float
    reason: str


@dataclass(frozen=True, kw_only=True)
class Option(Finding):
    """A command-line option of a script, or a named constant of it; that one has no flags."""

    file: str
    name: str
    flags: tuple[str, ...]
    default: Scalar | None
    choices: tuple[Scalar, ...] = ()
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class EntryPoint(Finding):
    """Something that can be started."""

    kind: str
    """script, module, console-script, make-target, shell-script or notebook."""
    path: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Launch(Finding):
    """A command that trains, best first."""

    command: str
    script: str
    """Project file that the command starts, or an empty text."""
    configs: tuple[str, ...] = ()
    """Project files among its arguments that hold settings."""
    sources: tuple[str, ...] = ()
    """Project files that the script imports, directly or not."""
    workdir: str = "."
    """Folder in which it is meant to be run."""
    gpus: int | None = None
    """GPUs it asks for, where it says so."""
    endless: str = ""
    """Option that must be set for the training to end, where there is one."""


@dataclass(frozen=True, kw_only=True)
class Metric(Finding):
    """A number that the project prints or writes."""

    name: str
    kind: str
    """Word of the vocabulary, such as loss."""
    split: str
    """train, val, test or an empty text."""
    direction: str
    unit: str
    lowest: float
    highest: float
    how: str
    """print, log, board, file or function."""


@dataclass(frozen=True, kw_only=True)
class Knob(Finding):
    """A value of the recipe that can be varied; `pattern` or `key` finds it and nothing else in its file."""

    name: str
    role: str
    """What it does, such as learning-rate; empty where unknown."""
    file: str
    line: int
    value: Scalar
    type: str
    pattern: str | None
    key: str | None
    range: tuple[float, float] | None
    choices: tuple[Scalar, ...] | None
    scale: str
    integer: bool
    order: int
    """Place among the roles; smaller matters more."""
    flags: tuple[str, ...] = ()
    """Command-line flags that override the value."""


@dataclass(frozen=True, kw_only=True)
class DataFile(Finding):
    """A file of data and its shape."""

    path: str
    size: int
    shape: str
    """lines, text, csv, jsonl, json, npy, npz, class-files, image-folder, pickle, archive, table or binary."""
    examples: int | None = None
    """Lines, rows or images; None where only the head was read."""
    columns: tuple[str, ...] = ()
    label: str | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class DataScript(Finding):
    """A script that makes or downloads data."""

    path: str
    command: str
    urls: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Requirement(Finding):
    """A distribution that the project needs."""

    name: str
    spec: str
    """Version range as the project has it, such as ==2.1.0; empty where it has none."""
    source: str
    """declared or imported."""


@dataclass(frozen=True, kw_only=True)
class Output(Finding):
    """A file that the code writes; `{name}` stands for an option or a setting."""

    path: str
    what: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Fact(Finding):
    """A fact with one value: licence, Python version, hardware, seed, test suite, file to freeze."""

    kind: str
    value: str


@dataclass(frozen=True)
class Findings:
    """All findings about one project; lists are ordered, what matters most first."""

    project: str
    commit: str
    files: int
    bytes: int
    looked_at: int
    """Files whose text was read."""
    launches: tuple[Launch, ...] = ()
    entry_points: tuple[EntryPoint, ...] = ()
    options: tuple[Option, ...] = ()
    metrics: tuple[Metric, ...] = ()
    knobs: tuple[Knob, ...] = ()
    data: tuple[DataFile, ...] = ()
    data_scripts: tuple[DataScript, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    outputs: tuple[Output, ...] = ()
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """What research did not look at, in words."""

    def fact(self, kind: str) -> Fact | None:
        """Return the surest fact of a kind, or None."""
        return next(iter(self.all_facts(kind)), None)

    def all_facts(self, kind: str) -> list[Fact]:
        """Return the facts of a kind, the surest first."""
        found = [fact for fact in self.facts if fact.kind == kind]
        return sorted(found, key=lambda fact: -fact.confidence)

    def as_json(self) -> dict[str, Any]:
        """Return plain data with stable keys."""
        return asdict(self)
