"""The recipe that findings add up to: one training command, the files and settings behind it, what it leaves."""

import fnmatch
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from rsi_anything.project.detect.findings import DataFile, Findings, Knob, Launch, Metric, Output, Scalar

_HOLE = re.compile(r"\{(\w+)\}")
_LEAST = 0.3
_KEPT = frozenset({"weights", "model", "array"})


@dataclass(frozen=True)
class Recipe:
    """A training command with everything that findings tie to it; without a launch, the whole project counts."""

    findings: Findings
    launch: Launch | None
    settings: dict[str, Scalar] = field(default_factory=dict)
    """What options and constants are worth when the command runs, by name."""
    overridden: frozenset[str] = frozenset()
    """Names that the command line itself gives, so that editing a file does not change them."""

    @property
    def command(self) -> str:
        """Return the command as it runs in the workdir."""
        if self.launch is None:
            return ""
        folder = self.launch.workdir
        return self.launch.command if folder == "." else f"cd {shlex.quote(folder)} && {self.launch.command}"

    def files(self) -> list[str]:
        """Return the script, its settings and the project's files that it imports."""
        if self.launch is None:
            return []
        named = [self.launch.script, *self.launch.configs, *self.launch.sources]
        return [path for path in dict.fromkeys(named) if path]

    def reads(self, path: str) -> bool:
        """Say whether a file is part of the recipe."""
        return path in self.files()

    def speaks_of(self, data: DataFile) -> bool:
        """Say whether the command or a setting names a data file."""
        words = [*self.command.split(), *(str(value) for value in self.settings.values())]
        name = posixpath.basename(data.path)
        return any(word.endswith(name) for word in words)

    def metric(self) -> Metric | None:
        """Return the metric that matters: of held-out data before training data, of the recipe's own files first."""
        files = set(self.files())
        held_out = [metric for metric in self.findings.metrics if metric.split != "train"]
        metrics = held_out or self.findings.metrics
        own = [metric for metric in metrics if any(item.path in files for item in metric.evidence)]
        return next(iter(own or metrics), None)

    def outputs(self) -> list[tuple[str, Output]]:
        """Return what training leaves behind and prediction needs, holes in the paths filled with settings."""
        files = set(self.files())
        found = []
        for output in self.findings.outputs:
            if output.what in _KEPT and output.file in files:
                path = self._filled(output.path)
                if path and not re.match(r"[*/.]*\Z|/|\.\./", path):
                    found.append((path, output))
        return found

    def _filled(self, path: str) -> str:
        filled = posixpath.normpath(_HOLE.sub(lambda match: str(self.settings.get(match[1], "*")), path))
        folder = self.launch.workdir if self.launch else "."
        return posixpath.normpath(posixpath.join(folder, filled))

    def knobs(self) -> list[Knob]:
        """Return the knobs that have a say, one a name: a settings file shadows the script, the script its imports."""
        order = {path: place for place, path in enumerate(self._by_precedence())}
        chosen: dict[str, Knob] = {}
        for knob in self.findings.knobs:
            if self.launch is not None and (knob.file not in order or knob.name in self.overridden):
                continue
            name = knob.name.rpartition(".")[2]
            known = chosen.get(name)
            if known is None or order.get(knob.file, 0) < order.get(known.file, 0):
                chosen[name] = knob
        sure = [knob for knob in chosen.values() if knob.role and knob.confidence >= _LEAST]
        return sorted(sure, key=lambda knob: (knob.order, -knob.confidence))

    def _by_precedence(self) -> list[str]:
        if self.launch is None:
            return []
        return [*reversed(self.launch.configs), self.launch.script, *self.launch.sources]

    def floor(self) -> list[tuple[Knob, str]] | None:
        """Return the edits that leave nothing to learn with: no learning rate, all penalty, or the fewest steps."""
        knobs = [knob for knob in self.knobs() if knob.pattern is not None and knob.confidence >= _LEAST]
        rates = [knob for knob in knobs if knob.role in {"learning-rate", "min-learning-rate"}]
        if any(knob.role == "learning-rate" for knob in rates):
            return [(knob, "0") for knob in rates]
        if any(item.name == "scikit-learn" for item in self.findings.requirements):
            penalty = [knob for knob in knobs if knob.role == "regularisation" and knob.name == "alpha"]
            if penalty:
                return [(penalty[0], "1e6")]
        steps = [knob for knob in knobs if knob.role == "steps" and knob.integer]
        return [(steps[0], "1")] if steps else None

    @staticmethod
    def as_table(knob: Knob) -> dict[str, Any]:
        """Return a knob as a table of an answers file."""
        table: dict[str, Any] = {"file": knob.file}
        table |= {"key": knob.key} if knob.key is not None else {"pattern": knob.pattern}
        if knob.choices is not None:
            table["choices"] = list(knob.choices)
        elif knob.range is not None:
            table |= {"range": list(knob.range), "scale": knob.scale, "integer": knob.integer}
        return table


def recipe_of(findings: Findings) -> Recipe:
    """Return the recipe of the best launch, or one without a launch where none is sure enough."""
    launch = next((item for item in findings.launches if item.confidence >= _LEAST), None)
    if launch is None:
        return Recipe(findings, None)
    settings: dict[str, Scalar] = {}
    for path in (*launch.sources, launch.script, *launch.configs):
        for option in findings.options:
            if option.file == path and option.default is not None:
                settings[option.name] = option.default
    given = _given(launch, findings)
    return Recipe(findings, launch, settings | given, frozenset(given))


def _given(launch: Launch, findings: Findings) -> dict[str, Scalar]:
    """Return what the command line gives, by the name of the option."""
    names = {flag: option.name for option in findings.options if option.file == launch.script for flag in option.flags}
    try:
        words = shlex.split(launch.command)
    except ValueError:
        words = launch.command.split()
    given: dict[str, Scalar] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if not fnmatch.fnmatch(flag, "-*"):
            continue
        name = names.get(flag, flag.lstrip("-").replace("-", "_"))
        if equals:
            given[name] = value
        elif following and not following.startswith("-"):
            given[name] = following
    return given
