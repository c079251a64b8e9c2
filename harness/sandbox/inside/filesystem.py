"""The file system of a box, mounted from a plan by its init before anything else runs in it.

Every source and target is opened first, component by component without following links, and mounted through its
descriptor: what an image or an earlier box left lying at a path cannot turn a mount elsewhere.
"""

import os

from harness.sandbox.inside import kernel
from harness.sandbox.inside.identity import OVERFLOW
from harness.sandbox.inside.wire import Record

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
READ_ONLY_PROC = ("bus", "fs", "irq", "sys", "sysrq-trigger")
MASKED_PROC = (
    "acpi", "asound", "interrupts", "kallsyms", "kcore", "keys", "kmsg", "kpagecgroup", "kpagecount", "kpageflags",
    "latency_stats", "mtrr", "sched_debug", "scsi", "sysvipc", "timer_list", "timer_stats",
)  # fmt: skip
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def shown(descriptor: int) -> str:
    """Return a path to what a descriptor holds."""
    return f"/proc/self/fd/{descriptor}"


def parts(path: str) -> list[str]:
    """Return the components of an absolute path; one that climbs is an error."""
    found = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in found:
        raise OSError(22, f"path {path!r} climbs")
    return found


def open_below(root: int, path: str, *, folder: bool = True) -> int:
    """Open a place below `root` without following links, making what is missing."""
    place = os.dup(root)
    names = parts(path)
    for position, name in enumerate(names):
        last = position == len(names) - 1
        try:
            if last and not folder:
                _touch(name, place)
                inner = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            else:
                inner = _folder_below(name, place)
        except OSError as error:
            raise OSError(error.errno, f"{path} in the box: {error.strerror}") from error
        finally:
            os.close(place)
        place = inner
    return place


def _touch(name: str, place: int) -> None:
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644, dir_fd=place))
    except FileExistsError:
        return


def _folder_below(name: str, place: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=place)
    except FileNotFoundError:
        os.mkdir(name, 0o755, dir_fd=place)
        return os.open(name, _FOLDER, dir_fd=place)


def _overlay(root: int, overlay: Record, *, userxattr: bool) -> None:
    """Mount one overlay; its sources go in as descriptors, so that no path needs quoting or hits a length limit."""
    target = open_below(root, overlay["target"])
    held = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in overlay["lowers"]]
    if overlay.get("over_itself"):
        held.append(os.dup(target))
    _like(overlay["upper"], held[0])
    upper = os.open(overlay["upper"], os.O_PATH | os.O_CLOEXEC)
    work = os.open(overlay["work"], os.O_PATH | os.O_CLOEXEC)
    options = [f"lowerdir={':'.join(shown(lower) for lower in held)}", f"upperdir={shown(upper)}"]
    # A layer must mean the same wherever it lies in a stack: no redirects or index that point into another one.
    options += [f"workdir={shown(work)}", "userxattr" if userxattr else "redirect_dir=off,index=off,metacopy=off"]
    kernel.mount("overlay", shown(target), "overlay", kernel.MS_NODEV, ",".join(options))
    for descriptor in (target, upper, work, *held):
        os.close(descriptor)


def _like(folder: str, model: int) -> None:
    """Give an upper folder the owner and mode of what it covers: an overlay's own root shows its upper's."""
    wanted = os.fstat(model)
    os.chmod(folder, wanted.st_mode & 0o7777)  # noqa: PTH101 - pathlib costs 5 ms at every box start
    if OVERFLOW not in {wanted.st_uid, wanted.st_gid}:  # an owner not known here: root of the box owns it then
        os.chown(folder, wanted.st_uid, wanted.st_gid)


def bind(
    source: str, root: int, target: str, *, read_only: bool, flags: int = kernel.MS_NOSUID | kernel.MS_NODEV
) -> None:
    """Show a file or folder of the host at a place of the box."""
    held = os.open(source, os.O_PATH | os.O_CLOEXEC)
    is_folder = (os.fstat(held).st_mode & 0o170000) == 0o040000
    place = open_below(root, target, folder=is_folder)
    kernel.mount(shown(held), shown(place), None, kernel.MS_BIND)
    os.close(place)
    os.close(held)
    place = open_below(root, target, folder=is_folder)  # the mount, no longer what it lies on
    wanted = kernel.MS_REMOUNT | kernel.MS_BIND | flags | (kernel.MS_RDONLY if read_only else 0)
    # In a user namespace a mount keeps the restrictions it had outside; asking without them is refused.
    kernel.mount("none", shown(place), None, wanted | _locked_flags(place))
    os.close(place)


def _locked_flags(place: int) -> int:
    """Return the restrictions that the mount has already."""
    flags = os.fstatvfs(place).f_flag
    pairs = ((1, kernel.MS_RDONLY), (2, kernel.MS_NOSUID), (4, kernel.MS_NODEV), (8, kernel.MS_NOEXEC))
    found = sum(mount for stat, mount in pairs if flags & stat)
    # ST_NOATIME, ST_NODIRATIME, ST_RELATIME, as statvfs and as mount flags
    return found | sum(mount for stat, mount in ((1024, 1024), (2048, 2048), (4096, 1 << 21)) if flags & stat)


