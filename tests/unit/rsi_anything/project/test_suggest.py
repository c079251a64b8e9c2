"""Suggestions from made-up projects of the shapes that real ones have."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rsi_anything.contract.fields import BY_ID, problem_of
from rsi_anything.project.checkout import Project
from rsi_anything.project.research import research
from rsi_anything.project.suggest import Suggestion, Suggestions, keep_delivered, suggest

Make = Callable[[dict[str, str | bytes]], Project]
MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this. The software is provided"
NAMES = "".join(f"name{number}\n" for number in range(200))

ONE_SCRIPT = """import argparse, os
import torch
from torch.nn import functional as F
from torch.utils.tensorboard import SummaryWriter
if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--input-file', '-i', type=str, default='names.txt')
    parser.add_argument('--work-dir', '-o', type=str, default='out')
    parser.add_argument('--max-steps', type=int, default=-1, help='-1 for infinite')
    parser.add_argument('--device', type=str, default='cpu')
    parser.add_argument('--learning-rate', '-l', type=float, default=5e-4)
    parser.add_argument('--batch-size', type=int, default=32)
    args = parser.parse_args()
    loss = F.cross_entropy(a, b)
    loss.backward()
    writer.add_scalar('Loss/test', test_loss, step)
    torch.save(model, os.path.join(args.work_dir, 'model.pt'))
"""

CONFIGURED = """import os
import torch
from model import GPT
out_dir = 'out'
learning_rate = 6e-4
weight_decay = 0.1
min_lr = 6e-5
device = 'cuda'
exec(open('configurator.py').read())
if device == 'cuda':
    loss.backward()
print(f"train loss {losses['train']:.4f}, val loss {losses['val']:.4f}")
torch.save(checkpoint, os.path.join(out_dir, 'ckpt.pt'))
"""

TABLE = """import sys
import pandas as pd
from sklearn.linear_model import ElasticNet
from sklearn.metrics import mean_squared_error
if __name__ == '__main__':
    data = pd.read_csv('wine.csv')
    x = data.drop(['quality'], axis=1)
    alpha = float(sys.argv[1]) if len(sys.argv) > 1 else 0.5
    model = ElasticNet(alpha=alpha)
    model.fit(x, data[['quality']])
    print('  RMSE: %s' % rmse)
