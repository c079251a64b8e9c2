"""The candidate's side of the search: `start`, then `ask` for points and `tell` their values, over and over.

scikit-opt calls the function that it minimises, while the judge wants to be asked; the search therefore runs in a
thread of its own that waits in the function for the judge's values.
"""

import queue
import threading

import numpy as np

from sko.PSO import PSO
from sko.tools import set_run_mode


class Search:
    """One search at a time."""

    def __init__(self) -> None:
        self.points: queue.Queue = queue.Queue()
        self.values: queue.Queue = queue.Queue()

    def start(self, dimensions: int, low: float, high: float, budget: int, seed: int) -> None:
        """Begin a search on [low, high]^dimensions that may ask for `budget` values; an earlier one is left waiting."""
        points, values = self.points, self.values = queue.Queue(), queue.Queue()

        def hidden(x: np.ndarray) -> np.ndarray:
            points.put(x.tolist())
            return np.array(values.get(), dtype=float)

        def run() -> None:
            set_run_mode(hidden, "vectorization")
            PSO(func=hidden, n_dim=dimensions, lb=low, ub=high).run(max_iter=budget)
            points.put([])

        np.random.seed(seed)
        threading.Thread(target=run, daemon=True).start()

    def ask(self) -> list[list[float]]:
        """Return the points whose values the search wants next; none when it has ended by itself."""
        return self.points.get(timeout=60)

    def tell(self, values: list[float]) -> None:
        """Hand over the values of the points last asked for, in their order."""
        self.values.put(values)


def load() -> Search:
    """Make a search that has not begun."""
    return Search()
