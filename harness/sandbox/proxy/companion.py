"""The proxy as a process of the host that outlives the engine which started it.

Request, read from stdin: address, port, hosts, log. It says on stdout who it is, then that it listens.
"""

import asyncio
import marshal
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import RsiError
from harness.sandbox import boxfolder
from harness.sandbox.boxfolder import BoxFolder
from harness.sandbox.proxy.rules import Rules
from harness.sandbox.proxy.server import Proxy

WHO = "proxy"
"""Name of the file in a box's folder that names the process."""


def start(folder: BoxFolder, address: str, port: int, hosts: Sequence[str]) -> None:
    """Start the proxy of a box and wait until it listens.

    Raises:
        RsiError: it cannot listen there.
    """
    request = {"address": address, "port": port, "hosts": list(hosts), "log": str(folder.path / "network.jsonl")}
    package = Path(__file__).resolve().parents[3]
    code = f"import sys; sys.path.append({str(package)!r}); from harness.sandbox.proxy.companion import main; main()"
    log = folder.path / "proxy.log"
    with log.open("ab") as errors:
        starter = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env={}, cwd="/",
        )  # fmt: skip
    assert starter.stdin is not None
    assert starter.stdout is not None
    with starter.stdin, starter.stdout:
        pid = int(starter.stdout.readline() or b"0")
        starter.wait()  # it went on in a child of its own
        (folder.path / WHO).write_text(f"{pid} {boxfolder.start_time(pid) if pid else None}\n", "ascii")
        starter.stdin.write(marshal.dumps(request))
        starter.stdin.close()
        said = starter.stdout.read()
    if said != b"ready":
        last = log.read_text("utf-8", errors="replace").strip().splitlines()[-1:]
        raise RsiError(f"the proxy of a box could not be started: {''.join(last)}", where=str(log))


def main() -> None:
    """Serve until killed."""
    if os.fork():
        os._exit(0)  # so that the engine has no child to wait for
    os.setsid()
    os.write(1, f"{os.getpid()}\n".encode())
    request = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the engine that started this process
    asyncio.run(_serve(request["address"], request["port"], request["hosts"], Path(request["log"])))


async def _serve(address: str, port: int, hosts: list[str], log: Path) -> None:
    server = await Proxy(Rules(hosts), log).serve(address, port)
    os.write(1, b"ready")
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    async with server:
        await server.serve_forever()