"""


def checked(project: Project) -> Suggestions:
    """Every suggestion fits its field, and whatever it rests on is in the project."""
    found = suggest(research(project))
    values: dict[str, Any] = {name: item.value for name, item in found.items()}
    for name, item in found.items():
        assert problem_of(BY_ID[name], values[name], values) is None, name
        assert 0 < item.confidence <= 1
        assert item.reason
        assert item.evidence or name == "source.name"
    return found


def test_one_script_with_options(project_of: Make) -> None:
    readme = "# makemore\nA character-level language model.\n```bash\n$ python make.py -i names.txt -o names\n```\n"
    found = checked(project_of({"make.py": ONE_SCRIPT, "names.txt": NAMES, "README.md": readme, "LICENSE": MIT}))
    value = {name: item.value for name, item in found.items()}
    assert value["source.license"] == "MIT"
    assert value["source.title"] == "makemore"
    assert value["baseline.command"] == "python3 make.py -i names.txt -o names"
    assert "--max-steps" in found["baseline.command"].reason
    assert value["baseline.outputs"] == ["names/model.pt"]
    assert value["evaluation.mode"] == "retrain"
    assert value["evaluation.kind"] == "next-token"
    assert value["evaluation.measure"] == "nll"
    assert value["evaluation.metric.name"] == "test_loss"
    assert value["evaluation.metric.direction"] == "minimize"
    assert value["evaluation.data.file"] == "names.txt"
    assert value["evaluation.data.split"] == "lines"
    assert value["boundary.editable"] == ["make.py"]
    assert value["boundary.frozen"] == ["names.txt"]
    assert value["compute.gpus"] == 0
    assert [table["range"] for table in value["compute.knobs"]] == [[5e-5, 5e-3], [16, 64]]
    assert "compute.packages" not in value
    edit = value["baseline.floor"][0]
    assert edit["value"] == "0"
    match = re.search(edit["pattern"], ONE_SCRIPT)
    assert match is not None
    assert match[1] == "5e-4"


def test_settings_in_a_file_shadow_the_script(project_of: Make) -> None:
    readme = "# nano\n```\npython train.py config/char.py\n"
    readme += "python train.py config/char.py --device=cpu --weight_decay=0.2\n```\n"
    found = checked(project_of({
        "train.py": CONFIGURED,
        "model.py": "dropout = 0.0\nclass GPT: ...\n",
        "configurator.py": "x = 1\n",
        "config/char.py": "out_dir = 'out-char'\nlearning_rate = 1e-3\nmin_lr = 1e-4\n",
        "config/other.py": "learning_rate = 9\n",
        "README.md": readme,
    }))  # fmt: skip
    assert found["baseline.command"].value == "python3 train.py config/char.py --device=cpu --weight_decay=0.2"
    assert found["baseline.outputs"].value == ["out-char/ckpt.pt"]
    assert found["compute.gpus"].value == 0
    knobs = found["compute.knobs"].value
    assert isinstance(knobs, list)
    assert [(table["file"], table["range"]) for table in knobs if isinstance(table, dict)] == [
        ("config/char.py", [1e-4, 1e-2]),
        ("config/char.py", [1e-5, 1e-3]),
        ("model.py", [0.0, 0.5]),
    ]
    floor = found["baseline.floor"].value
    assert isinstance(floor, list)
    assert [(edit["file"], edit["value"]) for edit in floor if isinstance(edit, dict)] == [("config/char.py", "0")] * 2
    assert found["boundary.editable"].value == ["train.py", "config/char.py", "model.py"]
    assert found["evaluation.metric.name"].value == "val_loss"


def test_a_table_and_its_label(project_of: Make) -> None:
    found = checked(project_of({
        "train.py": TABLE,
        "wine.csv": "acid,sugar,quality\n" + "1.0,2.0,5\n" * 30,
        "requirements.txt": "pandas==2.2.0\nscikit-learn==1.4.0\nmatplotlib\n",
        "runtime.txt": "python-3.10.4\n",
        "tests/test_it.py": "def test(): ...\n",
    }))  # fmt: skip
    value = {name: item.value for name, item in found.items()}
    assert value["evaluation.kind"] == "predictions"
    assert value["evaluation.measure"] == "rmse"
    assert (value["evaluation.data.split"], value["evaluation.data.label"]) == ("rows", "quality")
    assert value["compute.packages"] == ["pandas==2.2.0", "scikit-learn==1.4.0"]
    assert found["compute.packages"].rest == ("matplotlib",)
    assert value["compute.python"] == "3.10"
    assert value["boundary.exclude"] == ["tests/**"]
    floor = found["baseline.floor"].value
    assert isinstance(floor, list)
    assert isinstance(floor[0], dict)
    assert floor[0]["value"] == "1e6"


def test_a_command_in_a_folder(project_of: Make) -> None:
    found = checked(project_of({
        "apps/one/README.md": "```\npython main.py --device cpu\n```\n",
        "apps/one/main.py": "import torch\nloss.backward()\ntorch.save(m, 'm.pt')\n"
        "if __name__ == '__main__':\n    pass\n",
    }))  # fmt: skip
    assert found["baseline.command"].value == "cd apps/one && python3 main.py --device cpu"
    assert found["baseline.outputs"].value == ["apps/one/m.pt"]


TRAINED = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--seed', type=int, default=0)
if __name__ == '__main__':
    args = parser.parse_args()
    model.fit(x, y)
    print('train accuracy', train_accuracy)
"""


def test_the_seed_of_the_command_becomes_the_judges(project_of: Make) -> None:
    readme = "# P\n```\npython train.py --seed 1\n```\n"
    found = checked(project_of({"train.py": TRAINED, "README.md": readme}))
    assert found["baseline.command"].value == 'python3 train.py --seed "$RSI_SEED"'
    assert "$RSI_SEED" in found["baseline.command"].reason


def test_a_metric_of_training_data_comes_last_and_never_names_the_metric(project_of: Make) -> None:
    readme = "# P\n```\npython train.py\n```\n"
    alone = checked(project_of({"train.py": TRAINED, "README.md": readme}))["evaluation.metric.name"]
    assert alone.value == "accuracy"
    assert "of its training data alone" in alone.reason
    files = {"train.py": TRAINED, "README.md": readme, "evaluate.py": "print('loss', loss)\nprint('val mae', m)\n"}
    assert checked(project_of(files))["evaluation.metric.name"].value == "val_mae"


def test_knobs_that_would_not_be_delivered_are_not_suggested() -> None:
    def said(value: Any) -> Suggestion:
        return Suggestion(value, (), 0.9, "r")

    knobs = [{"file": "a.py", "key": "x"}, {"file": "b.py", "key": "y"}]
    found = {"boundary.deliver": said(["a.py"]), "compute.knobs": said(knobs), "baseline.floor": said(knobs[1:])}
    keep_delivered(found)
    assert found["compute.knobs"].value == knobs[:1]
    assert "baseline.floor" not in found


def test_nothing_is_made_up(project_of: Make) -> None:
    found = checked(project_of({"notes.txt": "nothing here\n"}))
    assert set(found) == {"source.name"}


def test_the_name_is_a_slug(tmp_path: Path, project_of: Make) -> None:
    make: Any = project_of
    assert suggest(research(make({"a.py": "1\n"}, name="Deep_Learning (2)")))["source.name"].value == "deep-learning-2"
    assert "source.name" not in suggest(research(make({"a.py": "1\n"}, name="\u6df1\u5ea6")))
