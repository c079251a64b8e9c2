"""Launches, entry points, data, requirements, licence, outputs and single facts, on small made-up projects."""

import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from rsi_anything.project.checkout import Project
from rsi_anything.project.evidence import verify
from rsi_anything.project.research import research

Make = Callable[[dict[str, str | bytes]], Project]
TRAINER = "import torch\nloss.backward()\nif __name__ == '__main__':\n    main()\n"


def test_launches_are_ranked(project_of: Make) -> None:
    readme = """# Demo
Prepare with:
```sh
python prepare.py
```
Train on one machine:
```bash
$ python train.py config/base.py \\
    --device=cpu
torchrun --nproc_per_node=8 train.py
python sample.py --out=x
python train.py --eval-only
```
Or just `python train.py config/eval.py`. Run python train.py if you like prose.
"""
    files: dict[str, str | bytes] = {
        "README.md": readme,
        "train.py": TRAINER,
        "config/base.py": "lr = 1\n",
        "config/eval.py": "x = 1\n",
    }
    files |= {"sample.py": "if __name__ == '__main__':\n    pass\n", "prepare.py": "print(1)\n"}
    found = research(project_of(files)).launches
    assert found[0].command == "python train.py config/base.py --device=cpu"
    assert (found[0].script, found[0].configs, found[0].gpus) == ("train.py", ("config/base.py",), 0)
    assert (found[0].evidence[0].line_from, found[0].evidence[0].line_to) == (8, 9)
    by_command = {launch.command: launch for launch in found}
    assert by_command["torchrun --nproc_per_node=8 train.py"].gpus == 8
    for lesser in (
        "python sample.py --out=x",
        "python train.py --eval-only",
        "python train.py config/eval.py",
        "python prepare.py",
    ):
        assert by_command[lesser].confidence < 0.5


def test_endless_training_is_told(project_of: Make) -> None:
    trainer = TRAINER + "p.add_argument('--max-steps', type=int, default=-1, help='or -1 for infinite')\n"
    project = project_of(
        {"train.py": trainer, "README.md": "```\npython train.py\npython train.py --max-steps 9\n```\n"}
    )
    assert {launch.command: launch.endless for launch in research(project).launches} == {
        "python train.py": "--max-steps",
        "python train.py --max-steps 9": "",
    }


def test_launches_in_shell_make_docstrings_and_folders(project_of: Make) -> None:
    project = project_of({
        "run.sh": "#!/bin/sh\nset -e\npython -m app.train --lr 0.1 > log.txt 2>&1\n",
        "Makefile": "train:\n\t@python train.py --fast\n",
        "train.py": '"""Train.\n\n$ python train.py --big\nThis is prose about python train.py.\n"""\n' + TRAINER,
        "app/train.py": TRAINER,
        "apps/one/README.md": "    python main.py\n",
        "apps/one/main.py": TRAINER,
    })  # fmt: skip
    found = {launch.command: launch for launch in research(project).launches}
    assert found["python -m app.train --lr 0.1"].script == "app/train.py"
    assert found["python train.py --fast"].script == "train.py"
    assert "python train.py --big" in found
    assert (found["python main.py"].script, found["python main.py"].workdir) == ("apps/one/main.py", "apps/one")


def test_a_script_that_nothing_starts_counts_by_its_content(project_of: Make) -> None:
    project = project_of(
        {
            "fit.py": "import engine\nif __name__ == '__main__':\n    engine.go()\n",
            "engine.py": "def go():\n    m.fit(x)\n",
        }
    )
    launch = research(project).launches[0]
    assert (launch.command, launch.sources) == ("python fit.py", ("engine.py",))


def test_entry_points(project_of: Make) -> None:
    project = project_of({
        "cli.py": "import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('--x')\nif __name__ == '__main__':\n    pass\n",
        "work.py": "print('hello')\n",
        "lib.py": "def f(): print(1)\n",
        "pkg/__main__.py": "print(1)\n",
        "pyproject.toml": "[project]\nname = 'x'\n[project.scripts]\nrun-it = 'pkg.cli:main'\n",
        "setup.py": "setup(entry_points={'console_scripts': ['old-it = pkg.cli:main']})\n",
        "Makefile": "CC = gcc\nall: x\n\techo\n.PHONY: all\n",
        "go.sh": "true\n",
        "note.ipynb": "{}",
    })  # fmt: skip
    found = {(point.kind, point.command) for point in research(project).entry_points}
    assert found == {
        ("script", "python cli.py"), ("script", "python work.py"), ("module", "python -m pkg"),
        ("console-script", "run-it"),
        ("console-script", "old-it"), ("make-target", "make all"), ("shell-script", "bash go.sh"),
        ("notebook", "jupyter execute note.ipynb"),
    }  # fmt: skip


def _npy() -> bytes:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(24)


class Bomb:
    def __reduce__(self) -> Any:
        raise AssertionError


