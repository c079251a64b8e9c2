"""What a script agent brings along: files of the operator that its command names are shown in the box at /agent.

A word of the command that begins with `./` or `../` and names a file or folder of the host is one of them; the box
does not see the host's folders, so any other meaning would fail.
"""

import shutil
import stat
from pathlib import Path

from harness.errors import InputError

SHOWN_AT = "/agent"
MAX_MB = 256
"""Most that a command brings along, in MiB."""


def brought(command: tuple[str, ...]) -> tuple[tuple[str, ...], list[Path]]:
    """Return the command as the box reads it, and what it brings along.

    Raises:
        InputError: when two of them have one name, or they are too large.
    """
    found: dict[str, Path] = {}
    words = []
    for word in command:
        if not word.startswith(("./", "../")) or not Path(word).exists():
            words.append(word)
            continue
        path = Path(word).resolve()
        if found.setdefault(path.name, path) != path:
            raise InputError(
                f"two things named {path.name} cannot both be brought along", next_step="give one of them another name"
            )
        words.append(f"{SHOWN_AT}/{path.name}")
    size = sum(_size(path) for path in found.values()) / (1 << 20)
    if size > MAX_MB:
        raise InputError(
            f"the agent's files take {size:.0f} MiB, more than {MAX_MB}",
            next_step="name the file that is run, not more",
        )
    return tuple(words), list(found.values())


def bring(paths: list[Path], folder: Path) -> None:
    """Copy what is brought along; a file that is run becomes executable for everybody in the box."""
    folder.mkdir(mode=0o755)
    for path in paths:
        target = folder / path.name
        if path.is_dir():
            shutil.copytree(path, target, symlinks=True, ignore=shutil.ignore_patterns(".git", "__pycache__"))
            continue
        shutil.copy2(path, target)
        target.chmod(stat.S_IMODE(target.stat().st_mode) | 0o555 if path.stat().st_mode & 0o100 else 0o444)


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if ".git" not in each.parts)
