"""The judge's side of this task: it scores a candidate that it does not trust. Standard library only, Python >= 3.8.

The evaluator (this process) holds the hidden data and writes the result. Code of the candidate runs in processes of
its own: as another user where there is one to switch to, in its own namespaces where the kernel allows them, with a
scrubbed environment and bounded resources, without sight of the tests and the result. All of them are dead before the
result is written. What the candidate says is data: it arrives through a pipe, in frames of bounded size, and is
checked before it is used.

An evaluator is a function that takes a `Judge` and returns the metric, or raises `Invalid` or `Violation`:

    def evaluate(judge):
        with judge.serve() as candidate:
            answer = candidate.call("answer", 6, 7)
        return abs(answer - 42)
"""

from __future__ import annotations

import array
import builtins
import contextlib
import ctypes
import fcntl
import hashlib
import json
import math
import os
import random
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import sys
import tempfile
import time
import traceback

UID = 65532  # unprivileged, in the range that containers map, and nobody's
FRAME = 16 << 20  # most bytes of one answer of a candidate
VALUES = 1 << 20  # most values in one JSON answer: three bytes of it can take a hundred in memory
ENTRIES = 1_000_000  # most files and folders of a workdir
LOG = 1 << 20  # most bytes kept of what a candidate prints
TOLD = 1024  # most bytes of its own output that a candidate is shown
MESSAGE = 2048  # most bytes of a message to the agent
LOWEST = 1e-9  # probabilities are not taken to be lower, so that one surprise costs a bounded amount
GRACE = 30.0  # seconds in which killed processes must be gone
DESCRIPTORS = 1 << 16  # no descriptor of the evaluator is higher
PROCESSES = 1024  # most processes and threads of a candidate
REWARDS = ("reward.json", "reward.txt", "reward-details.json")
KEPT = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH")
KEPT_PREFIXES = ("CUDA_VISIBLE", "NVIDIA_", "OMP_", "KMP_", "GOMP_", "MKL_NUM", "OPENBLAS_NUM")


class Invalid(Exception):
    """The candidate cannot be scored, by its own fault. The message reaches the agent: put no hidden data into it."""


class Violation(Exception):
    """The candidate crossed a line. The message reaches the agent, the evidence only the operator."""

    def __init__(self, message, evidence=""):
        super().__init__(message)
        self.evidence = evidence


class JudgeError(Exception):
    """The judge cannot do its work here; there is no result, and the candidate is not to blame."""


# --- the kernel ------------------------------------------------------------------------------------------------------

LINUX = sys.platform.startswith("linux")
LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_NS, NEW_PID, NEW_NET, NEW_IPC = 0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE, MS_RELATIME = 16384, 1 << 18, 1 << 21
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP = 1, 4, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47


def _prctl(option, value=0):
    """Return whether it worked; elsewhere than on Linux it does not."""
    return LINUX and LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0


def _unshare(flags):
    if LINUX and LIBC.unshare(flags) == 0:
        return True
    return False


def _mount(source, target, kind, flags, data=None):
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    if LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "mount: " + os.strerror(code), target)


def _mount_points():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        places = [line.split(" ")[4] for line in file]
    return [re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place) for place in places]


def _close(place):
    """Make one mount read-only, where that can be done."""
    with contextlib.suppress(OSError):
        held = os.statvfs(place).f_flag
        kept = held & (MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024 | 2048) | (MS_RELATIME if held & 4096 else 0)
        _mount(None, place, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def _mapped(number, table):
    """Say whether an id exists in this user namespace."""
    try:
        with open(table) as file:
            ranges = [[int(word) for word in line.split()] for line in file]
    except (OSError, ValueError):
        return True
    return any(first <= number < first + count for first, _, count in ranges)


def _give_up_powers():
    """Drop every capability for good; needs no further step where there were none."""
    for capability in range(64):
        _prctl(PR_CAPBSET_DROP, capability)
    if LINUX:
        LIBC.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(4), 0, 0, 0)  # clear all


