"""The task specification: everything a person decided, and the only input of authoring besides the project itself.

An answers file is this model in TOML. `Contract` (harness) is derived from it; nothing measured is in here.
Paths are relative to the workdir, which is a copy of the project at its commit.
"""

import re
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from harness.task.contract import Boundary, Budget, FeedbackPart, Knob, Metric, Mode, Start, Table

SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}\Z")


class Edit(Table):
    """A change of one value in one file: the single group of `pattern` becomes `value`."""

    file: str
    pattern: str
    value: str


class SourceRound(Table):
    """Round 1: which project, and what it is asked."""

    project: str = "."
    """Path or git URL; the command line wins over it."""
    commit: str | None = None
    """Commit to pin; the present one where it is left out."""
    subdir: str = "."
    """Folder of the project that becomes the workdir."""
    edits: tuple[Edit, ...] = ()
    """Edits that make the project at its commit the task's starting point, such as a seed read from the environment."""
    license: str = "unknown"
    """SPDX identifier of the project's licence."""
    name: str
    """Name of the task: lower-case words with hyphens."""
    title: str
    """Title of the task, for people."""
    track: Literal["signature", "public"] = "public"
    category: str
    """Field of research, such as pre-training."""

    @field_validator("name")
    @classmethod
    def _slug(cls, value: str) -> str:
        if not SLUG.match(value):
            raise ValueError(f"{value!r} must be lower-case letters, digits and hyphens")
        return value


class QuestionRound(Table):
    """Round 2: the research question."""

    question: str = Field(min_length=1)
    """One falsifiable sentence."""
    background: str = ""
    """What an agent should know: a few sentences, in the person's language."""


class BaselineRound(Table):
    """Round 3: the author's own recipe, and a candidate that knows nothing."""

    description: str
    """What the recipe is, in a sentence."""
    command: str
    """Shell command that trains it, run in the workdir; the judge's seed is in $RSI_SEED."""
    outputs: tuple[str, ...] = ()
    """Globs of what training leaves behind and prediction needs."""
    train_sec: float = Field(default=600.0, gt=0)
    """Time limit of training within the judge."""
    start: Start = Start.BASELINE
    """What the untouched workspace scores."""
    floor: tuple[Edit, ...] = ()
    """Edits that turn the recipe into one that learns nothing, such as a learning rate of 0."""


class Data(Table):
    """The data that is split into what the agent gets and what only the judge has."""

    file: str
    """Data file of the project; the workspace keeps it without the held-out part. For classes, a glob of them."""
    split: Literal["lines", "rows", "tail", "classes"]
    """lines: a seeded choice of lines; rows: the same of CSV rows below a header; tail: the last part of a text;
    classes: a seeded choice of the lines of several text files, each named after the class of its lines. A candidate is
    asked for the class of rows with the single column `text`."""
    holdout: float = Field(gt=0, lt=1)
    """Part that is held out."""
    most: int = Field(default=2000, ge=1)
    """Most held-out examples (lines, rows, or windows of a text) that the judge scores."""
    seed: int = 1
    """Seed of the choice."""
    label: str | None = None
    """Column that is predicted (rows)."""
    window: int = Field(default=64, ge=2)
    """Length of a scored window in characters (tail), and the longest line scored (lines)."""


class EvaluationRound(Table):
    """Round 4: how a candidate becomes a number."""

    mode: Mode
    kind: Literal["next-token", "predictions", "custom"]
    """next-token: the candidate names a distribution for the next character, one position after the other, never seeing
    it before; predictions: the candidate predicts the label of held-out rows; custom: the author's own evaluator."""
    metric: Metric
    data: Data | None = None
    """What is held out; left out only where `custom` needs none."""
    measure: (
        Literal["nll", "bits", "accuracy", "error-rate", "macro-f1", "mse", "rmse", "mae", "r2", "log-loss"] | None
    ) = None
    """How the metric is computed from predictions (nll and bits: next-token)."""
    adapter: str | None = None
    """Source of `rsi_adapter.py`, the candidate's side of prediction, which lies in the workdir and may be edited."""
    evaluator: str | None = None
    """Source of the author's `evaluate` function (custom)."""
    predict_sec: float = Field(default=300.0, gt=0)
    """Time limit of prediction within the judge."""
    repeats: int = Field(default=1, ge=1, le=100)
    on_invalid: Literal["unscored"] | float = "unscored"
    feedback: tuple[FeedbackPart, ...] = tuple(FeedbackPart)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "custom":
            if self.evaluator is None:
                raise ValueError("kind custom needs evaluator")
            return self
        if self.data is None or self.adapter is None or self.measure is None:
            raise ValueError(f"kind {self.kind} needs data, adapter and measure")
        if (self.kind == "next-token") != (self.measure in {"nll", "bits"}):
            raise ValueError(f"measure {self.measure} does not go with kind {self.kind}")
        return self


class BoundaryRound(Boundary):
    """Round 5: what a candidate may change, must leave and must deliver."""

    exclude: tuple[str, ...] = ()
    """Globs of project files that do not come into the image."""


class ComputeRound(Table):
    """Round 6: what it runs on and what it may spend."""

    packages: tuple[str, ...] = ()
    """Pinned Python packages, such as numpy==2.1.0, installed in the image."""
    python: str = "3.11"
    base: str = "python:3.11-slim-bookworm"
    """Base image of the Dockerfile; a digest pins it."""
    cpus: float = 2
    memory_mb: int = Field(default=4096, ge=64)
    storage_mb: int = Field(default=4096, ge=64)
    gpus: int = Field(default=0, ge=0)
    network: bool = False
    """Whether the agent's workspace may reach the network."""
    budget: Budget
    knobs: tuple[Knob, ...] = ()
    """What the search agent may vary."""

    @field_validator("packages")
    @classmethod
    def _pinned(cls, packages: tuple[str, ...]) -> tuple[str, ...]:
        for package in packages:
            if not re.match(r"[A-Za-z0-9._-]+(\[[A-Za-z0-9._,-]+\])?==[A-Za-z0-9.+!_-]+\Z", package):
                raise ValueError(f"package {package!r} must be pinned as name==version")
        return packages


class TaskSpec(Table):
    """A whole set of answers."""

    version: Literal[1] = 1
    source: SourceRound
    question: QuestionRound
    baseline: BaselineRound
    evaluation: EvaluationRound
    boundary: BoundaryRound
    compute: ComputeRound
