"""Boxes of namespaces are really apart: what code that runs as root of a box can neither see, nor reach, nor undo."""

import os
import socket
import time
from pathlib import Path

import pytest

from harness.sandbox import cgroups
from harness.sandbox.base import Exit, Limits, Mount, Network, Reach, Role

ROOTLESS = os.geteuid() != 0
BOUNDED = {"memory", "pids"} <= set(cgroups.plan("probe").folders)


def test_homes_data_and_the_hosts_folders_are_not_there(apart):
    box = apart.box()
    done, text = apart.run(
        box, f"ls -A /home /mnt /media /srv /tmp; ls -d {Path.home()}/.ssh {apart.folder} 2>&1; ls /run"
    )
    assert done.code == 0
    listed = [line for line in text.splitlines() if line and not line.endswith(":") and "No such file" not in line]
    assert listed == []


def test_our_own_code_and_a_task_in_a_shown_folder_are_hidden(apart, monkeypatch):
    monkeypatch.setattr("harness.sandbox.launch.hostroot.hidden", lambda *_: ["/usr/share", "/usr/no-such-folder"])
    done, text = apart.run(apart.box(), "ls -A /usr/share; touch /usr/share/x && echo written")
    assert done.code != 0
    assert "written" not in text


@pytest.mark.skipif(ROOTLESS, reason="needs root: an ordinary user cannot read these anyway")
def test_what_only_some_users_may_read_in_etc_is_not_there(apart):
    done, text = apart.run(
        apart.box(), "ls /etc/shadow /etc/gshadow /etc/sudoers 2>&1; find /etc -xdev ! -perm -004 ! -type l"
    )
    assert done.code == 0, text
    assert all("No such file" in line for line in text.splitlines()), text


def test_there_is_no_network_but_the_boxes_own_loopback(apart):
    script = (
        "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); print(sorted(n for _,n in socket.if_nameindex()))"
    )
    done, text = apart.run(apart.box(), f'python3 -c "{script}"')
    assert done == Exit(0), text
    assert text == "['lo']\n"


def test_a_box_with_network_sees_the_hosts_devices(apart):
    done, text = apart.run(
        apart.box(network=Network(Reach.PUBLIC)), "cat /proc/net/dev; cat /etc/resolv.conf >/dev/null"
    )
    assert done.code == 0
    assert len(text.splitlines()) == len(Path("/proc/net/dev").read_text().splitlines())


def test_capabilities_are_dropped_and_nothing_gains_by_running_a_program(apart):
    done, text = apart.run(
        apart.box(), "grep -E '^(CapEff|CapPrm|CapBnd|CapInh|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status"
    )
    assert done.code == 0
    found = dict(line.split(":\t") for line in text.splitlines())
    kept = sum(1 << capability for capability in (0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 31))
    for name in ("CapEff", "CapPrm", "CapBnd"):
        assert int(found[name], 16) & ~kept == 0
    assert int(found["CapInh"], 16) == int(found["CapAmb"], 16) == 0
    assert found["NoNewPrivs"] == "1"
    assert found["Seccomp"] == "2"


@pytest.mark.parametrize(
    "attempt",
    [
        "mount -o remount,rw /run/tests",
        "umount /run/tests",
        "umount -l /proc/sys",
        "mount -t tmpfs none /tmp",
        "mount --bind /tmp /run/tests",
        "echo x > /run/tests/file",
        "rm /run/tests/file",
        "echo host > /proc/sys/kernel/hostname",
        "echo 1 > /proc/sys/kernel/panic",
        "echo b > /proc/sysrq-trigger",
        "mount -o remount,rw /proc/sys",
        "unshare -m true",
        "unshare -Urm mount -o remount,rw /run/tests",
        "nsenter -t 1 -m true",
        "mknod /tmp/disk b 254 0",
        "mkdir /tmp/c && mount -t cgroup none /tmp/c",
        "hostname changed",
        "date -s 2001-01-01",
        "kill -0 2 && readlink /proc/1/fd/3",
        "cat /proc/1/environ",
        "ls /proc/1/root/",
        "cat /proc/kcore | head -c 1 | grep -q .",
        "echo 1 > /sys/devices/system/cpu/cpu0/online",
    ],
)
def test_root_of_a_box_cannot(apart, attempt):
    tests = apart.folder / "tests"
    tests.mkdir()
    (tests / "file").write_text("kept")
    box = apart.box(role=Role.JUDGE, mounts=(Mount(tests, "/run/tests"),))
    done, text = apart.run(box, f"({attempt}) && echo it worked")
    assert "it worked" not in text
    assert done.code != 0
    assert (tests / "file").read_text() == "kept"


