"""In CI a test may not be skipped in silence, and no test reaches the network."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_silent():
    pytest.skip("not today")

def test_reasoned():
    pytest.skip("needs namespaces: none here")

@pytest.mark.machine
def test_marked():
    pytest.skip("this machine has no such thing")

@pytest.mark.xfail(strict=True)
def test_expected():
    assert False
"""


def test_a_skip_without_a_reason_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text("utf-8"))
    alone = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *alone, "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, tmp_path],
        env={**os.environ, "CI": "true", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed, 2 skipped, 1 xfailed" in done.stdout


def test_no_test_reaches_another_machine() -> None:
    with socket.socket() as one, pytest.raises(AssertionError, match=r"tried to reach 192\.0\.2\.1"):
        one.connect(("192.0.2.1", 80))
