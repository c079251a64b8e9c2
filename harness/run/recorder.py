"""The journal and the state that follows from it, kept together: whoever records an event sees its effect at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.run.journal import Clock, Journal, read_events
from harness.run.state import Event, Kind, State, fold, step

Observer = Callable[[Event, State], None]
"""Is told each event after it is on disk."""


class Recorder:
    """The only way in which a running engine changes its state."""

    def __init__(self, journal: Journal, state: State, observe: Observer) -> None:
        self.journal = journal
        self.state = state
        self._observe = observe

    @classmethod
    def create(cls, path: Path, observe: Observer) -> "Recorder":
        """Begin a new journal."""
        return cls(Journal.create(path), State(), observe)

    @classmethod
    def open(cls, path: Path, observe: Observer, clock: Clock | None = None) -> "Recorder":
        """Go on with a journal; the state is what it says."""
        journal = Journal.open(path, clock)
        return cls(journal, fold(read_events(path)), observe)

    def record(self, kind: Kind, **fields: Any) -> State:
        """Write an event, then return the state after it."""
        event = self.journal.append(kind, **fields)
        self.state = step(self.state, event)
        self._observe(event, self.state)
        return self.state

    def close(self) -> None:
        """Give up the journal."""
        self.journal.close()
