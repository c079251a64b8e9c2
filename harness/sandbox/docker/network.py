"""The network of a box: none, one of its own with a way out, or one without a way out but our proxy."""

import ipaddress
import json
import secrets
import signal
from typing import Any

from harness.errors import RsiError
from harness.sandbox import boxfolder
from harness.sandbox.base import BoxSpec, Reach
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.docker import names
from harness.sandbox.docker.client import Missing, answers, engine

PORT = 19819
"""Where the proxy listens, at the gateway's address of the box's own network."""
_RANGE = ipaddress.IPv4Network("198.19.0.0/16")
"""Set aside for measurements between networks (RFC 2544), so that no real host has such an address."""
_BITS = 28
_TRIES = 20
_NOWHERE = "192.0.2.1"
"""An address for documents (RFC 5737): a name server there never answers."""


class BoxNetwork:
    """The network of one box; what is known of it lies in the box's folder."""

    def __init__(self, spec: BoxSpec, folder: BoxFolder) -> None:
        self.spec = spec
        self.name = names.thing(spec)
        self._folder = folder
        self._file = folder.path / "network.json"

    def create(self) -> dict[str, dict[str, Any]]:
        """Make it; return what the engine's call for the container says of it, in `host` and in `config`."""
        if not self.spec.network:
            return {"host": {"NetworkMode": "none"}, "config": {}}
        gateway = self._make()
        host: dict[str, Any] = {"NetworkMode": self.name}
        if self.spec.network.reach is Reach.LISTED:
            self._start_proxy(gateway)
            # The engine's own name server would pass every name on to the host's, and data can leave in names.
            host["Dns"] = [_NOWHERE]
        return {"host": host, "config": {}}

    def _make(self) -> str:
        """Make a network on a block that nobody uses and return its gateway's address."""
        for _ in range(_TRIES):
            block = _some_block()
            gateway = str(block[1])
            boxfolder.write_json(self._file, {"subnet": str(block), "gateway": gateway})
            try:
                self._ask(str(block), gateway)
            except RsiError as error:
                if "overlap" not in error.what.lower() and "already in use" not in error.what.lower():
                    raise
                continue
            return gateway
        raise RsiError(f"no free block of addresses was found in {_RANGE}", next_step="rsi clean, then try again")

    def _ask(self, subnet: str, gateway: str) -> None:
        with answers(self.name):
            engine().api.create_network(
                self.name,
                driver="bridge",
                ipam={"Driver": "default", "Config": [{"Subnet": subnet, "Gateway": gateway}]},
                internal=self.spec.network.reach is Reach.LISTED,
                labels=names.labels(self.spec),
            )

    def _start_proxy(self, gateway: str) -> None:
        from harness.sandbox.proxy import companion  # here, as few boxes need one

        companion.start(self._folder, gateway, PORT, self.spec.network.hosts)

    def _gateway(self) -> str | None:
        try:
            return str(json.loads(self._file.read_text("utf-8"))["gateway"])
        except FileNotFoundError:
            return None

    def env(self) -> dict[str, str]:
        """Return the variables by which commands in the box find the proxy."""
        gateway = self._gateway() if self.spec.network.reach is Reach.LISTED else None
        if gateway is None:
            return {}
        found = {"NO_PROXY": "localhost,127.0.0.1,::1"}
        found |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), f"http://{gateway}:{PORT}")
        return {**found, **{name.lower(): value for name, value in found.items()}}

    def mend(self, lease: dict[str, Any]) -> None:
        """Start the proxy again where it died while the box lived."""
        gateway = self._gateway() if self.spec.network.reach is Reach.LISTED else None
        if gateway is not None and self._folder.running("proxy", lease) is None:
            self._start_proxy(gateway)

    def remove(self, lease: dict[str, Any]) -> None:
        """Remove it; harmless when it is gone or never was."""
        self._folder.signal("proxy", lease, signal.SIGKILL)
        if not self.spec.network:
            return
        try:
            with answers(self.name):
                engine().api.remove_network(self.name)
        except Missing:
            return


def _some_block() -> ipaddress.IPv4Network:
    """Return a block of the range, drawn at random: several engines choose at once."""
    count = 1 << (_BITS - _RANGE.prefixlen)
    start = int(_RANGE.network_address) + (secrets.randbelow(count) << (32 - _BITS))
    return ipaddress.IPv4Network((start, _BITS))
