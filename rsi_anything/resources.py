"""The one place that knows how we are installed: where the templates and the bundled tasks lie."""

from importlib.resources import files
from pathlib import Path

from harness.errors import PrerequisiteError


def templates_dir() -> Path:
    """Return the folder of the templates; treat it as read-only."""
    return _data("templates")


def tasks_dir() -> Path:
    """Return the folder of the bundled tasks; treat it as read-only."""
    return _data("tasks")


def _data(name: str) -> Path:
    package = Path(str(files("rsi_anything")))
    places = (package / "_data" / name, package.parent / name)
    for place in places:
        if place.is_dir():
            return place
    raise PrerequisiteError(
        f"the {name} that belong to rsi-anything are missing",
        where=" or ".join(map(str, places)),
        next_step="install rsi-anything again",
    )
