"""The keeper of one box: it stays on the host, makes the namespaces, starts and supervises every process of the box.

It is the session of its own that outlives the engine. Engines talk to it through files of the box's folder: a request
file, a line in the FIFO `orders`, and an answer in a FIFO that the request names. What a process writes is copied to a
file of the host up to a bound and thrown away beyond it; how it ended is written atomically before anyone is told.
"""

import marshal
import os
import select
import sys

from harness.sandbox.inside import entry, filesystem, identity, init, kernel, privileges
from harness.sandbox.inside.output import Pump, open_output
from harness.sandbox.inside.wire import Record


def write_whole(path: str, text: str) -> None:
    """Write a file so that it is either whole or not there; after a crash of the host nobody needs it."""
    held = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(held, os.fsencode(text))
    finally:
        os.close(held)
    os.rename(f"{path}.new", path)  # noqa: PTH104 - pathlib costs 5 ms at every box start


def named(pid: str) -> str:
    """Return a process's number and start time, which together name it for good until the next boot."""
    with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - pathlib costs 5 ms at every box start
        fields = stat.read().rpartition(b")")[2].split()
    own = os.readlink(f"/proc/{pid}") if pid == "self" else pid  # noqa: PTH115
    return f"{own} {fields[19].decode()}"


class Supervised:
    """One process and where its output goes."""

    def __init__(self, folder: str, pid: int, pump: Pump, kills: int) -> None:
        self.folder = folder
        self.pid: int | None = pid
        self.pidfd: int | None = os.pidfd_open(pid)
        self.pump = pump
        self.kills = kills


