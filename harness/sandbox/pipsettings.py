"""What a build box may use of the host's own pip settings, so that its pip reaches what the host's pip reaches."""

import os
import re
from pathlib import Path

from harness.sandbox.base import Mount
from harness.sandbox.hostroot import has_password

_TARGET = "/run/pip/pip.conf"
_NAMES = re.compile(r"PIP_\w+|SSL_CERT\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(?:https?|ftp|all|no)_proxy", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^/\s@]+@")


def _user_file() -> Path | None:
    """Return the user's pip.conf if it holds no password."""
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    named = os.environ.get("PIP_CONFIG_FILE")
    choices = [Path(named)] if named else [config / "pip" / "pip.conf", Path.home() / ".pip" / "pip.conf"]
    for path in choices:
        if path.is_file() and str(path) != os.devnull:
            return None if has_password(path) else path
    return None


def environment() -> dict[str, str]:
    """Return the host's settings of pip, certificates and proxies; one that holds a password stays outside."""
    found = {
        name: value
        for name, value in os.environ.items()
        if _NAMES.fullmatch(name) and name != "PIP_CONFIG_FILE" and not _PASSWORD.search(value)
    }
    return {**found, "PIP_CONFIG_FILE": _TARGET} if _user_file() else found


def mounts() -> tuple[Mount, ...]:
    """Return the mount that shows the user's pip.conf in a build box."""
    file = _user_file()
    return (Mount(file, _TARGET),) if file else ()
