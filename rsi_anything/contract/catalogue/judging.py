"""Fields of the evaluation round: how a candidate becomes a number."""

from harness.task.contract import IDENTIFIER
from rsi_anything.contract.catalogue.base import Condition, Field, Group, Kind, Value, Values, among

GROUPS = (
    Group("evaluation.kind", "How a candidate is judged"),
    Group("evaluation.data", "What only the judge has"),
    Group("evaluation.metric", "The metric"),
    Group("evaluation.code", "Code between candidate and judge"),
    Group("evaluation.limits", "Repeats, failures and feedback"),
)

MEASURES = {
    "next-token": ("nll", "bits"),
    "predictions": ("accuracy", "error-rate", "macro-f1", "mse", "rmse", "mae", "r2", "log-loss"),
}
SPLITS = {"next-token": ("lines", "tail"), "predictions": ("rows", "classes")}

CUSTOM = Condition("evaluation.kind", ("custom",))
NOT_CUSTOM = Condition("evaluation.kind", ("custom",), negated=True)
HELD_OUT = Condition("evaluation.data.file")
IN_ROWS = Condition("evaluation.data.split", ("rows",))
IN_TEXT = Condition("evaluation.data.split", ("lines", "tail"))


ROW = "a row is a dict that maps each column but the label to its text (of classes: the one column `text`)."
INTERFACES = {
    "next-token": (
        "next-token: `load()` returns an object with `.vocabulary`, a list of single characters (where lines are held",
        r'out, "\n" among them ends a line), and `.logits(prefixes)`: for each beginning of a text a row of numbers,',
        "one a character of the vocabulary and in its order: natural-log probabilities that need not be normalised.",
    ),
    "predictions": (
        "predictions: `load()` returns an object with `.predict(rows)`: a list with the label, or the number, of each",
        "row; for log-loss with `.predict_proba(rows)` instead: a list of dicts from label to probability. In both",
        ROW,
    ),
    "custom": (
        "custom: `load()` returns an object with whatever methods your evaluator calls: what it gets from",
        '`candidate.call("answer", 6, 7)` is what `load().answer(6, 7)` returns.',
    ),
}
"""What `load()` of an adapter must return, by the kind of evaluation."""


def _interface(values: Values) -> tuple[str, ...]:
    """Return what `load()` must return for the kind that was chosen; for all kinds where none was."""
    kind = str(values.get("evaluation.kind"))
    return INTERFACES[kind] if kind in INTERFACES else tuple(line for lines in INTERFACES.values() for line in lines)


def _measures(values: Values) -> tuple[str, ...]:
    return MEASURES.get(str(values.get("evaluation.kind")), MEASURES["next-token"] + MEASURES["predictions"])


def _splits(values: Values) -> tuple[str, ...]:
    return SPLITS.get(str(values.get("evaluation.kind")), ("lines", "rows", "tail", "classes"))


def _metric_name(value: Value, _values: Values) -> str | None:
    if not isinstance(value, str) or not IDENTIFIER.match(value):
        return "must be letters, digits and underscores, not starting with a digit"
    if value in {"reward", "invalid", "violation"}:
        return f"{value!r} has a meaning of its own in the judge's result"
    return None


def _above_lowest(value: Value, values: Values) -> str | None:
    lowest = values.get("evaluation.metric.lowest")
    if isinstance(value, int | float) and isinstance(lowest, int | float) and value <= lowest:
        return f"must be above the lowest possible value, {lowest:g}"
    return None


