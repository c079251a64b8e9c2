"""Research: everything the detectors find in a project, each file read once, nothing imported or run."""

from rsi_anything.project.checkout import Project
from rsi_anything.project.detect.code import Code, parse
from rsi_anything.project.detect.commands import commands_in, installs_in
from rsi_anything.project.detect.config_files import knobs_in_config
from rsi_anything.project.detect.data_files import data_in, data_scripts_in
from rsi_anything.project.detect.entry_points import entry_points_in
from rsi_anything.project.detect.facts import frozen_in, hardware_in, seeds_in, suites_in
from rsi_anything.project.detect.findings import Findings, Knob, Launch
from rsi_anything.project.detect.knobs import knobs_in, options_in, parameters_of
from rsi_anything.project.detect.launches import launches_in
from rsi_anything.project.detect.licence import licences_in
from rsi_anything.project.detect.metrics import metrics_in
from rsi_anything.project.detect.outputs import outputs_in
from rsi_anything.project.detect.requirements import python_version_in, requirements_in
from rsi_anything.project.detect.scan import Scan, scan
from rsi_anything.project.detect.subject import category_in, title_in

_MOST_KNOBS = 300
_LIKELY = 5


def research(project: Project) -> Findings:
    """Return all findings about a project; whatever is in its files, this does not fail because of it."""
    found = scan(project)
    notes = list(found.notes)
    codes = _codes(found, notes)
    commands = commands_in(found, codes)
    entries = entry_points_in(found, codes)
    options = [option for code in codes for option in options_in(code)]
    launches = launches_in(found, codes, commands, entries, options)
    facts = [*licences_in(project, found), *python_version_in(found), *hardware_in(found, launches)]
    facts += [*seeds_in(codes), *suites_in(found), *frozen_in(codes), *title_in(found), *category_in(found, codes)]
    return Findings(
        project=project.name, commit=project.commit, files=len(project.files),
        bytes=sum(file.size for file in project.files),
        looked_at=sum(map(len, found.texts.values())) + len(found.light),
        launches=tuple(launches), entry_points=tuple(entries), options=tuple(options),
        metrics=tuple(metrics_in(codes)), knobs=_knobs(found, codes, launches, notes),
        data=tuple(data_in(found, codes)), data_scripts=tuple(data_scripts_in(found, codes)),
        requirements=tuple(requirements_in(found, codes, installs_in(found))),
        outputs=tuple(output for code in codes for output in outputs_in(code)), facts=tuple(facts), notes=tuple(notes),
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


def _knobs(found: Scan, codes: list[Code], launches: list[Launch], notes: list[str]) -> tuple[Knob, ...]:
    """Return the knobs, those of the likeliest launches first, then by what they do."""
    parameters = parameters_of(codes)
    candidates = [candidate for code in codes for candidate in knobs_in(code, parameters)]
    for file in found.files("config"):
        candidates += knobs_in_config(file)
    used = {path for launch in launches[:_LIKELY] for path in (launch.script, *launch.configs, *launch.sources)}
    candidates.sort(key=lambda item: (item.file not in used, item.order, -item.confidence))
    if len(candidates) > _MOST_KNOBS:
        notes.append(f"{len(candidates) - _MOST_KNOBS} settings that seem to matter least were left out.")
    knobs = [knob for item in candidates[:_MOST_KNOBS] if (knob := item.make()) is not None]
    knobs.sort(key=lambda knob: (knob.order, -knob.confidence, knob.file.count("/"), knob.file, knob.line))
    return tuple(knobs)
