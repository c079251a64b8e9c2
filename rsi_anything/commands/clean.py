"""`rsi clean`: leave nothing of a run behind."""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "clean",
        help="remove a run's boxes, processes and mounts, and with --delete its record too",
        description="Remove what runs left on this machine. Journal, snapshots and report stay without --delete.",
    )
    parser.add_argument("runs", nargs="*", metavar="RUN", help="names of runs; all that are not working by default")
    parser.add_argument("--delete", action="store_true", help="delete the record as well")
    parser.add_argument("--yes", action="store_true", help="do not ask before deleting")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")


def run(args: argparse.Namespace) -> int:
    """Remove, after a question where a record is lost."""
    from harness.run.clean import clean, idle_runs
    from harness.run.folder import RunFolder
    from harness.run.names import resolve_run
    from rsi_anything.commands.output import emit, emit_json, talk

    folders = [RunFolder(resolve_run(name)) for name in args.runs] or idle_runs()
    if args.delete and not args.dry_run and not args.yes:
        _ask(len(folders))
    removed = {folder.name: clean(folder, delete=args.delete, dry=args.dry_run) for folder in folders}
    if args.json:
        emit_json({"removed": removed, "dry_run": args.dry_run})
        return 0
    for name, things in removed.items():
        for thing in things:
            emit(f"{name}: {'would remove' if args.dry_run else 'removed'} {thing}")
    if not any(removed.values()):
        talk(args, "there was nothing to remove")
    return 0


def _ask(count: int) -> None:
    import sys

    from harness.errors import RefusedError

    runs = "1 run" if count == 1 else f"{count} runs"
    refused = RefusedError(
        f"the record of {runs} would be deleted", next_step="say --yes, or --dry-run to see what goes"
    )
    if not sys.stdin.isatty():
        raise refused
    sys.stderr.write(f"delete the record of {runs}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise refused
