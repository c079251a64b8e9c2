"""A judge's result is read exactly as agreed or not at all, and nothing that lies in the folder raises."""

import json
import math
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.run.reward import MAX_BYTES, MAX_MESSAGE, read_result
from harness.run.verdict import Finding, Verdict
from harness.task.contract import Boundary, Budget, Contract, Direction, Evaluation, Metric, Mode, Source

CONTRACT = Contract(
    category="test",
    question="?",
    source=Source(repository="local", commit="none", license="MIT"),
    metric=Metric(name="loss", direction=Direction.MINIMIZE, lowest=0, highest=10),
    evaluation=Evaluation(mode=Mode.DIRECT),
    boundary=Boundary(editable=("*",), deliver=("*",)),
    budget=Budget(hours=1, submissions=1),
)


def read(folder: Path, content: str | bytes | None, contract: Contract | None = CONTRACT) -> Finding:
    if content is not None:
        (folder / "reward.json").write_bytes(content.encode() if isinstance(content, str) else content)
    return read_result(folder, contract)


@pytest.mark.parametrize(
    ("content", "metric", "details"),
    [
        ('{"loss": 1.5, "reward": -1.5}', 1.5, {}),
        ('{"loss": 3}', 3.0, {}),
        ('{"loss": 0, "reward": 0, "seconds": 2.5}', 0.0, {"seconds": 2.5}),
        ('{"loss": 1, "invalid": 0, "violation": 0.0}', 1.0, {}),
        (' \n{"loss":1e-3}\n', 0.001, {}),
    ],
)
def test_a_number_in_its_domain_is_scored(
    tmp_path: Path, content: str, metric: float, details: dict[str, float]
) -> None:
    finding = read(tmp_path, content)
    assert (finding.verdict, finding.metric, finding.details) == (Verdict.SCORED, metric, details)


@pytest.mark.parametrize(
    ("content", "verdict"),
    [
        ('{"reward": 0, "invalid": 1}', Verdict.INVALID),
        ('{"reward": 0, "violation": 1}', Verdict.VIOLATION),
        ('{"violation": 1.0, "seconds": 3}', Verdict.VIOLATION),
        ('{"invalid": 1, "violation": 0}', Verdict.INVALID),
    ],
)
def test_a_flag_is_honoured(tmp_path: Path, content: str, verdict: Verdict) -> None:
    finding = read(tmp_path, content)
    assert (finding.verdict, finding.metric) == (verdict, None)


BAD = [
    "",
    "   ",
    "null",
    "1.5",
    "[1.5]",
    '"loss"',
    "{",
    '{"loss": 1.5} trailing',
    '{"loss": NaN}',
    '{"loss": Infinity}',
    '{"loss": -Infinity}',
    '{"loss": 1e999}',
    '{"loss": -1e999}',
    '{"loss": 1' + "0" * 400 + "}",
    '{"loss": 1' + "0" * 5000 + "}",
    '{"loss": true}',
    '{"loss": "1.5"}',
    '{"loss": null}',
    '{"loss": [1.5]}',
    '{"loss": {"value": 1.5}}',
    '{"loss": 1, "loss": 2}',
    '{"loss": 1, "extra": NaN}',
    '{"loss": 1, "extra": {"a": 1, "a": 2}}',
    '{"loss": 1, "extra": false}',
    '{"loss": 1, "": 2}',
    '{"loss": 1, "\\u0007": 2}',
    '{"loss": 1, "\\ud800": 2}',
    '{"loss": 1, "' + "x" * 300 + '": 2}',
    '{"loss": -0.001}',
    '{"loss": 10.001}',
    '{"Loss": 1}',
    '{"reward": 1}',
    "{}",
    '{"reward": 0, "invalid": 1, "violation": 1}',
    '{"reward": 0, "invalid": 2}',
    '{"reward": 0, "invalid": true}',
    '{"reward": 1, "violation": 1}',
    '{"loss": 1.5, "invalid": 1}',
    "\ufeff" + '{"loss": 1.5}',
    b'{"loss": 1.5, "\xff": 1}',
    b'{"loss": 1.5}\x00',
    '{"loss": 1.5}'.encode("utf-16"),
    "[" * 100_000,
    '{"loss": ' * 50_000,
    "{" + ", ".join(f'"k{i}": 1' for i in range(1001)) + ', "loss": 1}',
    '{"loss": 1.5' + " " * MAX_BYTES + "}",
]


