"""Research: everything the detectors find in a project, each file read once, nothing imported or run."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from rsi_anything.project.checkout import Project
from rsi_anything.project.detect.code import Code, parse
from rsi_anything.project.detect.commands import commands_in, installs_in
from rsi_anything.project.detect.config_files import knobs_in_config
from rsi_anything.project.detect.data_files import data_in, data_scripts_in
from rsi_anything.project.detect.entry_points import entry_points_in
from rsi_anything.project.detect.facts import frozen_in, hardware_in, seeds_in, suites_in
from rsi_anything.project.detect.findings import Findings, Knob
from rsi_anything.project.detect.knobs import knobs_in, options_in, parameters_of
from rsi_anything.project.detect.launches import launches_in
from rsi_anything.project.detect.licence import licences_in
from rsi_anything.project.detect.metrics import metrics_in
from rsi_anything.project.detect.outputs import outputs_in
from rsi_anything.project.detect.requirements import python_version_in, requirements_in
from rsi_anything.project.detect.scan import Scan, SourceFile, scan

Found = TypeVar("Found")
_MOST_KNOBS = 400


def research(project: Project) -> Findings:
    """Return all findings about a project; whatever is in its files, this does not fail because of it."""
    found = scan(project)
    notes = list(found.notes)
    codes = _codes(found, notes)
    commands = commands_in(found, codes)
    entries = entry_points_in(found, codes)
    options = _each(codes, options_in, notes)
    launches = launches_in(found, codes, commands, entries, options)
    facts = [*licences_in(project, found), *python_version_in(found), *hardware_in(found, launches)]
    facts += [*seeds_in(codes), *suites_in(found), *frozen_in(codes)]
    return Findings(
        project=project.name, commit=project.commit, files=len(project.files),
        bytes=sum(file.size for file in project.files),
        looked_at=sum(map(len, found.texts.values())) + len(found.light),
        launches=tuple(launches), entry_points=tuple(entries), options=tuple(options),
        metrics=tuple(metrics_in(codes)), knobs=_knobs(found, codes, notes), data=tuple(data_in(found, codes)),
        data_scripts=tuple(data_scripts_in(found, codes)),
        requirements=tuple(requirements_in(found, codes, installs_in(found))),
        outputs=tuple(_each(codes, outputs_in, notes)), facts=tuple(facts), notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _codes(found: Scan, notes: list[str]) -> list[Code]:
    codes = []
    for file in found.files("python"):
        code = parse(file)
        if code is not None:
            codes.append(code)
        else:
            notes.append(f"{file.path} could not be read as Python.")
    return codes


def _each(codes: Iterable[Code], detector: Callable[[Code], list[Found]], notes: list[str]) -> list[Found]:
    """Run a detector over all files; code nested beyond the interpreter's stack is noted and passed by."""
    items: list[Found] = []
    for code in codes:
        try:
            items += detector(code)
        except RecursionError:
            notes.append(f"{code.file.path} is nested too deeply to be looked at.")
    return items


def _knobs(found: Scan, codes: list[Code], notes: list[str]) -> tuple[Knob, ...]:
    parameters = parameters_of(codes)
    knobs = _each(codes, lambda code: knobs_in(code, parameters), notes)
    files: list[SourceFile] = found.files("config")
    for file in files:
        knobs += knobs_in_config(file)
    knobs.sort(key=lambda knob: (knob.order, -knob.confidence, knob.file.count("/"), knob.file, knob.line))
    if len(knobs) > _MOST_KNOBS:
        notes.append(f"{len(knobs) - _MOST_KNOBS} settings that seem to matter least were left out.")
    return tuple(knobs[:_MOST_KNOBS])
