"""The journal: whole lines, an unbroken chain, one writer, and nothing lost or invented by a crash."""

import json
import multiprocessing
import os
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError, RefusedError
from harness.run.journal import FIRST_PREV, Journal, JournalError, read_events, steady_clock, verify
from harness.run.state import Kind


def written(path: Path, *texts: str) -> Path:
    with Journal.create(path) as journal:
        for text in texts:
            journal.append(Kind.NOTE, text=text)
    return path


def test_lines_are_numbered_chained_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal.create(path, clock=iter([5.0, 7.25]).__next__) as journal:
        first = journal.append(Kind.RUN_CREATED, plan="é\u2028")
        second = journal.append(Kind.TICK)
    assert (first["n"], first["t"], first["prev"]) == (1, 5.0, FIRST_PREV)
    assert (second["n"], second["t"]) == (2, 7.25)
    assert list(read_events(path)) == [first, second]
    assert verify(path) == []
    assert "é" in path.read_text("utf-8")


def test_append_returns_what_a_reader_sees(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "j") as journal:
        event = journal.append(Kind.JUDGING_ENDED, values=(1.0, 2.0), verdict="scored")
    assert event["values"] == [1.0, 2.0]


def test_time_never_runs_backwards_also_across_engines(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal.create(path, clock=lambda: 100.0) as journal:
        journal.append(Kind.TICK)
    with Journal.open(path, clock=lambda: 3.0) as journal:
        assert journal.count == 1
        assert journal.last_time == 100.0
        assert journal.append(Kind.TICK)["t"] == 100.0
    assert verify(path) == []


def test_the_usual_clock_gives_unix_time() -> None:
    clock = steady_clock()
    assert abs(clock() - time.time()) < 5
    first = clock()
    assert clock() >= first


@pytest.mark.parametrize("torn", [b"{", b'{"n":3,"t":', b"\0\0\0\0", b"\0\0\0\0\n"])
def test_a_torn_last_line_is_cut_off_and_reported(tmp_path: Path, torn: bytes) -> None:
    path = written(tmp_path / "j", "one", "two")
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert [event["text"] for event in read_events(path)] == ["one", "two"]
    assert "torn" in verify(path)[0]
    with Journal.open(path) as journal:
        assert journal.torn == len(torn)
        assert path.read_bytes() == whole
        assert journal.append(Kind.NOTE, text="three")["n"] == 3
    assert verify(path) == []


@settings(deadline=None, max_examples=50)
@given(cut=st.integers(min_value=0))
def test_a_crash_at_any_byte_loses_only_the_line_it_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = written(tmp_path_factory.mktemp("j") / "j", "one", "zwei ü", "three")
    whole = path.read_bytes()
    cut %= len(whole) + 1
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    with Journal.open(path) as journal:
        assert journal.count == lines
        journal.append(Kind.TICK)
    assert verify(path) == []


def damaged(lines: list[bytes], what: str) -> list[bytes]:
    event = json.loads(lines[1])
    changes = {
        "edited": lambda: [lines[0], lines[1].replace(b"two", b"2wo"), lines[2]],
        "removed": lambda: [lines[0], lines[2]],
        "swapped": lambda: [lines[1], lines[0], lines[2]],
        "doubled": lambda: [lines[0], lines[1], lines[1], lines[2]],
        "no json": lambda: [lines[0], b"what\n", lines[2]],
        "no object": lambda: [lines[0], b"[]\n", lines[2]],
        "no head": lambda: [lines[0], b"{}\n", lines[2]],
        "kind": lambda: [lines[0], json.dumps({**event, "kind": "magic"}).encode() + b"\n"],
        "number": lambda: [lines[0], json.dumps({**event, "n": 9}).encode() + b"\n"],
        "time": lambda: [lines[0], json.dumps({**event, "t": 1}).encode() + b"\n"],
        "first removed": lambda: lines[1:],
    }
    return changes[what]()


@pytest.mark.parametrize(
    "what",
    ["edited", "removed", "swapped", "doubled", "no json", "no object", "no head", "kind", "number", "time",
     "first removed"],
)  # fmt: skip
def test_any_other_damage_is_an_error_with_its_line_and_a_next_step(tmp_path: Path, what: str) -> None:
    path = written(tmp_path / "j", "one", "two", "three")
    path.write_bytes(b"".join(damaged(path.read_bytes().splitlines(keepends=True), what)))
    with pytest.raises(JournalError, match=r"line \d of the journal is damaged") as caught:
        Journal.open(path)
    assert caught.value.next_step
    assert f"{path}:" in caught.value.where
    assert len(verify(path)) == 1


def test_reading_refuses_damage_but_not_an_unfinished_line(tmp_path: Path) -> None:
    path = written(tmp_path / "j", "one", "two")
    path.write_bytes(path.read_bytes() + b'{"half')
    assert len(list(read_events(path))) == 2
    path.write_bytes(path.read_bytes().replace(b"one", b"One"))
    with pytest.raises(JournalError):
        list(read_events(path))


@pytest.mark.parametrize("text", ["\udc80", "a\x00b", "\u2028\u2029\x85", "名前", '"\\\n'])
def test_no_text_of_an_agent_breaks_it(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "j", text)
    (event,) = read_events(path)
    assert event["text"] == text.replace("\udc80", "\ufffd")
    event["text"].encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_a_value_that_json_cannot_hold_writes_nothing(tmp_path: Path, value: object) -> None:
    path = tmp_path / "j"
    with Journal.create(path) as journal:
        with pytest.raises((ValueError, TypeError)):
            journal.append(Kind.NOTE, text=value)
        with pytest.raises(ValueError):
            journal.append(Kind.NOTE, n=7)
        journal.append(Kind.NOTE, text="fine")
    assert verify(path) == []


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    with Journal.create(path) as journal:
        journal.append(Kind.NOTE, text="one")
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(JournalError, match="No space left"):
                journal.append(Kind.NOTE, text="two")
        assert verify(path) == []
        journal.append(Kind.NOTE, text="three")
    assert [event["text"] for event in read_events(path)] == ["one", "three"]


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    path = written(tmp_path / "j", "one")
    with Journal.open(path), pytest.raises(RefusedError) as caught:
        Journal.open(path)
    assert caught.value.next_step
    Journal.open(path).close()


def test_creating_twice_and_opening_nothing_are_errors(tmp_path: Path) -> None:
    path = written(tmp_path / "j", "one")
    with pytest.raises(RefusedError):
        Journal.create(path)
    with pytest.raises(InputError):
        Journal.open(tmp_path / "none")
    with pytest.raises(InputError):
        list(read_events(tmp_path / "none"))


def _write_for_ever(path: Path) -> None:
    with Journal.open(path) as journal:
        while True:
            journal.append(Kind.NOTE, text="x" * 500)


def test_a_killed_writer_leaves_a_journal_to_go_on_with(tmp_path: Path) -> None:
    path = written(tmp_path / "j", "one")
    writer = multiprocessing.get_context("spawn").Process(target=_write_for_ever, args=(path,))
    writer.start()
    size = path.stat().st_size
    while path.stat().st_size < size + 20_000:
        assert writer.is_alive()
    writer.kill()
    writer.join()
    with Journal.open(path) as journal:
        assert journal.append(Kind.TICK)["n"] == journal.count > 20
    assert verify(path) == []


def test_reading_a_long_journal_keeps_memory_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    monkeypatch.setattr(os, "fsync", lambda _: None)
    with Journal.create(path) as journal:
        for _ in range(3000):
            journal.append(Kind.NOTE, text="x" * 1000)
    tracemalloc.start()
    count = sum(1 for _ in read_events(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3000
    assert peak < 500_000