def test_data_shapes(project_of: Make) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("x.npy", "1")
    prose = "It was a long day, and nobody knew why the rain had come.\n\nThen it went on for a while.\n" * 400
    project = project_of({
        "train.py": "open('names.txt')\ndf = read('wine.csv')\nx = df.drop(['quality'], axis=1)\n",
        "names.txt": "".join(f"name{number}\n" for number in range(100)),
        "wine.csv": "acid,sugar,quality\n" + "1.0,2.0,5\n" * 10,
        "semi.csv": "a;b;label\n" + "1;2;x\n" * 5,
        "data/bare.data": "1,2,3\n" * 10,
        "data/story.txt": prose,
        "data/rows.jsonl": '{"text": "a", "label": 1}\n' * 3,
        "data/a.npy": _npy(),
        "data/a.npz": packed.getvalue(),
        "data/m.pkl": pickle.dumps({"a": 1}),
        "data/raw.bin": b"\x00\x01" * 50,
        "data/langs/English.txt": "Smith\n" * 30,
        "data/langs/German.txt": "M\u00fcller\n" * 30,
        "data/langs/Greek.txt": "Nikos\n" * 30,
        "requirements.txt": "numpy\n",
        "LICENSE.txt": "MIT\n",
    } | {f"photos/{number}.png": b"\x89PNG" for number in range(12)})  # fmt: skip
    found = {item.path: item for item in research(project).data}
    shapes = {path: item.shape for path, item in found.items()}
    assert shapes == {
        "names.txt": "lines", "wine.csv": "csv", "semi.csv": "csv", "data/bare.data": "csv", "data/story.txt": "text",
        "data/rows.jsonl": "jsonl", "data/a.npy": "npy", "data/a.npz": "npz", "data/m.pkl": "pickle",
        "data/raw.bin": "binary",
        "data/langs/English.txt": "lines", "data/langs/German.txt": "lines", "data/langs/Greek.txt": "lines",
        "data/langs/*.txt": "class-files", "photos": "image-folder",
    }  # fmt: skip
    assert (found["names.txt"].examples, found["wine.csv"].examples, found["photos"].examples) == (100, 10, 12)
    assert (found["wine.csv"].label, found["wine.csv"].columns) == ("quality", ("acid", "sugar", "quality"))
    assert (found["semi.csv"].label, found["semi.csv"].detail) == ("label", "3 columns, separated by semicolon")
    assert found["data/a.npy"].detail == "<f4 (3, 2)"
    assert found["names.txt"].confidence > found["data/raw.bin"].confidence


def test_data_scripts(project_of: Make) -> None:
    project = project_of({
        "data/prepare.py": "import os, requests\nurl = 'https://example.com/x.txt'\n"
        "path = os.path.join(os.path.dirname(__file__), 'x.txt')\nopen(path, 'w').write(requests.get(url).text)\n",
        "get.sh": "wget https://example.com/y.zip -O y.zip\n",
        "model.py": "x = 1\n",
    })  # fmt: skip
    findings = research(project)
    assert [(item.path, item.urls) for item in findings.data_scripts] == [
        ("data/prepare.py", ("https://example.com/x.txt",)),
        ("get.sh", ("https://example.com/y.zip",)),
    ]
    assert [item.path for item in findings.outputs] == ["data/x.txt"]


def test_requirements(project_of: Make) -> None:
    project = project_of({
        "requirements.txt": "numpy==1.26.4\ntorch>=2.0 # comment\n-r other.txt\n\nfoo[bar]==1.0; python_version > '3'\nhttps://x/y.whl\n",
        "pyproject.toml": "[project]\nname = 'mine'\nrequires-python = '>=3.10'\ndependencies = ['pandas<3', 'mine']\n",
        "setup.py": "from setuptools import setup\nneeds = ['scipy==1.11.0']\nsetup(install_requires=needs)\n",
        "environment.yml": "dependencies:\n  - python=3.10\n  - pytorch=2.1.0\n  - pip:\n    - tqdm==4.66.1\nname: x\n",
        "README.md": "```\npip install -U einops -r requirements.txt\n```\n",
        "main.py": "import os, cv2, yaml\nfrom PIL import Image\nimport torch.utils.tensorboard\n"
        "import helper\nfrom . import x\nimport cPickle\n",
        "helper.py": "import numpy\n",
        "tests/test_x.py": "import hypothesis\n",
    })  # fmt: skip
    found = {item.name: item for item in research(project).requirements}
    pins = {name: item.spec for name, item in found.items() if item.source == "declared"}
    assert pins == {
        "numpy": "==1.26.4", "torch": ">=2.0", "foo": "==1.0", "pandas": "<3", "scipy": "==1.11.0",
        "pytorch": "==2.1.0",
        "tqdm": "==4.66.1", "einops": "",
    }  # fmt: skip
    imported = {name for name, item in found.items() if item.source == "imported"}
    assert imported == {"opencv-python", "pyyaml", "pillow", "tensorboard", "hypothesis"}
    assert found["hypothesis"].confidence < 0.5
    python = research(project).fact("python")
    assert python is not None
    assert python.value == ">=3.10"


MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\n"
MIT += "of this. THE SOFTWARE IS PROVIDED"
BSD = "Redistribution and use in source and binary forms, with or without\nmodification. Neither the name of"


@pytest.mark.parametrize(
    ("name", "text", "spdx"),
    [
        ("LICENSE", MIT, "MIT"),
        ("LICENCE.md", BSD, "BSD-3-Clause"),
        ("COPYING", "GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL-3.0-only"),
        ("COPYING.LESSER", "GNU LESSER GENERAL PUBLIC LICENSE\n Version 2.1", "LGPL-2.1-only"),
        ("LICENSE.txt", "  Apache License\n  Version 2.0, January 2004", "Apache-2.0"),
        ("pyproject.toml", "[project]\nname='x'\nlicense = 'MIT'\n", "MIT"),
        ("setup.py", "setup(license='Apache License 2.0')\n", "Apache-2.0"),
        ("README.md", "# x\n\n### License\n\nMIT\n", "MIT"),
    ],
)
def test_licences(project_of: Make, name: str, text: str, spdx: str) -> None:
    fact = research(project_of({name: text, "a.py": "1\n"})).fact("licence")
    assert fact is not None
    assert fact.value == spdx
    assert fact.evidence[0].path == name


def test_no_licence_is_not_made_up(project_of: Make) -> None:
    assert (
        research(project_of({"LICENSE": "All rights reserved.\n", "README.md": "MIT students like it.\n"})).fact(
            "licence"
        )
        is None
    )


def test_outputs_follow_settings(project_of: Make) -> None:
    project = project_of({
        "train.py": "import os, torch, numpy as np\nout_dir = 'out'\nargs = parse()\n"
        "torch.save(model, os.path.join(args.work_dir, 'model.pt'))\n"
        "path = f'{out_dir}/best-{epoch}.pt'\ntorch.save(model, path)\nnp.save('weights.npy', w)\n"
        "with open(args.save, 'wb') as f:\n    torch.save(model, f)\n"
        "def log(name):\n    open(name, 'w')\n    open('/dev/null', 'w')\n    open('../up', 'w')\n"
        "open('x.txt')\nfig.savefig('plot.png')\n"
    })  # fmt: skip
    found = {(item.path, item.what) for item in research(project).outputs}
    assert found == {
        ("{work_dir}/model.pt", "weights"), ("{out_dir}/best-*.pt", "weights"), ("weights.npy", "array"),
        ("{save}", "file"),
        ("{save}", "weights"), ("plot.png", "figure"),
    }  # fmt: skip


def test_hardware_seeds_suites_and_files_to_freeze(project_of: Make) -> None:
    project = project_of({
        "train.py": "import torch\ntorch.manual_seed(1337)\nx = x.to('cuda')\nd = 'cpu' if no else 'cpu'\n"
        "torch.distributed.init_process_group()\n",
        "evaluate.py": "def score(): ...\n",
        "data_loader.py": "def load(): ...\n",
        "tests/test_a.py": "def test(): ...\n",
        "README.md": "# Title of *it*\nIt took 8 x A100 GPUs to train this language model.\n",
    })  # fmt: skip
    findings = research(project)
    assert {fact.value for fact in findings.all_facts("hardware")} >= {"cuda", "cpu", "several processes", "8 GPUs"}
    assert [fact.value for fact in findings.all_facts("seed")] == ["1337"]
    assert [fact.value for fact in findings.all_facts("tests")] == ["tests"]
    assert {fact.value for fact in findings.all_facts("frozen")} == {"evaluate.py", "data_loader.py"}
    title, category = findings.fact("title"), findings.fact("category")
    assert title is not None
    assert category is not None
    assert (title.value, category.value) == ("Title of it", "language-modelling")


def test_all_evidence_holds_and_findings_are_json(project_of: Make) -> None:
    project = project_of(
        {
            "train.py": TRAINER + "lr = 0.1\nprint('val loss', x)\ntorch.save(m, 'm.pt')\n",
            "README.md": "# a\n`python train.py`\n",
        }
    )
    findings = research(project)
    data = findings.as_json()
    assert json.loads(json.dumps(data)) == json.loads(json.dumps(data))
    assert list(data)[:3] == ["project", "commit", "files"]
    groups = (
        findings.launches,
        findings.entry_points,
        findings.metrics,
        findings.knobs,
        findings.requirements,
        findings.outputs,
        findings.facts,
    )
    items = [item for group in groups for item in group]
    assert items
    for item in items:
        assert item.evidence
        assert 0 < item.confidence <= 1
        assert item.reason
        assert all(verify(project, evidence) for evidence in item.evidence)
