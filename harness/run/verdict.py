"""The four verdicts, and what one judging found."""

from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """The only outcomes of a judging."""

    SCORED = "scored"
    INVALID = "invalid"
    VIOLATION = "violation"
    NO_MEASUREMENT = "no_measurement"

    @property
    def uses_submission(self) -> bool:
        """Say whether this outcome uses up a submission of the budget."""
        return self is not Verdict.NO_MEASUREMENT


@dataclass(frozen=True)
class Finding:
    """What one judging found. `message` may reach the agent (at most 2 KiB); `evidence` only the operator."""

    verdict: Verdict
    metric: float | None = None
    message: str = ""
    evidence: str = ""
    details: dict[str, float] = field(default_factory=dict)
    """Further numbers of the judge, for the operator."""
    values: tuple[float, ...] = ()
    """The metric of each repeat, where there were several."""
