"""The machine is described honestly: what is lacking has a name and a fix; records are read back as written."""

from pathlib import Path

import pytest

from harness.errors import RsiError
from harness.sandbox import abilities, boxfolder, cgroups
from harness.sandbox.base import BoxSpec, Image, Limits, Mount, Network, Placement, Reach, Role
from harness.sandbox.doctor import doctor
from harness.sandbox.namespaces import NamespaceSandbox
from harness.sandbox.process import ProcessSandbox


def test_the_doctor_looks_at_everything_and_offers_a_fix_for_all_that_is_wrong(home):
    lines = doctor()
    names = {line.what for line in lines}
    assert {"python", "harness package", "git", "pip", "control groups", "users in a box", "disk space"} <= names
    assert all(line.fix for line in lines if line.ok is not True)
    assert next(line for line in lines if line.what == "harness package").ok
    assert not (home / "home" / "boxes" / "probe").exists()


@pytest.mark.parametrize(
    ("name", "value", "forbidden"),
    [
        ("user.max_user_namespaces", "0", True),
        ("user.max_user_namespaces", "15000", False),
        ("kernel.unprivileged_userns_clone", "0", True),
        ("kernel.unprivileged_userns_clone", "1", False),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", True),
        ("kernel.apparmor_restrict_unprivileged_userns", "0", False),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(monkeypatch, name, value, forbidden):
    monkeypatch.setattr(abilities, "sysctl", lambda asked: value if asked == name else None)
    lacks = abilities.forbidding_settings()
    assert [name in lack.what and name in lack.fix for lack in lacks] == ([True] if forbidden else [])


def test_a_box_that_cannot_be_made_is_a_lack_not_a_crash(home, monkeypatch):
    def refuse(*_, **__):
        raise RsiError("a box could not be made: unshare: Operation not permitted")

    monkeypatch.setattr("harness.sandbox.launch.launch", refuse)
    lacks = NamespaceSandbox().lacks()
    assert lacks
    assert all(lack.fix for lack in lacks)


def test_descriptions_say_what_is_not_isolated(home):
    assert any("NOT isolated" in line for line in ProcessSandbox().describe())
    assert any("weaker than a container" in line for line in NamespaceSandbox().describe())


def test_a_spec_is_read_back_as_it_was_written():
    spec = BoxSpec(
        "run", "work", Role.JUDGE, Image("d", "/app", {"A": "ü"}, ("note",)), network=Network(Reach.PUBLIC),
        limits=Limits(1.5, 100, 20, 30), mounts=(Mount(Path("/a"), "/b", read_only=False),), env={"B": "2"},
        placement=Placement(Path("/tree"), ("x",)),
    )  # fmt: skip
    assert boxfolder.spec_from_json(boxfolder.spec_to_json(spec)) == spec


def test_a_number_used_again_is_not_the_process(home):
    folder = boxfolder.BoxFolder(home)
    pid, started = boxfolder.me()
    lease = {"boot": boxfolder.boot()}
    (home / "keeper").write_text(f"{pid} {started}\n")
    assert folder.running("keeper", lease) == int(pid)
    (home / "keeper").write_text(f"{pid} {int(started) - 1}\n")
    assert folder.running("keeper", lease) is None
    folder.signal("keeper", lease, 9)
    (home / "keeper").write_text(f"{pid} {started}\n")
    assert folder.running("keeper", {"boot": "another"}) is None
    (home / "keeper").write_text("nonsense")
    assert folder.running("keeper", lease) is None


V1 = {"": "/x", "memory": "/a/b", "pids": "/", "freezer": "/docker/id/sub"}


def test_groups_are_placed_below_where_this_process_is(tmp_path, monkeypatch):
    for name in ("memory/a/b", "pids", "freezer/sub"):
        (tmp_path / name).mkdir(parents=True)
    mounted = {name: (tmp_path / name, "/") for name in ("memory", "pids")}
    mounted["freezer"] = (tmp_path / "freezer", "/docker/id")
    monkeypatch.setattr(cgroups, "_own", lambda: V1)
    monkeypatch.setattr(cgroups, "_mounted", lambda: mounted)
    assert cgroups.plan("x").folders == {
        "memory": f"{tmp_path}/memory/a/b/rsi-x",
        "pids": f"{tmp_path}/pids/rsi-x",
        "freezer": f"{tmp_path}/freezer/sub/rsi-x",
    }


@pytest.mark.parametrize(("controllers", "found"), [("cpu memory pids", True), ("cpu", False), ("", False)])
def test_version_2_needs_a_folder_that_gives_memory_and_pids(tmp_path, monkeypatch, controllers, found):
    slice_ = tmp_path / "user.slice"
    scope = slice_ / "own.scope"
    scope.mkdir(parents=True)
    for folder, given in ((slice_, controllers), (scope, "")):
        (folder / "cgroup.procs").touch()
        (folder / "cgroup.subtree_control").write_text(given)
    monkeypatch.setattr(cgroups, "_own", lambda: {"": "/user.slice/own.scope"})
    monkeypatch.setattr(cgroups, "_mounted", lambda: {"": (tmp_path, "/")})
    groups = cgroups.plan("x")
    assert groups.unified
    assert groups.can_freeze() is found
    if found:
        groups.apply(Limits(cpus=1.5, memory_mb=64, pids=10))
        made = slice_ / "rsi-x"
        assert (made / "memory.max").read_text() == str(64 << 20)
        assert (made / "pids.max").read_text() == "10"
        assert (made / "cpu.max").read_text() == "150000 100000"
        assert groups.joins() == [f"{made}/cgroup.procs"]
        assert groups.oom_file() == f"{made}/memory.events"
