"""Boxes to judge in, one for every kind of place."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from judging import PLACES, Box, place  # it lies beside this file


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="rsi-kit-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def box(open_folder: Path) -> Box:
    """A judging at the plain-process level."""
    return Box(open_folder)


@pytest.fixture(params=sorted(PLACES))
def placed(request: pytest.FixtureRequest, box: Box) -> Box:
    """A judging at each place that this machine offers."""
    return place(box, request.param)
