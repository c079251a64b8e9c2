"""The plan of a run: written once before the first event, never changed."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Plan:
    """Everything that was decided before a run began. Kept host-side: it holds the judge's seed."""

    run: str
    task: str
    """Name of the task."""
    task_folder: str
    """Folder the task was read from."""
    task_digest: str
    tests_digest: str
    image: str
    """Digest of the environment's image."""
    image_facts: dict[str, Any]
    """Its workdir, env and notes."""
    resources: dict[str, Any]
    """cpus, memory_mb, storage_mb; network (of the workspace) and judge_network, each a mode and its allowed hosts."""
    agent: str
    agent_command: tuple[str, ...]
    sandbox: str
    """local, docker or fake."""
    level: str
    """Isolation level in force; see harness.sandbox.base.Level."""
    isolation: tuple[str, ...]
    """What is isolated and what is not, in words."""
    contract: dict[str, Any] | None
    """The contract as JSON, or None for a plain Harbor task."""
    submissions: int
    hours: float
    cooldown_sec: float
    judge_base: str
    judge_timeout_sec: float
    seed: int
    """Secret: the judge's seeds are derived from it."""
    created: float
    host: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return asdict(self)


def plan_from_json(data: dict[str, Any]) -> Plan:
    """Return the plan that `as_json` wrote."""
    values = dict(data)
    for name in ("agent_command", "isolation"):
        values[name] = tuple(values[name])
    return Plan(**values)