def test_only_a_judge_may_make_namespaces_and_gains_nothing_by_them(apart):
    tests = apart.folder / "tests"
    tests.mkdir()
    image = apart.image()
    judge = apart.box("judge", image=image, role=Role.JUDGE, mounts=(Mount(tests, "/run/tests"),))
    work = apart.box("work", image=image)
    assert apart.run(work, "unshare -Ur true", "work")[0].code != 0
    for number, attempt in enumerate(("umount /run/tests", "mount -o remount,rw,bind /run/tests", "umount /proc/sys")):
        done, text = apart.run(judge, f"unshare -Urmpf {attempt} && echo it worked", f"judge{number}")
        assert done.code != 0
        assert "it worked" not in text


def test_kill_reaches_what_hid_in_namespaces_of_its_own(apart):
    box = apart.box(role=Role.JUDGE)
    process = apart.begin(box, "setsid unshare -Ur unshare -u sleep 1000 & sleep 0.3; echo > ready; sleep 1000")
    held = box.workdir_fd()
    while not Path(f"/proc/self/fd/{held}/ready").exists():
        pass
    os.close(held)
    assert len(_ticks(box)) == 4
    process.kill()
    assert process.wait(5).code == 137
    assert len(_ticks(box)) == 1


def test_kill_minus_one_does_not_reach_the_box_itself(apart):
    box = apart.box()
    apart.run(box, "kill -9 1; kill -9 -1; sleep 0.1", "kill")
    assert box.alive()
    assert apart.run(box, "echo still here", "after")[1] == "still here\n"


def test_other_processes_of_the_host_are_not_seen(apart):
    done, text = apart.run(apart.box(), "ls -d /proc/[0-9]* | wc -l")
    assert done.code == 0
    assert int(text) <= 5


def test_changes_stay_in_the_box(apart):
    name = f"rsi-test-{os.getpid()}"
    box = apart.box()
    _, text = apart.run(box, f"touch /opt/{name} /tmp/{name} /var/{name} /etc/{name} /{name} && echo done")
    assert text == "done\n", text
    for folder in ("/opt", "/tmp", "/var", "/etc", "/"):
        assert not (Path(folder) / name).exists()
    other = apart.box("other")
    assert apart.run(other, f"test ! -e /opt/{name}", "other")[0].code == 0


def test_devices_terminals_and_shared_memory_work(apart):
    script = (
        "import os, multiprocessing as m; os.openpty(); q = m.get_context('fork').SimpleQueue(); q.put(1); "
        "m.get_context('fork').Lock(); "
        "open('/dev/shm/x', 'w').write('1'); os.urandom(8); open('/dev/full'); print(os.cpu_count() > 0)"
    )
    done, text = apart.run(apart.box(), f'python3 -c "{script}"')
    assert done.code == 0, text
    assert text == "True\n"


@pytest.mark.skipif(ROOTLESS, reason="needs root: one user only in a rootless box here")
def test_another_user_of_a_box_can_use_python_and_the_workdir(apart):
    program = "import os; print(os.getuid())"
    script = f"import os; os.setgid(1234); os.setuid(1234); os.execvp('python3', ['python3', '-c', '{program}'])"
    done, text = apart.run(apart.box(), f'python3 -c "{script}"')
    assert done.code == 0, text
    assert text == "1234\n"


def test_a_setuid_program_gains_nothing(apart):
    script = "cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; grep NoNewPrivs /proc/self/status"
    done, text = apart.run(apart.box(), script)
    assert done.code == 0
    assert text.split() == ["NoNewPrivs:", "1"]


@pytest.mark.skipif(not BOUNDED, reason="needs control groups that this user may make")
def test_too_much_memory_ends_the_process_and_is_recognised(apart):
    box = apart.box(limits=Limits(memory_mb=64))
    done, _ = apart.run(box, "exec python3 -c 'x = bytearray(300 << 20)'")
    assert done == Exit(137, out_of_memory=True)
    assert apart.run(box, "echo fine", "after")[0] == Exit(0)


def test_memory_is_bounded_in_any_case(apart):
    done, text = apart.run(
        apart.box(limits=Limits(memory_mb=64)), "python3 -c 'x = bytearray(300 << 20); print(len(x))'"
    )
    assert done.code != 0
    assert "314572800" not in text


def test_a_fork_bomb_is_bounded_and_killed(apart):
    box = apart.box(limits=Limits(pids=40, memory_mb=512))
    process = apart.begin(box, "b() { b | b & b; }; b", "bomb")
    done = process.wait(1.5)
    assert done.code is not None
    process.kill()
    assert apart.run(box, "echo fine", "after", timeout=20)[1] == "fine\n"


def test_removing_a_box_takes_its_control_groups_along(apart):
    box = apart.box()
    folders = [Path(folder) for folder in box._groups.folders.values()]
    assert all(folder.is_dir() for folder in folders)
    box.remove()
    assert not any(folder.exists() for folder in folders)
    box.remove()


