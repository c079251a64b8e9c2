"""The proxy over real sockets of this machine."""

import asyncio
import contextlib
import ipaddress
import json

import pytest

from harness.sandbox.proxy import server
from harness.sandbox.proxy.rules import Rules
from harness.sandbox.proxy.server import Proxy

HERE = ipaddress.ip_address("127.0.0.1")


async def _echo(reader, writer):
    """Answer what is sent, after a word of greeting."""
    writer.write(b"hello " + await reader.read(1000))
    writer.close()
    await writer.wait_closed()


def talk(tmp_path, hosts, request, *, resolves=HERE):
    """Send a request through a proxy; PORT in it is that of a server which echoes. Return answer and log."""

    async def resolve(host, port):
        return [resolves]

    async def go():
        echo = await asyncio.start_server(_echo, "127.0.0.1", 0)
        port = echo.sockets[0].getsockname()[1]
        listening = await Proxy(Rules(hosts), tmp_path / "log", resolve).serve("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.sockets[0].getsockname()[1])
        writer.write(request.replace(b"PORT", str(port).encode()))
        answer = b""
        with contextlib.suppress(OSError):  # one that is refused in the middle may find its connection reset
            await writer.drain()
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
        for one in (listening, echo):
            one.close()
            await one.wait_closed()
        await asyncio.sleep(0.05)
        return answer

    answer = asyncio.run(go())
    log = tmp_path / "log"
    return answer, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_tunnel_to_what_is_allowed(tmp_path):
    answer, log = talk(tmp_path, ["127.0.0.0/8"], b"CONNECT any.name:PORT HTTP/1.1\r\n\r\nsecret")
    assert answer.endswith(b"\r\n\r\nhello secret")
    assert answer.startswith(b"HTTP/1.1 200 ")
    (line,) = log
    assert (line["host"], line["address"], line["verdict"]) == ("any.name", "127.0.0.1", "allowed")
    assert (line["sent"], line["received"]) == (6, 12)


def test_a_plain_request_goes_to_the_host_of_its_address(tmp_path):
    answer, log = talk(tmp_path, ["127.0.0.1"], b"GET http://127.0.0.1:PORT/x HTTP/1.1\r\nHost: other\r\n\r\n")
    assert answer.startswith(b"hello GET /x HTTP/1.1\r\nHost: 127.0.0.1:")
    assert log[0]["verdict"] == "allowed"


@pytest.mark.parametrize(
    ("hosts", "request_", "reason"),
    [
        (["pypi.org"], b"CONNECT evil.org:443 HTTP/1.1\r\n\r\n", "evil.org is not on it"),
        (["pypi.org"], b"CONNECT pypi.org:443 HTTP/1.1\r\n\r\n", "not public"),
        (["pypi.org"], b"CONNECT 127.0.0.1:PORT HTTP/1.1\r\n\r\n", "not on it"),
        (["pypi.org"], b"GET http://127.0.0.1:PORT/ HTTP/1.1\r\nHost: pypi.org\r\n\r\n", "not on it"),
        (["pypi.org"], b"nonsense\r\n\r\n", "no HTTP request"),
        (["pypi.org"], b"GET http://pypi.org/ HTTP/1.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n", "too long"),
        (["127.0.0.1"], b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n", "cannot be reached"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_reason_and_written_down(tmp_path, hosts, request_, reason):
    answer, log = talk(tmp_path, hosts, request_)
    if answer:  # a client that goes on sending may lose the answer
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert reason.encode() in answer
    assert log[0]["verdict"] == "refused"
    assert reason in log[0]["reason"]


def test_a_name_is_asked_for_once_and_its_checked_address_is_used(tmp_path):
    asked = []

    async def resolve(host, port):
        asked.append(host)
        return [HERE if len(asked) == 1 else ipaddress.ip_address("127.0.0.2")]

    async def go():
        proxy = Proxy(Rules(["127.0.0.1"]), tmp_path / "log", resolve)
        return await proxy._address(server.Asked("moving.name", 80, tunnel=True))

    assert asyncio.run(go()) == HERE
    assert asked == ["moving.name"]


def test_a_client_that_says_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "HEAD_SEC", 0.05)
    assert talk(tmp_path, ["pypi.org"], b"CONN")[0] == b""


def test_the_log_has_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MAX_LOG", 10)
    assert talk(tmp_path, ["pypi.org"], b"nonsense\r\n\r\n")[1] == []
