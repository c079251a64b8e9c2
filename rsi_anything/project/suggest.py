"""Suggests answers from findings: what a guided interview drafts from. Only what has evidence, nothing made up.

Keys are the dotted names of the task specification's fields, values are plain data as in an answers file.
"""

import posixpath
import re
from dataclasses import dataclass, replace

from rsi_anything.project.detect.findings import DataFile, Fact, Findings, Metric
from rsi_anything.project.evidence import Evidence
from rsi_anything.project.recipe import Recipe, recipe_of

Plain = str | int | float | bool | list["Plain"] | dict[str, "Plain"]

_MEASURES = {
    "accuracy": "accuracy", "error": "error-rate", "f1": "macro-f1", "mse": "mse", "rmse": "rmse", "mae": "mae",
    "r2": "r2", "nll": "log-loss", "loss": "log-loss",
}  # fmt: skip
_LANGUAGE = frozenset({"loss", "nll", "perplexity", "bpb"})
_RATES = ("learning-rate", "min-learning-rate")
_NOTHING = {
    **dict.fromkeys(_RATES, "without a learning rate it learns nothing"),
    "regularisation": "so strong a penalty leaves nothing but the mean",
    "steps": "with the fewest steps it learns next to nothing",
}
_MOST_KNOBS = 12
_PINNED = re.compile(r"={2,3}\s*(?P<version>[A-Za-z0-9.+!_-]+)\Z")
_PYTHON = re.compile(r"(?<![\w./-])python(?=\s)")
_SEED = re.compile(r"(--[\w-]*seed[ =])\d+(?=\s|\Z)")
_OTHER = re.compile(r"(^|[/_.-])(test|val|valid|validation|dev|sample)\w*\.\w+\Z", re.IGNORECASE)
_LEFT_OUT = (".github", "docs", "doc", ".circleci", ".vscode", "assets", "notebooks")


@dataclass(frozen=True)
class Suggestion:
    """A proposed answer, what it rests on, and how sure it is from 0 to 1; `rest` is what a person must still add."""

    value: Plain
    evidence: tuple[Evidence, ...]
    confidence: float
    reason: str
    rest: tuple[str, ...] = ()


Suggestions = dict[str, Suggestion]


def suggest(findings: Findings) -> Suggestions:
    """Return suggestions by field; a field without evidence is not in it."""
    recipe = recipe_of(findings)
    found: Suggestions = {}
    _source(findings, found)
    _baseline(recipe, found)
    data = _data(findings, recipe, found)
    _evaluation(recipe, data, found)
    _boundary(findings, recipe, data, found)
    _compute(findings, recipe, found)
    keep_delivered(found)
    return found


def _of_fact(fact: Fact | None, least: float = 0.3) -> Suggestion | None:
    if fact is None or fact.confidence < least:
        return None
    return Suggestion(fact.value, fact.evidence, fact.confidence, fact.reason)


def _source(findings: Findings, found: Suggestions) -> None:
    for field, kind in (("source.license", "licence"), ("source.title", "title"), ("source.category", "category")):
        made = _of_fact(findings.fact(kind))
        if made is not None:
            found[field] = made
    name = re.sub(r"[^a-z0-9]+", "-", findings.project.lower()).strip("-")[:63].rstrip("-")
    if name:
        found["source.name"] = Suggestion(name, (), 0.6, "the repository is called so")


def _baseline(recipe: Recipe, found: Suggestions) -> None:
    launch = recipe.launch
    if launch is None:
        return
    command, reason = _for_the_judge(recipe.command, launch.reason)
    if launch.endless:
        reason += f"; it ends only where {launch.endless} is given"
    found["baseline.command"] = Suggestion(command, launch.evidence, launch.confidence, reason)
    outputs = recipe.outputs()
    if outputs:
        evidence = tuple(item for _, output in outputs for item in output.evidence)[:8]
        paths: list[Plain] = list(dict.fromkeys(path for path, _ in outputs))
        surest = min(output.confidence for _, output in outputs)
        found["baseline.outputs"] = Suggestion(paths, evidence, round(surest * 0.9, 2), "the training code writes them")
    floor = recipe.floor()
    if floor is not None:
        edits: list[Plain] = [
            {"file": knob.file, "pattern": knob.pattern or "", "value": value} for knob, value in floor
        ]
        evidence = tuple(item for knob, _ in floor for item in knob.evidence)[:8]
        role = floor[0][0].role
        found["baseline.floor"] = Suggestion(edits, evidence, 0.7 if role in _RATES else 0.4, _NOTHING[role])


