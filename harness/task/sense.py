"""What types cannot say about a contract: parts that contradict each other, so that no run could ever go well.

Only what is truly impossible is refused here; what is merely unwise is a finding of `rsi check`.
"""

import math
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.task.contract import Contract, Knob
from harness.task.globs import MOST_LENGTH, MOST_PARTS, any_matches, contained, literal, overlap
from harness.task.positions import KeyPath

MOST_GLOBS = 200
_FORBIDDEN = frozenset("\0\\?")
"""Characters that tools read differently; what is frozen must not hang on that."""
STRUCTURED = frozenset({".json", ".toml"})
"""Suffixes of the files in which a knob can be found by its key."""

Contradiction = tuple[KeyPath, str, str]
"""Key below the contract, reason, fix."""


def contradictions(contract: Contract) -> Iterator[Contradiction]:
    """Yield what makes the contract impossible to keep."""
    yield from _budget(contract)
    yield from _numbers(contract)
    sizes = list(_glob_sizes(contract))
    yield from sizes
    if not sizes:
        yield from _boundary(contract)
        yield from _knobs(contract)


def _budget(contract: Contract) -> Iterator[Contradiction]:
    budget = contract.budget
    if budget.cooldown_sec >= budget.hours * 3600:
        reason = f"{budget.cooldown_sec:g} s between two submissions is all of the {budget.hours:g} hours or more"
        yield ("budget", "cooldown_sec"), reason, "shorten it or give more hours"
    if budget.gpu_hours == 0 and contract.judge.gpus > 0:
        reason = f"no GPU-hours are left for a judge that needs {contract.judge.gpus} GPUs"
        yield ("budget", "gpu_hours"), reason, "raise it or leave it out"


def _numbers(contract: Contract) -> Iterator[Contradiction]:
    metric, reference, evaluation = contract.metric, contract.reference, contract.evaluation
    for name, value in (("baseline", reference.baseline), ("floor", reference.floor)):
        if value is not None and not contract.in_domain(value):
            reason = f"{value:g} is outside the metric's domain {metric.lowest:g} to {metric.highest:g}"
            yield ("reference", name), reason, "correct metric.lowest or metric.highest, then measure again"
    if reference.noise is not None and reference.noise < 0:
        yield ("reference", "noise"), "a spread cannot be negative", "measure again with `rsi check`"
    if isinstance(evaluation.on_invalid, float) and evaluation.on_invalid >= 1:
        reason = f"score {evaluation.on_invalid:g} for an invalid candidate would equal or beat the baseline"
        yield ("evaluation", "on_invalid"), reason, 'use "unscored", 0 or less'
    if len(set(evaluation.feedback)) < len(evaluation.feedback):
        yield ("evaluation", "feedback"), "a part is named twice", "name each part once"


def _glob_sizes(contract: Contract) -> Iterator[Contradiction]:
    for name in ("editable", "frozen", "deliver"):
        globs: tuple[str, ...] = getattr(contract.boundary, name)
        if len(globs) > MOST_GLOBS:
            yield ("boundary", name), f"holds {len(globs)} globs, at most {MOST_GLOBS} are read", "use wildcards"
        for index, glob in enumerate(globs):
            if len(glob) > MOST_LENGTH or glob.count("/") >= MOST_PARTS or _FORBIDDEN & set(glob):
                reason = f"must be of at most {MOST_PARTS} parts, without NUL, backslash and question mark"
                yield ("boundary", name, index), reason, "the wildcards are * and **, parts are separated by '/'"


def _boundary(contract: Contract) -> Iterator[Contradiction]:
    boundary = contract.boundary
    for index, glob in enumerate(boundary.editable):
        frozen = next((each for each in boundary.frozen if contained(glob, each)), None)
        if frozen is not None:
            reason = f"{glob!r} may be edited, yet {frozen!r} freezes all of it"
            yield ("boundary", "editable", index), reason, "take it out of editable or out of frozen"
    for index, glob in enumerate(boundary.deliver):
        frozen = next((each for each in boundary.frozen if contained(glob, each)), None)
        if frozen is not None:
            reason = f"{glob!r} is delivered, yet {frozen!r} freezes all of it"
            yield ("boundary", "deliver", index), reason, "frozen files come from the image; do not deliver them"
    if not any(overlap(each, glob) for each in boundary.deliver for glob in boundary.editable):
        reason = "nothing that may be edited is delivered, so every candidate would score the same"
        yield ("boundary", "deliver"), reason, "deliver files that boundary.editable names"
    named = sum(1 for glob in set(boundary.deliver) if literal(glob))
    if named > boundary.max_files:
        reason = f"{named} files must be delivered, yet a candidate may hold {boundary.max_files}"
        yield ("boundary", "max_files"), reason, f"raise it to {named} or more"


def _knobs(contract: Contract) -> Iterator[Contradiction]:
    boundary = contract.boundary
    for index, knob in enumerate(contract.search.knobs):
        path: KeyPath = ("search", "knobs", index)
        parts = knob.file.split("/")
        if any(part in {"", ".", ".."} for part in parts) or "\0" in knob.file or len(knob.file) > MOST_LENGTH:
            yield (*path, "file"), f"{knob.file!r} must be a path below the workdir", "write it without '.' and '..'"
        elif any_matches(boundary.frozen, knob.file):
            yield (*path, "file"), f"{knob.file!r} is frozen, so its knob cannot be turned", "take the knob out"
        elif not any_matches(boundary.editable, knob.file):
            yield (*path, "file"), f"{knob.file!r} may not be edited", "name the file in boundary.editable"
        yield from _knob(path, knob)


def _knob(path: KeyPath, knob: Knob) -> Iterator[Contradiction]:
    if knob.key is not None and PurePosixPath(knob.file).suffix not in STRUCTURED:
        reason = f"a key cannot be found in {knob.file!r}, which is neither JSON nor TOML"
        yield (*path, "key"), reason, "use pattern instead"
    if knob.key is not None and not re.fullmatch(r"[^.\s]+(\.[^.\s]+)*", knob.key):
        yield (*path, "key"), f"{knob.key!r} must be names joined by dots", "such as train.lr"
    if knob.choices is not None and len(set(map(repr, knob.choices))) < 2:
        yield (*path, "choices"), "needs two different values at least", "add a value or take the knob out"
    if knob.range is not None and knob.integer and math.floor(knob.range[1]) < math.ceil(knob.range[0]):
        yield (*path, "range"), f"no whole number lies in {list(knob.range)}", "widen the range"
