"""The way out of a box whose network is an allow-list: a proxy on the host that decides connection by connection."""
