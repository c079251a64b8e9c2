"""A box's files as a plain folder: what the levels without namespaces share.

A path of the image means the same path below the box's root; a mount's target means its source.
"""

import hashlib
import json
import os
import shutil
import stat
from pathlib import Path

from harness.errors import InputError, RsiError
from harness.sandbox import layers
from harness.sandbox.base import BoxSpec, Image, Mount, Progress
from harness.sandbox.build import Settings, look_up_copy
from harness.sandbox.context import Context
from harness.sandbox.dockerfile import Instruction, read, words
from harness.sandbox.laying import lay_over
from harness.sandbox.placing import Look, Tree

_RUN = (
    "RUN needs namespaces or Docker: plain processes share the host's own files; see `rsi doctor` for how to allow "
    "namespaces, or use the docker sandbox"
)


def build_tree(
    environment: Path, *, workdir: str | None, progress: Progress, level: str, default_path: str, skip_run: bool = False
) -> Image:
    """Carry out COPY, ENV and WORKDIR in a folder of the cache; with `skip_run` a RUN is noted, else it is an error."""
    settings = Settings({"PATH": default_path})
    context = Context(environment)
    steps: list[tuple[Instruction, str]] = []
    instructions = read(environment / "Dockerfile")
    for instruction in instructions:
        if settings.take(instruction):
            continue
        if instruction.name == "RUN":
            if not skip_run:
                raise InputError(_RUN, where=instruction.where, next_step="run `rsi doctor`")
            settings.notes.append(f"RUN {instruction.value}: not carried out")
        elif instruction.name == "WORKDIR":
            settings.workdir = settings.absolute(" ".join(words(instruction.value, settings.variables())))
            steps.append((instruction, settings.workdir))
        else:
            copy = look_up_copy(instruction, settings, context, lambda _: False)
            steps.append((instruction, copy.digest()))
    named = json.dumps([level, [(one.name, value) for one, value in steps]])
    tree = layers.ensure(
        hashlib.sha256(named.encode()).hexdigest(),
        lambda folder: _carry_out(folder, instructions, context, default_path, progress),
    )
    value = {"layers": [tree], "workdir": workdir or settings.workdir, "env": settings.env, "notes": settings.notes}
    digest = hashlib.sha256(json.dumps([level, value], sort_keys=True).encode()).hexdigest()
    layers.save_image(digest, value)
    return Image(digest, str(value["workdir"]), dict(settings.env), tuple(settings.notes))


def _carry_out(
    folder: Path, instructions: list[Instruction], context: Context, default_path: str, progress: Progress
) -> None:
    """Do every WORKDIR and COPY below a folder, with the settings that hold at that line."""
    settings = Settings({"PATH": default_path})
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        tree = Tree(root, Look(), can_own=False)
        for instruction in instructions:
            if settings.take(instruction) or instruction.name == "RUN":
                continue
            progress(f"{instruction.name} {instruction.value}"[:200])
            if instruction.name == "WORKDIR":
                settings.workdir = settings.absolute(" ".join(words(instruction.value, settings.variables())))
                os.close(tree.folder(settings.workdir))
                continue
            copy = look_up_copy(instruction, settings, context, tree.is_folder)
            tree.look = Look(mode=copy.mode)
            os.close(tree.folder(copy.folder))
            for item in copy.items:
                tree.place(item, copy.folder)
    except OSError as error:
        raise RsiError(f"the image could not be built: {error}", where=str(folder)) from error
    finally:
        os.close(root)


class BoxTree:
    """The root folder of one box."""

    def __init__(self, root: Path, spec: BoxSpec, mounts: tuple[Mount, ...]) -> None:
        self.root = root
        self.spec = spec
        self.mounts = sorted(mounts, key=lambda mount: len(mount.target), reverse=True)

    def fill(self) -> None:
        """Copy the image, or the box this one starts from, then what is laid over it."""
        if self.spec.over is not None:
            copy_tree(Path(self.spec.over.path("/")), self.root)
        else:
            for digest in layers.image(self.spec.image.digest)["layers"]:
                copy_tree(layers.layer(digest), self.root)
        workdir = Path(self.path(self.spec.image.workdir))
        workdir.mkdir(parents=True, exist_ok=True)
        if self.spec.placement is not None:
            place = os.open(workdir, os.O_RDONLY | os.O_DIRECTORY)
            try:
                lay_over(self.spec.placement, place)
            finally:
                os.close(place)

    def path(self, inside: str) -> str:
        """Return the host's path of a path in the box."""
        clean = os.path.normpath("/" + inside.lstrip("/"))
        for mount in self.mounts:
            target = mount.target.rstrip("/")
            if clean == target or clean.startswith(target + "/"):
                return str(mount.source) + clean[len(target) :]
        return str(self.root) + (clean if clean != "/" else "")

    def value(self, value: str) -> str:
        """Return the value of a variable with the places of the box in it mapped, also in a list like PATH."""
        return ":".join(self._place(part) for part in value.split(":"))

    def _place(self, part: str) -> str:
        if not part.startswith("/") or part == "/":
            return part
        mapped = self.path(part)
        return mapped if os.path.lexists(mapped) else part

    def workdir_fd(self) -> int:
        """Open the workdir without following links below the box's root."""
        place = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in [name for name in self.spec.image.workdir.split("/") if name]:
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            except OSError as error:
                raise RsiError(f"the workdir of the box is no folder any more: {error.strerror}",
                               where=self.spec.image.workdir) from error  # fmt: skip
            finally:
                os.close(place)
            place = inner
        return place


def copy_tree(source: Path, target: Path) -> None:
    """Copy a tree into a folder: links as links, a file that is there replaced, special files left out."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        goal = target / path.name
        info = path.lstat()
        if stat.S_ISDIR(info.st_mode):
            copy_tree(path, goal)
            shutil.copystat(path, goal)
        elif stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode):
            if os.path.lexists(goal):
                goal.unlink()
            shutil.copy2(path, goal, follow_symlinks=False)
