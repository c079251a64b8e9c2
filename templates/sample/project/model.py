"""A multilayer perceptron with one hidden layer of tanh units, and its gradient, in plain Python."""

import math
import random


class Perceptron:
    """One hidden layer; `weights` holds a row [bias, w1, w2, ...] for each hidden unit and a last one for the output."""

    def __init__(self, weights: list[list[float]]) -> None:
        self.weights = weights

    @classmethod
    def start(cls, inputs: int, hidden: int, rng: random.Random) -> "Perceptron":
        """Draw starting weights: the spread shrinks with the number of inputs, so that units start unsaturated."""
        spread, last = 1 / math.sqrt(inputs), 1 / math.sqrt(hidden)
        rows = [[0.0, *(rng.gauss(0.0, spread) for _ in range(inputs))] for _ in range(hidden)]
        return cls([*rows, [0.0, *(rng.gauss(0.0, 0.1 * last) for _ in range(hidden))]])

    def hidden(self, x: list[float]) -> list[float]:
        """Return the activations of the hidden units for inputs `x` that start with a constant 1."""
        return [math.tanh(sum(map(float.__mul__, row, x))) for row in self.weights[:-1]]

    def predict(self, x: list[float]) -> float:
        """Return the answer for inputs `x` that start with a constant 1."""
        return sum(map(float.__mul__, self.weights[-1], [1.0, *self.hidden(x)]))

    def add_gradient(self, x: list[float], y: float, total: list[list[float]]) -> float:
        """Add the gradient of half the squared error of one row to `total`; return the squared error."""
        active = self.hidden(x)
        out = self.weights[-1]
        error = sum(map(float.__mul__, out, [1.0, *active])) - y
        for i, (unit, activation) in enumerate(zip(total, active)):
            slope = error * out[i + 1] * (1.0 - activation * activation)
            total[i] = [t + slope * value for t, value in zip(unit, x)]
        total[-1] = [t + error * value for t, value in zip(total[-1], [1.0, *active])]
        return error * error
