"""What an allow-list lets through."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.sandbox.proxy.asked import Refused, place, read
from harness.sandbox.proxy.rules import Rules

PUBLIC = ipaddress.ip_address("93.184.215.14")


@pytest.mark.parametrize(
    ("entry", "host", "right"),
    [
        ("pypi.org", "pypi.org", True),
        ("pypi.org", "PyPI.org.", True),
        ("pypi.org", "files.pypi.org", False),
        ("pypi.org", "notpypi.org", False),
        ("*.pypi.org", "files.pypi.org", True),
        ("*.pypi.org", "a.b.pypi.org", True),
        ("*.pypi.org", "pypi.org", False),
        ("*.pypi.org", "evilpypi.org", False),
        ("*.pypi.org", "pypi.org.evil.com", False),
    ],
)
def test_names(entry, host, right):
    assert Rules([entry]).permits(host, PUBLIC) is right


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "100.64.0.1",
     "198.19.0.1", "::1", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"],
)  # fmt: skip
def test_a_name_on_the_list_reaches_no_address_within(address):
    assert not Rules(["pypi.org"]).permits("pypi.org", ipaddress.ip_address(address))


def test_a_block_reaches_what_it_says():
    rules = Rules(["10.0.0.0/8", "[2001:db8::]/32", "192.0.2.7"])
    assert rules.permits("10.1.2.3", ipaddress.ip_address("10.1.2.3"))
    assert rules.permits("some.name", ipaddress.ip_address("10.1.2.3"))
    assert rules.permits("x", ipaddress.ip_address("::ffff:10.1.2.3"))
    assert rules.permits("192.0.2.7", ipaddress.ip_address("192.0.2.7"))
    assert not rules.permits("192.0.2.8", ipaddress.ip_address("192.0.2.8"))
    assert not rules.permits("11.0.0.1", ipaddress.ip_address("11.0.0.1"))


def test_a_request_is_read():
    asked = read(b"CONNECT pypi.org:443 HTTP/1.1\r\nHost: pypi.org:443")
    assert (asked.host, asked.port, asked.tunnel) == ("pypi.org", 443, True)
    asked = read(b"GET http://a.org/x?y HTTP/1.0\r\nHost: evil.org\r\nAccept: */*\r\nConnection: keep-alive")
    assert (asked.host, asked.port, asked.tunnel) == ("a.org", 80, False)
    assert asked.head == b"GET /x?y HTTP/1.1\r\nHost: a.org\r\nAccept: */*\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [b"", b"GET / HTTP/1.1", b"CONNECT pypi.org HTTP/1.1", b"CONNECT a:0 HTTP/1.1", b"CONNECT a:99999 HTTP/1.1",
     b"CONNECT a b:1 HTTP/1.1", b"CONNECT user@a:1 HTTP/1.1", b"GET https://a/ HTTP/1.1", b"GET ftp://a/ HTTP/1.1",
     b"GET http://a@b/ HTTP/1.1", b"GET http://a/ HTTP/1.1\r\nbad header", b"GET http://a/ HTTP/1.1\r\nX : y",
     b"GET http://a/ HTTP/1.1\r\nX: y\nInjected: z", b"GET http://a/ HTTP/1.1\r\n folded: y", b"\x16\x03\x01\x02"],
)  # fmt: skip
def test_what_is_no_request_is_refused(head):
    with pytest.raises(Refused):
        read(head)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(head):
    try:
        asked = read(head)
    except Refused:
        return
    assert 0 < asked.port < 65536


def test_places():
    assert place("[::1]:80", None) == ("::1", 80)
    assert place("a.org", 80) == ("a.org", 80)
