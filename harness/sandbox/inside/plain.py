"""The supervisor of one process without namespaces: it outlives the engine and gathers every orphan of the process.

As the reaper of all its descendants it is the one parent that they cannot leave, so the engine finds all of them below
it. It reads its request from stdin and says on stdout that the process runs.
"""

import marshal
import os
import select
import sys

from harness.sandbox.inside import command
from harness.sandbox.inside.output import Pump, open_output
from harness.sandbox.inside.wire import Record

_PR_SET_CHILD_SUBREAPER = 36


def gather_orphans() -> None:
    """Become the parent of every orphaned descendant, where the system can do that."""
    if sys.platform == "linux":
        import ctypes  # here, as other systems have no such call

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def write_whole(path: str, text: str) -> None:
    """Write a file so that it is either whole or not there."""
    held = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.write(held, os.fsencode(text))
    os.close(held)
    os.rename(f"{path}.new", path)  # noqa: PTH104 - pathlib costs 5 ms at every start


def run(request: Record, sink: int) -> None:
    """Become the command; never return."""
    import resource  # here, as only the child needs it

    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for target, source in enumerate((null, sink, sink)):
            os.dup2(source, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.umask(0o022)
        for kind, value in request["rlimits"].items():
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
        if request["uid"] is not None:
            os.setgroups([])
            os.setresgid(request["uid"], request["uid"], request["uid"])
            os.setresuid(request["uid"], request["uid"], request["uid"])
        os.chdir(request["cwd"])
        command.execute(request["command"], request["env"])
    except BaseException as error:  # noqa: BLE001 - the supervisor's code must not go on in this process
        os.write(2, f"rsi: cannot run {request['command'][0]}: {error}\n".encode())
        os._exit(command.code_of(error))
    os._exit(command.NOT_RUNNABLE)


def reap(pid: int) -> int | None:
    """Reap every child that has ended; return the status of `pid` if it is among them."""
    found = None
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if ended == 0:
            return found
        if ended == pid:
            found = status


def has_children() -> bool:
    """Say whether any descendant is left."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def supervise(folder: str, pid: int, pump: Pump) -> None:
    """Copy output, write how the process ended, and stay as long as any of its descendants lives."""
    ended = False
    known = os.pidfd_open(pid) if sys.platform == "linux" else None
    while not ended or pump.source is not None or has_children():
        poll = select.poll()
        for descriptor in (pump.source, None if ended else known):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        poll.poll(100 if ended or known is not None else 10)
        pump.once()
        status = reap(pid)
        if status is not None:
            pump.drain()
            code = os.waitstatus_to_exitcode(status)
            write_whole(f"{folder}/ended", f"{128 - code if code < 0 else code} 0\n")
            ended = True


def main() -> None:
    """Say on stdout who this is, start the command that is then asked for on stdin, and supervise it."""
    if os.fork():
        os._exit(0)  # so that the engine has no child to wait for
    os.setsid()
    os.write(1, f"{os.getpid()}\n".encode())
    request = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the engine that started this process
    gather_orphans()
    folder = request["folder"]
    output = open_output(request["output"])
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        run(request, sink)
    os.close(sink)
    write_whole(f"{folder}/started", "\n")
    os.write(1, b"ready")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    supervise(folder, pid, Pump(source, output, request["max_output"]))
    os._exit(0)
