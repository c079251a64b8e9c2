"""The one way to a Docker engine, or to anything that speaks its API on a socket of this machine, such as Podman."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.errors import InputError, PrerequisiteError, RsiError
from harness.sandbox.base import Unavailable

TIMEOUT_SEC = 120
"""How long the engine may take to answer; making a container on a busy disk takes seconds."""
_DEFAULT = "/var/run/docker.sock"

_here = threading.local()


def socket_path() -> Path:
    """Return the engine's socket: $DOCKER_HOST, else Docker's own, else Podman's.

    Raises:
        InputError: $DOCKER_HOST names an engine of another machine, whose files and processes cannot be looked at.
    """
    named = os.environ.get("DOCKER_HOST")
    if named:
        if not named.startswith("unix://"):
            raise InputError(
                f"DOCKER_HOST is {named}: only an engine of this machine can be used",
                next_step="set it to unix:///PATH/OF/THE/SOCKET, or unset it",
            )
        return Path(named.removeprefix("unix://"))
    for place in (_DEFAULT, *_podman()):
        if Path(place).exists():
            return Path(place)
    return Path(_DEFAULT)


def _podman() -> list[str]:
    own = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    return [f"{own}/podman/podman.sock", "/run/podman/podman.sock"]


def engine() -> Any:
    """Return this thread's client of the engine; its HTTP session is not made for several threads.

    Raises:
        PrerequisiteError: the `docker` package is not installed.
        Unavailable: the engine does not answer.
    """
    path = socket_path()
    if getattr(_here, "path", None) == path:
        return _here.client
    try:
        import docker  # here, as only this sandbox needs it and it takes long to load
    except ImportError as error:
        raise PrerequisiteError(
            "the Python package docker is not installed", next_step="pip install 'rsi-anything[docker]'"
        ) from error
    with answers(f"engine at {path}"):
        _here.client = docker.DockerClient(base_url=f"unix://{path}", timeout=TIMEOUT_SEC, version="auto")
        _here.path = path
    return _here.client


class Missing(RsiError):
    """The engine knows no such container, image, network or volume."""


class Conflict(RsiError):
    """The engine cannot do that in the present state, or the name is taken."""


@contextmanager
def answers(where: str) -> Iterator[None]:
    """Turn what the engine or the way to it says into errors of ours."""
    import docker.errors  # here, as in engine()
    import requests.exceptions

    try:
        yield
    except docker.errors.NotFound as error:
        raise Missing(f"the engine has no such thing: {words(error)}", where=where) from error
    except docker.errors.APIError as error:
        kind = Conflict if error.status_code in {304, 409} else RsiError
        raise kind(f"the engine refused: {words(error)}", where=where, next_step="rsi doctor") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise Unavailable(
            f"the engine does not answer: {_cause(error)}",
            where=where,
            next_step="start it (sudo systemctl start docker), then rsi resume RUN; rsi doctor says what is missing",
        ) from error


def words(error: Any) -> str:
    """Return the engine's own words of a refusal, in one line."""
    said = str(error.explanation or error)
    return " ".join(said.split())[:500]


def _cause(error: BaseException) -> str:
    """Return the innermost reason: the outer ones only say that something failed."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment] # one of them is there
    return " ".join(str(error).split())[:300] or type(error).__name__
