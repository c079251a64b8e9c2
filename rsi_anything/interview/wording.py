"""What the plain front says: questions, help and the review, as lines of text."""

import textwrap
from collections.abc import Iterator

from rsi_anything.contract.draft import Answer, Status, Who
from rsi_anything.contract.fields import SHOWN, Kind
from rsi_anything.interview.machine import State, View
from rsi_anything.interview.typed import brief, show

COMMANDS = """\
Enter takes what is shown. Otherwise type the answer, or one of these:
  ?             this help              <             back to the question before
  :goto NAME    to any question        :review       all answers at a glance
  :edit         in your editor         :lines        several lines, ended by a single dot
  :file PATH    take a file's text     :skip         leave it out
  :quit         leave; every answer is kept"""


def heading(state: State) -> str:
    """Return the first line of a question."""
    assert state.group is not None
    return f"\nQuestion {state.number} of {state.total} - {state.group.round} - {state.group.title}"


def listing(state: State) -> str:
    """Return all fields of a question with their values and where these come from."""
    lines = []
    for number, view in enumerate(state.views, start=1):
        why = list(grounds(view.known))
        # A reason in a few words stands behind the value, lines of the project below it.
        beside = f"  {why.pop(0)}" if why and why[0].startswith("(") else ""
        lines.append(f"  {number:>2}  {view.field.label:<17} {valued(view, 80)}{beside}")
        lines += [f"      {'':<17} {line}" for line in why]
    return "\n".join(lines)


def asking(view: View) -> str:
    """Return one field as a question, with its draft and the grounds for it."""
    lines = [view.field.ask, *(f"  {line}" for line in view.hints)]
    if view.options:
        lines.append(f"  one of: {_listed(view.options)}")
    if view.known.value is not None:
        shown = show(view.field, view.known.value)
        lines += textwrap.indent(shown, "  | ").split("\n") if "\n" in shown else []
        lines += [f"  {line}" for line in grounds(view.known)]
        lines += [f"  look again: it {view.problem}"] if view.problem else []
    elif view.needed and not view.hints and (view.field.options or not view.options):
        lines.append(f"  such as: {brief(view.field, view.example, 100)}")
    return "\n".join(lines)


def prompt(view: View) -> str:
    """Return what stands before the cursor: the field and the draft that Enter takes."""
    if view.known.value is not None:
        return f"{view.field.label} [{valued(view, 50)}]> "
    return f"{view.field.label}{'' if view.needed else ' [none]'}> "


def explanation(view: View) -> str:
    """Return the help of one field."""
    lines = [view.field.ask, view.field.why, *view.hints]
    if view.options:
        lines.append(f"One of: {_listed(view.options)}")
    lines += ["Example:", textwrap.indent(show(view.field, view.example), "  ")]
    if view.field.kind is Kind.TABLES:
        lines.append("One a line. [] is an empty list.")
    elif view.field.kind is Kind.LIST:
        lines.append("Between commas, or one a line. [] is an empty list.")
    lines.append(f"In an answers file: {view.field.id}")
    return "\n".join(lines)


def _listed(options: tuple[str, ...]) -> str:
    more = f" and {len(options) - SHOWN} more" if len(options) > SHOWN else ""
    return ", ".join(options[:SHOWN]) + more


def grounds(known: Answer) -> Iterator[str]:
    """Yield where a value comes from: the project's lines, or a reason."""
    if known.status is Status.TO_REVIEW:
        yield f"look again: {known.reason}"
    for evidence in known.evidence[:3]:
        yield f"{evidence.place()}  {evidence.fact}".rstrip()
    if known.status is Status.DRAFT and known.reason and not known.evidence:
        yield f"({known.reason})"


def review(state: State) -> str:
    """Return the whole contract as a table: number, field, status, value, and who said it."""
    lines = [f"\nReview: {state.confirmed} of {state.fields} answers confirmed"]
    current = ""
    for number, view in enumerate(state.views, start=1):
        if view.field.round != current:
            current = view.field.round
            lines.append(current)
        status = _status(view)
        name = view.field.id.partition(".")[2]
        lines.append(f"  {number:>2}  {name:<20} {status:<10} {valued(view, 48):<48} {_said(view)}")
    lines += [f"problem: {problem.field or 'the answers'} {problem.message}" for problem in state.problems]
    return "\n".join(line.rstrip() for line in lines)


def _status(view: View) -> str:
    """Return how far an answer is; one that may be left out is not open."""
    if view.known.value is None and view.known.status is Status.CONFIRMED:
        return "left out"
    optional = view.known.value is None and view.known.status is Status.OPEN and not view.needed
    return "optional" if optional else str(view.known.status)


def valued(view: View, width: int) -> str:
    """Return a value on one line, a number with its unit."""
    unit = f" {view.field.unit}" if view.field.unit and view.known.value is not None else ""
    return brief(view.field, view.known.value, width - len(unit)) + unit


def _said(view: View) -> str:
    known = view.known
    if known.evidence:
        return known.evidence[0].place()
    return str(known.who) if known.who and known.who is not Who.PERSON else ""
