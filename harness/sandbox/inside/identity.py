"""Becomes root of a user namespace: of this user alone, or with the range of ids that the system lends."""

import os

from harness.sandbox.inside import kernel
from harness.sandbox.inside.wire import Record

OVERFLOW = 65534
"""The id as which the kernel shows every owner that a user namespace does not know."""


def become_root(ids: Record | None) -> None:
    """Enter a new user namespace as its root; `ids` are the arguments of newuidmap and newgidmap."""
    uid, gid = os.getuid(), os.getgid()
    if ids is None:
        kernel.unshare(kernel.CLONE_NEWUSER)
        for name, text in (("uid_map", f"0 {uid} 1"), ("setgroups", "deny"), ("gid_map", f"0 {gid} 1")):
            held = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(held, text.encode())
            os.close(held)
    else:
        _map_range(ids)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def _map_range(ids: Record) -> None:
    """Let the system's set-uid tools map the range; they must act from outside the new namespace."""
    go_read, go_write = os.pipe()
    target = str(os.getpid())
    helper = os.fork()
    if helper == 0:
        os.close(go_write)
        os.read(go_read, 1)
        code = 0
        for kind in ("uid_map", "gid_map"):
            command = [ids[f"{kind}_tool"], target, *ids[kind]]
            code = code or os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(command[0], command, {}), 0)[1])
        os._exit(code and 1)
    os.close(go_read)
    kernel.unshare(kernel.CLONE_NEWUSER)
    os.write(go_write, b"1")
    os.close(go_write)
    if os.waitpid(helper, 0)[1]:
        raise OSError(1, "newuidmap or newgidmap refused the range of ids in /etc/subuid and /etc/subgid")
