"""The contract: the one machine-readable statement of a task, `[metadata.rsi]` in its task.toml.

Times are seconds unless the name says hours; sizes are MiB. Globs are relative to the workdir, with `/` between parts,
`*` within one part and `**` over any number of parts.
"""

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from re import _parser  # type: ignore[attr-defined]  # the only parser of these expressions that there is
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


class Table(BaseModel):
    """Base of every table: an unknown key is an error, a value is never coerced across types in silence."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Direction(StrEnum):
    """Which way the metric improves."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class Mode(StrEnum):
    """How a candidate becomes a number."""

    DIRECT = "direct"
    RETRAIN = "retrain"


class Start(StrEnum):
    """What the workspace scores before anybody works in it."""

    BASELINE = "baseline"
    FLOOR = "floor"
    UNSCOREABLE = "unscoreable"


class FeedbackPart(StrEnum):
    """A part of the feedback an agent may see; the verdict itself is always shown."""

    METRIC = "metric"
    SCORE = "score"
    BEST = "best"
    BASELINE = "baseline"
    MESSAGE = "message"


class Source(Table):
    """Where the project comes from."""

    repository: str
    """URL of the project's repository, or `local` for one that was never published."""
    commit: str
    """Full commit hash the task was made from; `none` where the project is no repository."""
    license: str
    """SPDX identifier of the project's licence, or `unknown`."""


class Metric(Table):
    """The number that matters, in the field's own unit."""

    name: str
    """Identifier of the metric; also its key in the judge's result file."""
    direction: Direction
    """Whether lower or higher is better."""
    unit: str = ""
    """The unit as people write it, such as nats/char."""
    lowest: float
    """Smallest value that is possible at all."""
    highest: float
    """Largest value that is possible at all."""

    @model_validator(mode="after")
    def _domain(self) -> Self:
        if not IDENTIFIER.match(self.name) or self.name in {"reward", "invalid", "violation"}:
            raise ValueError(f"name {self.name!r} must be an identifier other than reward, invalid and violation")
        if not self.lowest < self.highest:
            raise ValueError(f"lowest ({self.lowest}) must be below highest ({self.highest})")
        return self


class Reference(Table):
    """What was measured on the author's host; never typed in by hand."""

    baseline: float | None = None
    """Mean metric of the author's solution over `repeats` judgings."""
    noise: float | None = None
    """Standard deviation of those judgings, in the metric's unit."""
    floor: float | None = None
    """Metric of a candidate that knows nothing."""
    repeats: int | None = Field(default=None, ge=1)
    """How many judgings of the solution stand behind baseline and noise."""
    judge_sec: float | None = Field(default=None, ge=0)
    """Median duration of one judging."""
    tests_digest: str | None = None
    """Digest of tests/ at the time of measuring; another digest makes the numbers stale."""
    host: str | None = None
    """What the numbers were measured on, in words."""


class Evaluation(Table):
    """How a candidate is scored."""

    mode: Mode
    """direct: a delivered artefact is scored; retrain: the judge trains from the delivered files."""
    repeats: int = Field(default=1, ge=1, le=100)
    """Judgings per submission, each on a fresh seed; their mean is the metric."""
    on_invalid: Literal["unscored"] | float = "unscored"
    """Score of an invalid candidate: none, or this number."""
    feedback: tuple[FeedbackPart, ...] = tuple(FeedbackPart)
    """What the agent is told besides the verdict."""
    start: Start = Start.BASELINE
    """What the untouched workspace scores."""


class Boundary(Table):
    """What a candidate may change, must leave and must deliver."""

    editable: tuple[str, ...] = Field(min_length=1)
    """Globs of the files an agent may change or add."""
    frozen: tuple[str, ...] = ()
    """Globs of the files that must stay as the image has them; a change is a violation."""
    deliver: tuple[str, ...] = Field(min_length=1)
    """Globs of the files that are handed to the judge; nothing else is."""
    max_mb: float = Field(default=100.0, gt=0)
    """Most bytes a candidate may hold, in MiB."""
    max_files: int = Field(default=1000, ge=1)
    """Most files a candidate may hold."""

    @field_validator("editable", "frozen", "deliver")
    @classmethod
    def _below_workdir(cls, globs: tuple[str, ...]) -> tuple[str, ...]:
        for glob in globs:
            parts = glob.split("/")
            if not glob or glob.startswith("/") or any(part in {"", ".", ".."} for part in parts):
                raise ValueError(f"glob {glob!r} must be relative to the workdir, without '.', '..' or empty parts")
        return globs


