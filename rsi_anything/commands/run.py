"""`rsi run`: one agent on one task."""

import argparse
from pathlib import Path
from typing import Any


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
    parser.add_argument("--submissions", type=int, metavar="N", help="submissions to spend instead of the task's own")
    parser.add_argument("--hours", type=float, metavar="H", help="working hours to spend instead of the task's own")
    parser.add_argument("--seed", type=int, metavar="N", help="secret seed of the run; drawn at random by default")
    parser.add_argument("--name", metavar="NAME", help="name of the run; two words are made up by default")
    parser.add_argument(
        "--level", choices=("namespaces", "process"), help="isolation level; the strongest there is by default"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be run, and run nothing")
    parser.add_argument("agent_command", nargs="*", metavar="-- COMMAND", help="what the script agent runs")


def run(args: argparse.Namespace) -> int:
    """Plan the run and take it to its end."""
    from harness.agents import get_agent
    from harness.run.create import Wishes, check_run, create_run
    from harness.run.launch import work_on
    from harness.sandbox import get_sandbox
    from harness.task.load import load_task
    from rsi_anything.commands.ending import print_ending
    from rsi_anything.commands.output import emit, emit_json, talk

    task = load_task(Path(args.task))
    agent = get_agent(args.agent, args.agent_command)
    sandbox = get_sandbox("local", level=args.level)
    wishes = Wishes(args.submissions, args.hours, args.seed, args.name, weak=args.level == "process")
    if args.dry_run:
        facts = check_run(task, agent, sandbox, wishes)
        emit_json(facts) if args.json else emit("\n".join(f"{name}: {value}" for name, value in facts.items()))
        return 0
    for line in sandbox.describe():
        talk(args, f"sandbox: {line}")
    folder = create_run(task, agent, tuple(args.agent_command), sandbox, wishes, lambda line: talk(args, line))
    talk(args, f"run {folder.name}; it goes on after anything with: rsi resume {folder.name}")
    work_on(folder, lambda line: talk(args, line))
    print_ending(folder, args)
    return 0
