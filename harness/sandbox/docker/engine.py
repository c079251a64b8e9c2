"""The docker sandbox: boxes that are containers of a Docker engine, or of anything that speaks its API."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import RsiError
from harness.sandbox import boxfolder
from harness.sandbox.base import Box, BoxSpec, Image, Lack, Level, Progress
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.docker import images, names, spec_words
from harness.sandbox.docker.box import WORKDIR, DockerBox
from harness.sandbox.docker.client import Missing, answers, engine
from harness.sandbox.docker.network import BoxNetwork
from harness.sandbox.laying import lay_over


class DockerSandbox:
    """Makes boxes that are containers."""

    level = Level.CONTAINER

    def lacks(self) -> list[Lack]:
        """Return what this machine lacks for this sandbox; empty means it can be used."""
        from harness.sandbox.docker.examine import lacks  # here, as a later engine that only attaches needs none

        return lacks()

    def describe(self) -> list[str]:
        """Return in plain words what is isolated and what is not."""
        return spec_words.described()

    def bare_image(self) -> Image:
        """Return an image with the workdir /app and nothing else that was not in the base."""
        import tempfile  # here, as only tests and checks want it

        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "Dockerfile").write_text("FROM rsi-base:bookworm\nWORKDIR /app\n", "utf-8")
            return self.build(Path(folder), workdir=None, timeout=120, progress=lambda _: None)

    def build(self, environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
        """Build the image of an `environment/` folder, or find it by its content; an error names file and line."""
        return images.build(environment, workdir=workdir, timeout=timeout, progress=progress)

    def pull(self, reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
        """Return a ready-made image by its reference, fetching it if needed."""
        return images.pull(reference, workdir=workdir, timeout=timeout, progress=progress)

    def create(self, spec: BoxSpec) -> Box:
        """Make a box; what it will own is written to disk before it exists, so `sweep` finds it."""
        folder = BoxFolder(boxfolder.folder_of(spec.run, spec.name))
        if folder.lease() is not None:
            raise RsiError(f"there is a box {spec.name!r} of run {spec.run!r} already", where=str(folder.path))
        if spec.over is not None and not isinstance(spec.over, DockerBox):
            raise RsiError("a box can only start from a box of the same sandbox")
        folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        lease = {
            "level": self.level.value,
            "boot": boxfolder.boot(),
            "owner": boxfolder.me(),
            "spec": boxfolder.spec_to_json(spec),
            "volume": spec.image.workdir != "/",
            "commit": f"rsi-box:{names.thing(spec)}" if spec.over is not None else "",
        }
        boxfolder.write_json(folder.path / "lease.json", lease)
        box = DockerBox(spec, folder, lease)
        try:
            self._make(box)
        except BaseException:
            box.remove()
            raise
        return box

    def _make(self, box: DockerBox) -> None:
        spec = box.spec
        image = self._image(box)
        if box.lease["volume"]:
            self._volume(box)
        options = spec_words.options(spec, box.lease, BoxNetwork(spec, box.folder).create())
        with answers(box.name):
            api = engine().api
            api.create_container_from_config({"Image": image, **options}, name=box.name)
            api.start(box.name)
        if spec.placement is not None:
            self._place(box)

    def _image(self, box: DockerBox) -> str:
        """Return what the container starts from: the image, or all that the box below it has written."""
        over = box.spec.over
        if not isinstance(over, DockerBox):
            return box.spec.image.digest
        repository, _, tag = box.lease["commit"].partition(":")
        with answers(over.name):
            engine().api.commit(over.name, repository, tag, pause=False, conf={"Labels": names.labels(box.spec)})
        return str(box.lease["commit"])

    def _volume(self, box: DockerBox) -> None:
        """Make the volume that the workdir lies on; a new one is seeded by the engine from the image."""
        place = box.folder.path / WORKDIR
        if isinstance(box.spec.over, DockerBox) and box.spec.over.lease["volume"]:
            box.spec.over.copy_workdir(place)
        else:
            place.mkdir(exist_ok=True, mode=0o755)
        options = {"type": "none", "o": "bind", "device": str(place)}
        with answers(box.name):
            engine().api.create_volume(box.name, "local", options, names.labels(box.spec))

    def _place(self, box: DockerBox) -> None:
        """Lay files over the workdir; nothing but our own sleeper runs in the box yet."""
        assert box.spec.placement is not None
        held = box.workdir_fd()
        try:
            lay_over(box.spec.placement, held)
        finally:
            os.close(held)

    def attach(self, run: str, name: str) -> Box | None:
        """Return a box made by an earlier engine, or None when it is gone."""
        folder = BoxFolder(boxfolder.folder_of(run, name))
        lease = folder.lease()
        if lease is None or lease["level"] != self.level:
            return None
        box = DockerBox(boxfolder.spec_from_json(lease["spec"]), folder, lease)
        if not self._there(box):
            return None
        if box.alive():
            BoxNetwork(box.spec, folder).mend(lease)
        return box

    def _there(self, box: DockerBox) -> bool:
        """Say whether the container is there; one that a person removed leaves nothing to go on from."""
        try:
            with answers(box.name):
                engine().api.inspect_container(box.name)
        except Missing:
            box.remove()
            return False
        return True

    def sweep(self, run: str) -> list[str]:
        """Remove every box of a run that is left; return what was removed, in words."""
        return boxfolder.sweep(run, self.level, _remove)

    def sweep_orphans(self, run: str) -> list[str]:
        """Remove the boxes of a run whose maker is dead; return what was removed, in words."""
        return boxfolder.sweep(run, self.level, _remove, orphans=True)


def _remove(folder: BoxFolder, lease: Mapping[str, Any]) -> None:
    DockerBox(replace(boxfolder.spec_from_json(lease["spec"])), folder, lease).remove()