def _for_the_judge(command: str, reason: str) -> tuple[str, str]:
    """Return the command as an image runs it, where Python may be python3 alone, with the judge's seed."""
    command = _PYTHON.sub("python3", command)
    seeded = _SEED.sub(r'\1"$RSI_SEED"', command)
    return seeded, reason if seeded == command else f"{reason}; the seed is the judge's, in $RSI_SEED"


def keep_delivered(found: Suggestions) -> None:
    """Drop knobs and floor edits of files that the suggested delivery lacks: turning them would change nothing."""
    delivered = found.get("boundary.deliver")
    if delivered is None or not isinstance(delivered.value, list):
        return
    paths = delivered.value
    for field in ("baseline.floor", "compute.knobs"):
        made = found.get(field)
        tables = made.value if made is not None and isinstance(made.value, list) else []
        kept: list[Plain] = [table for table in tables if isinstance(table, dict) and table["file"] in paths]
        if made is not None and kept:
            found[field] = replace(made, value=kept)
        elif made is not None:
            del found[field]


def _data(findings: Findings, recipe: Recipe, found: Suggestions) -> DataFile | None:
    """Suggest the data that is split; a file that the recipe names comes before the others."""
    splits = {"lines": "lines", "csv": "rows", "text": "tail", "class-files": "classes"}
    usable = [item for item in findings.data if item.shape in splits and item.confidence >= 0.45]
    if not usable:
        return None
    data = max(
        usable, key=lambda item: (recipe.speaks_of(item), not _OTHER.search(item.path), item.confidence, item.size)
    )
    found["evaluation.data.file"] = Suggestion(data.path, data.evidence, data.confidence, data.reason)
    amount = f"{data.examples} lines, " if data.examples else ""
    why = f"it holds {amount}{data.shape}"
    found["evaluation.data.split"] = Suggestion(
        splits[data.shape], data.evidence[:1], round(data.confidence * 0.9, 2), why
    )
    if data.label is not None:
        sure = 0.8 if any("takes the column" in item.fact for item in data.evidence) else 0.5
        reason = "the code takes it away from the inputs" if sure > 0.5 else "its name says so"
        found["evaluation.data.label"] = Suggestion(data.label, data.evidence, sure, reason)
    return data


def _evaluation(recipe: Recipe, data: DataFile | None, found: Suggestions) -> None:
    metric = recipe.metric()
    kind = _kind(metric, data) if metric is not None and data is not None else None
    measure = None
    if metric is not None and kind is not None:
        measure = _MEASURES.get(metric.kind)
        if kind == "next-token":
            measure = "bits" if metric.kind == "bpb" else "nll"
        why = f"the project's metric is {metric.name} and its data is {data.shape if data else 'not here'}"
        evidence = (*metric.evidence[:2], *(data.evidence[:1] if data else ()))
        found["evaluation.kind"] = Suggestion(kind, evidence, 0.6, why)
        if measure is not None:
            found["evaluation.measure"] = Suggestion(
                measure, metric.evidence[:3], round(metric.confidence * 0.8, 2), why
            )
    if metric is not None:
        _metric(metric, found, measured=measure is not None)
    if recipe.launch is not None:
        spread = (recipe.launch.gpus or 0) > 1
        mode = "direct" if spread else "retrain"
        reason = "training needs several GPUs" if spread else "one command trains it, so a judge can do it again"
        found["evaluation.mode"] = Suggestion(
            mode, recipe.launch.evidence, round(recipe.launch.confidence * 0.7, 2), reason
        )


def _metric(metric: Metric, found: Suggestions, *, measured: bool) -> None:
    """Suggest the metric; unit and domain follow from the judge's own measure where there is one."""

    def say(value: Plain, reason: str) -> Suggestion:
        return Suggestion(value, metric.evidence, metric.confidence, reason)

    if metric.split == "train":
        # A name that speaks of training would be wrong for what a judge measures on held-out data.
        reason = f"{metric.reason}; the project gives it of its training data alone, a judge measures what is held out"
        found["evaluation.metric.name"] = say(metric.kind, reason)
    else:
        found["evaluation.metric.name"] = say(metric.name, metric.reason)
    found["evaluation.metric.direction"] = say(metric.direction, metric.reason)
    if measured:
        return
    if metric.unit:
        found["evaluation.metric.unit"] = say(metric.unit, f"{metric.kind} is measured in it")
    found["evaluation.metric.lowest"] = say(metric.lowest, f"no {metric.kind} is below it")
    found["evaluation.metric.highest"] = say(metric.highest, f"no sensible {metric.kind} is above it")


def _kind(metric: Metric, data: DataFile) -> str | None:
    if data.shape in {"lines", "text"} and metric.kind in _LANGUAGE and metric.unit != "%":
        return "next-token"
    if data.shape in {"csv", "class-files"} and metric.kind in _MEASURES:
        return "predictions"
    return None


