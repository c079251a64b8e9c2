"""A workspace in memory: files, a measure of them, a budget."""

from collections.abc import Callable, Mapping, Sequence

from harness.agents.base import Stopped, Try
from harness.agents.feedback import Feedback
from harness.task.contract import Contract


class Room:
    """Implements `harness.agents.base.Workspace`."""

    def __init__(
        self,
        contract: Contract | None,
        files: Mapping[str, str],
        judge: Callable[[Mapping[str, str]], tuple[str, float | None]],
        *,
        submissions: int = 10,
        seed: int = 1,
        baseline: float | None = None,
    ) -> None:
        self.contract = contract
        self.seed = seed
        self.baseline = baseline
        self.files = {path: text.encode() for path, text in files.items()}
        self.judge = judge
        self.left = submissions
        self.tries: list[Try] = []
        self.commands: list[tuple[str, ...]] = []
        self.waited = 0.0
        self.refuse = 0
        """How many of the next submissions are refused."""
        self.die_after: int | None = None
        """After how many submissions the engine dies."""

    def command(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> int | None:
        self.commands.append(tuple(argv))
        return 0

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def write(self, path: str, content: bytes) -> None:
        self.files[path] = content

    def submit(self, message: str) -> Feedback | None:
        if self.refuse:
            self.refuse -= 1
            return None
        verdict, metric = self.judge({path: text.decode() for path, text in self.files.items()})
        self.left -= verdict != "no_measurement"
        number = len(self.tries) + 1
        self.tries.append(Try(number, message, verdict, metric))
        if self.die_after == number:
            raise Stopped
        return Feedback(number, verdict, self.left, 1.0, metric=metric)

    def wait(self, seconds: float) -> None:
        self.waited += seconds

    def history(self) -> list[Try]:
        return list(self.tries)

    def submissions_left(self) -> int:
        return self.left
