"""The command `rsi`: parse, dispatch, and turn every way of failing into a few lines and an exit code.

Only the standard library and two small modules are loaded before a command is known, so that `rsi --help` is quick.
"""

import argparse
import importlib
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from harness.errors import ExitCode, InputError, Interrupted, RsiError
from rsi_anything.commands.output import OutputError, complain, emit, emit_json, flush, forget

COMMANDS = {
    "new": "turn a project into a task",
    "check": "climb the ladder of checks on a task",
    "run": "let an agent work on a task, judge by judge",
    "resume": "go on with a run after a stop, a crash or a reboot",
    "stop": "end a working run cleanly",
    "judge": "judge a run's submissions again, or a folder as a candidate",
    "runs": "list the runs, newest first",
    "show": "show what a run found",
    "report": "write the report of a run",
    "clean": "remove a run's boxes, processes and mounts, and with --delete its record too",
    "doctor": "say what this machine can do",
}
"""Every command and its line in the overview, so that `rsi --help` need not load them."""

_DESCRIPTION = "Turn a research project into a task that an AI agent can try to beat, and judge it honestly."
_EXAMPLES = """\
examples:
  rsi new path/to/project --out mytask    a conversation that ends in a task folder
  rsi check mytask                        is it leaky, noisy, unpinned or unrunnable?
  rsi run mytask --agent search           let the search agent try, judge by judge
  rsi show RUN                            what came out, with noise
  rsi report RUN                          the same as one HTML file

`rsi COMMAND --help` explains a command. Exit codes: 0 done, 1 failed, 2 wrong input,
3 something is missing on this machine, 4 refused for safety, 130 interrupted.
"""


class Parser(argparse.ArgumentParser):
    """A parser that raises our own error instead of leaving the program, and never guesses abbreviations."""

    commands: Mapping[str, argparse.ArgumentParser]

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Formatter)
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        """Raise an InputError that names the nearest thing that exists."""
        found = re.search(r"invalid choice: (\S+|'[^']*') \(choose from (.*)\)", message)
        if found:
            wrong = found[1].strip("'")
            choices = [choice.strip(" '") for choice in found[2].split(",")]
            thing = "command" if "argument COMMAND" in message else message.split(":")[0].removeprefix("argument ")
            hint = nearest(wrong, choices)
            if not hint and thing != "command":
                hint = f"; choose one of {', '.join(choices)}"
            message = f"{thing} {wrong!r} does not exist{hint}"
        raise InputError(message, where=self.prog, next_step=f"{self.prog} --help")

    def print_help(self, file: Any = None) -> None:
        """Print the help; unlike argparse's own, say so where it cannot be written."""
        if file is None:
            emit(self.format_help())
        else:
            super().print_help(file)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows the width of the terminal without shutil, whose import costs as much as Python's own start."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ["COLUMNS"])
        except (KeyError, ValueError):
            try:
                columns = os.get_terminal_size(1).columns
            except OSError:
                columns = 80
        super().__init__(prog, width=max(40, columns - 2))


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        emit(f"rsi-anything {version()}")
        parser.exit()


def version() -> str:
    """Return the installed version, or `unknown` where we run from a folder that was never installed."""
    from importlib import metadata  # 15 ms, needed by `--version` and log files alone

    try:
        return metadata.version("rsi-anything")
    except metadata.PackageNotFoundError:
        return "unknown"


def build_parser(names: Collection[str] = COMMANDS) -> Parser:
    """Return the parser; of the commands that are not in `names` it knows the name alone."""
    parser = Parser(prog="rsi", description=_DESCRIPTION, epilog=_EXAMPLES)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    parser.add_argument("--json", action="store_true", help="print one JSON document on stdout instead of text")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, line in COMMANDS.items():
        if name not in names:
            commands.add_parser(name, help=line, add_help=False)
            continue
        importlib.import_module(f"rsi_anything.commands.{name}").add_parser(commands)
        _common_options(commands.choices[name])
    parser.commands = commands.choices
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    _speak_utf8()
    try:
        code = _guarded(argv)
        flush()
    except BrokenPipeError:  # the reader has left, which is its right
        forget(1)
        return ExitCode.FAILED
    except OutputError as error:
        forget(1)
        complain("\n".join(error.lines()))
        return ExitCode.FAILED
    return code


def _guarded(argv: list[str]) -> int:
    """Dispatch, and answer whatever goes wrong with an exit code."""
    try:
        return _dispatch(argv)
    except SystemExit as error:  # argparse leaves this way after --help and --version
        return int(error.code or 0)
    except (BrokenPipeError, OutputError):
        raise
    except KeyboardInterrupt:
        return _fail(Interrupted("stopped; what was accepted is on disk", next_step=_same_command(argv)), argv)
    except RsiError as error:
        return _fail(error, argv)
    except OSError as error:
        return _fail(_machine(error) or _bug(error, argv), argv)
    except Exception as error:  # noqa: BLE001 - the one place where a bug of ours becomes a log file
        return _fail(_bug(error, argv), argv)


