"""The project under the interview: opened and researched, and again when an answer names another one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness import paths
from harness.errors import InputError
from rsi_anything.contract.draft import Answer, Draft, Status, Who
from rsi_anything.contract.fields import Value, Values
from rsi_anything.interview.guided import Suggestion, drafted, follow
from rsi_anything.interview.session import slug

if TYPE_CHECKING:
    from rsi_anything.project.checkout import Project

LABEL = "evaluation.data.label"
HEADER_BYTES = 1 << 20
"""Longest header of a table whose columns are listed."""
PLACE = ("source.project", "source.commit", "source.subdir")


class Ground:
    """Drafts from the project that the draft names. `known` says that the first draft already holds its drafts."""

    def __init__(self, draft: Draft, *, known: bool) -> None:
        self._place = _place(draft) if known else None
        self._columns: tuple[tuple[Value, ...], tuple[str, ...]] | None = None

    def follow(self, draft: Draft) -> Draft:
        """Draft what the project and the answers imply; raises InputError where the named project cannot be opened."""
        if _place(draft) != self._place:
            project = project_of(draft.values())
            draft = from_project(draft, project, researched(project))
            self._place = _place(draft)
        return follow(draft)

    def look(self, field_id: str, values: Values) -> tuple[str, ...]:
        """Return what the project allows for a field: the columns of its table; read once for each place and file."""
        if field_id != LABEL:
            return ()
        key = (*(values.get(name) for name in PLACE), values.get("evaluation.data.file"))
        if self._columns is None or self._columns[0] != key:
            try:
                found = allowed(project_of(values), field_id, values)
            except InputError:
                found = ()  # the question about the project says what is wrong with it
            self._columns = key, found
        return self._columns[1]


def allowed(project: "Project", field_id: str, values: Values) -> tuple[str, ...]:
    """Return the texts that a project allows for a field: its table's columns for the label, else none."""
    file = values.get("evaluation.data.file")
    edits = values.get("source.edits")
    edited = isinstance(edits, list) and any(isinstance(edit, dict) and edit.get("file") == file for edit in edits)
    if field_id != LABEL or not isinstance(file, str) or edited or not project.has(file):
        return ()
    from rsi_anything.authoring.holdout import columns  # needed at one question alone

    return columns(project.read(file, HEADER_BYTES))


def from_project(draft: Draft, project: "Project", suggestions: Mapping[str, Suggestion]) -> Draft:
    """Draft what this project suggests, in place of what another one did; what a person said stays."""
    kept = {name: known for name, known in draft.answers.items() if not _stale(known)}
    draft = Draft(kept)
    for name, value in facts_of(project, {}).items():
        if value is not None:
            draft = draft.suggest(name, value, Who.PROJECT, reason="the present commit")
    if "source.name" not in suggestions:
        draft = draft.suggest("source.name", slug(project.name), Who.PROJECT, reason="the project's name")
    # The commit in use is the one just opened, whatever research would say of it.
    return drafted(draft, {name: found for name, found in suggestions.items() if name not in PLACE})


def _stale(known: Answer) -> bool:
    return known.status is Status.DRAFT and known.who is Who.PROJECT


def _place(draft: Draft) -> tuple[Value, ...]:
    return tuple(draft[name].value for name in PLACE)


def project_of(spec_source: Mapping[str, Value]) -> "Project":
    """Open the project that a draft's source round names; cached by commit."""
    from rsi_anything.project.checkout import (
        open_project,
    )  # git is slow to load and not needed to refuse a wrong option

    commit, subdir = spec_source.get("source.commit"), spec_source.get("source.subdir")
    return open_project(
        str(spec_source["source.project"]),
        commit if isinstance(commit, str) else None,
        cache=paths.cache(),
        subdir=subdir if isinstance(subdir, str) else ".",
    )


def researched(project: "Project") -> dict[str, Suggestion]:
    """Return what the project itself suggests, by field."""
    from rsi_anything.project.research import research
    from rsi_anything.project.suggest import suggest

    return dict(suggest(research(project)))


def facts_of(project: "Project", suggestions: Mapping[str, Suggestion]) -> dict[str, Value]:
    """Return what is read off the project and no decision."""
    found: dict[str, Value] = {"source.commit": None if project.commit == "none" else project.commit}
    licence = suggestions.get("source.license")
    if licence is not None and isinstance(licence.value, str):
        found["source.license"] = licence.value
    return found


def notes_of(project: "Project") -> list[str]:
    """Return what the person should know of the copy that the task is made from."""
    notes = []
    inside = "" if project.subdir == "." else f"{project.subdir}/"
    dirty = [
        path for path in project.dirty if path.startswith(inside) or (path[-1:] == "/" and inside.startswith(path))
    ]
    if dirty and not project.uses_worktree:
        notes.append(f"changes that are not committed are not in the task: {some(dirty)}")
    if project.left_out:
        notes.append(f"not copied from the project: {some([str(item.path) for item in project.left_out])}")
    return notes


def some(names: list[str]) -> str:
    """Return the first few names and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
