"""A place to judge a task's candidates outside any run, that leaves nothing behind."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import paths
from harness.errors import InputError
from harness.run import networks
from harness.run.control import Bench
from harness.run.create import build_image, copy_scripts
from harness.run.judging import Court
from harness.run.seeds import derive
from harness.run.store.snapshot import SnapshotStore
from harness.sandbox.base import Image, Limits, Sandbox
from harness.task.digest import digest_tree
from harness.task.task import Task


@contextlib.contextmanager
def open_bench(
    task: Task, sandbox: Sandbox, *, tell: Callable[[str], None], seed: int, image: Image | None = None
) -> Iterator[Bench]:
    """Build the task's image if need be and yield a bench; every box and file of it is removed afterwards.

    Raises:
        InputError: for a task without a contract, which does not say what a candidate is.
    """
    if task.contract is None:
        raise InputError("only a task with a contract says what a candidate is", where=str(task.folder / "task.toml"))
    image = image or build_image(task, sandbox, tell)
    # Below our own folder, which no box shows, and on the file system where snapshots can be linked.
    root = paths.home() / "benches"
    root.mkdir(parents=True, exist_ok=True)
    name = f"bench-{derive(time.time_ns(), os.getpid()):x}"
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=root) as temporary:
        folder = Path(temporary)
        try:
            yield _bench(task, sandbox, image, name, folder, seed, tell)
        finally:
            sandbox.sweep(name)


def _bench(
    task: Task, sandbox: Sandbox, image: Image, name: str, folder: Path, seed: int, tell: Callable[[str], None]
) -> Bench:
    assert task.contract is not None  # open_bench saw to it
    copy_scripts(task.tests, folder / "tests")
    if task.solution.is_dir():
        copy_scripts(task.solution, folder / "solution")
    environment = task.config.environment
    court = Court(
        run=name,
        sandbox=sandbox,
        image=image,
        contract=task.contract,
        tests=folder / "tests",
        tests_digest=digest_tree(folder / "tests"),
        timeout=task.config.verifier.timeout_sec,
        limits=Limits(environment.cpus, environment.memory_mb, storage_mb=environment.storage_mb),
    )
    return Bench(
        court=court,
        store=SnapshotStore(folder / "snapshots"),
        boundary=task.contract.boundary,
        solution=folder / "solution",
        folder=folder,
        seed=seed,
        network=networks.of_work(task.config),
        solve_sec=task.contract.budget.hours * 3600,
        watch=lambda: None,
        tell=tell,
    )
