"""What a process of a box gives up before it runs a command: capabilities, dangerous calls, resources."""

import ctypes
import os

from harness.sandbox.inside import kernel

# What root in a box keeps: enough to install packages and to become another user, nothing that reaches the host.
KEPT_CAPABILITIES = (
    0,  # CHOWN
    1,  # DAC_OVERRIDE
    3,  # FOWNER
    4,  # FSETID
    5,  # KILL
    6,  # SETGID
    7,  # SETUID
    8,  # SETPCAP
    10,  # NET_BIND_SERVICE
    18,  # SYS_CHROOT
    31,  # SETFCAP
)
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 24, 22, 38, 47
_CAPABILITY_VERSION_3 = 0x20080522


def hide_memory() -> None:
    """Keep other processes from looking into this one until it runs a command."""
    kernel.prctl(_PR_SET_DUMPABLE, 0)


def drop_capabilities() -> None:
    """Keep only `KEPT_CAPABILITIES`, for this process and whatever it runs."""
    kernel.prctl(_PR_CAP_AMBIENT, 4)
    for capability in range(64):
        if capability not in KEPT_CAPABILITIES:
            kernel.prctl(_PR_CAPBSET_DROP, capability)
    bits = sum(1 << capability for capability in KEPT_CAPABILITIES)
    low, high = bits & 0xFFFFFFFF, bits >> 32
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    kernel.checked(kernel.libc().capset(header, data), "capset")
    kernel.checked(kernel.prctl(_PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")


def limit_resources(limits: dict[int, int]) -> None:
    """Set rlimits, soft and hard, never above the hard limit that there is."""
    import resource  # here, as only the child that runs a command needs it

    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


_CREATE_RULESET, _RESTRICT_SELF, _SCOPE_ABSTRACT = 444, 446, 1


def stay_off_the_hosts_abstract_sockets() -> None:
    """Refuse abstract Unix sockets of others, which a shared network shows; does nothing before Linux 6.12.

    Services of the host listen there and trust whoever is root.
    """
    rules = (ctypes.c_uint64 * 3)(0, 0, _SCOPE_ABSTRACT)
    held = kernel.libc().syscall(ctypes.c_long(_CREATE_RULESET), rules, ctypes.c_size_t(24), 0)
    if held < 0:
        return
    kernel.checked(kernel.libc().syscall(ctypes.c_long(_RESTRICT_SELF), held, 0), "landlock")
    os.close(held)


# --- seccomp ---------------------------------------------------------------------------------------------------------

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Calls that serve to leave a box or to attack the kernel, never to train a model: (x86_64, aarch64).
_REFUSED = {
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "setns": (308, 268),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "open_by_handle_at": (304, 265),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "io_uring_setup": (425, 425),
}
_UNSHARE, _CLONE, _CLONE3 = (272, 97), (56, 220), (435, 435)
_SOCKETS = ((41, 198), (53, 199))
"""socket and socketpair."""
_FAMILIES = (1, 2, 10, 16)
"""Unix, IPv4, IPv6 and netlink; others, above all vsock, reach past a network namespace."""
_PRLIMIT = (302, 261)
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NAMESPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | 0x02000000  # cgroup
)


# A judge cages its candidate in namespaces of its own, in which these are needed; without rights in the box they reach
# nothing outside of it.
_NESTING = frozenset({"mount", "umount2", "pivot_root"})


def _program(machine: str, *, nesting: bool) -> list[tuple[int, int, int, int]]:
    """Return the filter as (code, jump if true, jump if false, operand); `nesting` lets namespaces be made."""
    column = 0 if machine == "x86_64" else 1
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _ARCHITECTURES[machine]), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    program.append((_LOAD, 0, 0, 0))
    if machine == "x86_64":  # the x32 calls have other numbers
        program += [(_ABOVE, 0, 1, 0x40000000), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for name, numbers in _REFUSED.items():
        if nesting and name in _NESTING:
            continue
        program += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _ERRNO | _EPERM)]
    # The C library falls back from clone3 to clone, whose flags a filter can read.
    program += [(_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    for call in _SOCKETS:
        # The last jump of each family goes over what is left to the allowed return.
        checks = [(_EQUAL, len(_FAMILIES) - at, 0, family) for at, family in enumerate(_FAMILIES)]
        program += [(_EQUAL, 0, len(checks) + 3, call[column]), (_LOAD, 0, 0, 16), *checks]
        program += [(_RETURN, 0, 0, _ERRNO | _EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    # The box's init has the user of its commands: none of them may take its files or its time away.
    program += [
        (_EQUAL, 0, 4, _PRLIMIT[column]),
        (_LOAD, 0, 0, 16),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    for call in () if nesting else (_UNSHARE, _CLONE):
        program += [
            (_EQUAL, 0, 4, call[column]),
            (_LOAD, 0, 0, 16),
            (_ANY_BIT, 0, 1, _NAMESPACES),
            (_RETURN, 0, 0, _ERRNO | _EPERM),
            (_RETURN, 0, 0, _ALLOW),
        ]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def refuse_dangerous_calls(*, nesting: bool) -> None:
    """Refuse calls that serve to leave a box; does nothing on a machine whose call numbers are not known here.

    `nesting` still allows namespaces within the box's own.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        return
    program = _program(machine, nesting=nesting)
    packed = b"".join(
        code.to_bytes(2, "little") + bytes((true, false)) + operand.to_bytes(4, "little")
        for code, true, false, operand in program
    )
    held = ctypes.create_string_buffer(packed, len(packed))

    class _Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    pointer = _Program(len(program), ctypes.addressof(held))
    kernel.checked(kernel.prctl(_PR_SET_SECCOMP, 2, ctypes.addressof(pointer)), "seccomp")
