"""Boxes made of Linux namespaces and overlays of the host's own root, without a daemon and mostly without root."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import InputError, RsiError
from harness.sandbox import boxfolder, cgroups, hostroot, launch, layers
from harness.sandbox.base import Box, BoxSpec, Image, Lack, Level, Progress
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.namespacebox import NamespaceBox


class NamespaceSandbox:
    """Makes boxes of namespaces, as root or as an ordinary user."""

    level = Level.NAMESPACES

    def lacks(self) -> list[Lack]:
        """Return what keeps this machine from making such a box; found out by making one."""
        from harness.sandbox.abilities import namespace_lacks  # here, as a later engine that only attaches needs none

        return namespace_lacks(self)

    def describe(self) -> list[str]:
        """Return in plain words what is isolated and what is not."""
        from harness.sandbox.abilities import (
            describe_namespaces,
        )  # here, as a later engine that only attaches needs none

        return describe_namespaces()

    def bare_image(self) -> Image:
        """Return the image of the host's own root with nothing added."""
        base = layers.base_layer()
        layers.save_image(base, {"layers": [base]})
        return Image(base, "/", {"PATH": hostroot.default_path()})

    def build(self, environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
        """Build the image of an `environment/` folder, or find it in the cache; an error names file and line."""
        from harness.sandbox.build import build_image  # here, as a run that resumes needs no parser

        return build_image(self, environment, workdir=workdir, timeout=timeout, progress=progress)

    def pull(self, reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:  # noqa: ARG002 - none is fetched
        """Refuse: images are an engine's."""
        raise InputError(f"only an engine can fetch the image {reference}", next_step="use --sandbox docker")

    def create(self, spec: BoxSpec) -> Box:
        """Make a box; what it will own is written to disk before it exists, so `sweep` finds it."""
        image = layers.image(spec.image.digest)
        stack = [layers.layer(one) for one in image["layers"]]
        if spec.over is not None:
            if not isinstance(spec.over, NamespaceBox):
                raise RsiError("a box can only start from a box of the same sandbox")
            stack = spec.over.stack()
        return self.create_over(spec, stack, hide=[Path(path) for path in image.get("hidden", ())])

    def create_over(self, spec: BoxSpec, stack: list[Path], *, hide: Sequence[Path] = ()) -> NamespaceBox:
        """Make a box whose file system starts from these layers, newest first; folders of `hide` are not shown."""
        folder = BoxFolder(boxfolder.folder_of(spec.run, spec.name))
        if folder.lease() is not None:
            raise RsiError(f"there is a box {spec.name!r} of run {spec.run!r} already", where=str(folder.path))
        groups = cgroups.plan(_group_name(spec))
        lease = {
            "level": self.level.value,
            "boot": boxfolder.boot(),
            "owner": boxfolder.me(),
            "spec": boxfolder.spec_to_json(spec),
            "layers": [str(path) for path in stack],
            "groups": groups.folders,
            "unified": groups.unified,
        }
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        boxfolder.write_json(folder.path / "lease.json", lease)
        box = NamespaceBox(spec, folder, lease)
        try:
            groups.apply(launch.limits_of(spec))
            launch.launch(spec, folder, lease, hide=hide)
        except BaseException:
            box.remove()
            raise
        return box

    def attach(self, run: str, name: str) -> Box | None:
        """Return a box made by an earlier engine, or None when it is gone."""
        folder = BoxFolder(boxfolder.folder_of(run, name))
        lease = folder.lease()
        if lease is None or lease["level"] != self.level:
            return None
        return NamespaceBox(boxfolder.spec_from_json(lease["spec"]), folder, lease)

    def sweep(self, run: str) -> list[str]:
        """Remove every box of a run that is left; return what was removed, in words."""
        return boxfolder.sweep(run, self.level, _remove)

    def sweep_orphans(self, run: str) -> list[str]:
        """Remove the boxes of a run whose maker is dead; return what was removed, in words."""
        return boxfolder.sweep(run, self.level, _remove, orphans=True)


def _remove(folder: BoxFolder, lease: Mapping[str, Any]) -> None:
    NamespaceBox(boxfolder.spec_from_json(lease["spec"]), folder, lease).remove()


def _group_name(spec: BoxSpec) -> str:
    named = f"{boxfolder.folder_of(spec.run, spec.name)}"
    return hashlib.sha256(named.encode()).hexdigest()[:16]
