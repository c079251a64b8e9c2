"""`rsi new`: from a project to a task folder, by a conversation or by an answers file."""

import argparse
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness.errors import Interrupted
    from rsi_anything.contract.fields import Values
    from rsi_anything.interview.ending import TaskEnding
    from rsi_anything.interview.session import Session


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "new",
        help="turn a project into a task",
        description="Turn a project into a task: a conversation that drafts what it finds and keeps every answer.",
        epilog="examples:\n"
        "  rsi new path/to/project                                  ask me\n"
        "  rsi new --continue                                       go on where I left\n"
        "  rsi new path/to/project --answers a.toml --out mytask    ask nobody\n"
        "docs/reference/answers.md lists every answer.",
    )
    parser.add_argument("project", nargs="?", metavar="PROJECT", help="folder or git URL of the project")
    parser.add_argument("--answers", metavar="FILE", help="take all answers from a TOML file and ask nothing")
    parser.add_argument("--out", metavar="DIR", help="folder of the task; by default the task's name, here")
    parser.add_argument("--name", metavar="NAME", help="name of the task")
    parser.add_argument("--continue", dest="latest", action="store_true", help="go on with the latest conversation")
    parser.add_argument("--resume", metavar="NAME", help="go on with the conversation of this name")
    parser.add_argument("--dry-run", action="store_true", help="show the files and write nothing")
    parser.add_argument("--force", action="store_true", help="overwrite files of the task that a person changed")
    parser.add_argument("--plain", action="store_true", help="ask line by line, also where input is no terminal")
    parser.set_defaults(command_module="rsi_anything.commands.new")


def run(args: argparse.Namespace) -> int:
    """Make a task, or raise what keeps it from being made."""
    _check(args)
    return _headless(args) if args.answers else _conversation(args)


def _check(args: argparse.Namespace) -> None:
    from harness.errors import InputError

    back = [name for name, given in (("--continue", args.latest), ("--resume", args.resume is not None)) if given]
    given = [name for name, value in (("PROJECT", args.project), ("--answers", args.answers)) if value is not None]
    if len(back) > 1 or (back and given):
        raise InputError(f"{' and '.join(back + given)} do not go together", next_step="rsi new --help")
    if back and args.name:
        raise InputError(f"--name cannot change what {back[0]} began", next_step="change it in the conversation")
    if not back and not given:
        raise InputError("which project?", next_step="rsi new PROJECT, or rsi new --continue")


def _headless(args: argparse.Namespace) -> int:
    from pathlib import Path

    from harness.errors import InputError, RefusedError
    from rsi_anything.contract.draft import Draft
    from rsi_anything.interview.ending import TaskEnding
    from rsi_anything.interview.ground import allowed, facts_of, notes_of, project_of, researched
    from rsi_anything.interview.headless import place_of, read, take

    answers = read(Path(args.answers))
    place = place_of(answers, args.project, args.name)
    with _naming(args, place):
        project = project_of(place)

    def look(field_id: str, values: "Values") -> tuple[str, ...]:
        return allowed(project, field_id, values)

    outcome = take(answers, facts_of(project, {}), {}, look)
    if outcome.missing or "source.license" not in answers.values:
        suggestions = researched(project)
        outcome = take(answers, facts_of(project, suggestions), suggestions, look)
    if not outcome.whole:
        what = InputError(
            outcome.summary(),
            where=args.answers,
            next_step="put what is listed into the file; see docs/reference/answers.md",
        )
        return _refuse(args, what, outcome.lines(), outcome.as_json())
    for note in notes_of(project):
        _talk(args, f"note: {note}")
    draft: Draft = outcome.draft
    out = Path(args.out) if args.out else None
    ending = TaskEnding(
        draft.to_spec, lambda: place, out, answers=Path(args.answers), force=args.force, dry_run=args.dry_run
    )
    with _naming(args, place):
        preview = ending.preview()
    if args.dry_run and not args.json:
        _emit(preview)
    try:
        ending.write()
    except RefusedError:
        if not args.json:
            _emit(ending.diff())
        raise
    return _done(args, ending)


@contextmanager
def _naming(args: argparse.Namespace, place: "Values") -> "Iterator[None]":
    """Say how to name the project where an error comes from the one beside the answers, which nobody named."""
    from pathlib import Path

    from harness.errors import InputError

    try:
        yield
    except InputError as error:
        here = Path(str(place.get("source.project", "")))
        if args.project is not None or not here.is_dir() or not here.samefile(Path(args.answers).parent):
            raise
        step = "name it: rsi new PROJECT --answers FILE"
        raise InputError(
            f"{error.what}; the project was not named, so {here} was taken", where=error.where, next_step=step
        ) from error


