"""The system calls that a box is made of, which Python 3.11 does not offer."""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

SIGKILL = 9
SIGCHLD = 17
SIGCONT = 18
SIGSTOP = 19

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1

_libc: ctypes.CDLL | None = None


def libc() -> ctypes.CDLL:
    """Return the C library of this process."""
    global _libc  # noqa: PLW0603 - functools.lru_cache would cost its import at every box start
    if _libc is None:
        _libc = ctypes.CDLL(None, use_errno=True)
    return _libc


def checked(result: int, what: str) -> int:
    """Return the result of a call, or raise its error with what was tried."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Leave the namespaces that the flags name for new ones."""
    checked(libc().unshare(flags), "unshare")


def setns(descriptor: int, kind: int = 0) -> None:
    """Enter the namespace behind a descriptor."""
    checked(libc().setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """Mount; an error names the target."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    result = libc().mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    checked(result, f"mount {kind or source} on {target}")


def unmount(target: str) -> None:
    """Detach what is mounted at the target."""
    checked(libc().umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def pivot_root() -> None:
    """Make the current folder the root, leaving nothing of the old one."""
    # The documented pivot_root(".", "."): the old root lies on top of the new one until it is detached.
    checked(libc().syscall(ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), b".", b"."), "pivot_root")
    unmount(".")
    os.chdir("/")


def new_session_keyring() -> None:
    """Leave the keyring shared with the host; harmless where the kernel has none."""
    libc().syscall(ctypes.c_long(_KEYCTL[os.uname().machine]), 1, None)


def prctl(option: int, value: int, third: int | None = None) -> int:
    """Call prctl and return its result unchecked."""
    return int(libc().prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third or 0), 0, 0))


def set_hostname(name: str) -> None:
    """Name this machine within its own UTS namespace."""
    encoded = os.fsencode(name)
    checked(libc().sethostname(encoded, len(encoded)), "sethostname")


def loopback_up() -> None:
    """Switch on the loopback device of a new network namespace."""
    probe = checked(libc().socket(2, 2 | os.O_CLOEXEC, 0), "socket")
    try:
        request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + bytes(24))
        checked(libc().ioctl(probe, ctypes.c_ulong(_SIOCGIFFLAGS), request), "read the loopback device")
        flags = int.from_bytes(request.raw[16:18], "little") | _IFF_UP
        ctypes.memmove(ctypes.addressof(request) + 16, flags.to_bytes(2, "little"), 2)
        checked(libc().ioctl(probe, ctypes.c_ulong(_SIOCSIFFLAGS), request), "switch on the loopback device")
    finally:
        os.close(probe)


def reap_children_silently() -> None:
    """Let the kernel reap the children of this process."""
    ignore = ctypes.c_void_p(1)
    libc().signal.restype = ctypes.c_void_p
    libc().signal(SIGCHLD, ignore)


def close_from(lowest: int, keep: tuple[int, ...] = ()) -> None:
    """Close every descriptor from `lowest` on but those to keep."""
    start = lowest
    for descriptor in sorted(keep):
        if descriptor >= start:
            os.closerange(start, descriptor)
            start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
