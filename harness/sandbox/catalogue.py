"""Every sandbox by name."""

from harness.errors import InputError
from harness.sandbox.base import Lack, Level, Sandbox

KNOWN = ("local", "docker", "fake")


def find(name: str, *, level: str | None = None) -> Sandbox:
    """Return the sandbox of that name; unknown names and levels are an InputError that names the known ones."""
    if name not in KNOWN:
        raise InputError(f"there is no sandbox {name!r}", next_step=f"choose one of: {', '.join(KNOWN)}")
    if name == "fake":
        from harness.sandbox.fake import FakeSandbox  # here, as real runs need none

        return FakeSandbox()
    if name == "docker":
        if level is not None:
            raise InputError(f"the docker sandbox has no level {level!r}", next_step="leave --level out")
        from harness.sandbox.docker.engine import DockerSandbox  # here, so that the others do not load it

        return DockerSandbox()
    if level is None:
        return strongest_local()[0]
    if level == Level.NAMESPACES:
        return _namespaces()
    if level == Level.PROCESS:
        return _process()
    raise InputError(
        f"the local sandbox has no level {level!r}", next_step=f"choose {Level.NAMESPACES} or {Level.PROCESS}"
    )


def strongest_local() -> tuple[Sandbox, list[Lack]]:
    """Return namespaces where the machine allows them, else plain processes, and what was lacking for namespaces."""
    sandbox = _namespaces()
    lacks = sandbox.lacks()
    return (_process() if lacks else sandbox), lacks


def _namespaces() -> Sandbox:
    from harness.sandbox.namespaces import NamespaceSandbox  # here, so that the other levels do not load it

    return NamespaceSandbox()


def _process() -> Sandbox:
    from harness.sandbox.process import ProcessSandbox  # here, so that the other levels do not load it

    return ProcessSandbox()
