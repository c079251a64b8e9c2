"""The network of a box: none, one of its own with a way out, or one without a way out but our proxy."""

from typing import Any

from harness.sandbox.base import BoxSpec, Reach
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.docker import names
from harness.sandbox.docker.client import Missing, answers, engine


class BoxNetwork:
    """The network of one box."""

    def __init__(self, spec: BoxSpec, folder: BoxFolder) -> None:
        self.spec = spec
        self.folder = folder
        self.name = names.thing(spec)

    def plan(self) -> dict[str, Any]:
        """Return what the lease says of it before anything of it is made."""
        return {}

    def env(self) -> dict[str, str]:
        """Return the variables that commands in the box need to use it."""
        return {}

    def create(self) -> dict[str, dict[str, Any]]:
        """Make it; return what the engine's call for the container says of it, in `host` and in `config`."""
        if self.spec.network.reach is Reach.NONE:
            return {"host": {"NetworkMode": "none"}, "config": {"NetworkDisabled": False}}
        with answers(self.name):
            engine().api.create_network(
                self.name,
                driver="bridge",
                options={"com.docker.network.bridge.enable_icc": "false"},
                labels=names.labels(self.spec),
            )
        return {"host": {"NetworkMode": self.name}, "config": {}}

    def remove(self) -> None:
        """Remove it; harmless when it is gone or never was."""
        if self.spec.network.reach is Reach.NONE:
            return
        try:
            with answers(self.name):
                engine().api.remove_network(self.name)
        except Missing:
            return