def _forget_powers():
    if LINUX:
        header = struct.pack("Ii", 0x20080522, 0)
        LIBC.capset(header, b"\0" * 24)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def _become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _wake_loopback():
    """Bring up `lo` in a new network namespace: training may talk to itself."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        request = struct.pack("16sH14s", b"lo", 1, b"")  # IFF_UP
        fcntl.ioctl(end.fileno(), 0x8914, request)  # SIOCSIFFLAGS


def _parents():
    """Return the parent and the real user of every process in sight."""
    found = {}
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open("/proc/%s/stat" % name, "rb") as file:
                    parent = int(file.read().rsplit(b")", 1)[1].split()[1])
                found[int(name)] = (parent, os.stat("/proc/" + name).st_uid)
    return found


def _threads_of(uid):
    count = 0
    for pid, (_, user) in _parents().items():
        if user == uid:
            with contextlib.suppress(OSError):
                count += len(os.listdir("/proc/%d/task" % pid))
    return count


def _below(root):
    """Return all processes that descend from one."""
    parents = _parents()
    found, todo = set(), [root]
    while todo:
        above = todo.pop()
        below = [pid for pid, (parent, _) in parents.items() if parent == above and pid not in found]
        found.update(below)
        todo.extend(below)
    return found


# --- the cage --------------------------------------------------------------------------------------------------------


class Cage:
    """Where code of the candidate runs. Decides once how strong it can be made here, and verifies it at every start."""

    def __init__(self, workdir, hidden, logs, weak, scratch, file_mb):
        self.workdir, self.hidden, self.logs = workdir, hidden, logs
        self.weak = weak
        self.scratch = scratch
        self.file_bytes = int(file_mb) << 20
        self.uid = self._other_user()
        # The bound counts by user: where the user is not the candidate's own, what it runs already comes on top.
        self.others = 0 if self.uid is not None else _threads_of(os.getuid())
        self.way = "none"
        self.report = {}

    def _other_user(self):
        """Return the user to run as, or None where there is no other one."""
        if os.geteuid() != 0:
            return None
        # Beside other judges on one host each needs a user of its own, as it ends by killing all of that user's.
        wanted = ([2_000_000_000 + os.getpid()] if self.weak else []) + [UID]
        for uid in wanted:
            if _mapped(uid, "/proc/self/uid_map") and _mapped(uid, "/proc/self/gid_map"):
                closed = _closed_folder(self.workdir, self.scratch, sys.executable, sys.prefix)
                if closed is None:
                    return uid
                if not self.weak:
                    raise JudgeError("%s is closed to other users: the candidate could not run" % closed)
                return None
        return None

    def settle(self):
        """Find the strongest way that works, and refuse to go on where the tests would be in sight."""
        for way in ("own", "user", "none") if LINUX else ("none",):
            report = self._try(way)
            if report.get("started") and (report["hidden"] or way == "none"):
                break
        if not report.get("started"):
            raise JudgeError("no process of the candidate can be started: %s" % report.get("error"))
        self.way = way
        if not report["hidden"] and not self.weak:
            for folder in self.hidden:
                with contextlib.suppress(OSError):
                    os.chmod(folder, 0o700)
            report = self._try(way)
            if not report.get("hidden"):
                raise JudgeError("the candidate could read the tests or write the result here: %s" % report)
        self.report = {key: report[key] for key in ("uid", "namespaces", "hidden")}

    def _try(self, way):
        pid, report = self._launch(None, way, None, None, {})
        _wait_for(pid)
        return report

    def start(self, command, stdin, output, environment):
        """Start a command as the candidate; return its process id. `output` is a pair for stdout and stderr."""
        sys.stdout.flush()
        sys.stderr.flush()
        pid, report = self._launch(command, self.way, stdin, output, environment)
        if not report.get("started"):
            raise JudgeError("the candidate could not be started: %s" % report.get("error"))
        if not report["hidden"] and not self.weak:
            raise JudgeError("the candidate could see the tests")
        return pid

    def _launch(self, command, way, stdin, output, environment):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 127
            try:
                os.close(read)
                code = self._enter(command, way, stdin, output, environment, write)
            except BaseException as error:
                with contextlib.suppress(OSError):
                    os.write(write, json.dumps({"error": "%s: %s" % (type(error).__name__, error)}).encode())
            finally:
                os._exit(code)
        os.close(write)
        said = _read_all(read, GRACE)
        try:
            return pid, json.loads(said.decode())
        except ValueError:
            return pid, {"error": "no report: %r" % said[:200]}

    # What follows runs in the forked child.

    def _enter(self, command, way, stdin, output, environment, write):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.umask(0o022)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # where memory runs out, the candidate dies and not its judge
        spaces = self._separate(way)
        if spaces:
            inner = os.fork()
            if inner:
                return _stand_by(inner)
            # The first process of the namespace: when it ends, the kernel ends all others.
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            self._hide()
            _wake_loopback()
            inner = os.fork()
            if inner:
                return _stand_by(inner)
            os.setsid()
        self._bound(way)
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user has cleared it
        os.chdir(self.workdir)
        report = {"started": True, "uid": os.getuid(), "namespaces": spaces, "hidden": self._out_of_sight()}
        os.write(write, json.dumps(report).encode())
        if command is None:
            return 0
        for end, place in ((stdin, 0), (output[0], 1), (output[1], 2)):
            os.dup2(end, place)
        os.dup2(write, 3, inheritable=False)  # tells of a failing exec, and closes with a good one
        os.closerange(4, DESCRIPTORS)
        os.execvpe(command[0], command, environment)

    def _separate(self, way):
        spaces = NEW_NS | NEW_PID | NEW_IPC | NEW_NET
        if way == "own":
            if not _unshare(spaces):
                raise OSError("no namespaces for this user")
        elif way == "user":
            if self.uid is not None:
                _become(self.uid)
            uid, gid = os.geteuid(), os.getegid()
            _prctl(PR_SET_DUMPABLE, 1)  # else the maps below belong to root
            if not _unshare(NEW_USER | spaces):
                raise OSError("no user namespaces")
            for table, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                with open("/proc/self/" + table, "w") as file:
                    file.write(text)
            _prctl(PR_SET_DUMPABLE, 0)
        return way != "none"

    def _hide(self):
        _mount(None, "/", None, MS_REC | MS_PRIVATE)
        with contextlib.suppress(OSError):  # refused where /proc is partly covered; processes are out of reach anyway
            _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        _close("/proc")  # it could make itself the last to die where memory runs out
        for folder in self.hidden:
            _mount("tmpfs", folder, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555")
        if self.uid is None:
            self._close_all_else()

    def _close_all_else(self):
        """Let a candidate that is the same user write only where it must, above all not to the interpreter."""
        open_ones = {os.path.realpath(folder) for folder in (self.workdir, self.scratch, "/tmp", "/var/tmp")}
        for folder in open_ones:
            with contextlib.suppress(OSError):
                _mount(folder, folder, None, MS_BIND | MS_REC)
        for place in _mount_points():
            if not any(place == folder or place.startswith(folder + "/") for folder in {*open_ones, "/dev", "/proc"}):
                _close(place)

    def _bound(self, way):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _lower(resource.RLIMIT_NOFILE, 4096)
        _lower(resource.RLIMIT_FSIZE, self.file_bytes)
        if LINUX:
            _lower(resource.RLIMIT_NPROC, PROCESSES + self.others)
        _give_up_powers()
        if self.uid is not None and way != "user":
            _become(self.uid)
        _forget_powers()

    def _out_of_sight(self):
        for folder in self.hidden:
            if os.access(folder, os.W_OK):
                return False
            with contextlib.suppress(OSError):
                if os.listdir(folder):
                    return False
            if os.path.exists(os.path.join(folder, "contract.json")):
                return False
        return not os.access(self.logs, os.W_OK)


def _lower(kind, most):
    _, hard = resource.getrlimit(kind)
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (bound, bound))


def _stand_by(pid):
    """Wait for one child, reaping others, and return how it ended as an exit status."""
    os.closerange(0, DESCRIPTORS)
    while True:
        ended, status = os.wait()
        if ended == pid:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _closed_folder(*paths):
    """Return the first folder above one of the paths that other users cannot pass, or None."""
    for path in paths:
        path = os.path.realpath(path)
        while True:
            parent = os.path.dirname(path)
            if parent == path:
                break
            if not os.stat(parent).st_mode & 0o001:
                return parent
            path = parent
    return None


def _read_all(end, seconds):
    deadline, said = time.monotonic() + seconds, b""
    try:
        while len(said) < 65536 and select.select([end], [], [], max(0.0, deadline - time.monotonic()))[0]:
            more = os.read(end, 65536)
            if not more:
                break
            said += more
    finally:
        os.close(end)
    return said


def _wait_for(pid):
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def kill_all(uid, groups):
    """Kill every process of the candidate; return only when none is left."""
    deadline = time.monotonic() + GRACE
    while True:
        if uid is not None:
            _kill_user(uid)
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, signal.SIGKILL)
        # Orphans come to this process, so that whatever the candidate left is below it.
        for pid in _below(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        alive = _reap()
        if not alive and (uid is None or all(user != uid for _, user in _parents().values())):
            return
        if time.monotonic() > deadline:
            raise JudgeError("processes of the candidate cannot be killed")
        time.sleep(0.005)


def _reap():
    """Collect what has ended; say whether there are children left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _kill_user(uid):
    """Kill all processes of a user at once: the kernel lets none of them fork meanwhile."""
    try:
        pid = os.fork()
    except OSError:  # the candidate has taken every process there is; those found one by one make room
        return
    if pid == 0:
        try:
            # With another real user, as the candidate could kill a process of its own user first.
            os.setgroups([])
            os.setresuid(uid - 1, uid, 0)
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
        finally:
            os._exit(0)
    _wait_for(pid)


