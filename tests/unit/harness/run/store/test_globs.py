"""The globs of a contract: each rule, and agreement with a naive matcher on random trees."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run.store.globs import Globs


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("train.py", ["train.py"], ["Train.py", "a/train.py", "train.pyc", "train.py/x"]),
        ("*.py", ["a.py", ".py", ".hidden.py"], ["a/b.py", "a.pyc"]),
        ("src/*.py", ["src/a.py"], ["src/a/b.py", "a.py", "src"]),
        ("src/**", ["src/a", "src/a/b/c", "src"], ["srcs", "a/src"]),
        ("**/*.py", ["a.py", "a/b.py", "a/b/c.py"], ["a.txt"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a", "az", "a/b/zz"]),
        ("**", ["a", "a/b", "a/b/c"], []),
        ("a?.txt", ["ab.txt", "aü.txt"], ["a.txt", "abc.txt", "a/.txt"]),
        ("[ab].py", ["[ab].py"], ["a.py", "b.py"]),
        ("a**b", ["ab", "axxb"], ["a/b"]),
        ("a+(b)$", ["a+(b)$"], ["ab", "aa(b)$"]),
        ("*", ["a\nb", "ü"], ["a/b"]),
        ("out/*/model.pt", ["out/1/model.pt"], ["out/model.pt", "out/1/2/model.pt"]),
    ],
)
def test_what_a_glob_matches(glob: str, yes: list[str], no: list[str]) -> None:
    globs = Globs([glob])
    assert [path for path in yes if not globs.matches(path)] == []
    assert [path for path in no if globs.matches(path)] == []


def test_no_globs_match_nothing_and_lead_nowhere() -> None:
    globs = Globs([])
    assert not globs.matches("a")
    assert not globs.level.alive


def test_a_walk_enters_only_what_can_match() -> None:
    level = Globs(["src/*.py", "out/**/x"]).level
    assert level.enter("other") is None
    src = level.enter("src")
    assert src is not None
    assert src.enter("deeper") is None
    out = level.enter("out")
    assert out is not None
    assert out.enter("anything") is not None


def test_a_folder_of_literal_names_need_not_be_listed() -> None:
    level = Globs(["train.py", "src/model.py"]).level
    assert level.names == {"train.py", "src"}
    assert Globs(["train.py", "*.txt"]).level.names is None


def test_literals_and_the_folders_that_are_named() -> None:
    globs = Globs(["train.py", "a/b/c.py", "out/x/*.pt", "**/z"])
    assert globs.literals == ("train.py", "a/b/c.py")
    assert globs.folders == {"a", "a/b", "out", "out/x"}


def test_stars_in_a_row_are_no_trap() -> None:
    assert not Globs(["*" * 30 + "b"]).matches("a" * 255)


def naive(glob: list[str], path: list[str]) -> bool:
    if not glob:
        return not path
    if glob[0] == "**":
        return naive(glob[1:], path) or (bool(path) and naive(glob, path[1:]))
    return bool(path) and part_matches(glob[0], path[0]) and naive(glob[1:], path[1:])


def part_matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return part_matches(pattern[1:], name) or (bool(name) and part_matches(pattern, name[1:]))
    return bool(name) and pattern[0] in {"?", name[0]} and part_matches(pattern[1:], name[1:])


PARTS = st.just("**") | st.text("ab?*.", min_size=1, max_size=4)
GLOBS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)
PATHS = st.lists(st.text("ab.", min_size=1, max_size=4), min_size=1, max_size=5).map("/".join)


@settings(deadline=None)
@given(st.lists(GLOBS, min_size=1, max_size=4), PATHS)
def test_it_agrees_with_a_naive_matcher(globs: list[str], path: str) -> None:
    expected = any(naive(glob.split("/"), path.split("/")) for glob in globs)
    assert Globs(globs).matches(path) == expected


@settings(deadline=None)
@given(st.lists(GLOBS, min_size=1, max_size=4), PATHS)
def test_pruning_loses_nothing(globs: list[str], path: str) -> None:
    compiled = Globs(globs)
    *folders, name = path.split("/")
    level = compiled.level
    for folder in folders:
        if level.names is not None and folder not in level.names:
            assert not compiled.matches(path)
            return
        deeper = level.enter(folder)
        if deeper is None:
            assert not compiled.matches(path)
            return
        level = deeper
    if level.names is not None and name not in level.names:
        assert not compiled.matches(path)


def test_the_naive_matcher_is_right_itself() -> None:
    for pattern, regex in (("a*b", "a.*b"), ("?", "."), ("*a?", ".*a.")):
        for name in ("a", "ab", "axb", "ba", "xay"):
            assert part_matches(pattern, name) == bool(re.fullmatch(regex, name))


def test_a_long_name_does_not_hold_up_a_glob_of_many_stars() -> None:
    globs = Globs(["*_*_*_*_*_*_*.txt"])
    assert globs.matches("a_b_c_d_e_f_g.txt")
    begun = time.monotonic()
    assert not globs.matches("_" * 250 + ".tx")
    assert time.monotonic() - begun < 1
