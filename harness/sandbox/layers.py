"""The cache of image layers: content-addressed folders that overlays stack, made atomically and shared by all runs.

<cache>/images/layers/<digest>/<key>/...   what one step added, per shown folder of the host
<cache>/images/<digest>.json               an image: its layers, newest first
"""

import fcntl
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import paths
from harness.errors import RsiError
from harness.sandbox import hostroot
from harness.sandbox.boxfolder import remove_tree, write_json


def images() -> Path:
    """Return the folder of the cache."""
    return paths.cache() / "images"


def layer(digest: str) -> Path:
    """Return the folder of a layer, which need not exist."""
    return images() / "layers" / digest


def _open_cache() -> None:
    """Make the cache, closed to others: a set-uid program that a RUN has left would serve every user of the host."""
    (images() / "layers").mkdir(parents=True, exist_ok=True)
    images().chmod(0o700)


@contextmanager
def making(digest: str) -> Iterator[Path | None]:
    """Yield a new folder that becomes the layer when the block ends well, or None where the layer is there.

    Two builders of one layer wait for one another; what a killed builder left is cleared by the next.
    """
    _open_cache()
    (images() / "making").mkdir(exist_ok=True)
    with (images() / "making" / f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if layer(digest).is_dir():
            yield None
            return
        for left in (images() / "making").glob(f"{digest}.*.d"):
            remove_tree(left)
        made = Path(tempfile.mkdtemp(prefix=f"{digest}.", suffix=".d", dir=images() / "making"))
        made.chmod(0o755)
        try:
            yield made
            made.rename(layer(digest))
        finally:
            if made.exists():
                remove_tree(made)


def ensure(digest: str, fill: Callable[[Path], None]) -> str:
    """Make a layer unless it is there; return its digest."""
    if not layer(digest).is_dir():
        with making(digest) as made:
            if made is not None:
                umask = os.umask(0o022)
                try:
                    fill(made)
                finally:
                    os.umask(umask)
    return digest


def base_layer() -> str:
    """Return the digest of the lowest layer, made if it is not there."""
    return ensure(hostroot.identity(), hostroot.fill_base_layer)


def save_image(digest: str, value: dict[str, Any]) -> None:
    """Record an image."""
    _open_cache()
    write_json(images() / f"{digest}.json", value)


def load_image(digest: str) -> dict[str, Any] | None:
    """Return the record of an image whose layers are all there, or None."""
    try:
        value = json.loads((images() / f"{digest}.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    assert isinstance(value, dict)
    return value if all(layer(one).is_dir() for one in value["layers"]) else None


def image(digest: str) -> dict[str, Any]:
    """Return the record of an image; an error where it is not in the cache any more."""
    value = load_image(digest)
    if value is None:
        raise RsiError(
            "the image of this task is no longer in the cache", where=str(images()), next_step="build the image again"
        )
    return value
