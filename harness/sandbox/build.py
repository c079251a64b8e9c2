"""Carries a Dockerfile out on top of the host's own root, one cached layer for every step that changes files."""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import RsiError
from harness.sandbox import hostroot, layers, pipsettings
from harness.sandbox.base import NO_NETWORK, BoxSpec, Image, Limits, Network, Progress, Reach, Role
from harness.sandbox.context import Context, Item, digest
from harness.sandbox.dockerfile import Instruction, assignments, expand, read, words
from harness.sandbox.placing import Look, Tree

if TYPE_CHECKING:
    from harness.sandbox.namespacebox import NamespaceBox
    from harness.sandbox.namespaces import NamespaceSandbox

BUILD_RUN = "build"
_SHOWN_LINES = 20
_MAX_LINKS = 40
_QUIET = frozenset({"LABEL", "MAINTAINER", "EXPOSE"})
_MEANINGLESS = frozenset({"CMD", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL"})


@dataclass
class Settings:
    """What instructions set for those after them; the same for every way of carrying a Dockerfile out."""

    env: dict[str, str]
    workdir: str = "/"
    arguments: dict[str, str] = field(default_factory=dict)
    shell: list[str] = field(default_factory=lambda: ["/bin/sh", "-c"])
    notes: list[str] = field(default_factory=list)

    def variables(self) -> dict[str, str]:
        """Return what $NAME means: an ENV wins over an ARG."""
        return {**self.arguments, **self.env}

    def absolute(self, path: str) -> str:
        """Return a path in the image, relative ones below the workdir."""
        joined = path if path.startswith("/") else f"{self.workdir.rstrip('/')}/{path}"
        return os.path.normpath(joined).replace("//", "/")

    def take(self, instruction: Instruction) -> bool:
        """Carry out an instruction that changes no files; return False for one that does."""
        name = instruction.name
        if name == "FROM":
            self._from(instruction)
        elif name == "ARG":
            self._argument(instruction)
        elif name == "ENV":
            self.env.update(assignments(instruction, self.variables()))
        elif name == "SHELL":
            self.shell = instruction.array(instruction.value) or []
            if not self.shell:
                raise instruction.refuse("it needs a JSON array of words")
        elif name == "USER":
            self.notes.append(f"USER {instruction.value}: not carried out, commands run as root of the box")
        elif name in _MEANINGLESS:
            self.notes.append(f"{name}: not carried out, the harness starts the commands of a box")
        else:
            return name in _QUIET
        return True

    def _from(self, instruction: Instruction) -> None:
        base = re.sub(r"^(--platform=\S+\s+)", "", expand(instruction.value, self.arguments)).split()[0]
        self.notes.append(f"FROM {base}: the host's own root stands in for it")
        self.arguments = {}

    def _argument(self, instruction: Instruction) -> None:
        for word in words(instruction.value, self.variables()):
            name, equals, value = word.partition("=")
            if equals or name not in self.arguments:
                self.arguments[name] = value


@dataclass(frozen=True)
class Copy:
    """A COPY or ADD, looked up in the context."""

    items: list[Item]
    folder: str
    owner: str
    mode: int | None

    def digest(self) -> str:
        """Return a digest of all that decides what it writes."""
        return hashlib.sha256(f"{digest(self.items)}\0{self.folder}\0{self.owner}\0{self.mode}".encode()).hexdigest()


def look_up_copy(
    instruction: Instruction, settings: Settings, context: Context, is_folder: Callable[[str], bool]
) -> Copy:
    """Return what a COPY writes and where; `is_folder` answers for paths of the image as it stands."""
    flags, rest = instruction.flags()
    for flag in flags:
        if flag not in {"chown", "chmod", "link"}:
            raise instruction.refuse(f"--{flag} is not supported")
    named = instruction.array(rest)
    found = words(rest, settings.variables()) if named is None else [expand(w, settings.variables()) for w in named]
    if len(found) < 2:
        raise instruction.refuse("it needs a source and a destination")
    *patterns, destination = found
    if instruction.name == "ADD" and any(re.match(r"[a-z+]+://|git@", pattern) for pattern in patterns):
        raise instruction.refuse("only files of the build context can be added")
    sources = [source for pattern in patterns for source in context.sources(instruction, pattern)]
    if instruction.name == "ADD" and any(re.search(r"\.(tar|tgz|tar\.\w+)$", source.name) for source in sources):
        raise instruction.refuse("archives are not unpacked; add the files, or unpack them in a RUN")
    target = settings.absolute(destination)
    into = destination.endswith(("/", "/.")) or destination == "." or len(sources) > 1 or is_folder(target)
    items: list[Item] = []
    folder = target
    for source in sources:
        if source.is_dir():
            items += context.items(instruction, source, "")
        elif into:
            items += context.items(instruction, source, source.name)
        else:
            folder, _, name = target.rpartition("/")
            items += context.items(instruction, source, name)
    return Copy(items, folder or "/", flags.get("chown", ""), _mode(instruction, flags.get("chmod")))


def _mode(instruction: Instruction, text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[0-7]{3,4}", text):
        raise instruction.refuse(f"--chmod={text} must be an octal number")
    return int(text, 8)


class Builder:
    """One build; each step is a box over the layers so far, whose upper folder becomes the next layer."""

    def __init__(self, sandbox: "NamespaceSandbox", environment: Path, timeout: float, progress: Progress) -> None:
        self.sandbox = sandbox
        self.context = Context(environment)
        self.environment = environment
        self.deadline = time.monotonic() + timeout
        self.progress = progress
        self.settings = Settings({"PATH": hostroot.default_path()})
        self.stack = [layers.base_layer()]

    def build(self, workdir: str | None) -> Image:
        """Carry out every instruction; return the image."""
        instructions = read(self.environment / "Dockerfile")
        for number, instruction in enumerate(instructions, 1):
            if self.settings.take(instruction):
                continue
            self.progress(f"[{number}/{len(instructions)}] {instruction.name} {instruction.value}"[:200])
            if instruction.name == "WORKDIR":
                self._workdir(instruction)
            elif instruction.name == "RUN":
                self._run(instruction)
            else:
                self._copy(instruction)
        settings = self.settings
        final = workdir or settings.workdir
        value = {
            "layers": self.stack,
            "workdir": final,
            "env": settings.env,
            "notes": settings.notes,
            "hidden": [str(self.environment.resolve().parent)],
        }
        image_digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
        layers.save_image(image_digest, value)
        return Image(image_digest, final, dict(settings.env), tuple(settings.notes))

    def _next(self, *facts: str) -> str:
        """Return the digest of the layer that these facts make on top of the present ones."""
        return hashlib.sha256("\0".join((self.stack[0], *facts)).encode("utf-8", "surrogateescape")).hexdigest()

    def _layer(self, layer_digest: str, act: "Callable[[NamespaceBox], None]", *, network: bool = False) -> None:
        """Stack the layer of that digest, carried out by `act` in a box unless it is in the cache."""
        if not layers.layer(layer_digest).is_dir():
            with layers.making(layer_digest) as made:
                if made is not None:
                    self._make(layer_digest, made, act, network=network)
        self.stack.insert(0, layer_digest)

    def _make(self, layer_digest: str, made: Path, act: "Callable[[NamespaceBox], None]", *, network: bool) -> None:
        # "/" as workdir: the box must not make the one that a later instruction names
        image = Image(layer_digest, "/", self.settings.env)
        reach = Network(Reach.PUBLIC) if network else NO_NETWORK
        spec = BoxSpec(BUILD_RUN, layer_digest[:32], Role.BUILD, image, network=reach, limits=Limits(pids=4096),
                       mounts=pipsettings.mounts() if network else ())  # fmt: skip
        left = self.sandbox.attach(BUILD_RUN, spec.name)
        if left is not None:
            left.remove()
        box = self.sandbox.create_over(spec, [layers.layer(one) for one in self.stack], hide=[self.environment.parent])
        try:
            act(box)
            box.end()
            for share in (box.folder.path / "upper").iterdir():
                if any(share.iterdir()):
                    share.rename(made / share.name)
        finally:
            box.remove()

    def _workdir(self, instruction: Instruction) -> None:
        wanted = " ".join(words(instruction.value, self.settings.variables()))
        path = self.settings.absolute(wanted)
        self.settings.workdir = path

        def make(box: "NamespaceBox") -> None:
            with _tree(box, Look()) as tree:
                os.close(tree.folder(path))

        self._layer(self._next("WORKDIR", path), self._guarded(instruction, make))

    def _copy(self, instruction: Instruction) -> None:
        copy = look_up_copy(instruction, self.settings, self.context, self._is_folder)

        def write(box: "NamespaceBox") -> None:
            with _tree(box, Look()) as plain:
                look = _look(instruction, copy, plain, self.settings)
            with _tree(box, look) as tree:
                os.close(tree.folder(copy.folder))
                for item in copy.items:
                    tree.place(item, copy.folder)

        self._layer(self._next("COPY", copy.digest()), self._guarded(instruction, write))

    def _is_folder(self, path: str) -> bool:
        """Say whether a path of the image so far is a folder, from its layers alone: no box is made for that."""
        return _in_layers(path, [layers.layer(one) for one in self.stack])

    def _guarded(
        self, instruction: Instruction, act: "Callable[[NamespaceBox], None]"
    ) -> "Callable[[NamespaceBox], None]":
        def guarded(box: "NamespaceBox") -> None:
            try:
                act(box)
            except OSError as error:
                closed = isinstance(error, PermissionError) and os.geteuid() != 0
                way_out = "without root, copy below /usr/local, /opt or a new folder instead" if closed else ""
                raise RsiError(
                    f"{instruction.name} failed: {error}", where=instruction.where, next_step=way_out
                ) from error

        return guarded

    def _run(self, instruction: Instruction) -> None:
        flags, rest = instruction.flags()
        if flags:
            raise instruction.refuse(f"--{next(iter(flags))} is not supported")
        command = instruction.array(rest) or [*self.settings.shell, rest]
        env = {**self.settings.arguments, **pipsettings.environment(), **self.settings.env}
        facts = json.dumps([command, self.settings.arguments, self.settings.env, self.settings.workdir])

        def run(box: "NamespaceBox") -> None:
            output = box.folder.path / "output"
            process = box.start("run", command, output=output, env=env, cwd=self.settings.workdir)
            done = process.wait(max(0.0, self.deadline - time.monotonic()))
            if done.code != 0 or done.timed_out:
                raise _failed(instruction, "ran out of time" if done.timed_out else f"exited with {done.code}",
                              output, out_of_memory=done.out_of_memory)  # fmt: skip

        self._layer(self._next("RUN", facts), run, network=True)


def _failed(instruction: Instruction, how: str, output: Path, *, out_of_memory: bool) -> RsiError:
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - (1 << 15)))
        lines = file.read().decode("utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
    shown = "".join(f"\n    {line}" for line in lines)
    memory = ", out of memory" if out_of_memory else ""
    return RsiError(f"RUN {how}{memory}:{shown}", where=instruction.where, next_step="mend the command and build again")


class _tree:  # noqa: N801 - used as a function
    """A box's root to write to, closed at the end of the block."""

    def __init__(self, box: "NamespaceBox", look: Look) -> None:
        self.root = box.root_fd()
        self.tree = Tree(self.root, look, can_own=os.geteuid() == 0)

    def __enter__(self) -> Tree:
        return self.tree

    def __exit__(self, *_: object) -> None:
        os.close(self.root)


def _look(instruction: Instruction, copy: Copy, tree: Tree, settings: Settings) -> Look:
    """Return owner and mode of what a COPY writes, names looked up in the image's own lists."""
    if not copy.owner:
        return Look(mode=copy.mode)
    if os.geteuid() != 0:
        settings.notes.append(f"{instruction.name} --chown={copy.owner}: not carried out without root")
        return Look(mode=copy.mode)
    user, _, group = copy.owner.partition(":")
    uid, own_group = _id(instruction, tree, "passwd", user)
    gid = _id(instruction, tree, "group", group)[0] if group else own_group
    return Look(uid, gid, copy.mode)


def _id(instruction: Instruction, tree: Tree, file: str, name: str) -> tuple[int, int]:
    if name.isdigit():
        return int(name), int(name)
    place = tree.folder("/etc", make=False)
    try:
        held = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
        with os.fdopen(held, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                fields = line.rstrip("\n").split(":")
                if fields[0] == name and len(fields) > 3:
                    return int(fields[2]), int(fields[3]) if file == "passwd" else int(fields[2])
    finally:
        os.close(place)
    raise instruction.refuse(f"--chown: the image knows no {name!r}")


def _in_layers(path: str, stack: list[Path], links: int = 0) -> bool:
    """Say whether a path is a folder in the topmost layer that has it, or on the host where that is shown."""
    shares = [hostroot.Shown(hostroot.ROOT_KEY, "/"), *hostroot.shown()]
    share = max((one for one in shares if path == one.path or path.startswith(one.path.rstrip("/") + "/")),
                key=lambda one: len(one.path))  # fmt: skip
    inner = path[len(share.path) :].strip("/")
    for one in stack:
        place = one / share.key / inner
        if place.is_symlink():
            goal = os.path.normpath(Path(path).parent / place.readlink())
            return links < _MAX_LINKS and _in_layers(goal, stack, links + 1)
        if os.path.lexists(place):
            return place.is_dir()
    return share.path != "/" and Path(path).is_dir()


def build_image(
    sandbox: "NamespaceSandbox", environment: Path, *, workdir: str | None, timeout: float, progress: Progress
) -> Image:
    """Build the image of an `environment/` folder, or find every layer of it in the cache."""
    sandbox.sweep_orphans(BUILD_RUN)
    return Builder(sandbox, environment, timeout, progress).build(workdir)
