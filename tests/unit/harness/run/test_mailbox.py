"""The mailbox and its scripts: whole requests, one reply each, and an inbox in which anything may lie."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.run import mailbox as module
from harness.run.mailbox import Mailbox, Request

SHELLS = [["sh"], *(shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0]))]


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    box = Mailbox(tmp_path / "mailbox")
    box.create()
    return box


def request(mailbox: Mailbox, name: str, message: str | bytes = "") -> Path:
    path = mailbox.folder / "inbox" / f"{name}.req"
    path.write_bytes(message if isinstance(message, bytes) else message.encode())
    return path


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def start(mailbox: Mailbox, *arguments: str, shell: list[str] | None = None) -> "subprocess.Popen[str]":
    script = str(mailbox.folder / "bin" / "rsi-submit")
    return subprocess.Popen(
        [*(shell or []), script, *arguments],
        env={"PATH": os.environ["PATH"], "RSI_MAILBOX": str(mailbox.folder), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(mailbox: Mailbox, script: str, *arguments: str, at: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(mailbox.folder / "bin" / script), *arguments],
        env={"PATH": os.environ["PATH"], "RSI_MAILBOX": str(at or mailbox.folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )


def wait_for(what: Callable[[], object], seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_an_agent_may_write_the_inbox_and_only_read_the_rest(mailbox: Mailbox) -> None:
    modes = {name: (mailbox.folder / name).stat().st_mode & 0o7777 for name in ("inbox", "outbox", "bin")}
    assert modes == {"inbox": 0o1777, "outbox": 0o755, "bin": 0o755}
    mounts = {mount.target: mount.read_only for mount in mailbox.mounts()}
    assert mounts == {"/run/rsi/inbox": False, "/run/rsi/outbox": True, "/run/rsi/bin": True}
    mailbox.reply("a", 0, "x")
    mailbox.status("x", {})
    assert {path.stat().st_mode & 0o777 for path in (mailbox.folder / "outbox").iterdir()} == {0o644}


def test_creating_again_repairs_and_loses_nothing(mailbox: Mailbox) -> None:
    request(mailbox, "a", "x")
    shutil.rmtree(mailbox.folder / "bin")
    mailbox.create()
    assert os.access(mailbox.folder / "bin" / "rsi-submit", os.X_OK)
    assert mailbox.requests() == [Request("a", "x")]


def test_requests_come_oldest_first(mailbox: Mailbox) -> None:
    for age, name in enumerate(("b", "a", "c-1")):
        os.utime(request(mailbox, name, f"message {name}"), (100 + age, 100 + age))
    assert mailbox.requests() == [Request("b", "message b"), Request("a", "message a"), Request("c-1", "message c-1")]
    assert len(mailbox.requests()) == 3


def test_an_answered_request_is_gone_and_its_reply_stays_as_it_is(mailbox: Mailbox) -> None:
    request(mailbox, "a")
    assert not mailbox.replied("a")
    assert mailbox.reply("a", 3, "first ü\ud800")
    assert mailbox.replied("a")
    assert not mailbox.reply("a", 0, "second")
    assert (mailbox.folder / "outbox" / "a.reply").read_text("utf-8") == "3\nfirst ü?\n"
    request(mailbox, "a", "again")
    assert mailbox.requests() == []


def test_a_half_written_request_is_not_seen(mailbox: Mailbox) -> None:
    (mailbox.folder / "inbox" / ".part-a").write_text("half")
    assert mailbox.requests() == []
    assert (mailbox.folder / "inbox" / ".part-a").exists()


@pytest.mark.parametrize("name", ["", "../a", "a/b", "a.b", "a b", "ü", "x" * 65, "a\n"])
def test_no_other_id_is_answered(mailbox: Mailbox, name: str) -> None:
    with pytest.raises(ValueError):
        mailbox.reply(name, 0, "x")


def litter(inbox: Path, outside: Path) -> None:
    outside.write_text("secret")
    (inbox / "link.req").symlink_to(outside)
    (inbox / "dangling.req").symlink_to("nowhere")
    (inbox / "hard.req").hardlink_to(outside)
    os.mkfifo(inbox / "fifo.req")
    os.mkfifo(inbox / "fifo")
    (inbox / "folder.req").mkdir()
    (inbox / "full.req").mkdir()
    (inbox / "full.req" / "x").write_text("x")
    (inbox / "no-ending").write_text("x")
    (inbox / "we ird.req").write_text("x")
    (inbox / "ü.req").write_text("x")
    (inbox / ("x" * 70 + ".req")).write_text("x")
    os.close(os.open(os.fsencode(inbox) + b"/\xff.req", os.O_CREAT | os.O_WRONLY))
    with (inbox / "huge.req").open("wb") as file:
        file.write(b"h" * 5000)
        file.truncate(20 << 30)


def test_whatever_lies_in_the_inbox_an_honest_request_gets_through(mailbox: Mailbox, tmp_path: Path) -> None:
    inbox = mailbox.folder / "inbox"
    litter(inbox, tmp_path / "secret")
    request(mailbox, "honest", "hello")
    found = {each.id: each.message for each in mailbox.requests()}
    assert found == {"honest": "hello", "huge": "h" * 4096}
    assert set(listed(inbox)) == {"honest.req", "huge.req", "full.req"}
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_message_is_cut_cleaned_and_decoded(mailbox: Mailbox) -> None:
    request(mailbox, "a", b"\xff\x1b[31mred\x00\r\n" + "ü".encode() * 4000)
    (one,) = mailbox.requests()
    assert one.message.startswith("\ufffd[31mred\nüü")
    assert len(one.message.encode()) <= module.MAX_MESSAGE
    one.message.encode("utf-8")


def test_a_flood_is_worked_off_in_bounded_steps(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SWEPT", 100)
    monkeypatch.setattr(module, "MAX_REQUESTS", 10)
    for number in range(250):
        (mailbox.folder / "inbox" / f"junk{number}").write_text("")
    for number in range(30):
        request(mailbox, f"r-{number:03d}")
    assert [each.id for each in mailbox.requests()] == [f"r-{number:03d}" for number in range(10)]
    assert len(listed(mailbox.folder / "inbox")) == 180
    mailbox.requests()
    mailbox.requests()
    assert len(listed(mailbox.folder / "inbox")) == 30


def test_an_inbox_that_was_replaced_hurts_nobody(mailbox: Mailbox, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.req").write_text("x")
    shutil.rmtree(mailbox.folder / "inbox")
    assert mailbox.requests() == []
    (mailbox.folder / "inbox").symlink_to(tmp_path / "other")
    assert mailbox.requests() == []
    assert mailbox.reply("a", 0, "x")
    assert (tmp_path / "other" / "a.req").exists()


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
def test_handing_in_and_waiting_for_the_reply(mailbox: Mailbox, shell: list[str]) -> None:
    message = "tried -n %s \\n 'a' \"b\" $HOME `id` ü\nsecond line"
    submit = start(mailbox, "-m", message, shell=shell)
    wait_for(mailbox.requests)
    (one,) = mailbox.requests()
    assert one.message == message
    assert submit.poll() is None
    mailbox.reply(one.id, 7, "violation: -n %s \\n\nleft: 3 → ü")
    out, err = submit.communicate(timeout=20)
    assert (submit.returncode, out, err) == (7, "violation: -n %s \\n\nleft: 3 → ü\n", "")
    assert listed(mailbox.folder / "inbox") == []


def test_a_submission_without_a_message(mailbox: Mailbox) -> None:
    submit = start(mailbox)
    wait_for(mailbox.requests)
    (one,) = mailbox.requests()
    assert one.message == ""
    mailbox.reply(one.id, 0, "scored")
    assert submit.communicate(timeout=20)[0] == "scored\n"
    assert submit.returncode == 0


def test_many_hand_in_at_once(mailbox: Mailbox) -> None:
    running = [start(mailbox, "--message=" + str(number)) for number in range(5)]
    wait_for(lambda: len(mailbox.requests()) == 5)
    for one in mailbox.requests():
        mailbox.reply(one.id, 10 + int(one.message), one.message)
    for number, submit in enumerate(running):
        assert submit.communicate(timeout=20)[0] == f"{number}\n"
        assert submit.returncode == 10 + number


def test_being_frozen_meanwhile_does_no_harm(mailbox: Mailbox) -> None:
    submit = start(mailbox, "-m", "x")
    wait_for(mailbox.requests)
    submit.send_signal(signal.SIGSTOP)
    mailbox.reply(mailbox.requests()[0].id, 0, "scored")
    time.sleep(0.3)
    submit.send_signal(signal.SIGCONT)
    assert submit.communicate(timeout=20)[0] == "scored\n"


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_mailbox_that_is_gone(mailbox: Mailbox, tmp_path: Path, when: str) -> None:
    if when == "before":
        done = run(mailbox, "rsi-submit", at=tmp_path / "none")
        code, err = done.returncode, done.stderr
    else:
        submit = start(mailbox)
        wait_for(mailbox.requests)
        (mailbox.folder / "outbox").rename(tmp_path / "away")
        err = submit.communicate(timeout=20)[1]
        code = submit.returncode
    assert code == 69
    assert "gone" in err


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("rsi-submit", ["-m"]),
        ("rsi-submit", ["--wrong"]),
        ("rsi-submit", ["message"]),
        ("rsi-submit", ["-m", "a", "b"]),
        ("rsi-status", ["--wrong"]),
        ("rsi-status", ["--json", "x"]),
    ],
)
def test_wrong_usage_hands_nothing_in(mailbox: Mailbox, script: str, arguments: list[str]) -> None:
    done = run(mailbox, script, *arguments)
    assert done.returncode == 2
    assert "--help" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert mailbox.requests() == []


@pytest.mark.parametrize("script", module.SCRIPTS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_goes_to_stdout(mailbox: Mailbox, script: str, flag: str) -> None:
    done = run(mailbox, script, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {script}")


def test_the_status_for_people_and_for_programs(mailbox: Mailbox) -> None:
    assert run(mailbox, "rsi-status").returncode == 69
    mailbox.status("best 1.5 → ü\n", {"best": 1.5, "text": "ü"})
    mailbox.status("best 1.4 → ü\n", {"best": 1.4, "text": "ü\ud800"})
    assert run(mailbox, "rsi-status").stdout == "best 1.4 → ü\n"
    assert json.loads(run(mailbox, "rsi-status", "--json").stdout) == {"best": 1.4, "text": "ü?"}
    assert listed(mailbox.folder / "outbox") == ["status.json", "status.txt"]


def test_a_full_inbox_is_an_error_that_says_so(mailbox: Mailbox) -> None:
    (mailbox.folder / "bin" / "mv").write_text("#!/bin/sh\nexit 1\n")
    (mailbox.folder / "bin" / "mv").chmod(0o755)
    done = subprocess.run(
        [str(mailbox.folder / "bin" / "rsi-submit")],
        env={"PATH": f"{mailbox.folder}/bin:{os.environ['PATH']}", "RSI_MAILBOX": str(mailbox.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "disk full" in done.stderr
    assert listed(mailbox.folder / "inbox") == []


def test_the_scripts_use_nothing_but_a_posix_shell_and_a_few_commands() -> None:
    folder = Path(module.__file__).parent / "scripts"
    assert sorted(path.name for path in folder.iterdir()) == sorted(module.SCRIPTS)
    for path in folder.iterdir():
        assert path.read_text().startswith("#!/bin/sh\n")
        assert "local " not in path.read_text()
        assert "[[" not in path.read_text()
        assert path.stat().st_mode & 0o111
