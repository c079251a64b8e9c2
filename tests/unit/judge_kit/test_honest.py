"""Honest candidates are scored, with the right number, wherever the judge runs."""

import math
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from judging import ADAPTER, Box, place

LABELS = [{"row": {"x": str(x)}, "label": "big" if x > 4 else "small"} for x in range(10)]
PREDICTIONS: dict[str, Any] = {"kind": "predictions", "measure": "accuracy", "split": "rows"}


def predict(box: Box, measure: str, adapter: str, examples: list[Any], **metric: Any) -> Box:
    """Make a judging of predictions, in mode direct."""
    box.contract |= PREDICTIONS | {"mode": "direct", "outputs": [], "measure": measure}
    box.contract["metric"] = {"name": "m", "direction": "maximize", "lowest": -100.0, "highest": 100.0, **metric}
    box.body = "evaluate = judge_kit.predictions"
    box.files = {"rsi_adapter.py": adapter}
    box.examples = examples
    return box


@pytest.mark.machine
def test_a_candidate_is_scored_everywhere(placed: Box) -> None:
    result = placed.judge()
    assert result.verdict == "scored", result.output
    # 14 signs in names.txt, none of them favoured; every name and its end is asked for
    signs = set("adam\neva\nbirgit\nzoe\nlofc\nhnt\n")
    assert result.reward is not None
    assert result.reward["nll"] == pytest.approx(math.log(len(signs)))
    assert result.reward["reward"] == -result.reward["nll"]
    assert result.reward["characters"] == sum(len(name) + 1 for name in placed.examples)
    assert "trained" in placed.log("train")
    assert sorted(path.name for path in placed.logs.iterdir()) == [
        "candidate-train.log",
        "reward-details.json",
        "reward.json",
    ]


@pytest.mark.machine
def test_what_is_in_force_is_told(box: Box) -> None:
    for name, separate, hidden in (("container", False, True), ("rootless", True, True), ("bare", False, False)):
        found = place(box, name).judge()
        assert found.details["isolation"]["namespaces"] is separate, found.output
        assert found.details["isolation"]["hidden"] is hidden


