"""Planning a run: everything is decided and written down before the first event."""

import hashlib
import math
import secrets
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from harness import paths
from harness.agents import BUILT_IN
from harness.agents.base import Agent
from harness.errors import InputError, PrerequisiteError, RefusedError
from harness.run import networks
from harness.run.bring import SHOWN_AT, bring, brought
from harness.run.folder import RunFolder
from harness.run.host import host_facts
from harness.run.journal import Journal
from harness.run.names import new_name
from harness.run.plan import Plan
from harness.run.state import Kind
from harness.sandbox.base import Image, Level, Sandbox
from harness.sandbox.boxfolder import checked_name
from harness.task.digest import digest_tree
from harness.task.harbor import NetworkMode, unsupported
from harness.task.task import Task

PLAIN_SUBMISSIONS = 1
"""A plain Harbor task is judged once, when its agent has ended."""

PLAIN_HOURS = 24.0
"""Bound of a plain Harbor task whose file names no agent time."""


_SANDBOXES = {Level.FAKE: "fake", Level.CONTAINER: "docker"}
"""Names of the sandboxes that have one level each."""


@dataclass(frozen=True)
class Wishes:
    """What the command line may set; None takes the task's own value."""

    submissions: int | None = None
    hours: float | None = None
    seed: int | None = None
    name: str | None = None
    weak: bool = False
    """The operator asked for the plain-process level by name."""


def create_run(
    task: Task, agent: Agent, command: tuple[str, ...], sandbox: Sandbox, wishes: Wishes, tell: Callable[[str], None]
) -> RunFolder:
    """Check that the run is possible, build its image, and write its folder with plan and first event.

    Raises:
        InputError: the task cannot be run this way.
        PrerequisiteError: the machine lacks something.
        RefusedError: the isolation is too weak for this agent.
    """
    check_run(task, agent, sandbox, wishes)
    command, files = brought(command)
    image = build_image(task, sandbox, tell)
    paths.runs().mkdir(parents=True, exist_ok=True)
    name = wishes.name or new_name(paths.runs())
    folder = RunFolder(paths.runs() / name)
    staged = RunFolder(paths.runs() / f".new-{name}-{secrets.token_hex(4)}")
    # A plain process that became another user must get to the mailbox; the rest of the folder is closed to it.
    # Boxes see the mailbox as a mount, and no other user of the host has any business in its inbox.
    staged.path.mkdir(mode=0o711 if sandbox.level is Level.PROCESS else 0o700)
    try:
        if files:
            bring(files, staged.brought)
            tell(f"shown in the box at {SHOWN_AT}: {', '.join(path.name for path in files)}")
        _fill(staged, name, task, agent, command, sandbox, image, wishes)
        staged.path.rename(folder.path)
    except BaseException:
        shutil.rmtree(staged.path, ignore_errors=True)
        raise
    return folder


def build_image(task: Task, sandbox: Sandbox, tell: Callable[[str], None]) -> Image:
    """Build or find a task's image, in the time that the task allows."""
    environment = task.config.environment
    return sandbox.build(
        task.environment, workdir=environment.workdir, timeout=environment.build_timeout_sec, progress=tell
    )


def check_run(task: Task, agent: Agent, sandbox: Sandbox, wishes: Wishes) -> dict[str, Any]:
    """Raise what stands against the run, or return in short what would be run."""
    reasons = unsupported(task.config, task.folder)
    if reasons:
        raise InputError(
            f"this version cannot run the task: {reasons[0]}"
            + (f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""),
            where=str(task.folder / "task.toml"),
            next_step="rsi check TASK lists every reason",
        )
    if NetworkMode.ALLOWLIST in {task.config.work_network, task.config.judge_network}:
        raise PrerequisiteError(
            "this sandbox cannot hold a task to an allow-list of hosts",
            where=str(task.folder / "task.toml"),
            next_step="set network_mode to no-network or public",
        )
    lacks = sandbox.lacks()
    if lacks:
        raise PrerequisiteError(lacks[0].what, next_step=lacks[0].fix)
    if agent.needs_solution and not (task.solution / "solve.sh").is_file():
        raise InputError(
            f"agent {agent.name} needs the author's solution",
            where=str(task.solution / "solve.sh"),
            next_step="choose another agent, or add the file",
        )
    agent.check(task.contract)
    if sandbox.level is Level.PROCESS and agent.name not in BUILT_IN and not wishes.weak:
        raise RefusedError(
            f"agent {agent.name} would run with almost no isolation: this machine has no namespaces for us",
            where="sandbox local, level process",
            next_step="rsi doctor says what is missing; --level process runs it all the same",
        )
    if wishes.name is not None and (paths.runs() / checked_name(wishes.name)).exists():
        raise InputError(
            f"there is a run {wishes.name} already", next_step=f"rsi show {wishes.name}, or another --name"
        )
    for value, what in ((wishes.submissions, "--submissions"), (wishes.hours, "--hours")):
        if value is not None and not 0 < value < math.inf:
            reason = f"{what} must be above 0 and finite, not {value}"
            raise InputError(reason, next_step=f"give {what} another value")
    submissions, hours = _bounds(task, wishes)
    return {
        "task": task.name,
        "agent": agent.name,
        "sandbox": f"{_SANDBOXES.get(sandbox.level, 'local')}, level {sandbox.level}",
        "submissions": submissions,
        "hours": hours,
        "judge_timeout_sec": task.config.verifier.timeout_sec,
    }


