#!/bin/sh
# Scores the candidate in the workdir and writes the result to /logs/verifier. Runs as root of the judge.
set -eu
cd /
umask 022
exec python3 -I -S -B "${RSI_TESTS:-/tests}/evaluate.py"