@pytest.mark.parametrize("content", BAD, ids=range(len(BAD)))
def test_anything_else_is_no_measurement_with_a_reason(tmp_path: Path, content: str | bytes) -> None:
    finding = read(tmp_path, content)
    assert (finding.verdict, finding.metric) == (Verdict.NO_MEASUREMENT, None)
    assert finding.message
    assert "no usable result: " in finding.evidence


def test_no_result_is_no_measurement(tmp_path: Path) -> None:
    assert "wrote no reward.json" in read(tmp_path, None).evidence
    assert read_result(tmp_path / "none", CONTRACT).verdict is Verdict.NO_MEASUREMENT


def test_a_value_that_does_not_count_is_not_told_to_the_agent(tmp_path: Path) -> None:
    finding = read(tmp_path, '{"loss": 1234.5}')
    assert "1234.5" not in finding.message
    assert "1234.5" in finding.evidence


def test_the_greatest_size_is_still_read(tmp_path: Path) -> None:
    content = '{"loss": 1.5}'
    assert read(tmp_path, content + " " * (MAX_BYTES - len(content))).verdict is Verdict.SCORED


def place(kind: str, folder: Path, outside: Path) -> None:
    path = folder / "reward.json"
    (outside / "good.json").write_text('{"loss": 1.5}')
    if kind == "link":
        path.symlink_to(outside / "good.json")
    elif kind == "link beside":
        (folder / "x.json").write_text('{"loss": 1.5}')
        path.symlink_to("x.json")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "hard link":
        path.hardlink_to(outside / "good.json")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(folder)  # a socket's path has a short limit
        socket.socket(socket.AF_UNIX).bind("reward.json")
        os.chdir(here)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(20 << 30)


@pytest.mark.parametrize("kind", ["link", "link beside", "dangling", "hard link", "fifo", "folder", "device", "sparse"])
def test_only_a_regular_file_with_one_name_is_read(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    place(kind, folder, tmp_path)
    assert read_result(folder, CONTRACT).verdict is Verdict.NO_MEASUREMENT
    assert read_result(folder, None).verdict is Verdict.NO_MEASUREMENT


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_socket_is_not_read(tmp_path: Path) -> None:
    place("socket", tmp_path, tmp_path)
    assert read_result(tmp_path, CONTRACT).verdict is Verdict.NO_MEASUREMENT


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "reward.json").write_text('{"loss": 1.5}')
    (tmp_path / "logs").symlink_to("real")
    assert read_result(tmp_path / "logs", CONTRACT).verdict is Verdict.NO_MEASUREMENT