# --- what the candidate runs -----------------------------------------------------------------------------------------

WORKER = r'''
import array, json, os, struct, sys, traceback

ask, tell = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
empty = os.open(os.devnull, os.O_RDONLY)
os.dup2(empty, 0)
os.dup2(2, 1)  # what the candidate prints is no answer
sys.path.insert(0, os.getcwd())


def unpacked(value):
    for step in ("detach", "cpu", "tolist"):  # arrays and tensors of any library
        if hasattr(value, step):
            value = getattr(value, step)()
    return value


def plain(value):
    value = unpacked(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def rows(value, width):
    flat = array.array("d")
    for row in unpacked(value):
        row = unpacked(row)
        if len(row) != width:
            raise ValueError("a row has %d numbers, expected %d" % (len(row), width))
        flat.extend(row)
    return flat.tobytes()


def answer(kind, payload):
    tell.write(struct.pack(">IB", len(payload) + 1, kind) + payload)
    tell.flush()


def handle(model, request):
    if "load" in request:
        module = __import__(request["load"])
        model = module.load()
        return model, 74, b"null"
    value = getattr(model, request["name"])
    if "args" in request:
        value = value(*request["args"])
    if "width" in request:
        return model, 68, rows(value, request["width"])
    return model, 74, json.dumps(plain(value), allow_nan=False).encode()


model = None
while True:
    head = ask.read(4)
    if len(head) < 4:
        os._exit(0)
    request = json.loads(ask.read(struct.unpack(">I", head)[0]).decode())
    try:
        model, kind, payload = handle(model, request)
    except Exception as error:
        traceback.print_exc()
        kind, payload = 69, type(error).__name__.encode()
    sys.stdout.flush()
    sys.stderr.flush()
    answer(kind, payload)
'''

