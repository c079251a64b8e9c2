"""A run as JSON with stable keys; docs/reference/json.md explains them."""

from typing import Any

from harness.report.record import Record
from harness.report.rows import agent_fault
from harness.report.summary import Summary, Value
from harness.run.state import Control, Judging, Submission


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return the summary of a run: the row of `rsi runs --json`, the head of `rsi show --json`."""
    best = summary.best
    return {
        "run": summary.run,
        "task": summary.task,
        "agent": summary.agent,
        "status": summary.status,
        "reason": summary.reason,
        "level": summary.level,
        "metric": {
            "name": summary.metric,
            "unit": summary.unit,
            "direction": "minimize" if summary.minimize else "maximize",
        },
        "baseline": _value(summary.baseline),
        "author": _value(summary.author),
        "noise": _value(summary.noise),
        "floor": _value(summary.floor),
        "best": None if best is None else {"number": best.number, "metric": best.metric, "score": best.score},
        "improvement": summary.improvement,
        "times_noise": summary.times_noise,
        "bar": summary.bar,
        "real": summary.real,
        "headline": summary.headline(),
        "submissions": {"handed_in": summary.submissions, "used": summary.used, "budget": summary.budget},
        "ledger": {line.phase: line.seconds for line in summary.ledger},
        "working_sec": summary.working_sec,
        "wall_sec": summary.wall_sec,
    }


def record_json(record: Record) -> dict[str, Any]:
    """Return everything `rsi show --json` says; the judge's seed stays out."""
    plan, state = record.plan, record.state
    shown = plan.as_json()
    del shown["seed"]
    return {
        **summary_json(record.summary),
        "question": record.summary.question,
        "folder": str(record.folder.path),
        "plan": shown,
        "controls": [_control(control) for control in state.controls],
        "submission_list": [_submission(one) for one in state.submissions],
        "refused": {"count": state.refused, "first": [{"t": r.t, "reason": r.reason} for r in record.refusals]},
        "notes": list(state.notes),
        "engines": state.engines,
        "agent_fault": agent_fault(record) or None,
    }


def _value(value: Value | None) -> dict[str, Any] | None:
    return None if value is None else {"value": value.value, "source": value.source}


def _control(control: Control) -> dict[str, Any]:
    return {
        "role": control.role,
        "verdict": control.verdict.value,
        "metric": control.metric,
        "values": list(control.values),
        "seconds": control.seconds,
        "message": control.message,
        "reused_from": control.reused_from,
    }


def _submission(one: Submission) -> dict[str, Any]:
    return {
        "number": one.number,
        "message": one.message,
        "opened": one.opened,
        "closed": one.closed,
        "working_sec": one.working_sec,
        "verdict": one.verdict.value if one.verdict else None,
        "metric": one.metric,
        "score": one.score,
        "snapshot": one.snapshot,
        "files": one.files,
        "bytes": one.bytes,
        "frozen_sec": one.frozen_sec,
        "judgings": [_judging(judging) for judging in one.judgings],
    }


def _judging(judging: Judging) -> dict[str, Any]:
    return {
        "t": judging.t,
        "verdict": judging.verdict.value,
        "metric": judging.metric,
        "score": judging.score,
        "values": list(judging.values),
        "details": dict(judging.details),
        "message": judging.message,
        "evidence": judging.evidence,
        "seconds": judging.seconds,
        "attempt": judging.attempt,
        "again": judging.again,
    }
