"""Whoever works in the workspace: one file each, made by name."""

from collections.abc import Sequence

from harness.agents.base import Agent
from harness.errors import InputError

BUILT_IN = ("oracle", "nop", "search", "fake")
"""Agents that run no code but the author's and ours, so that the plain-process level is enough for them."""

FOR_PEOPLE = ("oracle", "nop", "search", "script")
"""Agents that a person can ask for; the fake one needs steps, which only a test gives it."""

NAMES = (*FOR_PEOPLE, "fake")


def get_agent(name: str, command: Sequence[str] = ()) -> Agent:
    """Return the agent of that name; `command` is what `script` runs.

    Raises:
        InputError: for an unknown name, or a command that is missing or not wanted.
    """
    # Only the agent that is asked for is imported: one of them may need a model client.
    if name not in NAMES:
        raise unknown_agent(name)
    if (name == "script") != bool(command):
        wanted = "needs a command" if name == "script" else "takes no command"
        raise InputError(f"agent {name} {wanted}", next_step="rsi run TASK --agent script -- COMMAND")
    if name == "oracle":
        from harness.agents.oracle import Oracle

        return Oracle()
    if name == "nop":
        from harness.agents.nop import Nop

        return Nop()
    if name == "search":
        from harness.agents.search import Search

        return Search()
    if name == "fake":
        from harness.agents.fake import FakeAgent

        return FakeAgent()
    from harness.agents.script import Script

    return Script(tuple(command))


def unknown_agent(name: str) -> InputError:
    """Return the error for a name that is no agent's."""
    return InputError(f"there is no agent {name!r}", next_step=f"choose one of {', '.join(FOR_PEOPLE)}")