OWN_ERRORS = frozenset(name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, Exception))


class Log:
    """The first part and the end of what a candidate prints, for the operator."""

    def __init__(self):
        self.first, self.last, self.count = bytearray(), bytearray(), 0

    def add(self, data):
        self.count += len(data)
        self.first += data[: max(0, LOG // 2 - len(self.first))]
        self.last = (self.last + data)[-LOG // 2 :]

    def bytes(self):
        left_out = self.count - len(self.first) - len(self.last)
        if left_out <= 0:
            return bytes(self.first + self.last[len(self.last) - (self.count - len(self.first)) :])
        return bytes(self.first) + b"\n[... %d bytes left out ...]\n" % left_out + bytes(self.last)

    def tail(self):
        return bytes(self.last[-TOLD:]).decode("utf-8", "replace").strip()


class Candidate:
    """The candidate's adapter in a process of its own. Everything it says is bounded and checked."""

    def __init__(self, cage, environment, seconds, log, tell):
        self.seconds = seconds
        self.deadline = time.monotonic() + seconds
        self.log, self.tell = log, tell
        self.inbox, self.outbox = bytearray(), bytearray()
        stdin, self.ask = os.pipe()
        self.answers, stdout = os.pipe()
        self.talk, stderr = os.pipe()
        self.open = {self.answers, self.talk}
        for end in (self.ask, self.answers, self.talk):
            os.set_blocking(end, False)
        # -P and -I would hide the workdir from the candidate; it is its own interpreter to spoil.
        command = [sys.executable, "-B", "-u", "-c", WORKER]
        try:
            self.pid = cage.start(command, stdin, (stdout, stderr), environment)
        finally:
            for end in (stdin, stdout, stderr):
                os.close(end)

    def load(self, adapter):
        """Let the candidate load its adapter."""
        self._exchange({"load": adapter}, FRAME, "load() of %s.py" % adapter, show=self.tell)

    def get(self, name):
        """Return an attribute of the adapter as JSON value."""
        return self._value({"name": _public(name)}, "attribute %s" % name)

    def call(self, name, *args):
        """Call a method of the adapter with JSON values and return its answer as JSON value (no NaN, no infinity)."""
        return self._value({"name": _public(name), "args": list(args)}, "%s()" % name)

    def rows(self, name, width, count, *args):
        """Call a method that answers with `count` rows of `width` finite numbers each; return them as arrays."""
        what = "%s()" % name
        request = {"name": _public(name), "args": list(args), "width": width}
        kind, payload = self._exchange(request, 8 * width * count + 1, what)
        if kind != b"D" or len(payload) != 8 * width * count:
            raise Invalid("%s must return one row of %d numbers for each of the %d it is given" % (what, width, count))
        numbers = array.array("d")
        numbers.frombytes(payload)
        if not all(map(math.isfinite, numbers)):
            raise Invalid("%s returned a number that is not finite" % what)
        return [numbers[start : start + width] for start in range(0, width * count, width)]

    def _value(self, request, what):
        kind, payload = self._exchange(request, FRAME, what)
        try:
            if kind != b"J" or sum(map(payload.count, (b",", b"[", b"{"))) > VALUES:
                raise ValueError("no JSON that can be read")
            return json.loads(payload.decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise Invalid("%s returned something that is no plain JSON value" % what) from None

    def _exchange(self, request, most, what, show=False):
        if self.inbox:
            raise Invalid("the candidate answers before it is asked")
        payload = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.outbox += struct.pack(">I", len(payload)) + payload
        while True:
            if len(self.inbox) >= 4:
                (size,) = struct.unpack(">I", self.inbox[:4])
                if not 1 <= size <= max(most, 1024):
                    raise Invalid("%s returned an answer of the wrong size" % what)
                if len(self.inbox) >= 4 + size:
                    break
            self._step(what, show)
        kind, payload = bytes(self.inbox[4:5]), bytes(self.inbox[5 : 4 + size])
        del self.inbox[: 4 + size]
        if kind == b"E":
            self._drain()
            # Any other name could be made up to carry hidden data.
            name = payload.decode("ascii", "replace")
            name = name if name in OWN_ERRORS else "an error of its own"
            raise Invalid(self._with_tail("%s raised %s" % (what, name), show))
        return kind, payload

    def _step(self, what, show):
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Invalid("prediction did not end within its %g seconds" % self.seconds)
        writing = [self.ask] if self.outbox else []
        ready, writable, _ = select.select(list(self.open), writing, [], min(left, 1.0))
        if writable:
            try:
                sent = os.write(self.ask, self.outbox[:65536])
                del self.outbox[:sent]
            except BlockingIOError:
                pass
            except OSError:
                raise Invalid(self._with_tail("the candidate ended in %s" % what, show)) from None
        for end in ready:
            data = os.read(end, 1 << 20)
            if end == self.talk:
                self.log.add(data)
            else:
                self.inbox += data
            if not data:
                self.open.discard(end)
                if end == self.answers:
                    self._drain()
                    raise Invalid(self._with_tail("the candidate ended in %s" % what, show))

    def _drain(self):
        for _ in range(64):
            if self.talk not in self.open or not select.select([self.talk], [], [], 0)[0]:
                return
            data = os.read(self.talk, 1 << 16)
            if not data:
                return
            self.log.add(data)

    def _with_tail(self, text, show):
        tail = self.log.tail() if show else ""
        return "%s; the end of what it printed:\n%s" % (text, tail) if tail else text

    def close(self):
        for end in (self.ask, self.answers, self.talk):
            os.close(end)


def _public(name):
    if not re.match(r"[A-Za-z][A-Za-z0-9_]*\Z", name):
        raise JudgeError("%r is no name that an adapter offers" % name)
    return name


def _no_constant(name):
    raise ValueError(name)


# --- the judge -------------------------------------------------------------------------------------------------------


class Judge:
    """One judging of one candidate."""

    def __init__(self, here):
        self.tests = os.path.realpath(here)
        self.data = os.path.join(self.tests, "data")
        with open(os.path.join(self.tests, "contract.json"), encoding="utf-8") as file:
            self.contract = json.load(file)
        self.level = os.environ.get("RSI_LEVEL", "container")
        self.weak = self.level in {"process", "fake"}
        self.logs = os.path.realpath(os.environ.get("RSI_LOGS") or "/logs/verifier")
        self.workdir = os.path.realpath(os.environ.get("RSI_WORKDIR") or self.contract["workdir"])
        self.seed = int(os.environ.get("RSI_SEED") or 0)
        # The training seed is the candidate's to see; the judge's own choices must not follow from it.
        self.train_seed = _derive(self.seed, b"train") >> 33
        self.random = random.Random(_derive(self.seed, b"judge", self._secret()))
        self.extras = {}
        self.groups = []
        self.served = 0
        self.serving = False
        self.cage = None
        self.scratch = None
        self.frozen = {}

    def _secret(self):
        whole = hashlib.sha256()
        for folder, names, files in os.walk(self.tests):
            names.sort()
            for name in sorted(files):
                with open(os.path.join(folder, name), "rb") as file:
                    for part in iter(lambda: file.read(1 << 20), b""):
                        whole.update(part)
        return whole.digest()

    def open(self):
        """Make ready: a private result folder, a workdir for the candidate, the cage, and what must not change."""
        _prctl(PR_SET_DUMPABLE, 0)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        os.makedirs(self.logs, exist_ok=True)
        if os.geteuid() == 0:
            os.chmod(self.logs, 0o700)
        for name in os.listdir(self.logs):  # of an earlier judging; the folder is closed from here on
            if name in REWARDS or re.match(r"candidate-[a-z0-9-]+\.log\Z", name):
                os.unlink(os.path.join(self.logs, name))
        self.scratch = os.path.realpath(tempfile.mkdtemp(prefix="rsi-"))
        os.chmod(self.scratch, 0o755)
        hidden = [self.tests, self.logs]
        self.cage = Cage(self.workdir, hidden, self.logs, self.weak, self.scratch, self.contract["file_mb"])
        for name in ("home", "tmp"):
            folder = os.path.join(self.scratch, name)
            os.mkdir(folder, 0o700)
            if self.cage.uid is not None:
                os.chown(folder, self.cage.uid, self.cage.uid)
        if self.cage.uid is not None:
            _lend(self.workdir)
        self.cage.settle()
        self.frozen = self._fingerprints()

    def extra(self, name, value):
        """Report a further number beside the metric; it is for the operator."""
        if not re.match(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z", name) or name in {"reward", "invalid", "violation"}:
            raise JudgeError("%r cannot name a number" % name)
        self.extras[name] = _number(value, name)

    def require(self, globs):
        """Raise `Invalid` where no file of the workdir matches one of the globs."""
        paths = list(_files(self.workdir))
        for glob in globs:
            pattern = _pattern(glob)
            if not any(pattern.match(path) for path in paths):
                raise Invalid("%s is missing" % glob)

    def prepare(self):
        """Make the candidate ready to be asked: train it, or see that its artefact is there."""
        if self.contract["mode"] == "retrain":
            self.train()
        else:
            self.require(self.contract["outputs"])

    def train(self, command=None, seconds=None):
        """Run the training command as the candidate, from the delivered files and the judge's seed."""
        command = command or self.contract["command"]
        seconds = seconds or self.contract["train_sec"]
        self._remove_outputs()
        log = Log()
        try:
            code = self._run(["/bin/sh", "-c", command], seconds, log)
        finally:
            self.stop()
            self._keep_log("train", log)
        if code is None:
            raise Invalid(_shown("training did not end within its %g seconds" % seconds, log))
        if code != 0:
            ended = "was killed by signal %d" % (code - 128) if code > 128 else "ended with status %d" % code
            raise Invalid(_shown("training %s" % ended, log))
        self._check_frozen()
        try:
            self.require(self.contract["outputs"])
        except Invalid as missing:
            raise Invalid(_shown("training ended well, but %s" % missing, log)) from None

    def _run(self, command, seconds, log):
        """Return the exit status of a command of the candidate, or None where it took too long."""
        deadline = time.monotonic() + seconds
        empty = os.open(os.devnull, os.O_RDONLY)
        read, write = os.pipe()
        os.set_blocking(read, False)
        try:
            pid = self.cage.start(command, empty, (write, write), self._environment())
            self.groups.append(pid)
            os.close(write)
            write = None
            pause, speaking = 0.002, True
            while True:
                if speaking and select.select([read], [], [], pause)[0]:
                    data = os.read(read, 1 << 20)
                    log.add(data)
                    speaking = bool(data)
                elif not speaking:
                    time.sleep(pause)
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    self._last_words(read, log)
                    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
                if time.monotonic() > deadline:
                    return None
                pause = min(0.05, pause * 1.5)
        finally:
            for end in (empty, read, write):
                if end is not None:
                    os.close(end)

    @staticmethod
    def _last_words(read, log):
        for _ in range(64):  # something left behind may print for ever
            if not select.select([read], [], [], 0)[0]:
                return
            data = os.read(read, 1 << 16)
            if not data:
                return
            log.add(data)

    @contextlib.contextmanager
    def serve(self, adapter="rsi_adapter", seconds=None):
        """Load the candidate's adapter in a process of its own, for as long as the block lasts."""
        if self.serving:
            raise JudgeError("one candidate is served at a time")
        self.served, self.serving = self.served + 1, True
        log = Log()
        # Only the first one can know nothing of the hidden data, so only its own words may be shown.
        seconds = seconds or self.contract["predict_sec"]
        candidate = Candidate(self.cage, self._environment(), seconds, log, tell=self.served == 1)
        self.groups.append(candidate.pid)
        try:
            candidate.load(_public(adapter))
            yield candidate
        finally:
            candidate._drain()
            candidate.close()
            self.stop()
            self.serving = False
            self._keep_log("predict-%d" % self.served, log)

    def examples(self):
        """Return the hidden examples, in the order in which they lie in the data file."""
        with open(os.path.join(self.data, "examples.jsonl"), encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
        if not found:
            raise JudgeError("there are no hidden examples")
        return found

    def stop(self):
        """Kill all that is left of the candidate."""
        if self.cage is not None:
            kill_all(self.cage.uid, self.groups)
            self.groups = []

    def close(self):
        """Leave nothing behind."""
        try:
            self.stop()
        finally:
            if self.scratch is not None:
                shutil.rmtree(self.scratch, ignore_errors=True)

    def _environment(self):
        kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith(KEPT_PREFIXES)}
        kept.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        return {
            **kept,
            "HOME": os.path.join(self.scratch, "home"),
            "TMPDIR": os.path.join(self.scratch, "tmp"),
            "USER": "candidate",
            "LOGNAME": "candidate",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "RSI_SEED": str(self.train_seed),
            "RSI_WORKDIR": self.workdir,
        }

    def _remove_outputs(self):
        """Remove what training shall make: a delivered copy of it must not count."""
        patterns = [_pattern(glob) for glob in self.contract["outputs"]]
        for path in list(_files(self.workdir)):
            if any(pattern.match(path) for pattern in patterns):
                os.unlink(os.path.join(self.workdir, path))

    def _fingerprints(self):
        patterns = [_pattern(glob) for glob in self.contract["frozen"]]
        found = {}
        for path in _files(self.workdir):
            if any(pattern.match(path) for pattern in patterns):
                found[path] = _fingerprint(os.path.join(self.workdir, path))
        return found

    def _check_frozen(self):
        for path, before in self.frozen.items():
            if _fingerprint(os.path.join(self.workdir, path)) != before:
                raise Violation("training changed %s, which is frozen" % _clean(path, 200), "content differs: %s" % path)

    def _keep_log(self, name, log):
        if log.count:
            _write(self.logs, "candidate-%s.log" % name, log.bytes())

    def conclude(self, evaluate):
        """Return the numbers and the texts of the result."""
        try:
            self.open()
            numbers, texts = self._measured(evaluate)
            self.stop()
            self._find_forgery()
        except Violation as crossed:
            return {"reward": 0, "violation": 1}, {"message": str(crossed), "evidence": crossed.evidence}
        return numbers, texts

    def _measured(self, evaluate):
        metric = self.contract["metric"]
        try:
            self.prepare()
            value = _number(evaluate(self), metric["name"])
            if not math.isfinite(value) or not metric["lowest"] <= value <= metric["highest"]:
                raise Invalid("the %s came out as a value outside its domain" % metric["name"])
        except Invalid as fault:
            return {"reward": 0, "invalid": 1}, {"message": str(fault)}
        reward = value if metric["direction"] == "maximize" else -value
        return {**self.extras, metric["name"]: value, "reward": reward}, {"message": ""}

    def _find_forgery(self):
        for name in REWARDS:
            if os.path.lexists(os.path.join(self.logs, name)):
                raise Violation("something wrote a result beside the judge", "%s was there before the judge wrote it" % name)

    def publish(self, numbers, texts):
        """Write the texts and then, once, the numbers."""
        for name in REWARDS:
            path = os.path.join(self.logs, name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            elif os.path.lexists(path):
                os.unlink(path)
        details = {key: _clean(text, MESSAGE if key == "message" else 8 * MESSAGE) for key, text in texts.items()}
        details["isolation"] = {"level": self.level, **(self.cage.report if self.cage else {})}
        _write(self.logs, "reward-details.json", json.dumps(details, ensure_ascii=False, indent=1).encode("utf-8"))
        _write(self.logs, "reward.json", json.dumps(numbers, allow_nan=False).encode("utf-8"))


def _derive(seed, *words):
    whole = hashlib.sha256(b"%d" % seed)
    for word in words:
        whole.update(b"\0" + word)
    return int.from_bytes(whole.digest()[:8], "big")


def _number(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise JudgeError("%s is %s, not a number" % (name, type(value).__name__))
    return float(value)


def _lend(workdir):
    """Let another user make files in the workdir, but neither change nor remove those that are there."""
    for folder, _, files, here in os.fwalk(workdir):
        held = os.stat(here)
        if held.st_uid != 0:
            with contextlib.suppress(OSError):
                os.chown(here, 0, 0)
        os.chmod(here, 0o1777)
        for name in files:
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            if not stat.S_ISREG(found.st_mode):
                continue
            if found.st_uid != 0:
                with contextlib.suppress(OSError):
                    os.chown(name, 0, 0, dir_fd=here, follow_symlinks=False)
            mode = stat.S_IMODE(found.st_mode) & 0o755 | 0o444 | (0o111 if found.st_mode & 0o100 else 0)
            if mode != stat.S_IMODE(found.st_mode):  # a change of mode copies the file where the image is layered
                os.chmod(name, mode, dir_fd=here)


def _files(root):
    """Yield the regular files below a folder as relative paths; links are not followed.

    The candidate may have made it too large, too deep or unreadable, which is its own fault and not the judge's.
    """
    todo, left = [""], ENTRIES
    while todo:
        below = todo.pop()
        try:
            with os.scandir(os.path.join(root, below)) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise Invalid("the workdir holds more than %d files and folders" % ENTRIES)
                    path = os.path.join(below, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        yield path
        except OSError as error:
            raise Invalid("a folder of the workdir cannot be read: %s" % error.strerror) from None


def _fingerprint(path):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    whole = hashlib.sha256()
    with os.fdopen(fd, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            whole.update(part)
    return whole.hexdigest()


def _pattern(glob):
    """Return the regular expression of a glob: `*` within one part of a path, `**` over any number of parts."""
    parts = glob.split("/")
    out, kept = "", 0
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            out += "[^/]+(?:/[^/]+)*" if last else "(?:[^/]+/)*"
            continue
        first, *others = [re.escape(piece) for piece in re.split(r"\*+", part)]
        out += first
        for piece in others[:-1]:  # kept where it is first found, or a name of the candidate could take us minutes
            kept += 1
            out += r"(?=([^/]*?%s))\%d" % (piece, kept)
        out += ("[^/]*" + others[-1] if others else "") + ("" if last else "/")
    return re.compile(out + r"\Z", re.DOTALL)


def _shown(text, log):
    tail = log.tail()
    return "%s; the end of what it printed:\n%s" % (text, tail) if tail else text


def _clean(text, most):
    """Return text without control characters, cut to a number of bytes."""
    text = "".join(sign if sign in "\n\t" or sign.isprintable() else "\ufffd" for sign in str(text))
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def _write(folder, name, content):
    """Write a file so that it is there whole or not at all."""
    fresh = os.path.join(folder, "." + name + ".new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(fresh)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(fresh, os.path.join(folder, name))
    held = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)


def main(evaluate, here):
    """Judge the candidate and write the result; exit with 1, and no result, where the judge itself failed."""
    while os.open(os.devnull, os.O_RDWR) <= 2:  # no pipe may take the place of a closed standard stream
        pass
    code, judge = 1, None
    try:
        judge = Judge(here)
        numbers, texts = judge.conclude(evaluate)
        judge.stop()
        judge.publish(numbers, texts)
        code = 0
    except (Exception, SystemExit):
        traceback.print_exc()
    finally:
        if judge is not None:
            judge.close()
    sys.exit(code)


# --- measures --------------------------------------------------------------------------------------------------------


def next_token(judge):
    """Return the mean cost of a character, in nats or bits, of candidates that name distributions.

    All examples are asked for position t, in random order, before any position t+1 is shown, and one process answers
    for all of them: whatever the candidate has seen when it names a distribution comes before what is predicted.
    """
    window, split = judge.contract["window"], judge.contract["split"]
    if split == "lines":
        pairs = [("", (text + "\n")[:window]) for text in judge.examples()]
    else:
        pairs = [(text[:1], text[1 : window + 1]) for text in judge.examples()]
    with judge.serve() as candidate:
        places = _vocabulary(candidate)
        costs = []
        for step in range(window):
            asked = {}
            for first, rest in pairs:
                if step < len(rest):
                    asked.setdefault(first + rest[:step], []).append(rest[step])
            prefixes = sorted(asked)
            judge.random.shuffle(prefixes)
            for chunk in _chunks(prefixes, max(1, min(512, FRAME // (8 * len(places))))):
                for prefix, row in zip(chunk, candidate.rows("logits", len(places), len(chunk), chunk)):
                    costs.extend(_costs(row, places, asked[prefix]))
    judge.extra("characters", len(costs))
    mean = math.fsum(costs) / len(costs)
    return mean / math.log(2) if judge.contract["measure"] == "bits" else mean


def _vocabulary(candidate):
    signs = candidate.get("vocabulary")
    if not isinstance(signs, list) or not 1 <= len(signs) <= 200_000:
        raise Invalid("vocabulary must be a list of characters")
    if not all(isinstance(sign, str) and len(sign) == 1 for sign in signs):
        raise Invalid("vocabulary must hold single characters only")
    if len(set(signs)) != len(signs):
        raise Invalid("vocabulary holds a character twice")
    return {sign: place for place, sign in enumerate(signs)}


def _costs(logits, places, targets):
    """Return -ln p of each target, from logits normalised here."""
    most = max(logits)
    total = most + math.log(sum(map(math.exp, (logit - most for logit in logits))))
    bound = -math.log(LOWEST)
    return [min(total - logits[places[sign]], bound) if sign in places else bound for sign in targets]


def predictions(judge):
    """Return the measure over the hidden rows, whose labels never leave this process."""
    examples = judge.examples()
    judge.random.shuffle(examples)
    measure = judge.contract["measure"]
    method = "predict_proba" if measure == "log-loss" else "predict"
    check = _distribution if measure == "log-loss" else _real if measure in REAL else _label
    answers = []
    with judge.serve() as candidate:
        for chunk in _chunks([example["row"] for example in examples], 1000):
            found = candidate.call(method, chunk)
            if not isinstance(found, list) or len(found) != len(chunk):
                raise Invalid("%s() must return a list with one answer for each row it is given" % method)
            answers.extend(check(answer, method) for answer in found)
    judge.extra("rows", len(answers))
    labels = [example["label"] for example in examples]
    if measure in REAL:
        labels = [float(label) for label in labels]
    return MEASURES[measure](labels, answers)


def _chunks(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


def _label(answer, method):
    if isinstance(answer, bool) or not isinstance(answer, (str, int, float)):
        raise Invalid("%s() must return labels as text" % method)
    return str(answer)


def _real(answer, method):
    if isinstance(answer, bool) or not isinstance(answer, (int, float)):
        raise Invalid("%s() must return numbers" % method)
    try:
        number = float(answer)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Invalid("%s() returned a number that is not finite" % method)
    return number


def _distribution(answer, method):
    if not isinstance(answer, dict) or not answer:
        raise Invalid("%s() must return a mapping from labels to probabilities for each row" % method)
    weights = {label: _real(weight, method) for label, weight in answer.items()}
    total = _sum(weights.values())
    if min(weights.values()) < 0 or not 0 < total < math.inf:
        raise Invalid("%s() returned weights that are no probabilities" % method)
    return {label: weight / total for label, weight in weights.items()}


def _sum(values):
    """Return a sum to the last digit, infinity where it is too large: answers of a candidate are not to fail a judge."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _accuracy(labels, answers):
    return sum(label == answer for label, answer in zip(labels, answers)) / len(labels)


def _macro_f1(labels, answers):
    """Return the mean F1 over the classes that the hidden labels hold."""
    scores = []
    for one in sorted(set(labels)):
        hit = sum(label == one == answer for label, answer in zip(labels, answers))
        named, there = answers.count(one), labels.count(one)
        scores.append(2 * hit / (named + there))
    return math.fsum(scores) / len(scores)


def _mse(labels, answers):
    return _sum((label - answer) * (label - answer) for label, answer in zip(labels, answers)) / len(labels)


def _r2(labels, answers):
    middle = math.fsum(labels) / len(labels)
    spread = math.fsum((label - middle) ** 2 for label in labels)
    if spread == 0:
        raise JudgeError("r2 is undefined: all hidden labels are equal")
    return 1 - _mse(labels, answers) * len(labels) / spread


def _log_loss(labels, answers):
    costs = (-math.log(max(LOWEST, answer.get(label, 0.0))) for label, answer in zip(labels, answers))
    return math.fsum(costs) / len(labels)


REAL = frozenset({"mse", "rmse", "mae", "r2"})
MEASURES = {
    "accuracy": _accuracy,
    "error-rate": lambda labels, answers: 1 - _accuracy(labels, answers),
    "macro-f1": _macro_f1,
    "mse": _mse,
    "rmse": lambda labels, answers: math.sqrt(_mse(labels, answers)),
    "mae": lambda labels, answers: _sum(abs(a - b) for a, b in zip(labels, answers)) / len(labels),
    "r2": _r2,
    "log-loss": _log_loss,
}
