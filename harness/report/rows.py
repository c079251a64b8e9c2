"""The rows of every table about a run, in words; screen, Markdown and HTML only lay them out."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.report.numbers import duration, number, times
from harness.report.record import Record
from harness.report.summary import Summary, Value, luck_bar
from harness.report.tables import Column
from harness.report.text import one_line
from harness.run.plan import Plan
from harness.run.state import Submission

SUBMISSIONS = (
    Column("no.", right=True),
    Column("at", right=True),
    Column("verdict"),
    Column("metric", right=True),
    Column("score", right=True),
    Column("message", most=48),
)
LEDGER = (Column("phase"), Column("time", right=True), Column("part", right=True), Column("what it is", most=80))

_PHASES = {
    "setup": "image, control, start; before the agent",
    "working": "the agent may work; only this is charged",
    "paused": "the agent is frozen, nothing is judged",
    "judging": "a judge works",
    "down": "no engine was there",
    "closing": "after the agent ended",
}
_NOT_RUN = {126: "could not be run", 127: "could not be found"}
"""What a shell's exit status says of its command."""

_TAIL = 2000
"""How many bytes from the end of an agent's output are searched for its last line."""

_LEVELS = {
    "container": "a container of its own",
    "namespaces": "Linux namespaces over the host's own root: weaker than a container",
    "process": "a plain process of this machine: nothing but its own folder, user and limits",
    "fake": "nothing at all: the sandbox for tests",
}


def submission_rows(summary: Summary, submissions: Sequence[Submission]) -> list[tuple[str, ...]]:
    """Return one row a submission; the best one is marked."""
    rows: list[tuple[str, ...]] = []
    for one in submissions:
        best = summary.best is not None and one.number == summary.best.number
        verdict = one.verdict.value.replace("_", " ") if one.verdict else "open"
        again = " (again)" if any(judging.again for judging in one.judgings) else ""
        rows.append(
            (
                f"{one.number}{'*' if best else ''}",
                duration(one.working_sec),
                verdict + again,
                number(one.metric, summary.places),
                number(one.score, 3),
                one.message,
            )
        )
    return rows


def ledger_rows(summary: Summary) -> list[tuple[str, ...]]:
    """Return one row a phase and their sum, which is the wall time."""
    rows = [
        (line.phase, duration(line.seconds), f"{line.share:.0%}", _PHASES[line.phase])
        for line in summary.ledger
        if line.seconds > 0
    ]
    return [*rows, ("wall", duration(summary.wall_sec), "100%", "the sum")]


def measured_rows(summary: Summary) -> list[tuple[str, str]]:
    """Return what was measured and where: baseline, noise, floor, best, improvement."""
    best = summary.best
    rows = [("baseline", _measured(summary, summary.baseline))]
    if summary.author is not None:
        apart = summary.apart
        # One judging stands against the mean of several: beyond this, host or noise are not what they were.
        doubt = f"; {times(apart)} times the noise apart" if apart is not None and apart > luck_bar(1) else ""
        rows.append(("the author's", _measured(summary, summary.author) + doubt))
    rows += [("noise", _measured(summary, summary.noise)), ("floor", _measured(summary, summary.floor))]
    if best is None:
        return [*rows, ("best", "no submission was scored")]
    score = "" if best.score is None else f", score {number(best.score, 3)}"
    found = f"{summary.shown(best.metric)}{score} (submission {best.number}, at {duration(best.working_sec)})"
    return [*rows, ("best", found), ("improvement", summary.words())]


def plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """Return the facts of the plan that anybody may read: no seed, no path, no environment."""
    return [
        ("task digest", plan.task_digest),
        ("tests digest", plan.tests_digest),
        ("image", plan.image),
        ("sandbox", f"{plan.sandbox}, {level_words(plan.level)}"),
        ("judge", f"{plan.judge_base} image, at most {duration(plan.judge_timeout_sec)}"),
        ("budget", budget_words(plan)),
        ("host", host_words(plan.host)),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(plan.versions.items())) or "-"),
    ]


def budget_words(plan: Plan) -> str:
    """Return the budget in words."""
    cooldown = f", {duration(plan.cooldown_sec)} apart" if plan.cooldown_sec else ""
    return f"{plan.submissions} submissions{cooldown}, {duration(plan.hours * 3600)} of work"


def level_words(level: str) -> str:
    """Return an isolation level in words."""
    return f"{level}: {_LEVELS[level]}" if level in _LEVELS else level


def host_words(facts: Mapping[str, Any]) -> str:
    """Return what the numbers were measured on; of the facts only those that name no person."""
    known = {"cpu": "{}", "cores": "{} cores", "memory_gb": "{} GiB", "system": "{}", "python": "Python {}"}
    return ", ".join(form.format(facts[name]) for name, form in known.items() if facts.get(name)) or "-"


def agent_fault(record: Record) -> str:
    """Return what kept a script agent's command from being run, with its last words; nothing where it was run."""
    code = record.state.agent_code
    if record.plan.agent != "script" or code not in _NOT_RUN:
        return ""
    said = _last_line(record.folder.agent_log)
    return f"the agent's command {_NOT_RUN[code]} (status {code}): see agent.log" + (f": {said}" if said else "")


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", "replace").split("\n")
    except OSError:  # it never got so far as to print
        return ""
    return next((one_line(line, 200) for line in reversed(lines) if line.strip()), "")


def status_words(record: Record) -> str:
    """Return where the run stands, with the reason, and what brings it back."""
    summary = record.summary
    if summary.status == "interrupted":
        return f"interrupted: no engine works on it; rsi resume {summary.run} goes on"
    return f"{summary.status}: {summary.reason}" if summary.reason else summary.status


def _measured(summary: Summary, value: Value | None) -> str:
    return "not measured" if value is None else f"{summary.shown(value.value)} ({value.source})"
