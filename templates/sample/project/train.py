"""Trains the perceptron on friedman.csv by stochastic gradient descent and writes model.json.

    python train.py --seed 1

One row in ten is kept aside to watch the training; the last line printed is its root mean squared error.
"""

import argparse
import csv
import json
import math
import random
import tomllib
from pathlib import Path

from model import Perceptron

HERE = Path(__file__).parent


def read_rows(path: Path) -> list[tuple[list[float], float]]:
    """Return (inputs, answer) of each row; the inputs are centred and start with a constant 1."""
    with path.open(newline="", encoding="utf-8") as file:
        table = [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
    return [([1.0, *(2.0 * value - 1.0 for value in row[:-1])], row[-1]) for row in table]


def rmse(model: Perceptron, rows: list[tuple[list[float], float]], mean: float, scale: float) -> float:
    """Return the root mean squared error in units of y."""
    errors = [mean + scale * model.predict(x) - y for x, y in rows]
    return math.sqrt(sum(error * error for error in errors) / len(errors))


def train(rows: list[tuple[list[float], float]], recipe: dict[str, float], rng: random.Random) -> Perceptron:
    """Train on rows whose answers are standardised; the step length falls linearly to final_rate of its start."""
    model = Perceptron.start(len(rows[0][0]) - 1, int(recipe["hidden"]), rng)
    step = [[0.0] * len(row) for row in model.weights]
    batch, rate = int(recipe["batch"]), recipe["learning_rate"]
    steps = int(recipe["epochs"]) * math.ceil(len(rows) / batch)
    done = 0
    for epoch in range(int(recipe["epochs"])):
        rng.shuffle(rows)
        squares = 0.0
        for start in range(0, len(rows), batch):
            chunk = rows[start : start + batch]
            gradient = [[0.0] * len(row) for row in model.weights]
            squares += sum(model.add_gradient(x, y, gradient) for x, y in chunk)
            length = rate * (1.0 - (1.0 - recipe["final_rate"]) * done / steps)
            keep, shrink = recipe["momentum"], 1.0 - rate * recipe["weight_decay"]
            share = length / len(chunk)
            step = [[keep * s - share * g for s, g in zip(a, b)] for a, b in zip(step, gradient)]
            model.weights = [[shrink * w + s for w, s in zip(a, b)] for a, b in zip(model.weights, step)]
            done += 1
        print(f"epoch: {epoch + 1}  train_mse: {squares / len(rows):.4f}  (answers standardised)")
    return model


def main() -> None:
    """Read the recipe, train, write the model, print the error on the rows kept aside."""
    parser = argparse.ArgumentParser(description="Train the perceptron of recipe.toml on friedman.csv.")
    parser.add_argument("--seed", type=int, default=1, help="seed of the start weights and of the order of rows")
    seed = parser.parse_args().seed
    recipe = tomllib.loads((HERE / "recipe.toml").read_text(encoding="utf-8"))
    rows = read_rows(HERE / "friedman.csv")
    aside, rest = rows[::10], [row for i, row in enumerate(rows) if i % 10]
    mean = sum(y for _, y in rest) / len(rest)
    scale = math.sqrt(sum((y - mean) ** 2 for _, y in rest) / len(rest))
    model = train([(x, (y - mean) / scale) for x, y in rest], recipe, random.Random(seed))
    state = {"weights": model.weights, "mean": mean, "scale": scale}
    (HERE / "model.json").write_text(json.dumps(state), encoding="utf-8")
    print(f"val_rmse: {rmse(model, aside, mean, scale):.4f}")


if __name__ == "__main__":
    main()
