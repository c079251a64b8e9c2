"""One module a command: `add_parser(subparsers)` is cheap to import, `run(args)` loads what the work needs."""

__all__: list[str] = []
