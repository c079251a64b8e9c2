"""Build small task folders for tests: a good one with a contract, a plain Harbor one, and what breaks them."""

from pathlib import Path

TASK_TOML = """\
# A tiny task: fit a number.
schema_version = "1.4"

[task]
name = "examples/fit-a-number"
description = "Fit a number."

[metadata]
difficulty = "easy"   # free for everybody

[metadata.rsi]
version = 1
track = "public"
category = "regression"
question = "Can a better recipe lower the error of the fit below that of the author's recipe?"

[metadata.rsi.source]
repository = "https://example.org/fit"
commit = "0123456789abcdef0123456789abcdef01234567"
license = "MIT"

[metadata.rsi.metric]
name = "error"
direction = "minimize"
unit = "units"
lowest = 0.0
highest = 100.0

[metadata.rsi.evaluation]
mode = "retrain"
repeats = 2
on_invalid = "unscored"
feedback = ["metric", "score", "best", "baseline", "message"]
start = "baseline"

[metadata.rsi.boundary]
editable = ["train.py", "conf/**"]
frozen = ["data/**"]
deliver = ["train.py", "conf/**"]
max_mb = 10
max_files = 100

[metadata.rsi.budget]
hours = 2.0
submissions = 20
cooldown_sec = 5

[metadata.rsi.judge]
base = "clean"

[[metadata.rsi.search.knobs]]
file = "conf/fit.json"
key = "train.rate"
range = [0.001, 1.0]
scale = "log"

[[metadata.rsi.search.knobs]]
file = "train.py"
pattern = "STEPS = (\\\\d+)"
range = [10, 1000]
integer = true

[agent]
timeout_sec = 9000

[verifier]
timeout_sec = 120

[environment]
network_mode = "no-network"
cpus = 1
memory_mb = 512
storage_mb = 512
"""

INSTRUCTION = """\
<!-- harbor-canary GUID 0000 -->

# Fit a number

Lower the error (units; lower is better, minimize) of the fit. The work folder is /app.

You may change train.py and everything below conf/. Everything below data/ is frozen: leave it alone.
Deliver train.py and conf/. At most 10 MiB in 100 files.
Hand in with `rsi-submit -m "what I tried"`; `rsi-status` shows what is left.
The budget is 2 hours of work and 20 submissions, 5 seconds apart.
"""

README = "# Fit a number\n\nMetric: error (units), lower is better. 2 hours, 20 submissions.\n"

DOCKERFILE = """\
FROM python:3.11-slim-bookworm@sha256:{digest}
WORKDIR /app
COPY app/ /app/
""".format(digest="0" * 64)

TEST_SH = """\
#!/bin/sh
set -eu
exec python3 -I -S "${RSI_TESTS:-/tests}/evaluate.py"
"""

EVALUATE = """\
import json, os, pathlib
labels = [3.0, 4.5, 9.25, 12.0, 16.75, 31.5]
score = float(len(labels))
pathlib.Path(os.environ.get("RSI_LOGS", "/logs/verifier"), "reward.json").write_text(json.dumps({"error": score}))
"""


TRAIN = "STEPS = 100\nfor step in range(STEPS):\n    print(step)\n"


def good_files() -> dict[str, str]:
    """Return the files of a good task with a contract, by path."""
    return {
        "task.toml": TASK_TOML,
        "instruction.md": INSTRUCTION,
        "README.md": README,
        "environment/Dockerfile": DOCKERFILE,
        "environment/app/train.py": TRAIN,
        "environment/app/conf/fit.json": '{"train": {"rate": 0.1}}\n',
        "environment/app/data/points.csv": "x,y\n1,2\n2,4\n",
        "tests/test.sh": TEST_SH,
        "tests/evaluate.py": EVALUATE,
        "solution/solve.sh": '#!/bin/sh\nset -eu\ncp "${RSI_SOLUTION:-/solution}/files/train.py" .\n',
        "solution/files/train.py": TRAIN,
    }


def plain_files() -> dict[str, str]:
    """Return the files of a Harbor task without a contract."""
    return {
        "task.toml": 'version = "1.0"\n[metadata]\nauthor_name = "A"\n[verifier]\ntimeout_sec = 60\n',
        "instruction.md": "Write hello into /app/hello.txt.\n",
        "environment/Dockerfile": "FROM debian:12.5-slim\nWORKDIR /app\n",
        "tests/test.sh": "#!/bin/bash\nset -eu\ngrep -q hello /app/hello.txt && echo 1 > /logs/verifier/reward.txt\n",
    }


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write the files below a folder; scripts become executable."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            path.chmod(0o755)
    return folder


def good_task(folder: Path) -> Path:
    """Write a good task with a contract."""
    return write(folder, good_files())


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Replace a text that must be there."""
    path = folder / name
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new), encoding="utf-8")
