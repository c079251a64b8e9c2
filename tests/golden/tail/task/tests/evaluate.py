"""Scores one candidate. The candidate's own code never runs in this process: see judge_kit.py."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import judge_kit
from judge_kit import Invalid, Judge, JudgeError, Violation

evaluate = judge_kit.next_token

if __name__ == "__main__":
    judge_kit.main(evaluate, HERE)