def _boundary(findings: Findings, recipe: Recipe, data: DataFile | None, found: Suggestions) -> None:
    frozen = [fact for fact in findings.all_facts("frozen") if recipe.reads(fact.value)]
    launch = recipe.launch
    if launch is not None:
        fixed = {fact.value for fact in frozen}
        paths = [path for path in recipe.files() if path not in fixed and not path.endswith(".sh")]
        editable: list[Plain] = list(paths)
        if editable:
            reason = "the training command runs or reads them"
            found["boundary.editable"] = Suggestion(
                editable, launch.evidence, round(launch.confidence * 0.8, 2), reason
            )
            found["boundary.deliver"] = Suggestion(editable, launch.evidence, round(launch.confidence * 0.7, 2), reason)
    kept: list[Plain] = [fact.value for fact in frozen]
    evidence = [item for fact in frozen for item in fact.evidence]
    if data is not None:
        kept.append(data.path)
        evidence += data.evidence[:1]
    if kept:
        found["boundary.frozen"] = Suggestion(kept, tuple(evidence)[:8], 0.5, "they hold data, load it or measure")
    _excluded(findings, recipe, found)


def _excluded(findings: Findings, recipe: Recipe, found: Suggestions) -> None:
    folders: dict[str, Evidence] = {}
    for fact in findings.all_facts("tests"):
        if fact.value != "." and not any(recipe.reads(item.path) for item in fact.evidence):
            folders[fact.value] = fact.evidence[0]
    for point in findings.entry_points:
        if point.kind == "notebook":
            folders[point.path] = point.evidence[0]
        top = point.path.partition("/")[0]
        if top in _LEFT_OUT and "/" in point.path:
            folders.setdefault(top, point.evidence[0])
    if folders:
        globs: list[Plain] = [name if "." in posixpath.basename(name) else f"{name}/**" for name in folders]
        reason = "training needs neither tests nor documentation"
        found["boundary.exclude"] = Suggestion(globs, tuple(folders.values())[:8], 0.5, reason)


def _compute(findings: Findings, recipe: Recipe, found: Suggestions) -> None:
    needed = [item for item in findings.requirements if item.confidence >= 0.6]
    pinned = [(item, match["version"]) for item in needed if (match := _PINNED.match(item.spec))]
    open_ones = tuple(item.name for item in needed if not _PINNED.match(item.spec))
    if pinned:
        packages: list[Plain] = [f"{item.name}=={version}" for item, version in pinned]
        evidence = tuple(item.evidence[0] for item, _ in pinned)[:8]
        without = f"; without a version there: {', '.join(open_ones[:12])}" if open_ones else ""
        reason = f"the project pins them{without}"
        found["compute.packages"] = Suggestion(packages, evidence, 0.8 if not open_ones else 0.5, reason, open_ones)
    python = findings.fact("python")
    exact = re.match(r"(?:={2})?(3\.\d{1,2})(?:\.\d+)?\Z", python.value) if python else None
    if python is not None and exact:
        found["compute.python"] = Suggestion(exact[1], python.evidence, python.confidence, python.reason)
    knobs = recipe.knobs()[:_MOST_KNOBS]
    if knobs:
        tables: list[Plain] = [recipe.as_table(knob) for knob in knobs]
        evidence = tuple(knob.evidence[0] for knob in knobs)
        sure = round(sum(knob.confidence for knob in knobs) / len(knobs), 2)
        if recipe.launch is None:
            sure = round(sure * 0.4, 2)  # they come from anywhere in the project
        found["compute.knobs"] = Suggestion(tables, evidence, sure, "settings of the recipe, the weightiest first")
    _gpus(recipe, findings, found)


def _gpus(recipe: Recipe, findings: Findings, found: Suggestions) -> None:
    launch = recipe.launch
    if launch is not None and launch.gpus is not None:
        found["compute.gpus"] = Suggestion(launch.gpus, launch.evidence, 0.7, "the training command says so")
        return
    facts = findings.all_facts("hardware")
    coded = [fact for fact in facts if any(recipe.reads(item.path) for item in fact.evidence)]
    spoken = [fact for fact in facts if re.fullmatch(r"\d+ GPUs?", fact.value)]
    cpu = next((fact for fact in coded if fact.value == "cpu"), None)
    cuda = next((fact for fact in coded if fact.value == "cuda"), None)
    if cpu is not None:
        found["compute.gpus"] = Suggestion(0, cpu.evidence, 0.5, "it can run on the CPU")
    elif spoken and cuda is not None:
        count = int(spoken[0].value.split()[0])
        found["compute.gpus"] = Suggestion(count, (*spoken[0].evidence, *cuda.evidence[:2]), 0.4, spoken[0].reason)
