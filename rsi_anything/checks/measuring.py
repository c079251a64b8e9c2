"""What the measuring rungs share: the task, the sandbox, the image, and whole runs that leave nothing behind."""

import shutil
from pathlib import Path
from typing import Any

from harness import paths
from harness.agents import get_agent
from harness.errors import RsiError
from harness.run.control import Measured, control_key, keep
from harness.run.create import Wishes, build_image, create_run
from harness.run.engine import Engine
from harness.run.host import host_facts
from harness.run.names import new_name
from harness.run.seeds import derive
from harness.run.state import State
from harness.run.verdict import Verdict
from harness.sandbox import get_sandbox
from harness.sandbox.base import Image, Sandbox
from harness.task.load import load_task
from harness.task.task import Task
from rsi_anything.checks.keeping import keep_output
from rsi_anything.checks.ladder import Context

SEED = 20_000
"""Seed of the checks: fixed, so that two checks of one task measure the same."""


def sandbox_of(context: Context) -> Sandbox:
    """Return the sandbox the person asked for, else the strongest there is."""
    found: Any = context.options.get("sandbox")
    return found if found is not None else get_sandbox("local")


def image_of(task: Task, context: Context) -> Image:
    """Return the task's image, built once for all rungs of a climb."""
    image: Any = context.found.get("image")
    if image is None:
        image = build_image(task, sandbox_of(context), context.progress)
        context.found["image"] = image
    assert isinstance(image, Image)
    return image


def task_of(folder: Path, context: Context) -> Task:
    """Return the task as it is on disk now: a rung below may have written what it measured."""
    task = load_task(folder)
    context.found["task"] = task
    return task


def keep_control(task: Task, role: str, measured: Measured, context: Context) -> None:
    """Keep what was measured for the runs of this task on this host, so that it is not measured again."""
    level = str(sandbox_of(context).level)
    keep(control_key(task.digest, image_of(task, context).digest, level, host_facts()), role, "by rsi check", measured)


def trial(task: Task, agent: str, context: Context, *, submissions: int) -> State:
    """Run an agent on the task and return the final state; the run and all it made are removed.

    Where nothing was scored, what was printed is kept in the folder `output` of what was found.
    """
    sandbox = sandbox_of(context)
    worker = get_agent(agent)
    name = f"check-{new_name(paths.runs())}"
    wishes = Wishes(submissions=submissions, seed=derive(SEED, agent), name=name)
    folder = create_run(task, worker, (), sandbox, wishes, context.progress)
    try:
        state = Engine(folder, sandbox, worker, tell=context.progress).run()
        if all(one.verdict is not Verdict.SCORED for one in state.submissions):
            context.found["output"] = keep_output(folder.path, task.name)
        return state
    except RsiError as error:
        raise RsiError(f"agent {agent}: {error.what}", where=error.where, next_step=error.next_step) from error
    finally:
        sandbox.sweep(name)
        shutil.rmtree(folder.path, ignore_errors=True)