def _conversation(args: argparse.Namespace) -> int:
    import sys
    from pathlib import Path

    from harness.errors import InputError, Interrupted
    from rsi_anything.interview.ending import TaskEnding
    from rsi_anything.interview.ground import Ground
    from rsi_anything.interview.machine import Machine
    from rsi_anything.interview.plain import Plain
    from rsi_anything.interview.terminal import Terminal

    resumed = _resumed(args)
    if args.project is not None:
        from rsi_anything.project.checkout import require  # a wrong path is said before what the terminal lacks

        require(args.project)
    if not sys.stdin.isatty() and not args.plain:
        raise InputError(
            "a conversation needs a terminal",
            next_step="rsi new PROJECT --answers FILE asks nothing; --plain reads a pipe",
        )
    session = _begin(args) if resumed is None else _reopen(args, resumed)
    come_back = f"rsi new --resume {session.name}"
    try:
        ground = Ground(session.draft, known=bool(session.at))
        machine = Machine(session.draft, session, at=session.at, follow=ground.follow, look=ground.look)
        out = Path(session.setting.out) if session.setting.out else None
        ending = TaskEnding(machine.spec, machine.draft_values, out, force=args.force, dry_run=args.dry_run)
        Plain(machine, Terminal(), ending, come_back).run()
    except Interrupted as left:
        return _left(args, left)
    except BaseException:
        _talk(args, f"the conversation is kept; to come back: {come_back}")
        raise
    finally:
        session.close()
    if not args.dry_run:
        session.discard()
    else:
        _talk(args, f"nothing was written; to come back: {come_back}")
    return _done(args, ending)


def _left(args: argparse.Namespace, left: "Interrupted") -> int:
    """Say what is kept and how to come back: leaving is no error."""
    from rsi_anything.commands.output import complain, emit_json

    complain(f"{left.what}\nto come back: {left.next_step}")
    if args.json:
        # Whoever reads JSON gets what every command gives with a status other than 0.
        shown = {"what": left.what, "where": left.where, "next": left.next_step, "exit_code": int(left.exit_code)}
        emit_json({"error": shown})
    return int(left.exit_code)


def _resumed(args: argparse.Namespace) -> str | None:
    """Return the name of the session to go on with, if one was asked for."""
    from harness.errors import InputError
    from rsi_anything.interview.session import names, require

    if args.latest:
        known = names()
        if not known:
            raise InputError("there is no conversation to continue", next_step="rsi new PROJECT")
        return known[0]
    if args.resume is not None:
        require(args.resume)
    name: str | None = args.resume
    return name


def _reopen(args: argparse.Namespace, name: str) -> "Session":
    from pathlib import Path

    from rsi_anything.interview.session import resume

    session = resume(name)
    if args.out:
        session.send_to(str(Path(args.out).absolute()))
    return session


def _begin(args: argparse.Namespace) -> "Session":
    """Start a session, after the project was opened once: a wrong path leaves nothing."""
    from pathlib import Path
    from shlex import join

    from rsi_anything.contract.draft import Draft, Who
    from rsi_anything.interview.ground import notes_of, project_of
    from rsi_anything.interview.session import about, create, new_setting

    project = project_of({"source.project": args.project})
    for note in notes_of(project):
        _talk(args, f"note: {note}")
    # A URL without its credentials; a folder as it was named, which may be one within a repository.
    where = str(Path(args.project).resolve()) if Path(args.project).is_dir() else project.where
    draft = Draft().answer("source.project", where, Who.PERSON)
    if args.name:
        draft = draft.answer("source.name", args.name, Who.PERSON)
    for name in about(where)[:1]:
        _talk(args, f"note: there is an unfinished conversation about this project: rsi new --resume {name}")
    out = str(Path(args.out).absolute()) if args.out else None
    if out is not None and (Path(out) / "answers.toml").is_file():
        command = ["rsi", "new", args.project, "--answers", f"{args.out.rstrip('/')}/answers.toml", "--out", args.out]
        _talk(args, f"note: this task has its answers already; to use them and be asked nothing: {join(command)}")
    return create(args.name or project.name, new_setting(where, out), draft)


def _done(args: argparse.Namespace, ending: "TaskEnding") -> int:
    """Say what was written and what comes next."""
    from shlex import quote

    from rsi_anything.commands.output import emit_json

    assert ending.plan is not None
    folder = quote(_short(ending.dest))
    following = [] if args.dry_run else [f"rsi check {folder}", f"rsi run {folder} --agent search"]
    files = [{"path": path, "verb": verb} for verb, path in ending.verbs]
    if args.json:
        shown = {"task": str(ending.dest), "written": not args.dry_run, "files": files, "next": following}
        emit_json({**shown, "name": ending.spec().source.name})
        return 0
    if not args.dry_run:
        _emit(f"task written to {_short(ending.dest)}")
        for command in following:
            _emit(f"next: {command}")
    return 0


def _short(path: Any) -> str:
    """Return a path relative to the present folder where it is below it."""
    from pathlib import Path

    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _refuse(args: argparse.Namespace, error: Any, lines: list[str], details: dict[str, Any]) -> int:
    """List everything on stdout, which may be long, and say what it is on stderr, which is short."""
    from rsi_anything.commands.output import complain, emit_json

    if args.json:
        shown = {"what": error.what, "where": error.where, "next": error.next_step, "exit_code": int(error.exit_code)}
        emit_json({"error": shown, **details})
    else:
        _emit("\n".join(lines))
    complain("\n".join(error.lines()))
    return int(error.exit_code)


def _emit(text: str) -> None:
    from harness.report.text import printable
    from rsi_anything.commands.output import emit

    emit(printable(text, keep="\n\t"))


def _talk(args: argparse.Namespace, text: str) -> None:
    from rsi_anything.commands.output import talk

    talk(args, text)
