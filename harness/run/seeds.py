"""Seeds that follow from the plan's secret one: the same after a crash, and not to be guessed from earlier ones."""

import hashlib


def derive(secret: int, *names: str | int) -> int:
    """Return a 31-bit seed for a purpose."""
    text = ":".join([str(secret), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def judge_seed(secret: int, number: int) -> int:
    """Return the seed of a submission's first judging; its repeats count up from there.

    It is the same for every attempt at one submission, so a judging that was lost is repeated, not drawn anew.
    """
    return derive(secret, "judge", number)


def control_seed(secret: int, role: str, index: int = 0) -> int:
    """Return the seed of a judging of the author's solution or floor."""
    return derive(secret, "control", role, index)


def agent_seed(secret: int) -> int:
    """Return the seed that an agent of ours draws its choices from."""
    return derive(secret, "agent")
