"""Research never fails because of what is in a project, never runs it, and is bounded."""

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rsi_anything.project.checkout import open_project
from rsi_anything.project.evidence import verify
from rsi_anything.project.research import research
from rsi_anything.project.suggest import suggest

NAMES = st.sampled_from([
    "train.py", "README.md", "setup.py", "setup.cfg", "pyproject.toml", "requirements.txt", "c.yaml", "c.json",
    "c.toml", "c.ini", "run.sh", "Makefile", "a.ipynb", "data.csv", "data.txt", "x.npy", "x.npz", "x.pkl", "LICENSE",
    "environment.yml", "d/e/main.py", "data/x.jsonl", "Dockerfile", "tests/test_x.py",
])  # fmt: skip
PIECES = st.sampled_from([
    "lr = 0.1", "def f(", "print(f'loss {x}')", "print('%s %' % x)", "'", '"""', "```", "$ python train.py \\", "{",
    "[",
    "import torch", "from . import x", "x: 1", "- a", "numpy==1", "p.add_argument('--x', default=", "]", "\ufeff",
    "torch.save(m, f'{a}/b')", "\\", "\r", "\x0c", "\x00", "\u2028", "#", "setup(", "install_requires =",
    "[tool.poetry]", "a,b\n1,2", "#!/bin/sh",
])  # fmt: skip
CONTENT = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.lists(PIECES, max_size=20).map(lambda parts: "\n".join(parts).encode()),
    st.lists(PIECES, max_size=12).map(lambda parts: " ".join(parts).encode()),
    st.binary(max_size=80).map(lambda rest: b"\x93NUMPY\x01\x00" + rest),
    st.binary(max_size=80).map(lambda rest: b"PK\x03\x04" + rest),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(NAMES, CONTENT, min_size=1, max_size=8))
def test_research_takes_anything(files: dict[str, bytes]) -> None:
    with TemporaryDirectory() as scratch:
        for name, content in files.items():
            place = Path(scratch, "p", name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        project = open_project(str(Path(scratch, "p")), None, cache=Path(scratch, "cache"))
        findings = research(project)
        for group in (
            findings.knobs,
            findings.metrics,
            findings.launches,
            findings.requirements,
            findings.data,
            findings.facts,
        ):
            for item in group:
                assert all(verify(project, evidence) for evidence in item.evidence)
        suggest(findings)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "[" * 190 + "]" * 190,
        "-" * 5000 + "1",
        "x = " + "+".join(["1"] * 3000),
        "print(" + "+".join(["'loss'"] * 800) + ")",
        "print(" + " - " * 400 + "1)",
        "x" + "[0]" * 300,
        "open(" + "+".join(["a"] * 600) + ", 'w')",
        "a." * 400 + "b(1)",
        "if 1:\n pass\n" + "elif 1:\n pass\n" * 300,
        "lr = " + "(" * 80 + "0.1" + ")" * 80,
        "x = 0.1 if " + "not " * 300 + "sys.argv else 2",
        "lr = 1" + "0" * 5000,
        "lr = 1e999",
        "lr = 0x10",
        "lr = 1j",
    ],
)
def test_deep_and_strange_code(text: str, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "train.py").write_text(text)
    (tmp_path / "p" / "c.json").write_text("[" * 20_000)
    (tmp_path / "p" / "pyproject.toml").write_text("a = " + "[" * 5000)
    suggest(research(open_project(str(tmp_path / "p"), None, cache=tmp_path / "cache")))


def test_nothing_of_the_project_is_imported_or_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    trap = f"open({str(mark)!r}, 'w')\nimport argparse\nlr = 0.1\nif __name__ == '__main__':\n    fit()\n"
    folder = tmp_path / "p"
    folder.mkdir()
    for name in ("train.py", "setup.py", "conftest.py", "sitecustomize.py", "ast.py", "re.py"):
        (folder / name).write_text(trap)
    script = (
        "import sys; from pathlib import Path\n"
        "from rsi_anything.project.checkout import open_project\nfrom rsi_anything.project.research import research\n"
        "print(len(research(open_project('.', None, cache=Path(sys.argv[1]))).knobs))\n"
        "assert 'git' not in sys.modules and 'jinja2' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(tmp_path / "cache")],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 0
    assert not mark.exists()


def test_large_files_are_read_by_their_head_and_others_code_is_passed_by(tmp_path: Path) -> None:
    folder = tmp_path / "p"
    (folder / "node_modules" / "x").mkdir(parents=True)
    (folder / "vendor").mkdir()
    (folder / "vendor" / "lib.py").write_text("import leftpad\nlr = 0.5\n")
    (folder / "big.py").write_text("lr = 0.1\n" + "# filler\n" * 200_000)
    (folder / "small.py").write_text("lr = 0.2\n")
    findings = research(open_project(str(folder), None, cache=tmp_path / "cache"))
    assert [(knob.file, knob.value) for knob in findings.knobs] == [("small.py", 0.2)]
    assert [item.name for item in findings.requirements] == []
    assert any("big.py" in note for note in findings.notes)


def make_tree(folder: Path, count: int) -> None:
    """Write a made-up project of many files: code, settings, tables and pages in the usual proportions."""
    code = "import os\nimport numpy as np\n\n\n"
    code += "class Layer:\n    def __init__(self, width=64):\n        self.w = width\n\n\n"
    code += "".join(
        f"def step{line}(x, rate=0.1):\n    return os.path.join(str(x), '{line}')\n\n\n" for line in range(12)
    )
    for number in range(count):
        place = folder / f"part{number % 60}" / f"sub{number % 7}"
        place.mkdir(parents=True, exist_ok=True)
        kind = number % 10
        if kind < 6:
            (place / f"module{number}.py").write_text(code)
        elif kind == 6:
            (place / f"settings{number}.yaml").write_text("optim:\n  lr: 0.1\nmodel:\n  width: 64\n")
        elif kind == 7:
            (place / f"settings{number}.json").write_text('{"lr": 0.1, "n_layer": 3}')
        elif kind == 8:
            (place / f"table{number}.csv").write_text("a,b,label\n" + "1,2,0\n" * 50)
        else:
            (place / f"page{number}.md").write_text("# Page\n```\npython module.py --lr 0.1\n```\n" * 3)
    (folder / "train.py").write_text(
        "lr = 0.1\nprint('val loss', x)\nloss.backward()\nif __name__ == '__main__':\n    main()\n"
    )
    (folder / "README.md").write_text("# Many\n```\npython train.py\n```\n")


def test_a_large_project_is_researched_from_what_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_tree(tmp_path / "p", 3000)
    project = open_project(str(tmp_path / "p"), None, cache=tmp_path / "cache")
    before = time.perf_counter()
    findings = research(project)
    spent = time.perf_counter() - before
    with capsys.disabled():
        print(f"\nresearch of {findings.files} files: {spent:.2f} s")
    assert findings.launches[0].command == "python train.py"
    assert findings.metrics[0].name == "val_loss"
    assert "train.py" in {knob.file for knob in findings.knobs}
    assert findings.looked_at < findings.files
    assert any("were not read in full" in note for note in findings.notes)
