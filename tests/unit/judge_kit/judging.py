"""Real judgings with the kit: real processes, real users and namespaces, as far as this machine has them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

KIT = Path(__file__).parents[3] / "templates" / "task" / "tests" / "judge_kit.py"
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), sys.executable)
"""An interpreter that every user can run: a virtual environment may lie where others cannot go."""
NAMES = ["anna", "bob", "carla", "dora", "emil", "fritz", "gerda", "hanna"]
EVALUATE = """
import sys
sys.path.insert(0, {here!r})
import judge_kit
from judge_kit import Invalid, Violation
{body}
judge_kit.main(evaluate, {here!r})
"""
TRAIN = """
import json, os
text = open("names.txt", encoding="utf-8").read()
json.dump({"signs": sorted(set(text)), "seed": os.environ["RSI_SEED"]}, open("model.json", "w"))
print("trained")
"""
ADAPTER = """
import json
class Model:
    def __init__(self, signs):
        self.vocabulary = signs
    def logits(self, prefixes):
        return [[0.0] * len(self.vocabulary) for _ in prefixes]
def load():
    return Model(json.load(open("model.json"))["signs"])
"""
CONTRACT: dict[str, Any] = {
    "workdir": "/app",
    "metric": {"name": "nll", "direction": "minimize", "lowest": 0.0, "highest": 100.0},
    "mode": "retrain",
    "kind": "next-token",
    "measure": "nll",
    "split": "lines",
    "window": 8,
    "command": "python3 train.py",
    "outputs": ["model.json"],
    "frozen": ["names.txt"],
    "train_sec": 20,
    "predict_sec": 20,
    "file_mb": 64,
}


@dataclass
class Result:
    """How one judging ended."""

    code: int
    reward: dict[str, float] | None
    details: dict[str, Any]
    output: str
    box: "Box"

    @property
    def verdict(self) -> str:
        """The verdict that the harness would read from it."""
        if self.code != 0 or self.reward is None:
            return "no_measurement"
        return next((flag for flag in ("invalid", "violation") if self.reward.get(flag)), "scored")

    @property
    def message(self) -> str:
        """What the agent is told."""
        return str(self.details.get("message", ""))


@dataclass
class Box:
    """A workdir, private tests and a result folder, at the plain-process level or below it as another user."""

    root: Path
    files: dict[str, str] = field(default_factory=lambda: {"train.py": TRAIN, "rsi_adapter.py": ADAPTER})
    contract: dict[str, Any] = field(default_factory=lambda: dict(CONTRACT))
    examples: list[Any] = field(default_factory=lambda: list(NAMES))
    body: str = "evaluate = judge_kit.next_token"
    level: str = "process"
    environment: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    """Command that runs the judge elsewhere, such as in namespaces."""

    @property
    def workdir(self) -> Path:
        """The candidate's folder."""
        return self.root / "app"

    @property
    def logs(self) -> Path:
        """The result folder."""
        return self.root / "logs"

    def lay_out(self) -> None:
        """Write everything that the judge finds."""
        tests = self.root / "tests"
        for folder in (self.workdir, self.logs, tests / "data"):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(KIT, tests)
        (tests / "contract.json").write_text(json.dumps(self.contract), encoding="utf-8")
        lines = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in self.examples)
        (tests / "data" / "examples.jsonl").write_text(lines, encoding="utf-8")
        (tests / "evaluate.py").write_text(EVALUATE.format(here=str(tests), body=self.body), encoding="utf-8")
        self.workdir.joinpath("names.txt").write_text("adam\neva\nbirgit\nzoe\nlofc\nhnt\n", encoding="utf-8")
        for name, text in self.files.items():
            self.workdir.joinpath(name).write_text(text, encoding="utf-8")
        if OTHER[0] in self.prefix[:1]:
            for path in (self.root, *self.root.rglob("*")):
                os.chown(path, 4711, 4711)

    def judge(self, *, seed: int = 7, timeout: float = 60) -> Result:
        """Lay out and judge once."""
        self.lay_out()
        return self.run(seed=seed, timeout=timeout)

    def run(self, *, seed: int = 7, timeout: float = 60) -> Result:
        """Judge what lies there."""
        environment = {
            "PATH": f"{Path(PYTHON).parent}:/usr/local/bin:/usr/bin:/bin",
            "RSI_TESTS": str(self.root / "tests"),
            "RSI_LOGS": str(self.logs),
            "RSI_WORKDIR": str(self.workdir),
            "RSI_LEVEL": self.level,
            "RSI_SEED": str(seed),
            "SECRET": "do-not-tell",
            **self.environment,
        }
        command = [*self.prefix, PYTHON, "-I", "-S", "-B", str(self.root / "tests" / "evaluate.py")]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, timeout=timeout, check=False)
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        return Result(done.returncode, self._json("reward.json"), self._json("reward-details.json") or {}, output, self)

    def _json(self, name: str) -> dict[str, Any] | None:
        path = self.logs / name
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    def log(self, name: str) -> str:
        """Return what the candidate printed, nothing included."""
        path = self.logs / f"candidate-{name}.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def runs(*command: str) -> bool:
    """Say whether a command works here."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


OTHER = ("setpriv", "--reuid=4711", "--regid=4711", "--clear-groups")
NO_MORE = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def _places() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the level and the command of every kind of place a judge may find itself in."""
    root = os.geteuid() == 0
    become = OTHER if root else ()
    places = {
        # the plain-process level, by a user without and with other users to switch to
        "unprivileged": ("process", become),
        # the same where the kernel refuses every namespace
        "bare": ("process", (*become, "unshare", "-Ur", "sh", "-c", NO_MORE, "-", "setpriv", "--bounding-set=-all")),
        # a box of namespaces in which only one user is mapped
        "rootless": ("namespaces", (*become, "unshare", "-Urmpf", "--mount-proc")),
    }
    if root:
        like_a_container = str(Path(__file__).with_name("like_a_container.py"))
        places |= {
            "process": ("process", ()),
            "namespaces": ("namespaces", ("unshare", "-mpf", "--mount-proc")),
            # as in a container engine: root without the powers that make namespaces, and none by way of a user
            "container": ("container", ("unshare", "-mpf", "--mount-proc", PYTHON, like_a_container)),
        }
    return places


PLACES = _places()


def place(box: Box, name: str) -> Box:
    """Move a judging to a place, or skip where the machine does not offer it."""
    level, prefix = PLACES[name]
    if not runs(*prefix, "true"):
        pytest.skip(f"needs a kernel and rights that allow: {name}")
    box.level, box.prefix = level, prefix
    return box
