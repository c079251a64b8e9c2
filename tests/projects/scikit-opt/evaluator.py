"""Runs the candidate's search on hidden functions and returns how near it came to their lowest values.

Every judging draws its functions anew: six families, each shifted to a random optimum and turned by a random rotation,
in ten dimensions. The values are computed here; the candidate sees them only for the points it asked for.
"""

import math
import operator

from judge_kit import Invalid

DIMENSIONS = 10
LOW, HIGH = -5.0, 5.0
BUDGET = 3000  # values a search may ask for
DRAWS = 8  # functions of each family
NEAR = 1e-8  # gaps below count as this


def sphere(z):
    return sum(v * v for v in z)


def ellipsoid(z):
    return sum(10.0 ** (4.0 * i / (len(z) - 1)) * v * v for i, v in enumerate(z))


def rosenbrock(z):
    return sum(
        100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in zip([v + 1.0 for v in z], [v + 1.0 for v in z[1:]])
    )


def rastrigin(z):
    return sum(v * v - 10.0 * math.cos(2.0 * math.pi * v) + 10.0 for v in z)


def ackley(z):
    n = len(z)
    mean, waves = sum(v * v for v in z) / n, sum(math.cos(2.0 * math.pi * v) for v in z) / n
    return 20.0 * (1.0 - math.exp(-0.2 * math.sqrt(mean))) + math.e - math.exp(waves)


def griewank(z):
    z = [20.0 * v for v in z]
    return 1.0 + sum(v * v for v in z) / 4000.0 - math.prod(math.cos(v / math.sqrt(i + 1.0)) for i, v in enumerate(z))


FAMILIES = (sphere, ellipsoid, rosenbrock, rastrigin, ackley, griewank)


def rotation(rng, n):
    """Return n orthonormal rows: Gram-Schmidt on normal draws."""
    rows = []
    while len(rows) < n:
        row = [rng.gauss(0.0, 1.0) for _ in range(n)]
        for other in rows:
            along = sum(map(operator.mul, row, other))
            row = [a - along * b for a, b in zip(row, other)]
        length = math.sqrt(sum(map(operator.mul, row, row)))
        rows.append([v / length for v in row])
    return rows


def points_of(answer, left):
    """Check what the candidate asked for, and cut it to what is left of its budget."""
    if not isinstance(answer, list):
        raise Invalid("ask() must return a list of points")
    for point in answer[:left]:
        if not isinstance(point, list) or len(point) != DIMENSIONS:
            raise Invalid("each point must be a list of %d numbers" % DIMENSIONS)
        for v in point:
            if isinstance(v, bool) or not isinstance(v, (int, float)) or not LOW <= v <= HIGH:
                raise Invalid("each coordinate must be a number from %g to %g" % (LOW, HIGH))
    return answer[:left]


def gap(candidate, function, rng):
    """Return the lowest value the search found; the optimum is 0."""
    turn = rotation(rng, DIMENSIONS)
    shift = [rng.uniform(0.8 * LOW, 0.8 * HIGH) for _ in range(DIMENSIONS)]
    best, left = math.inf, BUDGET
    candidate.call("start", DIMENSIONS, LOW, HIGH, BUDGET, rng.randrange(1 << 31))
    while left:
        points = points_of(candidate.call("ask"), left)
        if not points:
            break
        moved = [list(map(operator.sub, point, shift)) for point in points]
        values = [function([sum(map(operator.mul, row, z)) for row in turn]) for z in moved]
        best, left = min(best, *values), left - len(points)
        if left:
            candidate.call("tell", values)
    return best


def evaluate(judge):
    """Return the mean of log10(gap + NEAR) over all functions; lower is better."""
    logs = []
    with judge.serve() as candidate:
        for draw in range(DRAWS):
            for function in FAMILIES:
                found = gap(candidate, function, judge.random)
                if not math.isfinite(found):
                    raise Invalid("a search asked for no point at all")
                logs.append(math.log10(max(found, 0.0) + NEAR))
    judge.extra("functions", len(logs))
    return sum(logs) / len(logs)
