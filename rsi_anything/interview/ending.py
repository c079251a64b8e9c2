"""The end of an interview: the files that the answers make, shown as a tree and a difference, then written once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RefusedError
from rsi_anything.contract.fields import Value
from rsi_anything.contract.spec import TaskSpec
from rsi_anything.interview.ground import project_of, some

if TYPE_CHECKING:
    from rsi_anything.authoring.plan import Plan
    from rsi_anything.project.checkout import Project

SHOWN_LINES = 400
"""Most lines of a difference; the rest is counted."""


def plan_of(spec: TaskSpec, project: "Project") -> "Plan":
    """Return the files of the task; raises InputError where the answers do not fit the project."""
    from harness.task.contract import Source
    from rsi_anything.authoring.render import render  # templates are slow to load and needed at the end alone

    source = Source(repository=project.repository, commit=project.commit, license=spec.source.license)
    return render(_recorded(spec, project), project.folder, source)


def _recorded(spec: TaskSpec, project: "Project") -> TaskSpec:
    """Return the specification as the task keeps it: pinned, and without the path of one machine."""
    where = project.repository if project.repository != "local" else "."
    commit = None if project.commit == "none" else project.commit
    return spec.model_copy(update={"source": spec.source.model_copy(update={"project": where, "commit": commit})})


@dataclass
class TaskEnding:
    """Files that the present answers make, and the folder they go to. `spec` is asked each time: answers change."""

    spec: Callable[[], TaskSpec]
    source: Callable[[], Mapping[str, Value]]
    out: Path | None
    answers: Path | None = None
    """Answers file that all of it came from; where it is the task's own, it is no obstacle to itself."""
    force: bool = False
    dry_run: bool = False
    plan: "Plan | None" = None
    verbs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def dest(self) -> Path:
        """Folder of the task: the one that was named, else the task's name in the present folder."""
        return (self.out or Path(self.spec().source.name)).absolute()

    @property
    def _given(self) -> frozenset[str]:
        own = self.dest / "answers.toml"
        same = self.answers is not None and own.is_file() and own.samefile(self.answers)
        return frozenset({own.name}) if same else frozenset()

    def prepare(self) -> None:
        """Make the plan and compare it with what lies in the folder."""
        self.plan = plan_of(self.spec(), project_of(self.source()))
        self.verbs = self.plan.compare(self.dest, self._given)

    def preview(self) -> str:
        """Return the tree of files, and what each does to the folder where it is not empty."""
        self.prepare()
        assert self.plan is not None
        lines = [f"\n{self.dest}", self.plan.tree().rstrip()]
        if any(verb != "create" for verb, _ in self.verbs):
            lines += [f"{verb:>9}  {path}" for verb, path in self.verbs if verb != "identical"]
            lines.append(f"{sum(verb == 'identical' for verb, _ in self.verbs)} files stay as they are")
        return "\n".join(lines)

    def diff(self) -> str:
        """Return what writing would change, cut to a length that can be read."""
        assert self.plan is not None
        lines = self.plan.diff(self.dest, self._given).splitlines()
        more = [f"({len(lines) - SHOWN_LINES} more lines)"] if len(lines) > SHOWN_LINES else []
        return "\n".join(lines[:SHOWN_LINES] + more)

    def question(self) -> str:
        """Return the last question."""
        if self.dry_run:
            return "Nothing will be written (--dry-run). y ends this, n leaves, d shows the difference"
        count = sum(verb != "identical" for verb, _ in self.verbs)
        return f"Write {count} files to {self.dest}? y, n, or d for the difference"

    def write(self) -> None:
        """Write all files, or none; raises RefusedError where a person's own work would be lost."""
        from rsi_anything.authoring.write import write

        assert self.plan is not None
        if self.dry_run:
            return
        conflicts = [path for verb, path in self.verbs if verb == "conflict"]
        if conflicts and not self.force:
            raise RefusedError(
                f"a person made or changed what is in the way: {some(conflicts)}",
                where=str(self.dest),
                next_step="see the difference, then move it away, or add --force to overwrite it",
            )
        write(self.plan, self.dest, force=self.force, given=self._given)
