"""Leaving nothing behind: boxes, processes, mounts, and on request the record."""

from harness import paths
from harness.errors import RefusedError
from harness.run.folder import RunFolder
from harness.run.setting import planned_sandbox
from harness.sandbox.boxfolder import remove_tree


def idle_runs() -> list[RunFolder]:
    """Return the runs that no engine works on."""
    root = paths.runs()
    if not root.is_dir():
        return []
    folders = [RunFolder(each) for each in sorted(root.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    return [folder for folder in folders if not folder.engine_alive()]


def clean(folder: RunFolder, *, delete: bool, dry: bool) -> list[str]:
    """Remove what a run left; return it in words.

    Raises:
        RefusedError: while an engine works on the run.
    """
    if folder.engine_alive():
        raise RefusedError(f"run {folder.name} is working", where=str(folder.path), next_step=f"rsi stop {folder.name}")
    left = _boxes(folder)
    if not dry:
        left = planned_sandbox(folder.read_plan()).sweep(folder.name)
        for part in (folder.path / "trees", folder.stop_flag):
            remove_tree(part)
    if delete:
        left.append(f"the record {folder.path}")
        if not dry:
            remove_tree(folder.path)  # the agent's own inbox is in it, with whatever modes
    return left


def _boxes(folder: RunFolder) -> list[str]:
    root = paths.home() / "boxes" / folder.name
    return [f"box {each.name}" for each in sorted(root.iterdir())] if root.is_dir() else []
