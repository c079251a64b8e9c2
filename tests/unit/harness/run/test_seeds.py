"""Seeds: the same after a crash, different for every purpose, fit for any program."""

from hypothesis import given
from hypothesis import strategies as st

from harness.run.seeds import agent_seed, control_seed, derive, judge_seed

SECRET = st.integers(0, (1 << 63) - 1)


@given(SECRET)
def test_purposes_do_not_meet(secret: int) -> None:
    found = [
        *(judge_seed(secret, number) for number in range(1, 100)),
        *(control_seed(secret, role, index) for role in ("baseline", "floor", "start") for index in range(5)),
        agent_seed(secret),
    ]
    assert all(0 <= seed < 1 << 31 for seed in found)
    assert len(set(found)) >= len(found) - 1  # 31 bits may meet by chance, once in a million


@given(SECRET, SECRET)
def test_they_follow_from_the_secret_alone(one: int, other: int) -> None:
    assert judge_seed(one, 1) == judge_seed(one, 1)
    assert derive(one, "a", 1) != derive(one, "a1") or derive(one, "b", 1) != derive(one, "b1")
    if one != other:
        assert (judge_seed(one, 1), judge_seed(one, 2)) != (judge_seed(other, 1), judge_seed(other, 2))
