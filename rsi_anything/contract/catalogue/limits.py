"""Fields of the boundary and compute rounds: what a candidate may change, and what a run may spend."""

from harness.task.globs import any_matches
from rsi_anything.contract.catalogue.base import Field, Group, Kind, Value, Values

GROUPS = (
    Group("boundary.files", "What may change, must stay, and is delivered"),
    Group("boundary.size", "Size of a candidate, and what stays out of the image"),
    Group("compute.image", "What is installed"),
    Group("compute.machine", "What it runs on"),
    Group("compute.budget", "What a run may spend"),
    Group("compute.knobs", "What the search agent may vary"),
)

ADAPTER = "rsi_adapter.py"
"""Delivered with every candidate that has one, named or not."""


def _undelivered(tables: Value, deliver: Value, values: Values) -> list[str]:
    """Return the files of edits or knobs that a judge which trains anew would never get."""
    if values.get("evaluation.mode") != "retrain" or not isinstance(deliver, list) or not isinstance(tables, list):
        return []
    globs = [glob for glob in deliver if isinstance(glob, str)]
    globs += [ADAPTER] if values.get("evaluation.adapter") is not None else []
    files = [table.get("file") for table in tables if isinstance(table, dict)]
    named = dict.fromkeys(file for file in files if isinstance(file, str))
    return [file for file in named if not any_matches(globs, file)]


def _delivers_floor(value: Value, values: Values) -> str | None:
    lacking = _undelivered(values.get("baseline.floor"), value, values)
    if not lacking:
        return None
    return (
        f"leaves out {', '.join(lacking)}, which baseline.floor edits: the judge would train without the edit; "
        "add it here, or edit a delivered file there"
    )


def _knobs_delivered(value: Value, values: Values) -> str | None:
    lacking = _undelivered(value, values.get("boundary.deliver"), values)
    if not lacking:
        return None
    return (
        f"turns {', '.join(lacking)}, which is not delivered, so turning it changes nothing; "
        "add it to boundary.deliver, or leave the knob out"
    )


