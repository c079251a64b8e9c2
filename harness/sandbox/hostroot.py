"""Which of the host's own files stand in for a base image, and which never do.

An allow-list: system folders and the interpreter. Homes, mounted disks, run folders, our own data, the task that is
being run and everything in /etc that only some users of the host may read are not shown.
"""

import functools
import hashlib
import json
import os
import platform
import shutil
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from harness import paths

_TOPS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt")
_INNER = {"dpkg": "/var/lib/dpkg", "apt": "/var/lib/apt"}
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_EMPTY = ("proc", "sys", "dev", "run", "home", "mnt", "media", "srv", "var/log", "var/cache/apt/archives/partial",
          "var/lib", "var/spool")  # fmt: skip
ROOT_KEY = "root"
HOSTNAME = "rsi"


@dataclass(frozen=True)
class Shown:
    """One folder of the host shown at its own path; `key` names its share of a layer."""

    key: str
    path: str


def prefix() -> str:
    """Return the folder of the interpreter, the real one even in a virtual environment."""
    found = os.path.realpath(sys.base_prefix)
    return "/nix/store" if found.startswith("/nix/store/") else found


@functools.cache
def shown() -> tuple[Shown, ...]:
    """Return the folders of the host that a box shows, outer ones first."""
    tops = [Shown(name, f"/{name}") for name in _TOPS if _is_folder(f"/{name}")]
    inner = [Shown(key, path) for key, path in _INNER.items() if _is_folder(path)]
    found = [*tops, *inner]
    if not is_shown(prefix(), found):
        found.append(Shown("prefix", prefix()))
    if os.geteuid() == 0:  # a user namespace cannot take apart what is mounted on one another
        found += [Shown(path.strip("/").replace("/", "-"), path) for path in _mounted_below(found)]
    return tuple(sorted(found, key=lambda one: (one.path.count("/"), one.path)))


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def is_shown(path: str, found: "list[Shown] | None" = None) -> bool:
    """Say whether a real path of the host lies in a folder that a box shows."""
    folders = shown() if found is None else found
    return any(path == one.path or path.startswith(f"{one.path}/") for one in folders)


def _mounted_below(found: list[Shown]) -> list[str]:
    """Return what is mounted inside the shown folders: an overlay would show those places empty."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return []
    places = {line.split(" ")[4].encode().decode("unicode_escape") for line in lines}
    own = {one.path for one in found}
    return sorted(place for place in places - own if is_shown(place, found) and _is_folder(place))


def links() -> dict[str, str]:
    """Return the links at the top of the host's root that a box has too, such as bin -> usr/bin."""
    return {name: str(Path(f"/{name}").readlink()) for name in _TOPS if Path(f"/{name}").is_symlink()}


def default_path() -> str:
    """Return the PATH of a box whose image sets none: the interpreter first."""
    own = f"{os.path.realpath(sys.base_prefix)}/bin"
    return _USUAL_PATH if own in _USUAL_PATH.split(":") else f"{own}:{_USUAL_PATH}"


def hidden(*more: Path) -> list[str]:
    """Return folders that must not be seen although they may lie in a shown one: our data, our code, the task."""
    package = Path(__file__).resolve().parents[2]
    own = [package / "harness", package / "rsi_anything", package / "tasks"]
    wanted = [paths.home().resolve(), *own, *(path.resolve() for path in more)]
    return sorted({str(path) for path in wanted if path.is_dir() and is_shown(str(path))})


def secrets() -> list[str]:
    """Return what in /etc, relative to it, an ordinary user may not read or that holds a password."""
    found: list[str] = []
    if os.geteuid() != 0:
        return found  # the kernel keeps them from this user's boxes
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        for entry in os.scandir(Path("/etc") / folder):
            name = f"{folder}/{entry.name}".lstrip("/")
            info = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(info.st_mode):
                continue
            is_folder = stat.S_ISDIR(info.st_mode)
            needed = stat.S_IROTH | (stat.S_IXOTH if is_folder else 0)
            if info.st_mode & needed != needed or (
                entry.name in {"pip.conf", "sources.list"} and has_password(entry.path)
            ):
                found.append(name)
            elif is_folder:
                waiting.append(name)
    return sorted(found)


def has_password(path: str | Path) -> bool:
    """Say whether a settings file names a user and a password in an address, or cannot be read."""
    import re  # here, as most callers need none

    try:
        text = Path(path).read_text("utf-8", errors="replace")
    except OSError:
        return True
    return re.search(r"://[^/\s@]+@", text) is not None


def identity() -> str:
    """Return a digest of what the host contributes to an image: another host or interpreter makes another image."""
    try:
        release = Path("/etc/os-release").read_text("utf-8")
    except OSError:
        release = platform.platform()
    facts = [
        "layers-2", release, platform.machine(), sys.version, prefix(), os.geteuid() == 0, links(), secrets(),
        [[one.key, one.path] for one in shown()],
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _name_python(layer: Path) -> None:
    """Let `python` be found where the host has `python3` alone: the images that this root stands in for have both."""
    found = shutil.which("python3", path=default_path())
    if found is not None and shutil.which("python", path=default_path()) is None:
        place = layer / "usr" / "local" / "bin"
        place.mkdir(parents=True, exist_ok=True)
        (place / "python").symlink_to(found)


def fill_base_layer(layer: Path) -> None:
    """Make the lowest layer of every image: the places that mounts need, private names, and no secrets of /etc."""
    root = layer / ROOT_KEY
    for name in (*_EMPTY, *(one.path.strip("/") for one in shown())):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, goal in links().items():
        (root / name).symlink_to(goal)
    for name in ("tmp", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
        (root / name).chmod(0o1777)
    own_home = root / "root"
    own_home.mkdir(exist_ok=True)
    # Passable where the interpreter lies below it, as candidate code runs as another user.
    own_home.chmod(0o711 if prefix().startswith("/root/") else 0o700)
    for folder in own_home.rglob("*"):
        folder.chmod(0o755)
    _name_python(layer)
    etc = layer / "etc"
    for name in secrets():
        place = etc / name
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(place, stat.S_IFCHR, 0)  # an overlay's sign that the name below is gone
    etc.mkdir(parents=True, exist_ok=True)
    (etc / "hostname").write_text(f"{HOSTNAME}\n", "ascii")
    (etc / "hosts").write_text(f"127.0.0.1\tlocalhost {HOSTNAME}\n::1\tlocalhost\n", "ascii")
    for folder in (etc, *(path for path in etc.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    if os.geteuid() != 0:
        _lend_folders(layer)


def _lend_folders(layer: Path) -> None:
    """Give this user folders that installers write to: what host root owns cannot be written without root."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    names = ["local", *(f"local/{name}" for name in ("bin", "etc", "include", "lib", "sbin", "share", "src"))]
    names += [f"local/lib/{version}", f"local/lib/{version}/dist-packages", f"local/lib/{version}/site-packages"]
    for name in names:
        (layer / "usr" / name).mkdir(parents=True, exist_ok=True)
