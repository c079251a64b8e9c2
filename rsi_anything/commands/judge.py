"""`rsi judge`: a submission of a run again, or any folder as a candidate of a task."""

import argparse
from pathlib import Path
from typing import Any

from rsi_anything.commands import numbers, sandboxes


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "judge",
        help="judge a run's submissions again, or a folder as a candidate",
        description="With a run: judge its snapshots again, by the task's present tests. With --task: a folder.",
        epilog="examples: rsi judge quiet-heron --submission 7      rsi judge my-candidate --task mytask",
    )
    parser.add_argument("what", metavar="RUN|FOLDER", help="name of a run, or with --task a folder of candidate files")
    parser.add_argument(
        "--submission", type=numbers.count, action="append", metavar="N", help="which one; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="every submission that has a snapshot")
    parser.add_argument("--task", metavar="TASK", help="folder of the task that the candidate is for")
    parser.add_argument("--seed", type=numbers.seed, default=1, metavar="N", help="the judge's seed for a folder (1)")
    sandboxes.add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Judge and print the outcome."""
    from harness.errors import InputError

    if args.task:
        if args.submission or args.all:
            raise InputError("--submission and --all belong to a run, not to a folder", next_step="rsi judge --help")
        return _folder(args)
    _check_run(args)
    return _run(args)


def _check_run(args: argparse.Namespace) -> None:
    from shlex import quote

    from harness.errors import InputError
    from harness.run.names import run_names

    if Path(args.what).is_dir() and args.what not in run_names():
        raise InputError(
            "a folder is judged as a candidate of a task, and no task was named",
            where=args.what,
            next_step=f"rsi judge {quote(args.what)} --task TASK",
        )
    if args.submission and args.all:
        raise InputError("--submission and --all do not go together", next_step="leave one of them out")
    if not args.submission and not args.all:
        raise InputError("say which submissions: --submission N or --all", next_step=f"rsi show {quote(args.what)}")


def _run(args: argparse.Namespace) -> int:
    from harness.run.again import judge_again
    from harness.run.folder import RunFolder
    from harness.run.names import resolve_run
    from rsi_anything.commands.output import emit, emit_json, talk

    folder = RunFolder(resolve_run(args.what))
    done = judge_again(folder, args.submission, lambda line: talk(args, line))
    if args.json:
        rows = [
            {
                "submission": each.number,
                "before": {"verdict": each.before.verdict, "metric": each.before.metric, "score": each.before.score},
                "after": {"verdict": each.after.verdict, "metric": each.after.metric, "score": each.after.score},
            }
            for each in done
        ]
        emit_json({"run": folder.name, "judged": rows})
        return 0
    for each in done:
        emit(f"submission {each.number}: {_words(each.before)} -> {_words(each.after)}")
    return 0


def _words(one: Any) -> str:
    return f"{one.verdict} {one.metric:.6g}" if one.metric is not None else str(one.verdict)


def _folder(args: argparse.Namespace) -> int:
    from harness.errors import InputError
    from harness.run.again import judge_folder
    from harness.task.load import load_task
    from rsi_anything.commands.output import emit, emit_json, talk

    if not Path(args.what).is_dir():
        raise InputError(
            "the candidate must be a folder", where=args.what, next_step="name a folder with the candidate's files"
        )
    task = load_task(Path(args.task))
    sandbox = sandboxes.chosen(args)
    finding = judge_folder(task, Path(args.what), sandbox, seed=args.seed, tell=lambda line: talk(args, line))
    if args.json:
        emit_json({"verdict": finding.verdict, "metric": finding.metric, "message": finding.message})
    else:
        number = "" if finding.metric is None else f" {finding.metric:.6g}"
        emit(f"{finding.verdict}{number}" + (f": {finding.message}" if finding.message else ""))
    return 0
