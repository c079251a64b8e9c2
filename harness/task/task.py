"""A task as the harness uses it."""

from dataclasses import dataclass
from pathlib import Path

from harness.task.contract import Contract
from harness.task.harbor import TaskConfig


@dataclass(frozen=True)
class Task:
    """A Harbor task folder that was read and validated; digests are sha256 in hex."""

    folder: Path
    name: str
    config: TaskConfig
    contract: Contract | None
    instruction: str
    """instruction.md as an agent reads it (canary lines stripped)."""
    digest: str
    """Of task.toml, instruction.md, environment/, tests/ and solution/, without `[metadata.rsi.reference]`."""
    tests_digest: str
    """Of tests/ alone."""
    environment_digest: str
    """Of environment/ alone."""

    @property
    def environment(self) -> Path:
        """Folder of the build context."""
        return self.folder / "environment"

    @property
    def tests(self) -> Path:
        """Folder that only the judge sees."""
        return self.folder / "tests"

    @property
    def solution(self) -> Path:
        """Folder of the author's solution."""
        return self.folder / "solution"
