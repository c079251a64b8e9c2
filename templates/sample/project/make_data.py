"""Writes friedman.csv, the data of this project: 2,400 draws of Friedman's first regression problem (1991).

Ten inputs are uniform on [0, 1]; five of them say nothing. The answer is

    y = 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5 + e,     e normal with standard deviation 1

so that no model can have an expected RMSE below 1.
"""

import csv
import math
import random
from pathlib import Path

ROWS = 2400
INPUTS = 10
SEED = 1991


def draw(rng: random.Random) -> list[str]:
    """Return one row as it stands in the file, with three decimals."""
    x = [round(rng.random(), 3) for _ in range(INPUTS)]
    signal = 10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5) ** 2 + 10 * x[3] + 5 * x[4]
    return [f"{value:.3f}" for value in (*x, signal + rng.gauss(0.0, 1.0))]


def main() -> None:
    """Write the file beside this script; the same seed gives the same bytes."""
    rng = random.Random(SEED)
    with Path(__file__).with_name("friedman.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(f"x{i + 1}" for i in range(INPUTS)), "y"])
        writer.writerows(draw(rng) for _ in range(ROWS))


if __name__ == "__main__":
    main()
