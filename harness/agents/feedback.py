"""What an agent is told about a submission: small, typed, and never the judge's raw output."""

import json
from dataclasses import asdict, dataclass

MAX_MESSAGE = 2048
"""Most bytes of the judge's message, in UTF-8."""


@dataclass(frozen=True)
class Feedback:
    """The answer to one submission. Parts that the contract does not show are None."""

    number: int
    verdict: str
    submissions_left: int
    working_hours_left: float
    metric_name: str = ""
    metric: float | None = None
    score: float | None = None
    best: float | None = None
    baseline: float | None = None
    noise: float | None = None
    message: str = ""

    def as_json(self) -> str:
        """Return the feedback as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False, allow_nan=False)

    def text(self) -> str:
        """Return the feedback as lines of `name: value`, for a person or a model to read."""
        shown = {
            "submission": self.number,
            "verdict": self.verdict,
            self.metric_name or "metric": _number(self.metric),
            "score": _number(self.score),
            "best": _number(self.best),
            "baseline": _number(self.baseline),
            "noise": _number(self.noise),
            "submissions left": self.submissions_left,
            "working hours left": f"{self.working_hours_left:.3f}",
            "message": self.message or None,
        }
        return "\n".join(f"{name}: {value}" for name, value in shown.items() if value is not None)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.6g}"


def clip(text: str, limit: int = MAX_MESSAGE) -> str:
    """Cut a text to at most `limit` bytes of UTF-8, on a character boundary."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit else raw[:limit].decode("utf-8", "ignore")
