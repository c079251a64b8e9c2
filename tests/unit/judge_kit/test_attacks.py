"""Candidates that break, cheat or fight: each gets its verdict, and nothing of it outlives the judging."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from judging import ADAPTER, Box, place

MODEL = "json.dump({'signs': ['a', '\\n']}, open('model.json', 'w'))\n"
WEAK = ("bare",)
STRONG = ("container", "rootless", "namespaces")


def train(box: Box, text: str) -> Box:
    """Give the candidate a training script that still leaves a model."""
    box.files["train.py"] = f"import json, os, subprocess, sys, time\n{text}\n{MODEL}"
    return box


def adapter(box: Box, text: str) -> Box:
    """Give the candidate an adapter whose `logits` does something else."""
    box.files["rsi_adapter.py"] = ADAPTER.replace("        return [[0.0]", f"        {text}\n        return [[0.0]")
    return box


def processes_of(box: Box) -> list[str]:
    """Return what still runs of candidates that meant to outlive their judging."""
    done = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "outlive-me" in line]


# --- reading and writing what belongs to the judge


@pytest.mark.machine
def test_tests_cannot_be_read(placed: Box) -> None:
    spy = (
        "import glob\n"
        "found = []\n"
        "for root in (os.environ.get('RSI_TESTS', ''), TESTS, LOGS):\n"
        "    for name in ('', 'data/examples.jsonl', 'contract.json', 'judge_kit.py'):\n"
        "        try: found.append(open(os.path.join(root, name)).read()[:20])\n"
        "        except OSError: pass\n"
        "    try: found += os.listdir(root)\n"
        "    except OSError: pass\n"
        "for pid in [p for p in os.listdir('/proc') if p.isdigit()]:\n"
        "    for name in ('environ', 'mem', 'root/tests', 'fd/3'):\n"
        "        try:\n"
        "            text = open(f'/proc/{pid}/{name}', 'rb').read(100000)\n"
        "            if b'do-not-tell' in text: found.append(f'{pid} {name}')\n"
        "        except OSError: pass\n"
        "print('FOUND', found)\n"
    )
    spy = spy.replace("TESTS,", repr(str(placed.root / "tests")) + ",").replace("LOGS)", repr(str(placed.logs)) + ")")
    result = train(placed, spy).judge()
    assert result.verdict == "scored", result.output
    if result.details["isolation"]["hidden"]:
        assert "FOUND []" in placed.log("train")


@pytest.mark.machine
def test_the_judge_refuses_where_the_tests_would_be_in_sight(box: Box) -> None:
    box = place(box, "bare")
    box.level = "container"
    result = box.judge()
    assert result.verdict == "no_measurement"
    assert "could read the tests" in result.output


@pytest.mark.machine
def test_a_result_written_by_the_candidate_is_a_violation_or_impossible(placed: Box) -> None:
    forged = json.dumps({"nll": 0.0, "reward": 0.0})
    attack = (
        f"for name in ('reward.json', 'reward.txt'):\n"
        f"    try: open(os.path.join({str(placed.logs)!r}, name), 'w').write({forged!r}); print('written')\n"
        f"    except OSError: pass\n"
    )
    result = train(placed, attack).judge()
    assert (result.verdict == "violation") == ("written" in placed.log("train"))
    assert result.verdict in {"scored", "violation"}
    assert not (placed.logs / "reward.txt").exists()
    assert result.reward is not None
    assert result.reward.get("nll") != 0.0
    assert (result.verdict == "scored") == result.details["isolation"]["hidden"]


def test_a_result_that_lay_there_before_is_removed(box: Box) -> None:
    box.lay_out()
    (box.logs / "reward.json").write_text('{"nll": 0.0}', encoding="utf-8")
    (box.logs / "reward.txt").symlink_to("/etc/passwd")
    result = box.run()
    assert result.verdict == "scored"
    assert result.reward is not None
    assert result.reward["nll"] > 1


def test_printing_a_result_has_no_effect(box: Box) -> None:
    result = train(box, "print(json.dumps({'reward': 100, 'nll': 0}))").judge()
    assert result.reward is not None
    assert result.reward["nll"] > 0.1


def test_secrets_of_the_environment_do_not_reach_the_candidate(box: Box) -> None:
    train(box, "print(sorted(os.environ))").judge()
    told = box.log("train")
    for name in ("SECRET", "RSI_TESTS", "RSI_LOGS", "RSI_LEVEL", "LD_PRELOAD"):
        assert name not in told


@pytest.mark.machine
def test_no_descriptor_of_the_judge_is_inherited(placed: Box) -> None:
    attack = "for fd in range(3, 256):\n    try: os.write(fd, b'forged'); print('HOLE', fd)\n    except OSError: pass\n"
    assert train(placed, attack).judge().verdict == "scored"
    assert "HOLE" not in placed.log("train")


# --- changing what is frozen


APPEND = "open('names.txt', 'a').write('anna')"
REMOVE = "os.unlink('names.txt')"
REPLACE = "os.rename('names.txt', 'x'); os.symlink('x', 'names.txt')"


@pytest.mark.machine
@pytest.mark.parametrize(
    ("where", "act"),
    [
        ("bare", APPEND),
        ("rootless", APPEND),
        ("rootless", REMOVE),
        ("rootless", REPLACE),
        ("namespaces", REPLACE),
        ("container", APPEND),
        ("container", REMOVE),
        ("container", REPLACE),
    ],
)
def test_changing_a_frozen_file_is_a_violation_or_impossible(box: Box, where: str, act: str) -> None:
    place(box, where)
    result = train(box, f"try: {act}; print('done')\nexcept OSError: print('refused')").judge()
    done = "done" in box.log("train")
    assert result.verdict == ("violation" if done else "scored"), result.output
    if where in {"container", "namespaces"}:
        assert not done
    if done:
        assert "names.txt" in result.message


@pytest.mark.machine
def test_the_interpreter_and_the_system_cannot_be_changed(box: Box) -> None:
    place(box, "rootless")
    spot = box.root / "image-file"
    attack = f"try: open({str(spot)!r}, 'w').write('x'); print('HOLE')\nexcept OSError: pass"
    box.lay_out()
    result = train(box, attack).judge()
    assert result.verdict == "scored"
    # /tmp stays writable for the candidate, so the whole folder does here; the root of the machine does not
    attack = "try: open('/rsi-was-here', 'w'); print('HOLE')\nexcept OSError: pass"
    assert train(box, attack).judge().verdict == "scored"
    assert "HOLE" not in box.log("train")


def test_an_output_that_was_delivered_does_not_count(box: Box) -> None:
    box.files["train.py"] = "print('I train nothing')\n"
    box.files["model.json"] = '{"signs": ["a", "b"]}'
    result = box.judge()
    assert result.verdict == "invalid"
    assert "model.json is missing" in result.message


# --- outliving


@pytest.mark.machine
@pytest.mark.parametrize("where", [*WEAK, *STRONG, "process"])
def test_a_process_that_is_left_is_killed_before_the_result(box: Box, where: str) -> None:
    place(box, where)
    leave = (
        f"code = '''# outlive-me\n"
        f"import os, signal, time\n"
        f"for number in range(1, 32):\n"
        f"    try: signal.signal(number, signal.SIG_IGN)\n"
        f"    except (OSError, ValueError): pass\n"
        f"while True:\n"
        f"    time.sleep(0.02)\n"
        f"    try: open(os.path.join({str(box.logs)!r}, 'reward.json'), 'w').write('0')\n"
        f"    except OSError: pass\n"
        f"'''\n"
        f"for _ in range(3):\n"
        f"    if os.fork() == 0:\n"
        f"        os.setsid()\n"
        f"        if os.fork() == 0: os.execvp(sys.executable, [sys.executable, '-c', code])\n"
        f"        os._exit(0)\n"
        f"time.sleep(0.3)\n"
    )
    result = train(box, leave).judge()
    assert processes_of(box) == []
    if result.details["isolation"]["hidden"]:
        assert result.verdict == "scored", result.output
        assert result.reward is not None
        assert result.reward["nll"] > 1
    else:
        assert result.verdict == "violation"
    written = (box.logs / "reward.json").read_bytes()
    time.sleep(0.1)
    assert (box.logs / "reward.json").read_bytes() == written


@pytest.mark.machine
@pytest.mark.parametrize("where", [*WEAK, "container", "rootless"])
def test_a_fork_bomb_ends_with_the_training(box: Box, where: str) -> None:
    place(box, where)
    box.contract["train_sec"] = 2
    bomb = (
        "deadline = time.time() + 60\n"
        "count = 0\n"
        "while time.time() < deadline:\n"
        "    try: count = 0 if os.fork() == 0 else count + 1\n"
        "    except OSError: time.sleep(0.01)\n"
        "    if count > 40: time.sleep(0.01)\n"
    )
    box.contract["command"] = "python3 train.py outlive-me"
    box.files["train.py"] = (
        "import os, resource, sys, time\nresource.setrlimit(resource.RLIMIT_NPROC, (150, 150))\n" + bomb
    )
    if where == "bare":  # the bound counts all of a user's processes
        box.files["train.py"] = "import os, sys, time\n" + bomb.replace("count + 1", "count + 1; time.sleep(0.002)")
    result = box.judge(timeout=90)
    assert result.verdict == "invalid", result.output
    assert "did not end within its 2 seconds" in result.message
    assert processes_of(box) == []


# --- breaking


def test_training_that_fails_tells_the_end_of_its_output(box: Box) -> None:
    box.files["train.py"] = "raise ValueError('the learning rate is silly')\n"
    result = box.judge()
    assert result.verdict == "invalid"
    assert "ended with status 1" in result.message
    assert "ValueError: the learning rate is silly" in result.message
    assert set(result.reward or {}) == {"reward", "invalid"}


@pytest.mark.machine
def test_training_that_is_killed_says_so(box: Box) -> None:
    box.files["train.py"] = "import os; os.kill(os.getpid(), 9)\n"
    for where in ("bare", "namespaces"):
        assert "killed by signal 9" in place(box, where).judge().message


def test_leaving_early_with_status_0_is_no_model(box: Box) -> None:
    result = train(box, "os._exit(0)").judge()
    assert result.verdict == "invalid"
    assert "model.json is missing" in result.message


def test_training_that_hangs_is_ended(box: Box) -> None:
    box.contract["train_sec"] = 0.5
    assert "did not end within its 0.5 seconds" in train(box, "time.sleep(60)").judge().message


def test_flooding_is_capped(box: Box) -> None:
    train(box, "for _ in range(3000): print('x' * 9999)\nprint('the end')").judge()
    log = box.log("train")
    assert len(log) < 1_100_000
    assert "bytes left out" in log
    assert log.endswith("the end\n")


def test_a_file_that_is_too_large_fails(box: Box) -> None:
    box.contract["file_mb"] = 1
    result = train(box, "open('big', 'wb').truncate(20 << 30)").judge()
    assert result.verdict == "invalid"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return [[float('nan')] * len(self.vocabulary) for _ in prefixes]", "not finite"),
        ("return [[0.0] for _ in prefixes]", "raised ValueError"),
        ("return []", "one row of"),
        ("return None", "raised TypeError"),
        ("raise type('label_is_7', (Exception,), {})()", "raised an error of its own"),
        ("import os; os._exit(0)", "ended in logits()"),
        ("import os; os.write(1, b'x' * 100); import sys; sys.stdout.write('y' * 10_000_000)", ""),
        ("import os; os.write(4, b'garbage!' * 100)", "wrong size"),
        ("import time; time.sleep(60)", "did not end within"),
        ("import time\n        while True: print('x' * 100000)", "did not end within"),
    ],
)  # fmt: skip
def test_answers_that_are_none(box: Box, text: str, expected: str) -> None:
    # Only what never ends is to meet the limit: a busy machine is slow to start the others.
    box.contract["predict_sec"] = 2 if expected == "did not end within" else 30
    result = adapter(box, text).judge()
    assert result.verdict == ("invalid" if expected else "scored"), result.output + result.message
    assert expected in result.message
    assert "label_is_7" not in result.message
    assert len((box.logs / "reward-details.json").read_bytes()) < 4096


def test_an_adapter_that_cannot_be_loaded_says_why(box: Box) -> None:
    """No hidden data is there yet, so the end of its own output may be told."""
    box.files["rsi_adapter.py"] = "import numppy\n"
    result = box.judge()
    assert result.verdict == "invalid"
    assert "load() of rsi_adapter.py raised ModuleNotFoundError" in result.message
    assert "No module named 'numppy'" in result.message
    box.files["rsi_adapter.py"] = "import os; os._exit(3)\n"
    assert "ended in load()" in box.judge().message


def test_hidden_data_cannot_be_told_by_an_error(box: Box) -> None:
    result = adapter(box, "print('TELL', prefixes)\n        raise RuntimeError(str(prefixes))").judge()
    assert result.message == "logits() raised RuntimeError"


def test_tricks_in_its_own_process_stay_there(box: Box) -> None:
    trick = (
        "import sys, math, json, builtins\n"
        "math.isfinite = math.fsum = lambda *a: 0.0\n"
        "json.load = lambda *a, **k: {'signs': sorted(set(open('names.txt').read()))}\n"
        "sys.modules['judge_kit'] = sys.modules['random'] = sys\n"
        "builtins.min = builtins.max = lambda *a, **k: 0\n"
    )
    box.files["sitecustomize.py"] = "raise SystemExit(0)\n"
    box.files["math.py"] = "raise SystemExit(0)\n"
    box.files["judge_kit.py"] = "raise SystemExit(0)\n"
    box.files["rsi_adapter.py"] = f"{trick}{ADAPTER}"
    honest = Box(box.root / "other")
    assert box.judge().reward == honest.judge().reward


def test_deep_and_huge_answers_are_refused(box: Box) -> None:
    box.contract |= {"mode": "direct", "outputs": [], "kind": "custom"}
    box.body = "def evaluate(judge):\n    with judge.serve() as c: return float(len(c.call('answer')))"
    deep = "import os, struct; os.write(4, struct.pack('>I', 200001) + b'J' + b'[' * 200000)"
    huge = "import os, struct; os.write(4, struct.pack('>I', 2 ** 31))"
    for text in (deep, huge, "return float('nan')", "return {1, 2}", "return [10 ** 400] * 3 and float('inf')"):
        box.files = {"rsi_adapter.py": f"class M:\n  def answer(self):\n    {text}\ndef load(): return M()\n"}
        result = box.judge()
        assert result.verdict == "invalid", (text, result.output, result.message)


@pytest.mark.parametrize(
    "text",
    [
        "for _ in range(30): os.mkdir('d' * 200); os.chdir('d' * 200)\nos.chdir(os.environ['RSI_WORKDIR'])",
        "for at in range(200): os.mkdir('d%d' % at)",
    ],
)
def test_a_workdir_that_cannot_be_walked_is_the_candidates_fault(box: Box, text: str) -> None:
    box.body = "judge_kit.ENTRIES = 100\n" + box.body
    result = train(box, text).judge()
    assert result.verdict == "invalid", result.output
    assert "the workdir" in result.message


def test_a_frozen_file_that_became_a_folder_is_a_violation_or_impossible(box: Box) -> None:
    act = "try: os.remove('names.txt'); os.mkdir('names.txt')\nexcept OSError: pass"
    result = train(box, act).judge()
    assert result.verdict in {"violation", "scored"}, result.output


def test_an_answer_of_too_many_values_does_not_take_the_judges_memory(box: Box) -> None:
    box.contract |= {"mode": "direct", "outputs": [], "kind": "custom"}
    box.body = "def evaluate(judge):\n    with judge.serve() as c: return float(len(c.call('answer')))"
    many = "import os, struct; os.write(4, struct.pack('>I', 6000002) + b'J[' + b'[],' * 1999999 + b'[]]')"
    box.files = {"rsi_adapter.py": f"class M:\n  def answer(self):\n    {many}\ndef load(): return M()\n"}
    result = box.judge()
    assert result.verdict == "invalid", result.output


def test_a_long_name_does_not_hold_up_a_glob_of_many_stars(box: Box) -> None:
    box.contract["outputs"] = ["model.json", "*_*_*_*_*_*.pt"]
    begun = time.monotonic()
    result = train(box, "open('_' * 250, 'w').close(); open('a_b_c_d_e_f.pt', 'w').close()").judge()
    assert result.verdict == "scored", result.output
    assert time.monotonic() - begun < 20


# --- faults of the judge


@pytest.mark.parametrize(
    "body",
    [
        "def evaluate(judge): return None",
        "def evaluate(judge): return True",
        "def evaluate(judge): raise SystemExit(0)",
        "def evaluate(judge): judge.extra('reward', 1); return 1.0",
    ],
)
def test_an_evaluator_that_fails_gives_no_result(box: Box, body: str) -> None:
    box.contract |= {"mode": "direct", "outputs": []}
    box.body = body
    result = box.judge()
    assert result.verdict == "no_measurement"
    assert "Traceback" in result.output
    assert list(box.logs.iterdir()) == []


def test_a_metric_outside_its_domain_is_invalid(box: Box) -> None:
    box.contract |= {"mode": "direct", "outputs": []}
    for value in ("float('nan')", "100.1"):
        box.body = f"def evaluate(judge): return {value}"
        assert box.judge().reward == {"reward": 0, "invalid": 1}


def test_an_author_s_violation_is_reported_with_evidence(box: Box) -> None:
    box.contract |= {"mode": "direct", "outputs": []}
    box.body = "def evaluate(judge): raise Violation('not \\x1b[1m allowed', 'line 7')"
    result = box.judge()
    assert result.reward == {"reward": 0, "violation": 1}
    assert result.details["evidence"] == "line 7"
    assert "\x1b" not in result.message


def test_a_missing_deliverable_is_invalid(box: Box) -> None:
    box.contract |= {"mode": "direct", "outputs": ["weights/**"]}
    assert box.judge().message == "weights/** is missing"


def test_the_judge_can_be_run_again(box: Box) -> None:
    """Harbor's users do that; the first one's traces must not look like an attack."""
    first = box.judge()
    assert box.run().reward == first.reward


@pytest.mark.machine
def test_a_place_closed_to_other_users_is_named(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, which alone changes to another user")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    box = place(Box(closed), "namespaces")
    result = box.judge()
    assert result.verdict == "no_measurement"
    assert "is closed to other users" in result.output
    box.level, box.prefix = "process", ()
    assert box.judge().verdict == "scored"  # at this level as the same user, which it tells
