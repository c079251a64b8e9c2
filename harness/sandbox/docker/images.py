"""Images: built from a task's environment or fetched by reference, named by content, used again."""

import fcntl
import hashlib
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import paths
from harness.errors import InputError, RsiError
from harness.sandbox.base import Image, Progress
from harness.sandbox.docker import names
from harness.sandbox.docker.client import Missing, answers, engine
from harness.sandbox.dockerfile import Instruction, outline
from harness.task.digest import digest_tree

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_STEP = re.compile(r"Step (\d+)/\d+ : ")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT_LINES = 20
"""How many of a failed build's last lines the error shows."""


def build(environment: Path, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
    """Build the image of an `environment/` folder, or find it by its content."""
    instructions = outline(environment / "Dockerfile")
    tag = f"rsi-environment:{_content(environment, instructions)}"
    with _alone(tag):
        if _inspect(tag) is None:
            _build(environment, tag, instructions, timeout, progress)
        else:
            progress(f"image {tag} is there already")
        return _image(tag, workdir)


def pull(reference: str, *, workdir: str | None, timeout: float, progress: Progress) -> Image:
    """Return an image by its reference; it is fetched where this engine does not have it."""
    with _alone(reference):
        if _inspect(reference) is None:
            _fetch(reference, timeout, progress)
        return _image(reference, workdir)


def _content(environment: Path, instructions: list[Instruction]) -> str:
    """Return the digest of all that a build sees; a base that is a tag is taken as the engine has it now."""
    facts = [digest_tree(environment)]
    for instruction in instructions:
        if instruction.name == "FROM":
            _, named = instruction.flags()
            base = _inspect(named.split()[0])
            facts.append(base["Id"] if base else "")
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()[:40]


def _inspect(reference: str) -> Mapping[str, Any] | None:
    try:
        with answers(reference):
            found: Mapping[str, Any] = engine().api.inspect_image(reference)
    except Missing:
        return None
    return found


def _image(reference: str, workdir: str | None) -> Image:
    facts = _inspect(reference)
    if facts is None:
        raise RsiError(f"the image {reference} vanished while it was made", next_step="try again")
    found = _DIGEST.fullmatch(facts["Id"]) or _DIGEST.fullmatch(f"sha256:{facts['Id']}")
    if found is None:
        raise RsiError(f"the engine names the image {reference} in no way that is known: {facts['Id']}")
    config = facts.get("Config") or {}
    env = dict(item.partition("=")[::2] for item in config.get("Env") or ())
    env.setdefault("PATH", _PATH)
    notes = []
    if config.get("Entrypoint"):
        notes.append("ENTRYPOINT is not run: commands are started directly")
    return Image(found[1], workdir or config.get("WorkingDir") or "/", env, tuple(notes), config.get("User") or "")


def _build(environment: Path, tag: str, instructions: list[Instruction], timeout: float, progress: Progress) -> None:
    deadline = time.monotonic() + timeout
    where = str(environment / "Dockerfile")
    lines: list[str] = []
    step = 0
    with answers(where):
        # The environment folder is the whole context; nothing of the host's is named in it.
        stream = engine().api.build(
            path=str(environment),
            tag=tag,
            rm=True,
            forcerm=True,
            decode=True,
            labels={names.ENVIRONMENT: "1", names.HOME: names.home()},
        )
        for said in stream:
            if time.monotonic() > deadline:
                stream.close()  # the engine gives a build up whose listener has gone
                raise RsiError(f"the image was not built within {timeout:g} s", where=where)
            if "error" in said:
                raise _failed(environment, instructions, step, str(said["error"]), lines)
            for line in str(said.get("stream") or said.get("status") or "").splitlines():
                if not line.strip():
                    continue
                found = _STEP.match(line)
                step = int(found[1]) if found else step
                lines.append(line)
                progress(line[:200])
    if _inspect(tag) is None:
        raise RsiError("the engine ended a build without an image", where=where)


def _failed(environment: Path, instructions: list[Instruction], step: int, error: str, lines: list[str]) -> RsiError:
    """Return the error of a build, at the line of the instruction that failed."""
    told = "\n".join(lines[-_KEPT_LINES:])
    where = instructions[step - 1].where if 0 < step <= len(instructions) else str(environment / "Dockerfile")
    return RsiError(f"the image could not be built: {error}\n{told}".strip(), where=where)


def _fetch(reference: str, timeout: float, progress: Progress) -> None:
    deadline = time.monotonic() + timeout
    repository, tag = _parts(reference)
    try:
        with answers(reference):
            for said in engine().api.pull(repository, tag=tag, stream=True, decode=True):
                if time.monotonic() > deadline:
                    raise RsiError(f"the image was not fetched within {timeout:g} s", where=reference)
                if "error" in said:
                    raise InputError(f"the image cannot be fetched: {said['error']}", where=reference)
                progress(" ".join(str(said.get(key, "")) for key in ("status", "id", "progress")).strip()[:200])
    except Missing as error:
        raise InputError(
            f"there is no image {reference}", next_step=f"docker load it, or check its name ({error.what})"
        ) from error


def _parts(reference: str) -> tuple[str, str]:
    """Return repository and tag or digest of a reference; a reference without a tag means `latest`, as everywhere."""
    if "@" in reference:
        repository, _, found = reference.partition("@")
        return repository, found
    head, _, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    return f"{head}/{name}" if head else name, tag or "latest"


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Let builders of one image on this machine wait for one another."""
    folder = paths.cache() / "docker"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
