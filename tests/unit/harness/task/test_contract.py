"""The contract's own rules that no task file shows."""

import pytest

from harness.task.contract import explodes


@pytest.mark.parametrize(
    "pattern",
    [r"((?:#|[a-z]|[^0-9])+)+ZZZ", r"(a|a)*b", r"(x*)+", r"(?:(?:a?){60}){60}(b)", r"(?=(a+)+)c", r"(?P<v>(a+|b)+)"],
)
def test_patterns_that_can_take_for_ever(pattern: str) -> None:
    assert explodes(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^value = ([0-9.]+)",
        r"'--learning-rate', '-l', type=float, default=([^,]+),",
        r"lr\s*=\s*([0-9.e-]+)",
        r"(?<!\w)lr = (.+?)$",
        r"(adam|sgd)\(",
        r"(?:ab){1,3}(c+)",
    ],
)
def test_patterns_that_knobs_use(pattern: str) -> None:
    assert not explodes(pattern)