def test_the_same_seed_gives_the_same_number_and_another_one_does_not(box: Box) -> None:
    box.files["train.py"] = (
        "import json, os, random\n"
        "random.seed(int(os.environ['RSI_SEED']))\n"
        "signs = sorted(set(open('names.txt').read()))\n"
        "json.dump({'signs': signs, 'w': [random.random() for _ in signs]}, open('model.json', 'w'))\n"
    )
    box.files["rsi_adapter.py"] = (
        "import json\n"
        "class Model:\n"
        "    def __init__(self, state): self.vocabulary, self.w = state['signs'], state['w']\n"
        "    def logits(self, prefixes): return [self.w for _ in prefixes]\n"
        "def load(): return Model(json.load(open('model.json')))\n"
    )
    first, again, other = (box.judge(seed=seed).reward for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_model_that_knows_more_costs_less(box: Box) -> None:
    box.examples = ["aaaa", "aaab"]
    box.files["rsi_adapter.py"] = ADAPTER.replace(
        "[0.0] * len(self.vocabulary) for _ in prefixes",
        "[5.0 * (sign == 'a') for sign in self.vocabulary] for _ in prefixes",
    )
    reward = box.judge().reward
    assert reward is not None
    signs = len(set("adam\neva\nbirgit\nzoe\nlofc\nhnt\n"))
    total = math.log(math.exp(5) + signs - 1)
    assert reward["nll"] == pytest.approx((7 * (total - 5) + 3 * total) / 10)


def test_windows_of_a_tail_begin_with_a_given_character(box: Box) -> None:
    box.contract |= {"split": "tail", "window": 3, "measure": "bits"}
    box.examples = ["abcd", "zzzz"]
    box.files["rsi_adapter.py"] = ADAPTER.replace(
        "def load():",
        "def load():\n    import sys\n    Model.logits = lambda self, p: (print(sorted(p)), [[0.0, 0.0]] * len(p))[1]\n"
        "    return Model(['a', 'z'])\ndef other():",
    )
    result = box.judge()
    assert result.reward is not None, result.output
    # z is known at one bit; b, c, d are not in the vocabulary and cost as much as 1e-9
    assert result.reward["nll"] == pytest.approx((3 * 1 + 3 * -math.log2(1e-9)) / 6)
    assert box.log("predict-1").splitlines() == ["['a', 'z']", "['ab', 'zz']", "['abc', 'zzz']"]


def test_no_position_is_shown_before_it_is_scored(box: Box) -> None:
    """Prefixes grow by one character at a time, and equal ones are asked once."""
    box.files["rsi_adapter.py"] = ADAPTER.replace(
        "        return [[0.0]", "        print(sorted(map(len, prefixes))); return [[0.0]"
    )
    box.judge()
    steps = [eval(line) for line in box.log("predict-1").splitlines()]
    assert steps[0] == [0]
    assert all(set(step) == {place} for place, step in enumerate(steps))
    assert len(steps) == 6  # the longest name has 5 characters and an end, less than the window


def test_labels_stay_with_the_judge_and_rows_come_in_random_order(box: Box) -> None:
    adapter = "class M:\n  def predict(self, rows): print(rows); return ['small'] * len(rows)\ndef load(): return M()\n"
    predict(box, "accuracy", adapter, LABELS).judge()
    rows = eval(box.log("predict-1"))
    assert rows != [example["row"] for example in LABELS]
    assert sorted(int(row["x"]) for row in rows) == list(range(10))
    assert all(set(row) == {"x"} for row in rows)


def test_an_author_s_evaluator_asks_and_tells(box: Box) -> None:
    """An optimiser: the judge knows the function, the candidate chooses where to look."""
    box.contract |= {"mode": "direct", "outputs": [], "kind": "custom"}
    box.body = (
        "def evaluate(judge):\n"
        "    best, hidden = 1e9, judge.random.uniform(-1, 1)\n"
        "    with judge.serve() as candidate:\n"
        "        for _ in range(40):\n"
        "            x = candidate.call('ask')\n"
        "            if not isinstance(x, float): raise Invalid('ask() must return a number')\n"
        "            best = min(best, (x - hidden) ** 2)\n"
        "            candidate.call('tell', x, (x - hidden) ** 2)\n"
        "    judge.extra('asked', 40)\n"
        "    return best\n"
    )
    box.files = {
        "rsi_adapter.py": (
            "import random\n"
            "class Search:\n"
            "    def __init__(self): self.best, self.at, self.step = 1e9, 0.0, 0.5\n"
            "    def ask(self): self.x = self.at + random.gauss(0, self.step); return self.x\n"
            "    def tell(self, x, y):\n"
            "        if y < self.best: self.best, self.at = y, x\n"
            "        else: self.step *= 0.9\n"
            "def load(): random.seed(1); return Search()\n"
        )
    }
    reward = box.judge().reward
    assert reward is not None
    assert reward["nll"] < 0.05
    assert reward["asked"] == 40
    box.files["rsi_adapter.py"] = "class S:\n  def ask(self): return 'far away'\ndef load(): return S()\n"
    assert box.judge().message == "ask() must return a number"


@pytest.mark.machine
def test_training_may_use_processes_and_talk_to_itself(box: Box) -> None:
    box.files["train.py"] = (
        "import multiprocessing, socket, tempfile, json, pathlib\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "socket.create_connection(server.getsockname()).close()\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.Pool(2) as pool: assert pool.map(abs, [-1, -2]) == [1, 2]\n"
        "    pathlib.Path(tempfile.gettempdir(), 'x').write_text('x')\n"
        "    pathlib.Path.home().joinpath('.cache').mkdir()\n"
        "    pathlib.Path('out').mkdir(); pathlib.Path('out/log.txt').write_text('x')\n"
        "    json.dump({'signs': ['a']}, open('model.json', 'w'))\n"
    )
    assert place(box, "namespaces").judge().verdict == "scored"
    shutil.rmtree(box.workdir)
    assert place(box, "container").judge().verdict == "scored"


@pytest.mark.machine
def test_folders_of_the_image_can_be_written_into_but_its_files_stay(box: Box) -> None:
    box.files["train.py"] = (
        "import json, os\n"
        "open('data/new.txt', 'w').write('x')\n"
        "for path in ('data/old.txt', 'train.py'):\n"
        "    for act in (lambda: open(path, 'a'), lambda: os.unlink(path), lambda: os.rename(path, 'data/gone')):\n"
        "        try: act()\n"
        "        except OSError: print('kept')\n"
        "json.dump({'signs': ['a']}, open('model.json', 'w'))\n"
    )
    box.lay_out()
    (box.workdir / "data").mkdir()
    (box.workdir / "data" / "old.txt").write_text("old", encoding="utf-8")
    assert place(box, "container").run().verdict == "scored"
    assert box.log("train").count("kept") == 6


@pytest.mark.machine
def test_nothing_is_left_behind(box: Box) -> None:
    before = set(Path("/tmp").iterdir())
    place(box, "container").judge()
    left = {path for path in set(Path("/tmp").iterdir()) - before if path.name.startswith("rsi-")} - {box.root}
    # Tests beside this one make such folders too; those go as well, only one of ours would stay.
    deadline = time.monotonic() + 60
    while left and time.monotonic() < deadline:
        left = {path for path in left if path.exists()}
        time.sleep(0.1)
    assert not left