def test_a_link_of_the_image_in_the_place_of_a_mount_is_refused_not_followed(apart):
    image = apart.image("FROM base\nWORKDIR /app\nRUN ln -s /etc /tests\n")
    tests = apart.folder / "tests"
    tests.mkdir()
    with pytest.raises(Exception, match="/tests"):
        apart.box(image=image, mounts=(Mount(tests, "/tests"),))
    assert apart.sandbox.attach("run", "work") is None


def test_freezing_by_signals_alone_stops_everything(apart, monkeypatch):
    monkeypatch.setattr("harness.sandbox.cgroups.plan", lambda name: cgroups.Groups({}))
    box = apart.box()
    script = "for i in 1 2 3; do setsid python3 -c 'while 1: pass' & done; echo > ready; sleep 100"
    process = apart.begin(box, script)
    held = box.workdir_fd()
    while not Path(f"/proc/self/fd/{held}/ready").exists():
        pass
    for _ in range(5):
        box.freeze()
        ticks = _ticks(box)
        assert len(ticks) >= 5
        assert _ticks(box) == ticks
        box.thaw()
    os.close(held)
    process.kill()
    assert process.wait(5).code == 137
    assert len(_ticks(box)) == 1


def test_a_box_whose_folder_was_deleted_by_hand_ends(apart, monkeypatch):
    monkeypatch.setattr("harness.sandbox.launch.WATCH_MS", 50)
    box = apart.box()
    apart.begin(box, "sleep 1000")
    init = box.folder.running("init", box._lease)
    (box.folder.path / "lease.json").rename(apart.folder / "lease.json")
    deadline = time.monotonic() + 10
    while Path(f"/proc/{init}").exists():
        assert time.monotonic() < deadline
    (apart.folder / "lease.json").rename(box.folder.path / "lease.json")


UNIFIED = cgroups._mounted().get("")


@pytest.mark.skipif(ROOTLESS or UNIFIED is None, reason="needs root and control groups of version 2")
def test_freezing_with_control_groups_of_version_2(apart, monkeypatch):
    folder = str(UNIFIED[0] / f"rsi-test-{os.getpid()}")
    monkeypatch.setattr("harness.sandbox.cgroups.plan", lambda name: cgroups.Groups({"freezer": folder}, unified=True))
    box = apart.box()
    apart.begin(box, "setsid python3 -c 'while 1: pass' & while :; do :; done")
    for _ in range(5):
        box.freeze()
        ticks = _ticks(box)
        assert len(ticks) >= 2
        assert _ticks(box) == ticks
        box.thaw()
    box.freeze()
    box.remove()
    assert not Path(folder).exists()


def _ticks(box):
    """Return processor time of every process of the box, as its own /proc shows it."""
    root = box.root_fd()
    try:
        proc = Path(f"/proc/self/fd/{root}/proc")
        found = {}
        for path in proc.iterdir():
            if path.name.isdigit():
                fields = (path / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    found[path.name] = fields[11] + fields[12]
        return found
    finally:
        os.close(root)


def test_only_families_of_sockets_that_the_network_namespace_holds(apart):
    script = (
        "import socket\n"
        "for family in (1, 2, 10, 16, 38, 40, 17):\n"
        "    try: socket.socket(family, socket.SOCK_DGRAM).close(); print(family)\n"
        "    except OSError as error: print(family, error.errno)\n"
        "a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))\n"
    )
    done, text = apart.run(apart.box(), f'python3 -c "{script}"')
    assert done == Exit(0), text
    assert text.splitlines() == ["1", "2", "10", "16", "38 97", "40 97", "17 97", "b'x'"]


def test_the_init_of_a_box_keeps_its_resources(apart):
    script = (
        "import os, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "try: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)); print('taken')\n"
        "except PermissionError: print('refused')\n"
    )
    box = apart.box()
    done, text = apart.run(box, f'python3 -c "{script}"')
    assert (done, text) == (Exit(0), "refused\n")
    box.freeze()
    box.thaw()
    assert box.alive()


def test_a_box_with_network_reaches_no_abstract_socket_of_the_host(apart):
    script = (
        "import socket\n"
        "own = socket.socket(socket.AF_UNIX); own.bind('\\0rsi-own'); own.listen()\n"
        "for name in ('\\0rsi-own', '\\0rsi-host'):\n"
        "    try: socket.socket(socket.AF_UNIX).connect(name); print('connected')\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    with socket.socket(socket.AF_UNIX) as host:
        host.bind("\0rsi-host")
        host.listen()
        done, text = apart.run(apart.box(network=Network(Reach.PUBLIC)), f'python3 -c "{script}"')
    assert done == Exit(0), text
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12):
        assert text.split() == ["connected", "PermissionError"]