def _tmpfs(root: int, target: str, options: str, flags: int = kernel.MS_NOSUID | kernel.MS_NODEV) -> None:
    place = open_below(root, target)
    kernel.mount("tmpfs", shown(place), "tmpfs", flags, options)
    os.close(place)


def _devices(root: int, plan: Record) -> None:
    _tmpfs(root, "/dev", "mode=755,size=1m", kernel.MS_NOSUID | kernel.MS_NOEXEC)
    for name in (*(f"/dev/{name}" for name in DEVICES), *plan["devices"]):
        bind(name, root, name, read_only=False, flags=kernel.MS_NOSUID)
    dev = open_below(root, "/dev")
    for name, goal in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                       ("stderr", "/proc/self/fd/2")):  # fmt: skip
        os.symlink(goal, name, dir_fd=dev)
    _tmpfs(root, "/dev/shm", f"mode=1777,size={plan['shm_mb']}m")  # noqa: S108 - a place in the box
    pts = open_below(root, "/dev/pts")
    try:
        kernel.mount("devpts", shown(pts), "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC,
                     "newinstance,ptmxmode=0666,mode=0620")  # fmt: skip
        os.symlink("pts/ptmx", "ptmx", dir_fd=dev)
    except OSError as error:
        os.write(2, f"no pseudo terminals in this box: {error}\n".encode())
    os.close(pts)
    os.close(dev)


def _proc(root: int) -> None:
    place = open_below(root, "/proc")
    kernel.mount("proc", shown(place), "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    os.close(place)
    proc = open_below(root, "/proc")
    null = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)
    quiet = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    for name in READ_ONLY_PROC:
        if _is_there(proc, name):
            path = f"{shown(proc)}/{name}"
            kernel.mount(path, path, None, kernel.MS_BIND | kernel.MS_REC)
            kernel.mount("none", path, None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | quiet)
    for name in MASKED_PROC:
        found = _is_there(proc, name)
        if found == 0o040000:
            kernel.mount("tmpfs", f"{shown(proc)}/{name}", "tmpfs", kernel.MS_RDONLY | quiet, "size=4k")
        elif found:
            kernel.mount(shown(null), f"{shown(proc)}/{name}", None, kernel.MS_BIND)
    os.close(null)
    os.close(proc)


def _is_there(folder: int, name: str) -> int:
    """Return the file type of an entry, 0 where there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode & 0o170000
    except FileNotFoundError:
        return 0


def _sys(root: int) -> None:
    """Show what programs read to count processors, and nothing else of /sys."""
    _tmpfs(root, "/sys", "mode=755,size=1m")
    for name in ("/sys/devices/system/cpu", "/sys/devices/system/node"):
        if os.path.isdir(name):  # noqa: PTH112 - pathlib costs 5 ms at every box start
            bind(name, root, name, read_only=True)
    place = open_below(root, "/sys")
    kernel.mount("none", shown(place), None, kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID
                 | kernel.MS_NODEV)  # fmt: skip
    os.close(place)


def build(plan: Record) -> None:
    """Mount everything the plan names and make it this process's root."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    mountpoint = os.open(plan["root"], _FOLDER)
    first, *others = plan["overlays"]
    _overlay(mountpoint, {**first, "target": "/"}, userxattr=plan["userxattr"])
    os.close(mountpoint)
    root = os.open(plan["root"], _FOLDER)
    for overlay in others:
        _overlay(root, overlay, userxattr=plan["userxattr"])
    for path in plan["hide"]:
        _hide(root, path)
    for path in plan["remove"]:
        _remove(root, plan["workdir"], path)
    _devices(root, plan)
    _proc(root)
    _sys(root)
    _tmpfs(root, "/run", "mode=755,size=64m")
    for path, text in plan["files"].items():
        _write(root, path, text)
    for wanted in plan["mounts"]:
        bind(wanted["source"], root, wanted["target"], read_only=wanted["read_only"])
    os.close(open_below(root, plan["workdir"]))
    os.fchdir(root)
    os.close(root)
    kernel.pivot_root()


def _hide(root: int, path: str) -> None:
    """Cover a folder of the host that lies in a shown one; where an image has put a link there, nothing is shown."""
    try:
        place = open_below(root, path)
    except OSError:
        return
    kernel.mount("tmpfs", shown(place), "tmpfs", kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV, "size=4k")
    os.close(place)


def _remove(root: int, workdir: str, path: str) -> None:
    """Remove a path below the workdir that the box must not have; what is not there is no error."""
    import shutil  # here, as few boxes need it

    *folders, name = parts(path)
    place = open_below(root, workdir)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=place)
            os.close(place)
            place = inner
        if _is_there(place, name) == 0o040000:
            held = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
            shutil.rmtree(name, dir_fd=held)
            os.close(held)
        elif _is_there(place, name):
            os.unlink(name, dir_fd=place)
    except (FileNotFoundError, NotADirectoryError):
        return
    finally:
        os.close(place)


def _write(root: int, path: str, text: str) -> None:
    place = open_below(root, os.path.dirname(path))  # noqa: PTH120 - pathlib costs 5 ms at every box start
    wanted = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    held = os.open(os.path.basename(path), wanted, 0o644, dir_fd=place)  # noqa: PTH119
    os.write(held, os.fsencode(text))
    os.close(held)
    os.close(place)
