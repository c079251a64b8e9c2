"""The fake keeps the protocol: files, ends, freezing and faults, without processes."""

import threading

import pytest

from harness.errors import InputError, RsiError
from harness.sandbox import best_local, get_sandbox
from harness.sandbox.base import BoxSpec, Exit, Mount, Role, Sandbox
from harness.sandbox.fake import FakeSandbox, Fault


@pytest.fixture
def make(home):
    def make(behaviour=None, name="work", role=Role.WORK, mounts=()):
        sandbox = FakeSandbox(behaviour)
        return sandbox, sandbox.create(BoxSpec("run", name, role, sandbox.bare_image(), mounts=mounts))

    return make


def test_a_callable_plays_a_command_with_the_boxs_files(make, home):
    logs = home / "logs"
    logs.mkdir()

    def judge(box, env, workdir, logs):
        (logs / "reward.json").write_text(env["RSI_SEED"])
        return len(list(workdir.iterdir()))

    _, box = make({"test.sh": judge}, mounts=(Mount(logs, "/logs/verifier", read_only=False),))
    process = box.start("judge", ["/tests/test.sh"], output=home / "out", env={"RSI_SEED": "5"})
    assert process.wait(5) == Exit(0)
    assert (logs / "reward.json").read_text() == "5"


def test_freeze_holds_and_kill_ends_a_callable_at_its_checkpoints(make, home):
    steps, go = [], threading.Event()

    def agent(box, env, workdir, logs):
        while True:
            steps.append(1)
            go.set()
            box.sleep(0.005)

    _, box = make(agent)
    process = box.start("agent", ["agent"], output=home / "out")
    assert go.wait(5)
    box.freeze()
    box.sandbox.behaviour = None
    before = len(steps)
    threading.Event().wait(0.1)
    assert len(steps) <= before + 1
    box.thaw()
    assert process.poll() is None
    process.kill()
    assert process.wait(5) == Exit(137)
    assert box.calls == ["start agent", "freeze", "thaw"]


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (Fault.OUT_OF_MEMORY, Exit(137, out_of_memory=True)),
        (Fault.HANGS, Exit(137, timed_out=True)),
        (Fault.BOX_VANISHES, Exit(None)),
    ],
)
def test_faults_strike_as_often_as_told(make, home, fault, found):
    sandbox, box = make(lambda *_: 0)
    sandbox.inject("judge*", fault)
    assert box.start("judge-1", ["x"], output=home / "out").wait(0.2) == found
    assert box.alive() is (fault is not Fault.BOX_VANISHES)
    other = sandbox.create(BoxSpec("run", "other", Role.JUDGE, sandbox.bare_image()))
    assert other.start("judge-2", ["x"], output=home / "out").wait(5) == Exit(0)


def test_starts_builds_boxes_and_freezes_can_fail(make, home):
    sandbox, box = make(lambda *_: 0)
    for pattern, fault in (("x", Fault.START_FAILS), ("late", Fault.CREATE_FAILS), ("work", Fault.FREEZE_FAILS)):
        sandbox.inject(pattern, fault)
    with pytest.raises(RsiError):
        box.start("x", ["x"], output=home / "out")
    with pytest.raises(RsiError):
        sandbox.create(BoxSpec("run", "late", Role.JUDGE, sandbox.bare_image()))
    with pytest.raises(RsiError):
        box.freeze()
    box.freeze()
    assert box.frozen()


def test_a_crash_of_a_callable_is_an_exit_code(make, home):
    _, box = make(lambda *_: 1 // 0)
    assert box.start("x", ["x"], output=home / "out").wait(5) == Exit(1)
    assert "ZeroDivisionError" in (home / "out").read_text()


def test_another_engine_finds_the_files_but_not_the_threads(make, home):
    sandbox, box = make(lambda *_: 0)
    assert sandbox.attach("run", "work") is box
    found = FakeSandbox().attach("run", "work")
    assert not found.alive()
    assert found.process("x") is None
    assert len(FakeSandbox().sweep("run")) == 1
    assert FakeSandbox().attach("run", "work") is None


def test_sandboxes_by_name(home):
    assert isinstance(get_sandbox("fake"), Sandbox)
    assert get_sandbox("local", level="process").level == "process"
    for name, level in (("locl", None), ("local", "container")):
        with pytest.raises(InputError) as caught:
            get_sandbox(name, level=level)
        assert "choose" in caught.value.next_step
    sandbox, lacks = best_local()
    assert sandbox.level == ("process" if lacks else "namespaces")
    assert sandbox.describe()
