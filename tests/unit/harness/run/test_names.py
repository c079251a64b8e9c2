"""Names of runs: short to type, never taken twice, found by their beginning."""

import random
import re
from pathlib import Path

import pytest

from harness import paths
from harness.errors import InputError
from harness.run import names


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for name in ("brave-otter", "brave-owl", "calm-lake", "calm-lake-2", "Mine"):
        (tmp_path / name).mkdir()
    (tmp_path / ".trash").mkdir()
    (tmp_path / "file").write_text("x")
    return tmp_path


def test_a_name_is_two_short_words(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(200):
        assert re.fullmatch(r"[a-z]{3,8}-[a-z]{3,8}", names.new_name(tmp_path, rng))
    assert names.new_name(tmp_path, random.Random(7)) == names.new_name(tmp_path, random.Random(7))


def test_the_words_are_many_sorted_and_all_different() -> None:
    for words in (names._FIRST.split(), names._SECOND.split()):
        assert len(words) >= 100
        assert words == sorted(set(words))
    assert not set(names._FIRST.split()) & set(names._SECOND.split())


def test_a_name_is_never_taken_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_FIRST", "calm")
    monkeypatch.setattr(names, "_SECOND", "lake")
    made = [names.create_run_folder(tmp_path, random.Random(1)).name for _ in range(3)]
    assert made == ["calm-lake", "calm-lake-2", "calm-lake-3"]


def test_a_name_taken_at_the_last_moment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = iter(["calm-lake", "brave-owl"])
    monkeypatch.setattr(names, "new_name", lambda *_: next(offered))
    (tmp_path / "calm-lake").mkdir()
    assert names.create_run_folder(tmp_path).name == "brave-owl"


def test_runs_live_in_our_own_folder_unless_said_otherwise() -> None:
    made = names.create_run_folder()
    assert made.parent == paths.runs()
    assert names.run_names() == [made.name]
    assert names.resolve_run(made.name) == made


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("calm-lake", "calm-lake"),
        ("brave-ot", "brave-otter"),
        ("Brave-OT", "brave-otter"),
        ("mi", "Mine"),
        ("calm-lake/", "calm-lake"),
        (" brave-owl ", "brave-owl"),
    ],
)
def test_a_run_is_found_by_its_name_or_a_beginning(runs: Path, text: str, name: str) -> None:
    assert names.resolve_run(text, runs) == runs / name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("brave", "brave-otter, brave-owl"),
        ("brave-oter", "did you mean brave-otter"),
        ("zzz", "rsi runs"),
        ("", "rsi runs"),
        (".trash", "rsi runs"),
        ("../x", "rsi runs"),
        ("file", "rsi runs"),
    ],
)
def test_what_is_not_found_is_an_error_that_helps(runs: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        names.resolve_run(text, runs)
    assert caught.value.next_step
    assert said in " ".join(caught.value.lines())


def test_without_any_run_it_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        names.resolve_run("calm", tmp_path / "none")
    assert "rsi run TASK" in caught.value.next_step
