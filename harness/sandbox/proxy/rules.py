"""Which hosts an allow-list lets through, and which addresses a name may stand for."""

import ipaddress
from collections.abc import Iterable

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Block = ipaddress.IPv4Network | ipaddress.IPv6Network


class Rules:
    """An allow-list: names, wildcards such as *.pypi.org, addresses and CIDR blocks.

    A wildcard stands for every name below its suffix and not for the suffix itself.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._suffixes: list[str] = []
        self._blocks: list[Block] = []
        for entry in (clean(host) for host in hosts):
            block = _block(entry)
            if block is not None:
                self._blocks.append(block)
            elif entry.startswith("*."):
                self._suffixes.append(entry[1:])
            else:
                self._names.add(entry)

    def names(self, host: str) -> bool:
        """Say whether a host's name is on the list."""
        name = clean(host)
        return name in self._names or any(name.endswith(suffix) for suffix in self._suffixes)

    def permits(self, host: str, address: Address) -> bool:
        """Say whether a connection to a host may go to an address that it stands for now.

        A name on the list reaches public addresses alone: else whoever owns the name could point it into the host's
        own network, or at the address where clouds hand out keys. A block on the list reaches what it says.
        """
        plain = _plain(address)
        if any(plain in block for block in self._blocks if block.version == plain.version):
            return True
        return self.names(host) and _block(clean(host)) is None and plain.is_global and not plain.is_multicast


def clean(host: str) -> str:
    """Return a host in the form in which it is compared."""
    name = host.strip().lower().rstrip(".")
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name


def _block(text: str) -> Block | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _plain(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one only wraps."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
