"""Scores one candidate. The candidate's own code never runs in this process: see judge_kit.py."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import judge_kit
from judge_kit import Invalid, Judge, JudgeError, Violation

# --- the author's evaluator: begin ---
def evaluate(judge):
    centre = [judge.random.uniform(-3, 3) for _ in range(2)]
    best = 1e6
    with judge.serve() as candidate:
        for _ in range(60):
            x = candidate.call("ask")
            if not isinstance(x, list) or len(x) != 2 or not all(isinstance(each, (int, float)) for each in x):
                raise Invalid("ask() must return two numbers")
            value = sum((a - b) ** 2 for a, b in zip(x, centre))
            best = min(best, value)
            candidate.call("tell", x, value)
    return best
# --- the author's evaluator: end ---

if __name__ == "__main__":
    judge_kit.main(evaluate, HERE)