FIELDS = (
    Field(
        id="evaluation.mode",
        group="evaluation.kind",
        kind=Kind.CHOICE,
        label="mode",
        ask="Does the judge train the candidate again, or score what was delivered?",
        why="retrain proves that a recipe is better, at the price of its training time for each submission.",
        example="retrain",
        options=among("retrain", "direct"),
        depends_on=("baseline.command",),
    ),
    Field(
        id="evaluation.kind",
        group="evaluation.kind",
        kind=Kind.CHOICE,
        label="kind",
        ask="What does the judge ask of a candidate?",
        why="next-token: a distribution for each next character; predictions: labels of rows; custom: your code.",
        example="next-token",
        options=among("next-token", "predictions", "custom"),
        depends_on=("baseline.command",),
    ),
    Field(
        id="evaluation.data.file",
        group="evaluation.data",
        kind=Kind.TEXT,
        label="data file",
        ask="Which data file of the project is split? For one file a class, a glob of them.",
        why="Scores count only on data that the agent never saw: it gets the file without the held-out part.",
        example="names.txt",
        depends_on=("evaluation.kind", "source.subdir"),
        needed=(NOT_CUSTOM,),
    ),
    Field(
        id="evaluation.data.split",
        group="evaluation.data",
        kind=Kind.CHOICE,
        label="split",
        ask="How is it split?",
        why="lines: some lines; rows: CSV rows below a header; tail: a text's end; classes: lines of one file a class.",
        example="lines",
        options=_splits,
        depends_on=("evaluation.data.file", "evaluation.kind"),
        when=(HELD_OUT,),
    ),
    Field(
        id="evaluation.data.holdout",
        group="evaluation.data",
        kind=Kind.NUMBER,
        label="held out",
        ask="Which part is held out? A number between 0 and 1.",
        why="More held-out data means less noise, and less to train on.",
        example=0.1,
        depends_on=("evaluation.data.file",),
        when=(HELD_OUT,),
    ),
    Field(
        id="evaluation.data.most",
        group="evaluation.data",
        kind=Kind.INTEGER,
        label="most examples",
        ask="At most how many held-out examples does the judge score? Lines, rows, or windows of a text.",
        why="It bounds the time of one judging.",
        example=2000,
        when=(HELD_OUT,),
    ),
    Field(
        id="evaluation.data.seed",
        group="evaluation.data",
        kind=Kind.INTEGER,
        label="split seed",
        ask="Which seed makes the choice?",
        why="The same seed gives the same split on every machine.",
        example=1,
        when=(HELD_OUT,),
    ),
    Field(
        id="evaluation.data.label",
        group="evaluation.data",
        kind=Kind.TEXT,
        label="label column",
        ask="Which column is predicted?",
        why="It is taken out of what the candidate sees of the held-out rows.",
        example="price",
        depends_on=("evaluation.data.file",),
        when=(HELD_OUT, IN_ROWS),
        needed=(),
    ),
    Field(
        id="evaluation.data.window",
        group="evaluation.data",
        kind=Kind.INTEGER,
        label="window",
        ask="How long is a scored window (tail), or the longest line that is scored (lines)? In characters.",
        why="It bounds the time of one judging.",
        example=64,
        unit="characters",
        depends_on=("evaluation.data.split",),
        when=(HELD_OUT, IN_TEXT),
    ),
    Field(
        id="evaluation.measure",
        group="evaluation.metric",
        kind=Kind.CHOICE,
        label="measure",
        ask="How is the metric computed?",
        why="The judge computes it itself; nothing that a candidate prints is read.",
        example="nll",
        options=_measures,
        depends_on=("evaluation.kind",),
        when=(NOT_CUSTOM,),
        needed=(),
    ),
    Field(
        id="evaluation.metric.name",
        group="evaluation.metric",
        kind=Kind.TEXT,
        label="metric",
        ask="What is the metric called?",
        why="It is the key in the judge's result and the head of every table.",
        example="val_loss",
        depends_on=("question.question", "evaluation.measure"),
        check=_metric_name,
    ),
    Field(
        id="evaluation.metric.direction",
        group="evaluation.metric",
        kind=Kind.CHOICE,
        label="direction",
        ask="Is lower or higher better?",
        why="The wrong way round, the worst candidate would win.",
        example="minimize",
        options=among("minimize", "maximize"),
        depends_on=("evaluation.metric.name", "evaluation.measure"),
    ),
    Field(
        id="evaluation.metric.unit",
        group="evaluation.metric",
        kind=Kind.TEXT,
        label="unit",
        ask="What is its unit, as people write it? Left empty for a ratio, such as accuracy.",
        why="A number without a unit cannot be compared with the literature. A ratio or a pure number has none.",
        example="nats/char",
        depends_on=("evaluation.metric.name", "evaluation.measure"),
    ),
    Field(
        id="evaluation.metric.lowest",
        group="evaluation.metric",
        kind=Kind.NUMBER,
        label="lowest",
        ask="What is the smallest value that is possible at all?",
        why="A result outside the domain is a mistake or a trick, and is not counted.",
        example=0.0,
        depends_on=("evaluation.metric.name", "evaluation.measure"),
    ),
    Field(
        id="evaluation.metric.highest",
        group="evaluation.metric",
        kind=Kind.NUMBER,
        label="highest",
        ask="What is the largest value that is possible at all?",
        why="A result outside the domain is a mistake or a trick, and is not counted.",
        example=20.0,
        depends_on=("evaluation.metric.name", "evaluation.measure", "evaluation.metric.lowest"),
        check=_above_lowest,
    ),
    Field(
        id="evaluation.adapter",
        group="evaluation.code",
        kind=Kind.CODE,
        label="adapter",
        ask="How does the judge get predictions from a trained candidate? The source of rsi_adapter.py.",
        why="It is the candidate's side, lies in the workdir and may be edited. A custom evaluator may do without.",
        example="import model\n\n\ndef load():\n    return model.Trained('model.json')\n",
        depends_on=("evaluation.kind", "baseline.outputs"),
        needed=(NOT_CUSTOM,),
        hints=_interface,
    ),
    Field(
        id="evaluation.evaluator",
        group="evaluation.code",
        kind=Kind.CODE,
        label="evaluator",
        ask="How is a candidate scored? The source of your evaluate function.",
        why="It runs in the judge, where the agent cannot see or change it.",
        example=(
            "def evaluate(judge):\n"
            "    with judge.serve() as candidate:\n"
            '        answer = candidate.call("answer", 6, 7)\n'
            "    return abs(answer - 42)\n"
        ),
        depends_on=("evaluation.kind", "evaluation.metric.name"),
        when=(CUSTOM,),
        needed=(),
    ),
    Field(
        id="evaluation.predict_sec",
        group="evaluation.limits",
        kind=Kind.NUMBER,
        label="prediction limit",
        ask="How long may prediction take within the judge, in seconds?",
        why="A candidate that takes longer is invalid.",
        example=300.0,
        unit="s",
        depends_on=("evaluation.kind",),
    ),
    Field(
        id="evaluation.repeats",
        group="evaluation.limits",
        kind=Kind.INTEGER,
        label="repeats",
        ask="How often is each submission judged, on fresh seeds?",
        why="The mean of several judgings has less noise, and costs their time.",
        example=1,
        depends_on=("evaluation.mode",),
    ),
    Field(
        id="evaluation.on_invalid",
        group="evaluation.limits",
        kind=Kind.NUMBER_OR_WORD,
        label="invalid scores",
        ask="What does an invalid candidate score? The word unscored, or a number.",
        why="An agent plans with it; a report must not have to guess.",
        example="unscored",
        options=among("unscored"),
    ),
    Field(
        id="evaluation.feedback",
        group="evaluation.limits",
        kind=Kind.CHOICES,
        label="feedback",
        ask="What is an agent told after a submission, besides the verdict?",
        why="Each part helps the agent, and tells it something about the held-out data.",
        example=["metric", "score", "best", "baseline", "message"],
        options=among("metric", "score", "best", "baseline", "message"),
    ),
)
