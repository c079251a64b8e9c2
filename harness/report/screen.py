"""A run as plain text for a terminal, and as Markdown to paste elsewhere."""

from collections.abc import Sequence

from harness.report import rows
from harness.report.numbers import duration
from harness.report.record import Record
from harness.report.tables import escape_markdown, markdown, plain
from harness.report.text import one_line

MOST_NOTES = 20


def closing(record: Record) -> str:
    """Return what a run found in a few lines: what was measured, submissions, ledger, and an agent that never ran."""
    summary = record.summary
    spent = ", ".join(f"{line.phase} {duration(line.seconds)}" for line in summary.ledger if line.seconds > 0)
    facts = [
        *rows.measured_rows(summary),
        ("submissions", f"{summary.used} of {summary.budget} used up"),
        ("ledger", f"{spent}; wall {duration(summary.wall_sec)}"),
        *_fault(record),
    ]
    return _facts(facts)


def overview(record: Record) -> str:
    """Return everything about a run, for its operator."""
    summary, plan, state = record.summary, record.plan, record.state
    parts = [
        f"{summary.run}: {summary.agent} on {summary.task}",
        one_line(summary.question) if summary.question else "",
        _facts([*_fault(record), ("status", rows.status_words(record)), *rows.measured_rows(summary)]),
        _title(f"submissions ({summary.used} of {summary.budget} used up; * is the best)"),
        plain(rows.SUBMISSIONS, rows.submission_rows(summary, state.submissions)) if state.submissions else "none",
        _evidence(record),
        _refusals(record),
        _title("ledger"),
        plain(rows.LEDGER, rows.ledger_rows(summary)),
        _title("plan"),
        _facts([*rows.plan_rows(plan), *_places(record)]),
        _title("isolation in force"),
        "\n".join(f"- {one_line(line)}" for line in plan.isolation),
        _notes(state.notes),
    ]
    return "\n".join(part for part in parts if part)


def as_markdown(record: Record) -> str:
    """Return the result as Markdown: headline, facts, submissions, ledger."""
    summary = record.summary
    facts = [f"- **{name}**: {escape_markdown(one_line(value))}" for name, value in rows.measured_rows(summary)]
    return "\n".join(
        [
            f"## {escape_markdown(summary.task)}: {escape_markdown(summary.agent)}",
            "",
            escape_markdown(summary.headline()),
            "",
            *facts,
            f"- **isolation**: {escape_markdown(rows.level_words(summary.level))}",
            "",
            markdown(rows.SUBMISSIONS, rows.submission_rows(summary, record.state.submissions)),
            "",
            markdown(rows.LEDGER, rows.ledger_rows(summary)),
            "",
        ]
    )


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    wide = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{wide}}  {one_line(value)}" for name, value in facts)


def _fault(record: Record) -> list[tuple[str, str]]:
    fault = rows.agent_fault(record)
    return [("NOT RUN", fault)] if fault else []


def _places(record: Record) -> list[tuple[str, str]]:
    plan = record.plan
    command = [("agent's command", " ".join(plan.agent_command))] if plan.agent_command else []
    return [*command, ("task folder", plan.task_folder), ("run folder", str(record.folder.path))]


def _title(text: str) -> str:
    return f"\n{text}"


def _evidence(record: Record) -> str:
    """Say what the judge holds against candidates; only the operator reads this."""
    lines = []
    for one in record.state.submissions:
        last = one.judgings[-1] if one.judgings else None
        if last is not None and (last.evidence or (last.message and one.metric is None)):
            said = " | ".join(one_line(text, 160) for text in (last.message, last.evidence) if text)
            lines.append(f"{one.number:>4}  {said}")
    return "\n".join(["\nwhat the judge said of those without a score", *lines]) if lines else ""


def _refusals(record: Record) -> str:
    if not record.state.refused:
        return ""
    lines = [f"- {one_line(refusal.reason, 160)}" for refusal in record.refusals[:MOST_NOTES]]
    return "\n".join([f"\nrefused requests ({record.state.refused})", *lines])


def _notes(notes: Sequence[str]) -> str:
    lines = [f"- {one_line(note, 200)}" for note in notes[-MOST_NOTES:]]
    return "\n".join(["\nnotes", *lines]) if lines else ""