class Keeper:
    """The loop that serves orders, pumps output and collects ends."""

    def __init__(self, plan: Record) -> None:
        self.plan = plan
        self.folder: str = plan["folder"]
        self.supervised: list[Supervised] = []
        self.init = 0
        self.namespaces: list[int] = []
        self.to_init = -1
        self.from_init = -1

    # --- making the box ------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the namespaces and their init; return when the box is ready."""
        kinds = kernel.CLONE_NEWPID
        if self.plan["rootless"]:
            identity.become_root(self.plan["ids"])
        kernel.unshare(kinds)
        ready_read, ready_write = os.pipe()
        orders_read, self.to_init = os.pipe()
        self.from_init, answers_write = os.pipe()
        self.init = os.fork()
        if self.init == 0:
            os.close(self.to_init)
            self._be_init(ready_write, orders_read, answers_write)
        for descriptor in (ready_write, orders_read, answers_write):
            os.close(descriptor)
        message = b""
        while chunk := os.read(ready_read, 4096):
            message += chunk
        os.close(ready_read)
        if message != b"ready":
            raise OSError(message.decode(errors="replace") or "the box's init died")
        names = ["mnt", "ipc", "uts"] + ([] if self.plan["network"] else ["net"])
        self.namespaces = [os.open(f"/proc/{self.init}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]

    def _be_init(self, ready: int, orders: int, answers: int) -> None:
        try:
            silence()
            os.setsid()
            write_whole(f"{self.folder}/init", named("self"))
            kernel.reap_children_silently()
            network = 0 if self.plan["network"] else kernel.CLONE_NEWNET
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | network)
            kernel.set_hostname(self.plan["hostname"])
            if network:
                kernel.loopback_up()
            os.umask(0o022)
            filesystem.build(self.plan)
            if not self.plan["rootless"]:
                privileges.hide_memory()
            os.write(ready, b"ready")
            kernel.close_from(3, (orders, answers, self.plan["lock"]))
            init.serve(orders, answers)
        except BaseException as error:  # noqa: BLE001 - the parent's code must not go on in this process
            os.write(ready, f"{error}".encode())
        os._exit(0)

    # --- serving ---------------------------------------------------------------------------------------------------

    def serve(self, orders: int) -> None:
        """Serve until the box's init is gone and every end is written."""
        init_end = os.pidfd_open(self.init)
        pending = b""
        while True:
            ready = self._ready(orders, init_end)
            for one in self.supervised:
                if one.pump.source in ready:
                    one.pump.once()
                if one.pidfd in ready:
                    self._ended(one)
            self._forget()
            if init_end in ready:
                break
            if orders in ready:
                pending += os.read(orders, 4096)
                *lines, pending = pending.split(b"\n")
                for line in lines:
                    self._order(line.decode())
        for one in self.supervised:
            if one.pid is not None:
                self._ended(one)

    def _ready(self, *always: int) -> set[int]:
        """Wait for something to do; return the descriptors that have it."""
        poll = select.poll()
        for descriptor in always:
            poll.register(descriptor, select.POLLIN)
        for one in self.supervised:
            for known in (one.pidfd, one.pump.source):
                if known is not None:
                    poll.register(known, select.POLLIN)
        found = {descriptor for descriptor, _ in poll.poll(self.plan["watch_ms"])}
        if not found and not os.path.exists(f"{self.folder}/lease.json"):  # noqa: PTH110 - pathlib costs 5 ms
            os._exit(0)  # somebody deleted the folder, and no engine will ever find this box: it ends with its keeper
        return found

    def _forget(self) -> None:
        for one in [one for one in self.supervised if one.pidfd is None and one.pump.source is None]:
            one.pump.close()
            self.supervised.remove(one)

    def _order(self, line: str) -> None:
        """Carry out `verb token argument` and answer in the FIFO `answer-token`."""
        verb, token, argument = (*line.split(" ", 2), "", "")[:3]
        try:
            if verb == "start":
                answer = self._start(argument)
            else:
                os.write(self.to_init, f"{verb} {argument}\n".encode())
                answer = os.read(self.from_init, 4096).decode().strip()
        except OSError as error:
            answer = f"error: {error}"
        try:
            held = os.open(f"{self.folder}/answer-{token}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return  # who asked is gone
        os.write(held, answer.encode() + b"\n")
        os.close(held)

    def _start(self, name: str) -> str:
        folder = f"{self.folder}/processes/{name}"
        if os.path.exists(f"{folder}/started"):  # noqa: PTH110 - pathlib costs 5 ms at every box start
            return "ok"
        with open(f"{folder}/request", "rb") as file:  # noqa: PTH123
            request = marshal.load(file)  # noqa: S302 - written by our own engine, in a folder of this user alone
        groups = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in self.plan["groups"]]
        output = open_output(request["output"])
        source, sink = os.pipe()
        said_read, said_write = os.pipe()
        kills = self._kills()
        pid = os.fork()
        if pid == 0:
            entry.run(request, self.plan, namespaces=self.namespaces, groups=groups, output=sink, said=said_write)
        for descriptor in (sink, said_write, *groups):
            os.close(descriptor)
        pump = Pump(source, output, request["max_output"])
        self.supervised.append(Supervised(folder, pid, pump, kills))
        said = b""
        while chunk := os.read(said_read, 4096):
            said += chunk
        os.close(said_read)
        mark = said.partition(b"\n")[0].decode()
        write_whole(f"{folder}/started", f"{named(str(pid))}\n{mark}\n")
        os.unlink(f"{folder}/request")  # noqa: PTH108
        return "ok"

    def _ended(self, one: Supervised) -> None:
        """Write how a process ended, after the last of its output."""
        assert one.pid is not None
        assert one.pidfd is not None
        _, status = os.waitpid(one.pid, 0)
        os.close(one.pidfd)
        one.pid = one.pidfd = None
        one.pump.drain()
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        oom = int(self._kills() > one.kills)
        write_whole(f"{one.folder}/ended", f"{code} {oom}\n")

    def _kills(self) -> int:
        """Return how many processes of the box the kernel has killed for want of memory."""
        if not self.plan["oom_file"]:
            return 0
        with open(self.plan["oom_file"], "rb") as file:  # noqa: PTH123
            for line in file:
                key, _, value = line.partition(b" ")
                if key == b"oom_kill":
                    return int(value)
        return 0


def silence() -> None:
    """Let go of the pipes to the engine, which waits for their end."""
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def leave_parent() -> None:
    """Go on in a child whose parent is gone, so that the engine has none to wait for."""
    if os.fork():
        os._exit(0)
    os.setsid()


def main() -> None:
    """Read the plan from stdin, make the box, say so on stdout, and keep it."""
    leave_parent()
    plan = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the engine that started this process
    os.umask(0o077)
    write_whole(f"{plan['folder']}/keeper", named("self"))
    keeper = Keeper(plan)
    os.mkfifo(f"{plan['folder']}/orders", 0o600)
    try:
        keeper.make()
        orders = os.open(f"{plan['folder']}/orders", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        os.write(1, f"error: {error}".encode())
        os._exit(1)
    os.write(1, b"ready")
    silence()
    keeper.serve(orders)
    os._exit(0)
