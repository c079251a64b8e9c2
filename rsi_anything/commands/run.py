"""`rsi run`: one agent on one task."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rsi_anything.commands import numbers, sandboxes

if TYPE_CHECKING:
    from harness.run.create import Wishes


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "run",
        help="let an agent work on a task, judge by judge",
        description="Run one agent on one task. Whatever interrupts it, `rsi resume` goes on.",
        epilog="example: rsi run mytask --agent script --hours 2 -- ./my-agent.sh",
    )
    parser.add_argument("task", metavar="TASK", help="folder of a task")
    parser.add_argument("--agent", default="search", help="oracle, nop, search (the default) or script")
    parser.add_argument(
        "--submissions", type=numbers.count, metavar="N", help="submissions to spend instead of the task's own"
    )
    parser.add_argument(
        "--hours", type=numbers.hours, metavar="H", help="working hours to spend instead of the task's own"
    )
    parser.add_argument(
        "--seed", type=numbers.seed, metavar="N", help="secret seed of the run; drawn at random by default"
    )
    parser.add_argument("--name", metavar="NAME", help="name of the run; two words are made up by default")
    sandboxes.add_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print what would be run, and run nothing")
    parser.add_argument("agent_command", nargs="*", metavar="-- COMMAND", help="what the script agent runs")


def run(args: argparse.Namespace) -> int:
    """Plan the run and take it to its end."""
    from harness.agents import get_agent
    from harness.report.rows import level_words
    from harness.run.create import Wishes, check_run, create_run
    from harness.task.load import load_task
    from rsi_anything.commands.ending import take_to_its_end
    from rsi_anything.commands.output import emit, emit_json, talk

    _check_agent(args.agent)
    task = load_task(Path(args.task))
    agent = get_agent(args.agent, args.agent_command)
    sandbox = sandboxes.chosen(args)
    wishes = Wishes(args.submissions, args.hours, args.seed, args.name, weak=args.level == "process")
    # Whatever is wrong with the request is said first: the image may take long to build.
    facts = check_run(task, agent, sandbox, wishes)
    _check_name(wishes)
    if args.dry_run:
        emit_json(facts) if args.json else emit("\n".join(f"{name}: {value}" for name, value in facts.items()))
        return 0
    talk(args, f"sandbox {level_words(sandbox.level)}; `rsi show RUN` lists what is isolated and what is not")
    folder = create_run(task, agent, tuple(args.agent_command), sandbox, wishes, lambda line: talk(args, line))
    talk(args, f"run {folder.name}; it goes on after anything with: rsi resume {folder.name}")
    return take_to_its_end(folder, args)


def _check_agent(name: str) -> None:
    """Refuse what is no agent for people: the fake one takes its steps from a test."""
    from harness.agents import FOR_PEOPLE, unknown_agent

    if name not in FOR_PEOPLE:
        raise unknown_agent(name)


def _check_name(wishes: "Wishes") -> None:
    """Refuse the name of a run that is there already."""
    from harness import paths
    from harness.errors import InputError

    if wishes.name is not None and (paths.runs() / wishes.name).exists():
        raise InputError(
            f"there is a run {wishes.name} already",
            where=str(paths.runs() / wishes.name),
            next_step=f"choose another --name, or look at it: rsi show {wishes.name}",
        )
