"""The proxy itself: resolves at use, checks the address it then connects to, and writes down every connection."""

import asyncio
import contextlib
import ipaddress
import json
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness.sandbox.proxy.asked import MAX_HEAD, Asked, Refused, read
from harness.sandbox.proxy.rules import Address, Rules

HEAD_SEC = 30.0
CONNECT_SEC = 30.0
IDLE_SEC = 600.0
MOST = 256
"""Most connections at once; more wait to be accepted."""
MAX_LOG = 64 << 20
"""Most bytes of the log: a box that asks forever must not fill the host's disk."""

_CHUNK = 1 << 16

Resolve = Callable[[str, int], Awaitable[list[Address]]]


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses that a host stands for now."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Refused(f"{host} cannot be resolved: {error.strerror}") from error
    return [ipaddress.ip_address(str(place[4][0]).partition("%")[0]) for place in found]


class Proxy:
    """A proxy for one box."""

    def __init__(self, rules: Rules, log: Path, resolve: Resolve = resolve) -> None:
        self._rules = rules
        self._log = log
        self._resolve = resolve
        self._room = MAX_LOG - (log.stat().st_size if log.exists() else 0)
        self._places = asyncio.Semaphore(MOST)

    async def serve(self, host: str, port: int) -> asyncio.Server:
        """Listen at an address of this machine; port 0 takes a free one."""
        return await asyncio.start_server(self._guarded, host, port, limit=MAX_HEAD)

    async def _guarded(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with self._places:
            try:
                await self._client(reader, writer)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                pass  # the client left, or said nothing for too long
            finally:
                await _close(writer)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked: Asked | None = None
        try:
            try:
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_SEC)
            except asyncio.LimitOverrunError as error:
                raise Refused("the head is too long") from error
            asked = read(head[:-4])
            address = await self._address(asked)
            upstream = await self._connect(asked, address)
        except Refused as refused:
            self._note(asked, None, str(refused), 0, 0)
            text = f"refused by the task's allow-list: {refused}\n".encode()
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
            await writer.drain()
            return
        await self._join(asked, address, (reader, writer), upstream)

    async def _address(self, asked: Asked) -> Address:
        """Return the address to connect to; only one that the rules permit is ever used, so none is asked for twice."""
        try:
            found: list[Address] = [ipaddress.ip_address(asked.host)]
        except ValueError:
            found = await self._resolve(asked.host, asked.port)
        for address in found:
            if self._rules.permits(asked.host, address):
                return address
        if self._rules.names(asked.host):
            raise Refused(f"{asked.host} stands for an address that is not public: {', '.join(map(str, found))}")
        raise Refused(f"{asked.host} is not on it")

    async def _connect(self, asked: Asked, address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.wait_for(asyncio.open_connection(str(address), asked.port), CONNECT_SEC)
        except (OSError, TimeoutError) as error:
            raise Refused(f"{asked.host} port {asked.port} cannot be reached: {error or 'no answer'}") from error

    async def _join(
        self,
        asked: Asked,
        address: Address,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Pass bytes both ways until one side ends; then write down how many there were."""
        if asked.tunnel:
            client[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            upstream[1].write(asked.head)
        counts = [0, 0]
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pass(client[0], upstream[1], counts, 0))
                both.create_task(_pass(upstream[0], client[1], counts, 1))
        except* (OSError, TimeoutError):
            pass  # one side broke off; what was passed counts
        finally:
            await _close(upstream[1])
            self._note(asked, address, "", *counts)

    def _note(self, asked: Asked | None, address: Address | None, refused: str, sent: int, received: int) -> None:
        """Write one line for a connection; the file is flushed with it."""
        value = {
            "time": round(time.time(), 3),
            "host": asked.host if asked else "",
            "port": asked.port if asked else 0,
            "address": str(address or ""),
            "verdict": "refused" if refused else "allowed",
            "reason": refused,
            "sent": sent,
            "received": received,
        }
        line = json.dumps(value, ensure_ascii=True) + "\n"
        self._room -= len(line)
        if self._room > 0:
            with self._log.open("a", encoding="ascii") as file:
                file.write(line)


async def _pass(source: asyncio.StreamReader, sink: asyncio.StreamWriter, counts: list[int], which: int) -> None:
    while chunk := await asyncio.wait_for(source.read(_CHUNK), IDLE_SEC):
        counts[which] += len(chunk)
        sink.write(chunk)
        await sink.drain()
    if sink.can_write_eof():
        sink.write_eof()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
