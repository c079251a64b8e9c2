"""What every sandbox promises: files, processes, output, freezing, ends, and being found again."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from harness.errors import InputError, RsiError
from harness.sandbox.base import Exit, Level, Limits, Mount, Placement, Role

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def bench(everywhere):
    """Return a bench of each sandbox: what is promised here, all of them keep."""
    return everywhere


def test_a_command_runs_in_the_workdir_and_its_exit_code_and_output_come_back(bench):
    box = bench.box(image=bench.image("FROM base\nWORKDIR /app\nCOPY a.txt ./\n", {"a.txt": "hello"}))
    done, text = bench.run(box, "cat a.txt; echo error >&2; exit 7")
    assert done == Exit(7)
    assert text == "helloerror\n"


def test_a_command_that_is_not_there_ends_with_127_and_says_so(bench):
    box = bench.box()
    process = box.start("x", ["no-such-command"], output=bench.output("x"))
    assert process.wait(10).code == 127
    assert "no-such-command" in bench.output("x").read_text()


def test_a_process_killed_by_a_signal_ends_with_128_plus_its_number(bench):
    done, _ = bench.run(bench.box(), "kill -TERM $$")
    assert done.code == 128 + signal.SIGTERM


def test_starting_a_name_again_returns_the_process_that_is_there(bench):
    box = bench.box()
    first = bench.begin(box, "echo once")
    assert first.wait(10).code == 0
    again = bench.begin(box, "echo twice")
    assert again.wait(10).code == 0
    assert bench.output("process").read_text() == "once\n"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "a\nb"])
def test_names_cannot_leave_the_folder_of_boxes(bench, name):
    image = bench.image()
    with pytest.raises(InputError):
        bench.box(name, image=image)
    box = bench.box(image=image)
    with pytest.raises(InputError):
        bench.begin(box, "true", name)


def test_the_environment_is_the_boxes_own(bench, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-the-engine")
    box = bench.box(image=bench.image("FROM base\nENV A=image B=image\nWORKDIR /app\n"), env={"B": "spec", "C": "spec"})
    process = box.start(
        "env", ["sh", "-c", "env; cat /proc/self/environ"], output=bench.output("env"), env={"C": "own"}
    )
    assert process.wait(10).code in {0, 1}
    text = bench.output("env").read_text(errors="replace")
    assert "A=image\n" in text
    assert "B=spec\n" in text
    assert "C=own\n" in text
    assert f"RSI_LEVEL={bench.sandbox.level}\n" in text
    assert "secret-of-the-engine" not in text


def test_python3_and_the_mailboxs_commands_are_on_the_path(bench):
    mailbox = bench.folder / "mailbox"
    (mailbox / "bin").mkdir(parents=True)
    (mailbox / "bin" / "rsi-hello").write_text("#!/bin/sh\necho from the mailbox\n")
    (mailbox / "bin" / "rsi-hello").chmod(0o755)
    box = bench.box(mounts=(Mount(mailbox, "/run/rsi"),), env={"RSI_MAILBOX": "/run/rsi"})
    done, text = bench.run(box, "rsi-hello && python3 -c 'print(6 * 7)'")
    assert done.code == 0, text
    assert text == "from the mailbox\n42\n"


def test_a_mount_shows_a_folder_of_the_host_and_what_is_written_there(bench):
    shared = bench.folder / "shared"
    shared.mkdir()
    (shared / "in").write_text("from the host")
    box = bench.box(mounts=(Mount(shared, "/run/shared", read_only=False),))
    done, text = bench.run(box, f"cat {box.path('/run/shared/in')} && echo back > {box.path('/run/shared/out')}")
    assert done.code == 0, text
    assert (shared / "out").read_text() == "back\n"


def test_output_beyond_its_bound_is_thrown_away_and_the_writer_never_waits(bench):
    box = bench.box()
    process = box.start("loud", ["sh", "-c", "head -c 50000000 /dev/zero; echo end >&2; exit 3"],
                        output=bench.output("loud"), max_output=1000)  # fmt: skip
    assert process.wait(30).code == 3
    text = bench.output("loud").read_bytes()
    assert text.startswith(b"\0" * 1000)
    assert b"cut here" in text
    assert len(text) < 1200


def test_the_output_file_cannot_be_a_link(bench):
    victim = bench.folder / "victim"
    victim.write_text("kept")
    bench.output("linked").symlink_to(victim)
    box = bench.box()
    with pytest.raises(RsiError):
        bench.run(box, "echo lost", "linked")
    assert victim.read_text() == "kept"


def test_a_timeout_kills_and_is_remembered(bench):
    box = bench.box()
    process = bench.begin(box, "sleep 1000")
    done = process.wait(0.2)
    assert done.timed_out
    assert box.process("process").poll().timed_out


def test_kill_reaches_children_that_forked_twice_and_left_the_group(bench):
    box = bench.box()
    beat = bench.folder / "beat"
    beat.mkdir()
    beat.chmod(0o777)
    box2 = bench.box("with-mount", mounts=(Mount(beat, "/run/beat", read_only=False),))
    place = box2.path("/run/beat/b")
    script = f"setsid sh -c 'setsid sh -c \"while :; do date +%s%N > {place}; sleep 0.02; done\" & ' & sleep 1000"
    process = bench.begin(box2, script)
    _until((beat / "b").exists)
    process.kill()
    assert process.wait(10).code is not None
    assert _quiet(beat / "b")
    assert box.alive()


def test_children_left_in_the_background_live_until_killed(bench):
    beat = bench.folder / "beat"
    beat.mkdir()
    beat.chmod(0o777)
    box = bench.box(mounts=(Mount(beat, "/run/beat", read_only=False),))
    place = box.path("/run/beat/b")
    process = bench.begin(box, f"while :; do date +%s%N > {place}; sleep 0.02; done >/dev/null 2>&1 &")
    assert process.wait(10).code == 0
    _until((beat / "b").exists)
    _until(lambda: not _quiet(beat / "b"))  # it still beats, though maybe slowly on a busy machine
    process.kill()
    assert _quiet(beat / "b")


def test_freeze_stops_even_what_left_the_group_and_thaw_lets_it_go_on(bench):
    beat = bench.folder / "beat"
    beat.mkdir()
    beat.chmod(0o777)
    box = bench.box(mounts=(Mount(beat, "/run/beat", read_only=False),))
    place = box.path("/run/beat/b")
    bench.begin(box, f"setsid sh -c 'while :; do date +%s%N > {place}; sleep 0.01; done' & sleep 1000")
    _until((beat / "b").exists)
    for _ in range(3):
        box.freeze()
        assert _quiet(beat / "b")
        with pytest.raises(RsiError, match="frozen"):
            bench.begin(box, "true", "while-frozen")
        box.thaw()
        _until(lambda: not _quiet(beat / "b", 0.1))


def test_a_placement_lies_over_the_workdir_and_the_box_never_changes_it(bench):
    image = bench.image("FROM base\nWORKDIR /app\nCOPY . /app/\n", {"kept": "k", "changed": "old", "sub/gone": "g"})
    tree = bench.folder / "tree"
    (tree / "new").mkdir(parents=True)
    (tree / "changed").write_text("new")
    (tree / "new" / "file").write_text("f")
    box = bench.box(image=image, placement=Placement(tree, ("sub/gone", "never-there", "Dockerfile")))
    done, text = bench.run(
        box, "cat kept changed new/file; ls sub; echo x > changed; echo y > new/other; test ! -e Dockerfile"
    )
    assert done.code == 0, text
    assert text == "knewf"
    assert (tree / "changed").read_text() == "new"
    assert sorted(path.name for path in (tree / "new").iterdir()) == ["file"]


def test_a_box_over_another_starts_from_what_that_one_wrote(bench):
    tree = bench.folder / "tree"
    tree.mkdir()
    (tree / "placed").write_text("p")
    image = bench.image("FROM base\nWORKDIR /app\nCOPY a ./\n", {"a": "a"})
    work = bench.box(image=image, placement=Placement(tree))
    assert bench.run(work, "echo w > written; rm a; echo p2 >> placed")[0].code == 0
    work.freeze()
    judge = bench.box("judge", image=image, role=Role.JUDGE, over=work)
    done, text = bench.run(judge, "cat written placed; test ! -e a && echo j > judged", "judge")
    assert done.code == 0, text
    assert text == "w\npp2\n"
    judge.remove()
    work.thaw()
    assert bench.run(work, "test ! -e judged", "after")[0].code == 0


def test_the_workdir_is_opened_without_following_links(bench):
    box = bench.box()
    bench.run(box, "echo x > file")
    held = box.workdir_fd()
    assert os.listdir(held) == ["file"]  # noqa: PTH208 - a descriptor, no path
    os.close(held)
    done, _ = bench.run(box, f"cd {box.path('/')}; mv app elsewhere && ln -s /etc app", "swap")
    if bench.sandbox.level is Level.CONTAINER:  # there the workdir is a mount, which cannot be moved
        assert done.code != 0
        os.close(box.workdir_fd())
        return
    with pytest.raises(RsiError, match="workdir"):
        box.workdir_fd()


def test_usage_counts_what_was_written(bench):
    box = bench.box()
    before = box.usage_mb()
    bench.run(box, "head -c 8388608 /dev/urandom > big; sync")
    assert 7 < box.usage_mb() - before < 10


def test_one_file_cannot_exceed_the_storage_bound(bench):
    box = bench.box(limits=Limits(memory_mb=1024, storage_mb=4))
    done, _ = bench.run(box, "head -c 20000000 /dev/zero > big")
    assert done.code != 0
    held = box.workdir_fd()
    assert os.stat("big", dir_fd=held).st_size <= 4 << 20
    os.close(held)


def test_a_second_box_of_one_name_is_refused(bench):
    bench.box()
    with pytest.raises(RsiError, match="already"):
        bench.box()


ENGINE = textwrap.dedent(
    """
    import sys, time
    from pathlib import Path
    from harness.sandbox import get_sandbox
    from harness.sandbox.base import BoxSpec, Role, Limits
    level, environment, out = sys.argv[1:]
    sandbox = get_sandbox("docker") if level == "container" else get_sandbox("local", level=level)
    image = sandbox.build(Path(environment), workdir=None, timeout=60, progress=lambda _: None)
    box = sandbox.create(BoxSpec("run", "work", Role.WORK, image, limits=Limits(memory_mb=1024)))
    box.start("agent", ["sh", "-c", "echo begun; sleep 1; echo ended; exit 5"], output=Path(out))
    print("started", flush=True)
    time.sleep(1000)
    """
)


def test_box_and_process_outlive_an_engine_killed_with_kill_9(bench):
    environment = bench.environment("FROM base\nWORKDIR /app\n")
    out = bench.output("agent")
    engine = subprocess.Popen(
        [sys.executable, "-c", ENGINE, bench.sandbox.level.value, str(environment), str(out)],
        stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    with engine:
        assert engine.stdout.readline() == b"started\n"
        engine.kill()
    box = bench.sandbox.attach("run", "work")
    bench.made.append(box)
    assert box.alive()
    assert box.spec.name == "work"
    process = box.process("agent")
    assert process.poll() is None
    assert process.wait(10) == Exit(5)
    assert out.read_text() == "begun\nended\n"
    assert bench.run(box, "echo still here", "later")[1] == "still here\n"


def test_sweep_leaves_no_process_and_no_folder(bench):
    image = bench.image()
    for name in ("one", "two"):
        bench.begin(bench.box(name, image=image), "setsid sleep 1000 & sleep 1000", name)
    (bench.folder / "home" / "boxes" / "run" / "unfinished").mkdir()
    before = Path("/proc/self/mountinfo").read_text().splitlines()
    removed = bench.sandbox.sweep("run")
    assert len(removed) == 3
    assert not (bench.folder / "home" / "boxes" / "run").exists()
    assert bench.sandbox.attach("run", "one") is None
    assert set(Path("/proc/self/mountinfo").read_text().splitlines()) <= set(before)
    assert not _commands_with(str(bench.folder))
    assert bench.sandbox.sweep("run") == []
    bench.made[0].remove()


def test_after_a_restart_of_the_host_the_box_is_dead_and_its_files_are_there(bench, monkeypatch):
    box = bench.box()
    bench.run(box, "echo kept > file")
    process = bench.begin(box, "sleep 1000", "agent")
    monkeypatch.setattr("harness.sandbox.boxfolder.boot", lambda: "another boot")
    again = bench.sandbox.attach("run", "work")
    assert not again.alive()
    assert again.process("agent").poll() == Exit(None)
    assert again.usage_mb() > 0
    with pytest.raises(RsiError):
        bench.begin(again, "true", "new")
    monkeypatch.undo()
    process.kill()


def _until(condition, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def _quiet(path, seconds=0.15):
    """Say whether a file stays as it is."""
    before = path.read_text()
    time.sleep(seconds)
    return path.read_text() == before


def _commands_with(text):
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if text in line and int(path.name) != os.getpid():
                found.append(line)
    return found
