"""Fields of the first three rounds: where the project is, what it is asked, and what its author already has."""

import re

from rsi_anything.contract.catalogue.base import Field, Group, Kind, Value, Values, among

GROUPS = (
    Group("source.project", "The project"),
    Group("source.identity", "Name and place of the task"),
    Group("question.question", "The research question"),
    Group("baseline.recipe", "The author's recipe"),
    Group("baseline.start", "Where an agent starts, and what knows nothing"),
)


def _patterns(value: Value, _values: Values) -> str | None:
    """Return what is wrong with the first broken pattern of edits."""
    for place, table in enumerate(value if isinstance(value, list) else [], start=1):
        pattern = table.get("pattern") if isinstance(table, dict) else None
        if not isinstance(pattern, str):
            continue
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            return f"{place}: pattern {pattern!r} is no regular expression: {error}"
        if groups != 1:
            return f"{place}: pattern {pattern!r} has {groups} groups; put one pair of ( ) around the value"
    return None


FIELDS = (
    Field(
        id="source.project",
        group="source.project",
        kind=Kind.TEXT,
        label="project",
        ask="Which project is it? A folder or a git URL.",
        why="The task is made from a copy of it, pinned to one commit.",
        example="https://github.com/someone/project",
        fact=True,
    ),
    Field(
        id="source.commit",
        group="source.project",
        kind=Kind.TEXT,
        label="commit",
        ask="Which commit is the task made from?",
        why="A pinned commit lets anyone build the same task again. Left out, it is the present one.",
        example="988aa59e4d8fefa526d06f3b453ad116258398d4",
        depends_on=("source.project",),
        fact=True,
    ),
    Field(
        id="source.subdir",
        group="source.project",
        kind=Kind.TEXT,
        label="subfolder",
        ask="Which folder of the project becomes the workdir?",
        why="Everything else of the project stays out of the image. A dot is the whole project.",
        example="experiments/char",
        depends_on=("source.project", "source.commit"),
    ),
    Field(
        id="source.edits",
        group="source.project",
        kind=Kind.TABLES,
        label="edits",
        ask="Which edits make the project at this commit the starting point of the task?",
        why="A project often fixes its seed, its size or its device. Each edit replaces the single group of a pattern.",
        example=[{"file": "train.py", "pattern": "seed = (1337)", "value": "int(os.environ['RSI_SEED'])"}],
        depends_on=("source.project", "source.commit", "source.subdir"),
        check=_patterns,
    ),
    Field(
        id="source.license",
        group="source.project",
        kind=Kind.TEXT,
        label="licence",
        ask="Under which licence is the project published? Its SPDX identifier.",
        why="The task passes the project on; others must know whether they may.",
        example="MIT",
        depends_on=("source.project",),
        fact=True,
    ),
    Field(
        id="source.name",
        group="source.identity",
        kind=Kind.TEXT,
        label="name",
        ask="What is the task called? Lower-case letters, digits and hyphens.",
        why="It names the folder and stands in every report.",
        example="names-char-lm",
        depends_on=("source.project",),
    ),
    Field(
        id="source.title",
        group="source.identity",
        kind=Kind.TEXT,
        label="title",
        ask="What is its title, for people?",
        why="It heads the instruction and the README.",
        example="Better names from a small character model",
        depends_on=("source.project",),
    ),
    Field(
        id="source.track",
        group="source.identity",
        kind=Kind.CHOICE,
        label="track",
        ask="In which track is it?",
        why="Signature tasks are few, large and led by a named researcher; all others are public.",
        example="public",
        options=among("public", "signature"),
    ),
    Field(
        id="source.category",
        group="source.identity",
        kind=Kind.TEXT,
        label="category",
        ask="Which field of research is it in? A word or two.",
        why="Tasks are listed by it.",
        example="pre-training",
        depends_on=("source.project",),
    ),
    Field(
        id="question.question",
        group="question.question",
        kind=Kind.LONG,
        label="question",
        ask="What is the research question? One sentence that a result can prove wrong.",
        why="It is what the agent works on; everything measured must answer it.",
        example="Can the same training budget reach a lower held-out loss with another architecture?",
    ),
    Field(
        id="question.background",
        group="question.question",
        kind=Kind.LONG,
        label="background",
        ask="What should an agent know beforehand? A few sentences, in your own language.",
        why="It stands in the instruction. Say what was tried, and what is thought to matter.",
        example="Wider layers did not help so far; the learning rate was never tuned.",
        depends_on=("question.question",),
    ),
    Field(
        id="baseline.description",
        group="baseline.recipe",
        kind=Kind.LONG,
        label="recipe",
        ask="What is the recipe that has to be beaten? One sentence.",
        why="A score of 1 means as good as this recipe.",
        example="A two-layer perceptron on three characters of context, trained for 2,000 steps.",
        depends_on=("source.project", "source.subdir"),
    ),
    Field(
        id="baseline.command",
        group="baseline.recipe",
        kind=Kind.TEXT,
        label="command",
        ask="Which shell command trains it, run in the workdir? The judge's seed is in $RSI_SEED.",
        why="It is run to measure the baseline and, with mode retrain, to train each candidate.",
        example='python3 train.py --seed "$RSI_SEED"',
        depends_on=("source.project", "source.subdir"),
    ),
    Field(
        id="baseline.outputs",
        group="baseline.recipe",
        kind=Kind.LIST,
        label="outputs",
        ask="What does training leave behind that prediction needs? Globs below the workdir.",
        why="These files are taken from training to prediction; everything else is dropped.",
        example=["out/model.json"],
        depends_on=("baseline.command",),
    ),
    Field(
        id="baseline.train_sec",
        group="baseline.recipe",
        kind=Kind.NUMBER,
        label="training limit",
        ask="How long may training take within the judge, in seconds?",
        why="A candidate that trains longer is invalid. Leave room for a slower machine.",
        example=600.0,
        unit="s",
        depends_on=("baseline.command",),
    ),
    Field(
        id="baseline.start",
        group="baseline.start",
        kind=Kind.CHOICE,
        label="start",
        ask="What does the untouched workspace score?",
        why="The checks prove it. baseline: the recipe lies there; floor: an empty shell; unscoreable: nothing.",
        example="baseline",
        options=among("baseline", "floor", "unscoreable"),
        depends_on=("baseline.command",),
    ),
    Field(
        id="baseline.floor",
        group="baseline.start",
        kind=Kind.TABLES,
        label="floor edits",
        ask="Which edits turn the recipe into one that learns nothing?",
        why="Its result becomes score 0. Each edit replaces the single group of a pattern in a file.",
        example=[{"file": "recipe.toml", "pattern": "learning_rate = (.*)", "value": "0.0"}],
        depends_on=("baseline.command",),
        check=_patterns,
    ),
)
