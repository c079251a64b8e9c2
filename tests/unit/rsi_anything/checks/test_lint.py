"""The lint rung: a good task passes in silence, each damage is found by its rule, and look-alikes are left alone."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rsi_anything.checks import lint
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.ladder import Context
from rsi_anything.checks.lints.dockerfile import instructions
from rsi_anything.checks.lints.pins import requirements
from rsi_anything.checks.lints.shell import commands
from tests.unit.harness.task.task_folders import edit, good_task, plain_files, write

FROM = "FROM python:3.11-slim-bookworm@sha256:" + "0" * 64
LABELS = "".join(f"held-out example number {number},{number * 7}\n" for number in range(20))
PLAY = "".join(f"SPEAKER NUMBER {n % 9}:\nLine {n} of the {{0}} play, said once.\n\n" for n in range(40))
KEY_BODY = "MIIEpAIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi" * 2
E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
DF, SH, IN, RM, APP = "environment/Dockerfile", "tests/test.sh", "instruction.md", "README.md", "environment/app/"
Damage = Callable[[Path], object]


def lint_of(folder: Path) -> list[Finding]:
    """Return the findings of the lint rung."""
    return lint.climb(folder, Context()).findings


def docker(*lines: str) -> Damage:
    """Return a damage that adds lines to the Dockerfile."""
    return lambda folder: edit(
        folder, "environment/Dockerfile", "WORKDIR /app\n", "WORKDIR /app\n" + "\n".join(lines) + "\n"
    )


def base(image: str) -> Damage:
    """Return a damage that changes the base image."""
    return lambda folder: edit(folder, "environment/Dockerfile", FROM, f"FROM {image}")


def put(name: str, text: str) -> Damage:
    """Return a damage that adds or replaces a file."""
    return lambda folder: write(folder, {name: text})


def swap(name: str, old: str, new: str) -> Damage:
    """Return a damage that replaces a text."""
    return lambda folder: edit(folder, name, old, new)


def large(name: str, size: int) -> Damage:
    """Return a damage that adds a file of that size."""

    def make(folder: Path) -> None:
        with (folder / name).open("wb") as file:
            file.truncate(size)

    return make


def test_a_good_task_is_silent(tmp_path: Path) -> None:
    assert lint_of(good_task(tmp_path)) == []


DAMAGES: list[tuple[Damage, str, Severity, str, int | None]] = [
    (base("python"), "lint/base-image", E, DF, 1),
    (base("registry:5000/python:latest"), "lint/base-image", E, DF, 1),
    (base("python:3.11-slim"), "lint/base-digest", W, DF, 1),
    (docker("RUN pip install numpy"), "lint/unpinned-package", E, DF, 3),
    (docker("RUN true && \\", "  # why", "  pip3 install 'a>=1'"), "lint/unpinned-package", E, DF, 5),
    (docker("RUN python -m pip install a"), "lint/unpinned-package", E, DF, 3),
    (docker("RUN uv pip install --system a"), "lint/unpinned-package", E, DF, 3),
    (docker('RUN ["pip", "install", "a"]'), "lint/unpinned-package", E, DF, 3),
    (docker("RUN <<EOF", "pip install a", "EOF"), "lint/unpinned-package", E, DF, 4),
    (docker("RUN pip install git+https://e.org/a@main"), "lint/unpinned-package", E, DF, 3),
    (docker("RUN npm install -g left-pad"), "lint/unpinned-package", E, DF, 3),
    (docker("RUN conda install -y numpy"), "lint/unpinned-package", E, DF, 3),
    (
        docker("RUN apt-get update && apt-get install -y git"),
        "lint/unpinned-system-package",
        W,
        DF,
        3,
    ),
    (docker("RUN git clone https://e.org/a"), "lint/unpinned-checkout", W, DF, 3),
    (docker("RUN curl -O https://e.org/a"), "lint/unchecked-download", W, DF, 3),
    (docker("ADD https://e.org/a /a"), "lint/unchecked-download", W, DF, 3),
    (docker("RUN curl -sSf https://e.org/a | sh"), "lint/pipe-to-shell", E, DF, 3),
    (swap(SH, "set -eu\n", "set -eu\npip install a==1\n"), "lint/judge-installs", E, SH, 3),
    (swap(SH, "set -eu\n", "set -eu\ncurl https://e.org/x -o x\n"), "lint/judge-installs", E, SH, 3),
    (
        put("environment/app/key.pem", f"-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}\n"),
        "lint/secret",
        E,
        "environment/app/key.pem",
        1,
    ),
    (put(RM, "key: " + "AKIA" + "Q7ZL2MNV5RTY8WXK"), "lint/secret", E, RM, 1),
    (put("tests/a.py", "x\nt = '" + "ghp_" + "aB3" * 12 + "'"), "lint/secret", E, "tests/a.py", 2),
    (put("tests/a.py", "t = '" + "sk-ant-" + "api03-" + "xY7_" * 10 + "'"), "lint/secret", E, "tests/a.py", 1),
    (put("tests/a.py", "t = '" + "sk-" + "proj-" + "xY7k" * 10 + "'"), "lint/secret", E, "tests/a.py", 1),
    (put("tests/a.py", "t = '" + "hf_" + "qBzDwFgHiJ" * 3 + "kLmN'"), "lint/secret", E, "tests/a.py", 1),
    (put("tests/a.env", "DB_PASS" + "WORD=k3J9xQ2mW8zR5tV1bN7c"), "lint/secret", E, "tests/a.env", 1),
    (put("tests/a.txt", "postgres://me:" + "s3cR-et9!x" + "@db/x"), "lint/secret", E, "tests/a.txt", 1),
    (put("tests/a.txt", "xox" + "b-123456789012-" + "qBzDwFgH1357902468xy"), "lint/secret", E, "tests/a.txt", 1),
    (
        lambda f: write(f, {"tests/held.csv": LABELS, "environment/app/held.csv": LABELS}),
        "lint/tests-in-image",
        E,
        "tests/held.csv",
        None,
    ),
    (
        lambda f: write(f, {"environment/app/evaluate.py": (f / "tests/evaluate.py").read_text()}),
        "lint/tests-in-image",
        W,
        "tests/evaluate.py",
        None,
    ),
    (
        lambda f: write(f, {"tests/held.csv": LABELS, "environment/app/all.csv": "x\n" + LABELS[:300]}),
        "lint/labels-in-image",
        E,
        "environment/app/all.csv",
        2,
    ),
    (
        swap("task.toml", 'start = "baseline"', 'start = "floor"'),
        "lint/solution-in-image",
        E,
        "solution/files/train.py",
        None,
    ),
    (put("environment/app/.git/HEAD", "ref: x"), "lint/git-in-image", E, "environment/app/.git", None),
    (put("environment/app/labels.csv", "1\n"), "lint/answers-in-image", W, "environment/app/labels.csv", None),
    (docker("COPY app/ /tests/"), "lint/copies-tests", E, DF, 3),
    (docker("COPY ../tests /app/t"), "lint/copies-tests", E, DF, 3),
    (docker("COPY solution /app/s"), "lint/copies-tests", E, DF, 3),
    (docker("ENV API_KEY=abcdefgh"), "lint/secret-in-build", E, DF, 3),
    (docker("ARG GITHUB_TOKEN"), "lint/secret-in-build", E, DF, 3),
    (lambda f: os.mkfifo(f / "pipe"), "lint/special-file", E, "pipe", None),
    (lambda f: (f / "notes").symlink_to("/etc/hosts"), "lint/special-file", E, "notes", None),
    (large("environment/app/big.bin", 51 << 20), "lint/large-file", W, "environment/app/big.bin", None),
    (large("environment/app/big.bin", 513 << 20), "lint/large-task", E, ".", None),
    (large("environment/app/big.bin", 17 << 20), "lint/not-scanned", N, "environment/app/big.bin", None),
    (put("environment/app/a:b", ""), "lint/name", W, "environment/app/a:b", None),
    (put("environment/app/con.py", ""), "lint/name", W, "environment/app/con.py", None),
    (put("environment/app/Train.py", ""), "lint/name", W, "environment/app/train.py", None),
    (put(RM, "line\nTODO: say more"), "lint/forgotten-marker", W, RM, 2),
    (put(RM, "Lorem ipsum dolor"), "lint/forgotten-marker", W, RM, 1),
    (put(RM, "Run <your command here>."), "lint/forgotten-marker", W, RM, 1),
    (put(RM, "See {{ metric.name }}."), "lint/unfilled-template", E, RM, 1),
    (put(RM, "{% if x %}"), "lint/unfilled-template", E, RM, 1),
    (swap(IN, "error", "mistake"), "lint/instruction-metric", E, IN, None),
    (
        swap(IN, "Lower the error (units; lower is better, minimize)", "The error"),
        "lint/instruction-direction",
        W,
        IN,
        None,
    ),
    (swap(IN, "conf/", "settings"), "lint/instruction-deliver", E, IN, None),
    (swap(IN, "data/", "inputs"), "lint/instruction-frozen", W, IN, None),
    (swap(IN, "train.py", "the script"), "lint/instruction-editable", W, IN, None),
    (swap(IN, "rsi-submit", "a command"), "lint/instruction-submit", E, IN, None),
    (swap(IN, "2 hours", "some hours"), "lint/instruction-budget", W, IN, None),
    (swap(IN, "20 submissions", "submissions"), "lint/instruction-budget", W, IN, None),
    (swap(SH, "#!/bin/sh\n", ""), "lint/test-shebang", E, SH, 1),
    (swap(SH, "set -eu\n", ""), "lint/test-strict", W, SH, 1),
    (swap(SH, " -I -S", ""), "lint/test-isolated", E, SH, 3),
    (lambda f: (f / SH).write_bytes(b"#!/bin/sh\r\nset -eu\r\n"), "lint/line-ends", E, SH, 1),
    (
        put(SH, "#!/bin/sh\nset -e\npython3 -I x.py | grep -o '[0-9]*' > /logs/verifier/reward.txt\n"),
        "lint/judge-parses-output",
        W,
        SH,
        3,
    ),
    (put("tests/evaluate.py", "x = float(proc.stdout)\n"), "lint/judge-parses-output", W, "tests/evaluate.py", 1),
    (swap("task.toml", "cpus = 1", "cpu = 1"), "lint/contract-unread", W, "task.toml", None),
]


@pytest.mark.parametrize(("damage", "rule", "severity", "file", "line"), DAMAGES)
def test_each_damage_is_found(
    tmp_path: Path, damage: Damage, rule: str, severity: Severity, file: str, line: int | None
) -> None:
    damage(good_task(tmp_path))
    findings = lint_of(tmp_path)
    found = [f for f in findings if f.rule == rule and f.file == file]
    assert found, [f.lines() for f in findings]
    assert (found[0].severity, found[0].line) == (severity, line)
    assert found[0].reason
    assert found[0].fix


HARMLESS: list[Damage] = [
    docker("ARG VERSION=1.2.3", "RUN pip install --no-cache-dir 'a==1.2' b[x]==3.0 -c limits.txt"),
    docker("RUN pip install -e . && pip install ./wheel.whl"),
    docker("RUN apt-get update && rm -rf /var/lib/apt/lists/*"),
    docker("RUN git clone https://e.org/a && cd a && git checkout " + "a" * 40),
    docker("RUN curl -O https://e.org/a && echo '0 a' | sha256sum -c"),
    docker("RUN curl -s http://localhost:80/ready"),
    docker("ENV TOKENIZERS_PARALLELISM=false MAX_TOKENS=4096 PIP_NO_CACHE_DIR=1"),
    docker("# pip install numpy", 'RUN echo "pip install numpy"'),
    lambda f: edit(f, DF, FROM, f"ARG BASE=python:3.11@sha256:{'1' * 64}\nFROM $BASE AS one\nFROM one"),
    put("environment/app/model.py", "token = encode(text)\napi_key = os.environ['SOME_API_KEY_FOR_THIS_TASK']\n"),
    put(APP + "auth.yaml", "password: changeme-please-changeme-1A\nsecret: ${SECRET_FROM_THE_HOST_1A}\n"),
    put("environment/app/hash.txt", "tests_digest = '" + "0f1e2d3c4b5a" * 5 + "abcd'\n"),
    put("environment/app/db.py", "URL = 'postgres://postgres:postgres@localhost/db'\n"),
    put("environment/app/key.py", "MARK = '-----BEGIN RSA PRIVATE KEY-----'\n"),
    put("environment/app/sketch.py", "risk-free-rate-of-return-over-12-months-and-more = 1\n"),
    put("README.md", "Todo lists are fine, so is mktemp XXXXXX, $x^{{2}}$ and `dict(a={{}})`.\n"),
    put("environment/app/test_labels.py", "x = 1\n"),
    lambda f: write(f, {"tests/held.csv": LABELS, "environment/app/data/points.csv": "x,y\n1,2\n" + LABELS[:60]}),
    lambda f: write(f, {"tests/play.txt": PLAY.format("spring"), "environment/app/play.txt": PLAY.format("autumn")}),
    lambda f: write(f, {"tests/__init__.py": "", "environment/app/__init__.py": ""}),
    put(".git/config", "password = k3J9xQ2mW8zR5tV1bN7c"),
]


@pytest.mark.parametrize("change", HARMLESS)
def test_look_alikes_are_left_alone(tmp_path: Path, change: Damage) -> None:
    change(good_task(tmp_path))
    assert [f.lines() for f in lint_of(tmp_path)] == []


def test_a_secret_is_never_repeated(tmp_path: Path) -> None:
    token = "ghp_" + "aB3" * 12
    put("tests/a.py", f"token = '{token}'")(good_task(tmp_path))
    findings = lint_of(tmp_path)
    assert findings
    assert token not in repr(findings)


def test_a_harbor_task_without_a_contract_is_linted(tmp_path: Path) -> None:
    write(tmp_path, plain_files())
    assert {f.rule for f in lint_of(tmp_path)} == {"lint/base-digest"}
    put("tests/test.sh", "#!/bin/bash\nuvx pytest\nif [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; fi\n")(
        tmp_path
    )
    weights = {f.rule: f.severity for f in lint_of(tmp_path)}
    assert weights["lint/judge-installs"] is Severity.WARNING
    assert weights["lint/judge-parses-output"] is Severity.WARNING
    assert weights["lint/test-strict"] is Severity.NOTE


def test_a_thousand_of_a_kind_are_counted(tmp_path: Path) -> None:
    good_task(tmp_path)
    for number in range(60):
        put(f"environment/app/a:{number}", "")(tmp_path)
    found = [f for f in lint_of(tmp_path) if f.rule == "lint/name"]
    assert len(found) == lint.MOST_ALIKE + 1
    assert found[-1].reason == "35 more of this kind"


def test_names_that_are_no_text_are_reported(tmp_path: Path) -> None:
    good_task(tmp_path)
    with open(os.fsencode(tmp_path) + b"/environment/app/\xff", "wb"):  # noqa: PTH123  # the name is no text
        pass
    found = [f for f in lint_of(tmp_path) if f.rule == "lint/name"]
    assert len(found) == 1
    "\n".join(found[0].lines()).encode("utf-8")


def test_shell_text_becomes_commands_with_lines() -> None:
    text = "# no\nset -e; FOO=1 sudo -E pip install \\\n  'a b' # c\n"
    text += "if ! grep x f | wc; then exec python3 -I x; fi\nx=$(curl u)"
    text += "\ncat <<'END'\npip install z\nEND\ntrue"
    found = [(each.line, each.words, each.piped) for each in commands(text)]
    assert found == [
        (2, ["set", "-e"], False),
        (2, ["pip", "install", "a b"], False),
        (4, ["grep", "x", "f"], True),
        (4, ["wc"], False),
        (4, ["python3", "-I", "x"], False),
        (4, ["fi"], False),
        (5, ["curl", "u"], False),
        (6, ["cat", "<<END"], False),
        (9, ["true"], False),
    ]


def test_dockerfiles_become_instructions_with_lines() -> None:
    text = 'FROM a\n\nrun x \\\n # note\n y\nCOPY --from=b ["c d", "/e"]\nRUN <<A\none\nA\nCMD z\n'
    found = instructions(text)
    assert [(each.name, each.line) for each in found] == [("FROM", 1), ("RUN", 3), ("COPY", 6), ("RUN", 7), ("CMD", 10)]
    assert found[2].words == ["c d", "/e"]
    assert found[2].flags == ["--from=b"]
    assert [command.words for command in found[3].commands()][-1] == ["one"]


def test_requirements_are_read_line_by_line() -> None:
    text = "# note\na==1.0\nb>=2 # why\n-r other.txt\nc==1.* ; python_version > '3'\n"
    text += "d @ https://e.org/d-1.0.whl\n\ne==2 --hash=sha256:0\n"
    assert [f.line for f in requirements("requirements.txt", text)] == [3, 5]