def _bounds(task: Task, wishes: Wishes) -> tuple[int, float]:
    """Return submissions and hours: as wished, else as the contract has them, else as Harbor means them."""
    if task.contract:
        submissions, hours = task.contract.budget.submissions, task.contract.budget.hours
    else:
        submissions = PLAIN_SUBMISSIONS
        hours = (task.config.agent.timeout_sec or PLAIN_HOURS * 3600) / 3600
    return wishes.submissions or submissions, wishes.hours or hours


def _fill(
    folder: RunFolder,
    name: str,
    task: Task,
    agent: Agent,
    command: tuple[str, ...],
    sandbox: Sandbox,
    image: Image,
    wishes: Wishes,
) -> None:
    copy_scripts(task.tests, folder.tests)
    if task.solution.is_dir():
        copy_scripts(task.solution, folder.solution)
    for closed in (folder.judging(""), folder.store):
        closed.mkdir(mode=0o700)
    plan = _plan(name, task, agent, command, sandbox, image, wishes, digest_tree(folder.tests))
    raw = folder.write_plan(plan)
    with Journal.create(folder.journal) as journal:
        folder.journal.chmod(0o600)  # it holds the judge's seeds
        journal.append(Kind.RUN_CREATED, plan=hashlib.sha256(raw).hexdigest())


def copy_scripts(source: Path, target: Path) -> None:
    """Copy a folder of the task, closed to all users but this one; its scripts become executable, as Harbor runs them.

    In a box it is shown read-only, so a judge cannot close it there to the user that candidate code runs as.
    """
    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for script in target.glob("*.sh"):
        if not script.is_symlink():
            script.chmod(script.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    target.chmod(0o700)


def _plan(
    name: str,
    task: Task,
    agent: Agent,
    command: tuple[str, ...],
    sandbox: Sandbox,
    image: Image,
    wishes: Wishes,
    tests_digest: str,
) -> Plan:
    contract, config = task.contract, task.config
    submissions, hours = _bounds(task, wishes)
    return Plan(
        run=name,
        task=task.name,
        task_folder=str(task.folder.resolve()),
        task_digest=task.digest,
        tests_digest=tests_digest,
        image=image.digest,
        image_facts={"workdir": image.workdir, "env": dict(image.env), "notes": list(image.notes), "user": image.user},
        resources={
            "cpus": config.environment.cpus,
            "memory_mb": config.environment.memory_mb,
            "storage_mb": config.environment.storage_mb,
            "network": networks.as_json(networks.of_work(config)),
            "judge_network": networks.as_json(networks.of_judge(config, has_contract=contract is not None)),
        },
        agent=agent.name,
        agent_command=command,
        sandbox=_SANDBOXES.get(sandbox.level, "local"),
        level=str(sandbox.level),
        isolation=tuple(sandbox.describe()),
        contract=contract.model_dump(mode="json") if contract else None,
        submissions=submissions,
        hours=hours,
        cooldown_sec=contract.budget.cooldown_sec if contract else 0.0,
        judge_base=contract.judge.base if contract else "work",
        judge_timeout_sec=config.verifier.timeout_sec,
        seed=wishes.seed if wishes.seed is not None else secrets.randbits(63),
        created=time.time(),
        host=host_facts(),
        versions={"rsi-anything": metadata.version("rsi-anything")},
    )
