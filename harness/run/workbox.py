"""The box in which a run's agent works: found as it is, made, or made again over the files that a dead one left."""

from collections.abc import Callable
from dataclasses import replace

from harness.run.state import State
from harness.sandbox.base import Box, BoxSpec, Sandbox


def find_or_make(sandbox: Sandbox, spec: BoxSpec, state: State, note: Callable[[str], None]) -> tuple[Box, bool]:
    """Return the work box, and whether it was made now, so that an agent must be started in it.

    `spec` is that of the run's first box; its name is overridden by what the journal says. `note` is told what the
    operator has to know.
    """
    box = sandbox.attach(spec.run, state.work_box)
    if box is not None and box.alive():
        return box, False
    if state.agent_starts == 0:
        if box is not None:  # an engine died while it was made
            box.remove()
        return sandbox.create(spec), True
    if box is None:
        note("the workspace was removed from this machine; the agent begins anew from the task's image")
        return sandbox.create(spec), True
    note("the agent is started again on the files that it left")
    # Named by the start that follows, so one that no agent was started in cannot be taken for the run's own.
    name = f"{spec.name}-{state.agent_starts + 1}"
    half_made = sandbox.attach(spec.run, name)
    if half_made is not None:
        half_made.remove()
    return sandbox.create(replace(spec, name=name, over=box)), True