def test_a_second_result_file_is_an_error_with_a_contract(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("1.5")
    assert read(tmp_path, '{"loss": 1.5}').verdict is Verdict.NO_MEASUREMENT
    (tmp_path / "reward.json").unlink()
    assert read(tmp_path, None).verdict is Verdict.NO_MEASUREMENT


@pytest.mark.parametrize(
    ("files", "metric"),
    [
        ({"reward.json": '{"reward": 0.75, "other": 2}'}, 0.75),
        ({"reward.json": '{"reward": true}'}, 1.0),
        ({"reward.json": '{"reward": -250000000}'}, -250000000.0),
        ({"reward.json": '{"reward": 1}', "reward.txt": "0"}, 1.0),
        ({"reward.txt": " 0.5\n"}, 0.5),
        ({"reward.txt": "-1e-3"}, -0.001),
        ({"reward.txt": ".5"}, 0.5),
        ({"reward.json": "{", "reward.txt": "1"}, None),
        ({"reward.json": '{"reward": "1"}'}, None),
        ({"reward.json": '{"score": 1}'}, None),
        ({"reward.json": "0.5"}, None),
        ({"reward.json": '{"reward": NaN}'}, None),
        ({"reward.txt": ""}, None),
        ({"reward.txt": "nan"}, None),
        ({"reward.txt": "inf"}, None),
        ({"reward.txt": "1e999"}, None),
        ({"reward.txt": "1_0"}, None),
        ({"reward.txt": "0.5 0.6"}, None),
        ({"reward.txt": "passed"}, None),
        ({"reward.txt": "٣"}, None),
        ({"rewards.json": '{"reward": 1}'}, None),
        ({}, None),
    ],
)
def test_a_plain_task_has_harbors_rules(tmp_path: Path, files: dict[str, str], metric: float | None) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    finding = read_result(tmp_path, None)
    assert finding.metric == metric
    assert finding.verdict is (Verdict.NO_MEASUREMENT if metric is None else Verdict.SCORED)


def with_details(folder: Path, content: str | bytes, result: str = '{"loss": 1.5}') -> Finding:
    (folder / "reward-details.json").write_bytes(content.encode() if isinstance(content, str) else content)
    return read(folder, result)


def test_the_details_carry_text_and_never_a_number_that_counts(tmp_path: Path) -> None:
    told = json.dumps({"message": "loss on 3 of 4 shards\n\tgut → 名前", "evidence": "stderr: x", "loss": 0.1})
    finding = with_details(tmp_path, told)
    assert finding.metric == 1.5
    assert finding.message == "loss on 3 of 4 shards\n\tgut → 名前"
    assert finding.evidence == "stderr: x"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "1", b"\xff", "[" * 100_000, '{"message": 3}', '{"message": null}', '{"message": ["x"]}']
)
def test_bad_details_only_lose_the_text(tmp_path: Path, content: str | bytes) -> None:
    finding = with_details(tmp_path, content)
    assert (finding.verdict, finding.metric, finding.message) == (Verdict.SCORED, 1.5, "")


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_details_that_are_no_file_only_lose_the_text(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "reward-details.json"
    {"link": lambda: path.symlink_to("reward.json"), "fifo": lambda: os.mkfifo(path), "folder": path.mkdir}[kind]()
    finding = read(tmp_path, '{"loss": 1.5}')
    assert (finding.verdict, finding.message) == (Verdict.SCORED, "")
    assert "reward-details.json was not read" in finding.evidence


def test_a_message_is_cut_on_a_character_and_has_no_controls(tmp_path: Path) -> None:
    finding = with_details(tmp_path, json.dumps({"message": "\x1b[31ma\x00\x7f\x9b\r" + "ü" * 3000 + "\ud800"}))
    assert len(finding.message.encode()) <= MAX_MESSAGE
    assert finding.message.startswith("[31maüü")
    assert finding.message.endswith("ü")


def test_a_failed_reading_keeps_the_judges_evidence_for_the_operator(tmp_path: Path) -> None:
    finding = with_details(tmp_path, '{"message": "m", "evidence": "traceback"}', result='{"loss": 99}')
    assert finding.verdict is Verdict.NO_MEASUREMENT
    assert "traceback" in finding.evidence


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans()
JSON: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | st.none() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["loss", "reward", "x"]), inner),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(value=JSON | st.dictionaries(st.sampled_from(["loss", "reward", "invalid", "violation", "x"]), NUMBERS))
def test_whatever_json_there_is_the_verdict_is_sound(tmp_path: Path, value: Any) -> None:
    finding = read(tmp_path, json.dumps(value))
    if finding.verdict is Verdict.SCORED:
        assert finding.metric is not None
        assert 0 <= finding.metric <= 10
        assert type(value["loss"]) in {int, float}
        assert all(math.isfinite(number) for number in finding.details.values())
    else:
        assert finding.metric is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=200))
def test_whatever_bytes_there_are_nothing_raises(tmp_path: Path, content: bytes) -> None:
    for name in ("reward.json", "reward-details.json"):
        (tmp_path / name).write_bytes(content)
    assert read_result(tmp_path, CONTRACT).verdict in set(Verdict)
    assert read_result(tmp_path, None).verdict in set(Verdict)