def nearest(wrong: str, known: Sequence[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known word, or nothing."""
    from difflib import get_close_matches  # needed after a mistake alone

    close = get_close_matches(wrong, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _dispatch(argv: list[str]) -> int:
    # What follows `--` is the agent's own command line: no parser of ours may look at it.
    ours, agents = _split(argv)
    # The command is the first word that is no option: only options without a value stand before it.
    parser = build_parser([word for word in ours if not word.startswith("-")][:1])
    args, extra = parser.parse_known_args(ours)
    if args.command is None and not extra:
        parser.print_help()
        return ExitCode.DONE
    if extra:
        _refuse(extra[0], parser, args.command)
    if agents is not None:
        if not hasattr(args, "agent_command"):
            _refuse("--", parser, args.command)
        args.agent_command = agents
    module = importlib.import_module(f"rsi_anything.commands.{args.command}")
    return int(module.run(args))


def _split(argv: list[str]) -> tuple[list[str], list[str] | None]:
    if "--" not in argv:
        return argv, None
    place = argv.index("--")
    return argv[:place], argv[place + 1 :]


def _common_options(parser: argparse.ArgumentParser) -> None:
    """Give a command the options that every command has."""
    # Without a default here, `rsi -q run` stays quiet and `rsi --json run` prints JSON.
    absent = argparse.SUPPRESS
    json = "print one JSON document on stdout instead of text"
    parser.add_argument("--json", action="store_true", default=absent, help=json)
    parser.add_argument("-q", "--quiet", action="store_true", default=absent, help="say nothing on stderr but errors")


def _refuse(word: str, parser: Parser, command: str | None) -> NoReturn:
    """Raise the error for a word that no parser understood."""
    prog = f"{parser.prog} {command}" if command else parser.prog
    if word == "--" or not word.startswith("-"):
        raise InputError(f"{word!r} is one argument too many", where=prog, next_step=f"{prog} --help")
    option = word.split("=")[0]
    text = (parser.commands[command] if command else parser).format_help()
    known = sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)))
    what = f"option {option!r} does not exist{nearest(option, known)}"
    raise InputError(what, where=prog, next_step=f"{prog} --help")


def _fail(error: RsiError, argv: list[str]) -> int:
    """Print an error as lines on stderr, with --json also as an object on stdout, and return its exit code."""
    complain("\n".join(error.lines()))
    if "--json" in _split(argv)[0]:
        shown = {"what": error.what, "where": error.where, "next": error.next_step, "exit_code": int(error.exit_code)}
        emit_json({"error": shown})
    return int(error.exit_code)


def _same_command(argv: list[str]) -> str:
    from shlex import join  # needed after an interruption alone

    return join(["rsi", *argv])


def _machine(error: OSError) -> RsiError | None:
    """Return the error for what a person can mend: a full disk, a folder that may not be used."""
    import errno  # needed after such an error alone

    anywhere = {
        (errno.ENOSPC, errno.EDQUOT): "make room, or set RSI_HOME to a folder on a larger disk",
        (errno.EROFS,): "set RSI_HOME to a folder that you may write",
        (errno.EIO,): "look at the disk; the system's log says more",
        (errno.EMFILE, errno.ENFILE): "close other programs, or allow more open files: ulimit -n 4096",
        (errno.EFBIG,): "allow larger files: ulimit -f unlimited",
        (errno.ENOMEM, errno.EAGAIN): "close other programs, or allow more memory and processes",
    }
    # Without the name of a file these say too little to be anything but a bug.
    with_name = {
        (errno.EACCES, errno.EPERM): "change its permissions, or set RSI_HOME to a folder that you may write",
        (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG): "name a folder, or set RSI_HOME to one",
    }
    for numbers, mend in (anywhere | (with_name if error.filename is not None else {})).items():
        if error.errno in numbers:
            what = (error.strerror or os.strerror(error.errno)).lower()
            where = "" if error.filename is None else os.fsdecode(error.filename)
            return RsiError(f"the machine did not let us go on: {what}", where=where, next_step=mend)
    return None


def _bug(error: Exception, argv: list[str]) -> RsiError:
    """Write the traceback of a bug of ours to a log file and return the one line about it."""
    import tempfile  # these four are needed by a bug alone
    import time
    import traceback
    from pathlib import Path

    from harness import paths

    text = "".join(traceback.format_exception(error))
    # The command's name alone: its arguments may hold what a person would not post.
    head = f"command: rsi {argv[0] if argv else ''}\nversion: {version()}\npython: {sys.version}\n\n"
    name = time.strftime("%Y%m%dT%H%M%S") + f"-{os.getpid()}.log"
    for folder in (paths.logs(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(head + text, encoding="utf-8", errors="replace")
        except OSError:
            continue
        return RsiError(f"this is a bug of ours ({type(error).__name__}); the traceback is in {folder / name}")
    return RsiError(f"this is a bug of ours, and no log file could be written:\n{text}")


def _open_streams() -> None:
    """Put something in the place of a standard stream that is closed, so that no file of ours takes its number.

    What is written to a closed stdout fails, as it should; a closed stderr is silent; a closed stdin is at its end.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_WRONLY if fd == 2 else os.O_RDONLY), True)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _speak_utf8() -> None:
    """Write UTF-8 whatever the locale says, and never fail on a character."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
