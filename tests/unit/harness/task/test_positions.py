"""Lines of keys: every key that tomllib finds has the line it stands in."""

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.task.positions import KeyPath, Positions

TEXT = '''\
# comment with [brackets] and = signs
a = 1
"quoted key" = "x = 'y'"   # trailing
b.c = { d = [1, { e = "]" }], f = 'g' }
long = """
[not.a.table]
x = 1 \\""" still
"""
dates = [
  1979-05-27 07:32:00, # one
  07:32:00,
]

[t]
x = 1979-05-27
[[t.many]]
k = 1
[[t.many]]
k = 2
[t.many.sub]
z = """"four""""
[other . 'x.y']
v = 1
'''


def paths(data: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of everything in a TOML value."""
    items = enumerate(data) if isinstance(data, list) else data.items() if isinstance(data, dict) else ()
    for key, value in items:
        yield (*path, key)
        yield from paths(value, (*path, key))


def test_every_key_has_its_line() -> None:
    found = Positions(TEXT)
    assert [path for path in paths(tomllib.loads(TEXT)) if path not in found] == []
    lines = TEXT.splitlines()
    for path, text in [
        (("a",), "a = 1"),
        (("quoted key",), '"quoted key"'),
        (("b", "c", "d", 1, "e"), "b.c ="),
        (("dates", 1), "07:32:00"),
        (("t", "many", 1, "k"), "k = 2"),
        (("t", "many", 1, "sub", "z"), "z ="),
        (("other", "x.y", "v"), "v = 1"),
    ]:
        line = found.line(path)
        assert line is not None
        assert lines[line - 1].strip().startswith(text)


def test_a_missing_key_has_the_line_of_its_table() -> None:
    found = Positions(TEXT)
    assert found.line(("t", "many", 0, "nothing")) == found.line(("t", "many", 0))
    assert found.line(("nothing",)) is None


KEYS = st.sampled_from(["a", "b-1", '"c d"', "'e.f'", "g.h", "été".join('""')])
SCALARS = st.sampled_from(
    ["1", '"]"', "'}#'", '"""\n[x]\n"""', "true", "[1, 2]", "{ k = [1] }", "[\n { k = 1 }, # c\n]"]
)
ROWS = st.one_of(
    st.tuples(KEYS, SCALARS).map(lambda row: f"{row[0]} = {row[1]}"),
    KEYS.map(lambda key: f"[{key}]"),
    KEYS.map(lambda key: f"[[ {key} ]] # note"),
)


@given(st.lists(ROWS, max_size=8))
def test_whatever_tomllib_reads_is_found(rows: list[str]) -> None:
    text = "\n".join(rows)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = Positions(text)
    assert [path for path in paths(data) if path not in found] == []
