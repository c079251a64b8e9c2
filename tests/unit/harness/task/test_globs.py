"""Globs: what they name, and how they compare."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.run.store.globs import Globs
from harness.task.globs import contained, matches, overlap

NAMES = st.text("ab", min_size=1, max_size=3)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
GLOBS = st.lists(st.one_of(st.text("ab*", min_size=1, max_size=4), st.just("**")), min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("glob", "path", "named"),
    [
        ("train.py", "train.py", True),
        ("train.py", "a/train.py", False),
        ("*.py", "train.py", True),
        ("*.py", "a/train.py", False),
        ("**/*.py", "train.py", True),
        ("**/*.py", "a/b/train.py", True),
        ("a/**", "a/b/c", True),
        ("a/**", "ab/c", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a*c*e", "abcde", True),
        ("a.c", "abc", False),
        ("[a]", "a", False),
        ("*", "new\nline", True),
        ("données/*", "données/été.txt", True),
    ],
)
def test_matches(glob: str, path: str, named: bool) -> None:
    assert matches(glob, path) is named


@given(GLOBS, PATHS)
def test_the_walk_and_the_comparison_read_globs_alike(glob: str, path: str) -> None:
    assert Globs([glob]).matches(path) is matches(glob, path)


@given(GLOBS, GLOBS, PATHS)
def test_comparisons_agree_with_paths(first: str, second: str, path: str) -> None:
    if matches(first, path):
        assert not contained(first, second) or matches(second, path)
        assert overlap(first, second) or not matches(second, path)


@given(GLOBS, GLOBS)
def test_contained_globs_overlap(first: str, second: str) -> None:
    assert overlap(first, first)
    assert overlap(first, second) == overlap(second, first)
    if contained(first, second):
        assert overlap(first, second)


def test_a_hostile_glob_takes_no_time() -> None:
    assert not matches("*a" * 200 + "b", "a" * 255)