class Budget(Table):
    """What a run may spend; whatever runs out first ends it."""

    hours: float = Field(gt=0)
    """Working hours of the agent; paused and judging time is not charged."""
    submissions: int = Field(ge=1)
    """Submissions that use up the budget; no_measurement does not."""
    cooldown_sec: float = Field(default=0.0, ge=0)
    """Least working seconds between two submissions."""
    gpu_hours: float | None = Field(default=None, ge=0)
    """GPU-hours of work and judge together."""
    tokens: int | None = Field(default=None, ge=0)
    """Model tokens, in and out."""
    usd: float | None = Field(default=None, ge=0)
    """Money spent on models."""


class Judge(Table):
    """Where a candidate is judged."""

    base: Literal["clean", "work"] = "clean"
    """clean: the task's own image plus what is delivered; work: the workspace as it stands (Harbor's meaning)."""
    gpus: int = Field(default=0, ge=0)
    """GPUs the judge needs."""


MOST_REPEATS = 32
"""A repeat of more than these counts as unbounded."""


def explodes(pattern: str) -> bool:
    """Say whether a valid regular expression can take exponential time: an unbounded repeat over another or a choice.

    A task's patterns are searched for on the host, so a hostile one must not be able to hang it.
    """

    def unbounded(parsed: Any, *, inside: bool) -> bool:
        for operation, value in parsed:
            name = str(operation)
            if inside and name == "BRANCH":
                return True
            repeats = name in {"MAX_REPEAT", "MIN_REPEAT"} and value[1] > MOST_REPEATS
            if repeats and inside:
                return True
            if any(unbounded(part, inside=inside or repeats) for part in _parts(value)):
                return True
        return False

    return unbounded(_parser.parse(pattern), inside=False)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the parsed expressions within the operand of one operation."""
    if isinstance(value, _parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _parts(each)


class Knob(Table):
    """One number or choice of the recipe that the search agent may vary."""

    file: str
    """File that holds the value, relative to the workdir; it must be editable."""
    key: str | None = None
    """Dotted key in a JSON or TOML file; either this or `pattern`, which serves every other kind of file."""
    pattern: str | None = None
    """Regular expression whose single group is the value; either this or `key`."""
    range: tuple[float, float] | None = None
    """Lowest and highest value; either this or `choices`."""
    choices: tuple[str | int | float | bool, ...] | None = None
    """Allowed values; either this or `range`."""
    scale: Literal["linear", "log"] = "linear"
    """How values are spaced within the range."""
    integer: bool = False
    """Whether values are whole numbers."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.key is None) == (self.pattern is None):
            raise ValueError("a knob needs exactly one of key and pattern")
        if (self.range is None) == (self.choices is None):
            raise ValueError("a knob needs exactly one of range and choices")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groups
            except re.error as error:
                raise ValueError(f"pattern {self.pattern!r} is no regular expression: {error}") from error
            if groups != 1:
                raise ValueError(f"pattern {self.pattern!r} must have exactly one group, has {groups}")
            if explodes(self.pattern):
                raise ValueError(
                    f"pattern {self.pattern!r} repeats what repeats and may take for ever: make it plainer"
                )
        if self.range is not None and not self.range[0] < self.range[1]:
            raise ValueError(f"range {list(self.range)} must rise")
        if self.range is not None and self.scale == "log" and self.range[0] <= 0:
            raise ValueError("a log scale needs a range above zero")
        return self


class Search(Table):
    """What the search agent may vary."""

    knobs: tuple[Knob, ...] = ()
    """The knobs, in the order of their importance."""


class Contract(Table):
    """The whole contract of a task."""

    version: Literal[1] = 1
    """Version of the contract's own format."""
    track: Literal["signature", "public"] = "public"
    """signature: kept and re-run by the maintainers; public: anybody's."""
    category: str
    """Field of research in a word or two, such as pre-training."""
    question: Annotated[str, Field(min_length=1)]
    """One falsifiable sentence."""
    source: Source
    metric: Metric
    reference: Reference = Reference()
    evaluation: Evaluation
    boundary: Boundary
    budget: Budget
    judge: Judge = Judge()
    search: Search = Search()

    def improves(self, new: float, old: float) -> bool:
        """Say whether metric value `new` is better than `old`."""
        return new < old if self.metric.direction is Direction.MINIMIZE else new > old

    def in_domain(self, value: float) -> bool:
        """Say whether a metric value is finite and possible."""
        return math.isfinite(value) and self.metric.lowest <= value <= self.metric.highest


def score(metric: float, *, floor: float | None, baseline: float | None) -> float | None:
    """Return the metric on the scale where the floor is 0 and the baseline 1, or None where that is undefined."""
    if floor is None or baseline is None or floor == baseline:
        return None
    return (metric - floor) / (baseline - floor) + 0.0  # no negative zero
