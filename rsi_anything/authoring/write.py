"""Writes a plan into a folder, all or nothing: a whole new folder is made beside the old one and takes its place."""

import os
import shutil
from pathlib import Path

from harness.errors import InputError, RefusedError, RsiError
from rsi_anything.authoring.plan import Plan


def write(plan: Plan, dest: Path, force: bool = False, given: frozenset[str] = frozenset()) -> None:
    """Write the plan; files that a person edited or made stay, unless `force`, and then nothing at all is written.

    Files that the plan does not name are kept as they are; those that are `given` are what it was made from, and are
    written in their normal form. Raises RefusedError on a conflict.
    """
    dest = Path(os.path.abspath(dest))  # noqa: PTH100 - a link as last part must be seen, not followed
    fresh, old = dest.parent / f".{dest.name}.rsi-new", dest.parent / f".{dest.name}.rsi-old"
    try:
        _recover(dest, fresh, old)
        verbs = _checked(plan, dest, force, given)
        if all(verb == "identical" for verb, _ in verbs):
            return
        dest.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        _fill(plan, dest, fresh, {path for verb, path in verbs if verb == "remove" or (verb == "conflict" and force)})
        _swap(dest, fresh, old)
    except OSError as error:
        raise RsiError(
            f"the task cannot be written: {error.strerror or error}",
            where=str(error.filename or dest),
            next_step="check permissions and space, then write it again",
        ) from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _recover(dest: Path, fresh: Path, old: Path) -> None:
    """Finish what a writer that was killed left: its half-made folder goes, a folder it moved away comes back."""
    shutil.rmtree(fresh, ignore_errors=True)
    if old.is_dir():
        if os.path.lexists(dest):
            shutil.rmtree(old)
        else:
            old.rename(dest)


def _checked(plan: Plan, dest: Path, force: bool, given: frozenset[str]) -> list[tuple[str, str]]:
    if dest.is_symlink() or (dest.exists() and not dest.is_dir()):
        raise InputError(
            "this is no folder, so no task can be written there", where=str(dest), next_step="name another"
        )
    verbs = plan.compare(dest, given)
    conflicts = [path for verb, path in verbs if verb == "conflict"]
    if conflicts and not force:
        more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        raise RefusedError(
            f"files that were not written by rsi, or edited since, are in the way: {', '.join(conflicts[:3])}{more}",
            where=str(dest),
            next_step="look at the diff, then move them away or write with --force",
        )
    return verbs


def _fill(plan: Plan, dest: Path, fresh: Path, dropped: set[str]) -> None:
    for path in sorted(plan.files):
        place = fresh / path
        place.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, plan.files[path].mode)
        with os.fdopen(fd, "wb") as file:
            file.write(plan.content_for(dest, path))
            file.flush()
            os.fchmod(fd, plan.files[path].mode)
            os.fsync(fd)
    if dest.is_dir():
        shutil.copymode(dest, fresh)
        _keep(dest, fresh, "", {*plan.files, *dropped})


def _keep(dest: Path, fresh: Path, base: str, left: set[str]) -> None:
    """Take over what the plan does not name; files as hard links, so that nothing is copied where that works."""
    with os.scandir(dest / base) as entries:
        for entry in entries:
            path = f"{base}{entry.name}"
            place = fresh / path
            if path in left:
                continue
            if entry.is_dir(follow_symlinks=False):
                _keep(dest, fresh, f"{path}/", left)
            elif not os.path.lexists(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                _link(Path(entry.path), place)


def _link(source: Path, place: Path) -> None:
    if source.is_symlink():
        place.symlink_to(source.readlink())
        return
    try:
        place.hardlink_to(source)
    except OSError:
        shutil.copy2(source, place, follow_symlinks=False)


def _swap(dest: Path, fresh: Path, old: Path) -> None:
    _sync(fresh)
    if not dest.exists():
        fresh.rename(dest)
    else:
        dest.rename(old)
        try:
            fresh.rename(dest)
        except OSError:
            old.rename(dest)
            raise
        shutil.rmtree(old, ignore_errors=True)
    _sync(dest.parent)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
