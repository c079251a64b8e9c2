"""Becomes a command: the search of PATH, without `os.execvpe`, which imports modules that a box may not have."""

import os

NOT_FOUND, NOT_RUNNABLE = 127, 126


def execute(command: list[str], env: dict[str, str]) -> None:
    """Replace this process by the command; an error is that of the last file that was there."""
    name = command[0]
    if "/" in name:
        os.execve(name, command, env)  # noqa: S606 - a list of words, as meant
    problem: OSError = FileNotFoundError(2, "not found on PATH")
    for folder in env.get("PATH", "/usr/bin:/bin").split(":"):
        try:
            os.execve(f"{folder or '.'}/{name}", command, env)  # noqa: S606 - a list of words
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problem = error
    raise problem


def code_of(error: BaseException) -> int:
    """Return the exit code by which shells say why a command did not run."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
