"""The report as one HTML file that needs nothing else: no script, no font, no picture from anywhere.

It may be published: the judge's seed, evidence, environment and paths of the host are not in it.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from harness import paths
from harness.report import rows
from harness.report.curve import draw
from harness.report.markup import Markup, element, foreign, join, text
from harness.report.numbers import duration, number, size
from harness.report.record import Record
from harness.report.style import CSS
from harness.report.tables import Column
from harness.report.text import one_line
from harness.run.folder import write_atomic
from harness.run.state import Judging, Submission

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Even a mistake of ours could load or run nothing."""


def page(record: Record) -> str:
    """Return the whole report."""
    summary, state = record.summary, record.state
    title = f"{summary.task}: {summary.agent}"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", one_line(title)),
        element("style", CSS),
    )
    parts = [
        element("h1", foreign(summary.task)),
        element("p", foreign(summary.question), class_="question"),
        element("p", summary.headline(), class_="headline"),
        _facts(
            [
                ("agent", summary.agent),
                ("status", rows.status_words(record)),
                ("isolation", rows.level_words(summary.level)),
                ("begun", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.plan.created))),
                *rows.measured_rows(summary),
            ]
        ),
        _curve(record),
        _submissions(record),
        _ledger(record),
        _judged(record),
        element("h2", "Each submission"),
        *(_details(record, one) for one in state.submissions),
        _notes(state.notes),
        element("footer", f"Drawn from the journal of run {summary.run}: {state.events} events."),
    ]
    body = element("body", element("main", join(*parts)))
    return _without_paths(f"<!doctype html>\n{element('html', head, body, lang='en')}\n", record)


def write_report(record: Record, path: Path | None = None) -> Path:
    """Write the report into the run's folder, or to `path`, whole or not at all, and return where it is."""
    path = path or record.folder.report
    write_atomic(path, page(record).encode("utf-8", "replace"))
    return path


def _curve(record: Record) -> Markup:
    caption = (
        "The metric of every submission against the agent's working time. The line is the best so far, the dashed line "
        "the author's solution judged by the same judge, with its noise as a band."
    )
    picture = Markup(draw(record.summary, record.state.submissions))
    return element("figure", picture, element("figcaption", caption))


def _submissions(record: Record) -> Markup:
    summary = record.summary
    best = summary.best.number if summary.best else 0
    caption = f"{summary.used} of {summary.budget} submissions used up; * is the best, times are working time."
    table = _table(
        rows.SUBMISSIONS, rows.submission_rows(summary, record.state.submissions), caption=caption, strong=best - 1
    )
    return join(element("h2", "Submissions"), table)


def _ledger(record: Record) -> Markup:
    summary = record.summary
    spent = [line for line in summary.ledger if line.seconds > 0]
    words = "; ".join(f"{line.phase} {line.share:.0%}" for line in spent)
    parts = [
        element("span", class_=line.phase, style=f"width:{100 * line.share:.3f}%", title=line.phase) for line in spent
    ]
    bar = element("div", *parts, class_="bar", role="img", aria_label=f"parts of the wall time: {words}")
    keys = element(
        "p", *(element("span", element("i", class_=f"key {x.phase}"), x.phase, "  ", class_="right") for x in spent)
    )
    caption = "Where the time went; the phases add up to the wall time."
    return join(element("h2", "Ledger"), bar, keys, _table(rows.LEDGER, rows.ledger_rows(summary), caption=caption))


def _judged(record: Record) -> Markup:
    plan = record.plan
    isolation = element("ul", *(element("li", foreign(line)) for line in plan.isolation))
    return join(
        element("h2", "How it was judged"),
        _facts(rows.plan_rows(plan)),
        element("p", "What was isolated and what was not:"),
        isolation,
    )


def _details(record: Record, one: Submission) -> Markup:
    summary = record.summary
    verdict = one.verdict.value.replace("_", " ") if one.verdict else "open"
    metric = f", {summary.shown(one.metric)}" if one.metric is not None else ""
    snapshot = f"{one.snapshot} ({one.files} files, {size(one.bytes)})" if one.snapshot else "none could be taken"
    return element(
        "details",
        element("summary", f"Submission {one.number}: {verdict}{metric}"),
        _facts([("handed in at", duration(one.working_sec)), ("snapshot", snapshot)]),
        _said("The agent", one.message),
        *(_judging(record, index, judging) for index, judging in enumerate(one.judgings, 1)),
    )


def _judging(record: Record, index: int, judging: Judging) -> Markup:
    again = ", judged again by the operator" if judging.again else ""
    places = record.summary.places
    metric = f", metric {number(judging.metric, places)}" if judging.metric is not None else ""
    score = f", score {number(judging.score, 3)}" if judging.score is not None else ""
    repeats = f", repeats {', '.join(number(v, places) for v in judging.values)}" if len(judging.values) > 1 else ""
    words = f"Judging {index}: {judging.verdict.value.replace('_', ' ')}{metric}{score}{repeats}{again}"
    return join(element("p", f"{words} ({duration(judging.seconds)})"), _said("The judge", judging.message))


def _said(who: str, words: str) -> Markup:
    if not words:
        return Markup()
    return join(element("p", f"{who} said:"), element("div", foreign(words), class_="said"))


def _notes(notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup()
    return join(element("h2", "Notes"), element("ul", *(element("li", foreign(note)) for note in notes)))


def _facts(facts: Sequence[tuple[str, str]]) -> Markup:
    return element("dl", *(join(element("dt", name), element("dd", foreign(value))) for name, value in facts))


def _table(columns: Sequence[Column], lines: Sequence[Sequence[str]], *, caption: str, strong: int = -1) -> Markup:
    head = element("tr", *(element("th", c.title, scope="col", class_="right" if c.right else "") for c in columns))
    body = [
        element(
            "tr",
            *(
                element("td", foreign(one_line(cell, 200)), class_="right" if column.right else "")
                for column, cell in zip(columns, line, strict=True)
            ),
            class_="best" if index == strong else "",
        )
        for index, line in enumerate(lines)
    ]
    table = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    return element("div", table, class_="wide")


def _without_paths(html: str, record: Record) -> str:
    """Blot out folders of this host: a judge or an agent may have named them in a message."""
    folders = {record.plan.task_folder, str(record.folder.path), str(paths.home()), str(Path.home())}
    for folder in sorted((f for f in folders if len(f) > 2), key=len, reverse=True):
        html = html.replace(text(folder), "…")
    return html