FIELDS = (
    Field(
        id="boundary.editable",
        group="boundary.files",
        kind=Kind.LIST,
        label="editable",
        ask="Which files may an agent change or add? Globs below the workdir.",
        why="It is the space of ideas; several different hypotheses must fit in it.",
        example=["train.py", "recipe.toml", "model/**"],
        depends_on=("source.subdir", "baseline.command"),
    ),
    Field(
        id="boundary.frozen",
        group="boundary.files",
        kind=Kind.LIST,
        label="frozen",
        ask="Which files must stay as they are? Globs below the workdir.",
        why="Changing one is a violation. The judge takes these files from the image in any case.",
        example=["prepare.py", "names.txt"],
        depends_on=("boundary.editable", "evaluation.data.file"),
    ),
    Field(
        id="boundary.deliver",
        group="boundary.files",
        kind=Kind.LIST,
        label="deliver",
        ask="Which files are handed to the judge? Globs below the workdir.",
        why="Nothing else reaches the judge.",
        example=["train.py", "recipe.toml", "rsi_adapter.py"],
        depends_on=("boundary.editable", "evaluation.mode", "baseline.outputs", "baseline.floor"),
        check=_delivers_floor,
    ),
    Field(
        id="boundary.max_mb",
        group="boundary.size",
        kind=Kind.NUMBER,
        label="largest size",
        ask="How large may a candidate be, in MiB?",
        why="Every candidate is kept, so that it can be judged again.",
        example=100.0,
        unit="MiB",
        depends_on=("boundary.deliver",),
    ),
    Field(
        id="boundary.max_files",
        group="boundary.size",
        kind=Kind.INTEGER,
        label="most files",
        ask="How many files may a candidate hold?",
        why="Every candidate is kept, so that it can be judged again.",
        example=1000,
        depends_on=("boundary.deliver",),
    ),
    Field(
        id="boundary.exclude",
        group="boundary.size",
        kind=Kind.LIST,
        label="left out",
        ask="Which files of the project do not come into the image? Globs below the workdir.",
        why="Old results, answers and large leftovers would help an agent in the wrong way, or only cost space.",
        example=["results/**", "*.ckpt"],
        depends_on=("source.subdir",),
    ),
    Field(
        id="compute.packages",
        group="compute.image",
        kind=Kind.LIST,
        label="packages",
        ask="Which Python packages does it need? Each pinned, as name==version.",
        why="An unpinned package changes the result of a later run.",
        example=["numpy==2.1.0"],
        depends_on=("baseline.command",),
    ),
    Field(
        id="compute.python",
        group="compute.image",
        kind=Kind.TEXT,
        label="Python",
        ask="Which version of Python?",
        why="It is part of what makes a result repeatable.",
        example="3.11",
    ),
    Field(
        id="compute.base",
        group="compute.image",
        kind=Kind.TEXT,
        label="base image",
        ask="From which base image is it built?",
        why="A digest pins it; a tag may move.",
        example="python:3.11-slim-bookworm",
        depends_on=("compute.python",),
    ),
    Field(
        id="compute.cpus",
        group="compute.machine",
        kind=Kind.NUMBER,
        label="CPUs",
        ask="How many CPUs?",
        why="Work and judge get as many each; a training time means nothing without it.",
        example=2.0,
        depends_on=("baseline.command",),
    ),
    Field(
        id="compute.memory_mb",
        group="compute.machine",
        kind=Kind.INTEGER,
        label="memory",
        ask="How much memory, in MiB?",
        why="What needs more is stopped.",
        example=4096,
        unit="MiB",
        depends_on=("baseline.command",),
    ),
    Field(
        id="compute.storage_mb",
        group="compute.machine",
        kind=Kind.INTEGER,
        label="storage",
        ask="How much disk space, in MiB?",
        why="It bounds what a workspace may write.",
        example=4096,
        unit="MiB",
    ),
    Field(
        id="compute.gpus",
        group="compute.machine",
        kind=Kind.INTEGER,
        label="GPUs",
        ask="How many GPUs?",
        why="A task that needs none can be run by anyone.",
        example=0,
        depends_on=("baseline.command",),
    ),
    Field(
        id="compute.network",
        group="compute.machine",
        kind=Kind.FLAG,
        label="network",
        ask="May the agent's workspace reach the network?",
        why="With a network an agent can find data and answers. The judge never has one.",
        example=False,
    ),
    Field(
        id="compute.budget.hours",
        group="compute.budget",
        kind=Kind.NUMBER,
        label="hours",
        ask="How many hours may an agent work? Waiting for the judge does not count.",
        why="Enough for ten or more loops of change, train and submit.",
        example=2.0,
        unit="hours",
        depends_on=("baseline.train_sec",),
    ),
    Field(
        id="compute.budget.submissions",
        group="compute.budget",
        kind=Kind.INTEGER,
        label="submissions",
        ask="How many submissions may it hand in?",
        why="The more, the more likely the best of them is luck.",
        example=20,
        depends_on=("evaluation.mode",),
    ),
    Field(
        id="compute.budget.cooldown_sec",
        group="compute.budget",
        kind=Kind.NUMBER,
        label="cooldown",
        ask="How many seconds of work lie at least between two submissions?",
        why="It keeps an agent from using the judge as its training signal.",
        example=0.0,
        unit="s",
    ),
    Field(
        id="compute.budget.gpu_hours",
        group="compute.budget",
        kind=Kind.NUMBER,
        label="GPU-hours",
        ask="How many GPU-hours may work and judge use together? Left out, there is no bound.",
        why="It bounds the price of a run.",
        example=8.0,
        unit="GPU-hours",
        depends_on=("compute.gpus",),
    ),
    Field(
        id="compute.budget.tokens",
        group="compute.budget",
        kind=Kind.INTEGER,
        label="tokens",
        ask="How many model tokens may an agent use, in and out? Left out, there is no bound.",
        why="It bounds the price of a run.",
        example=2_000_000,
    ),
    Field(
        id="compute.budget.usd",
        group="compute.budget",
        kind=Kind.NUMBER,
        label="dollars",
        ask="How many US dollars may it spend on models? Left out, there is no bound.",
        why="It bounds the price of a run.",
        example=20.0,
        unit="USD",
    ),
    Field(
        id="compute.knobs",
        group="compute.knobs",
        kind=Kind.TABLES,
        label="knobs",
        ask="Which numbers or choices of the recipe may the search agent vary, most important first?",
        why="The search agent needs no model; what it reaches is a bar for those that do.",
        example=[{"file": "recipe.toml", "key": "learning_rate", "range": [0.001, 1.0], "scale": "log"}],
        depends_on=("boundary.editable", "boundary.deliver", "evaluation.mode", "baseline.command"),
        check=_knobs_delivered,
    ),
)
