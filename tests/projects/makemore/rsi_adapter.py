"""The candidate's side of prediction: reads out/model.pt and names a distribution for the next character of a name.

makemore keeps its settings only as the defaults of its command line; they are read from there, so that whoever edits a
default for training has it here as well.
"""

import ast
from pathlib import Path

import torch

import makemore

BATCH = 512  # prefixes in one forward pass
MODELS = {"transformer": makemore.Transformer, "bigram": makemore.Bigram, "mlp": makemore.MLP, "bow": makemore.BoW}


def defaults() -> dict[str, object]:
    """Return the default of each option of makemore.py."""
    found = {}
    for node in ast.walk(ast.parse(Path("makemore.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            if "default" in given:
                found[ast.literal_eval(node.args[0]).lstrip("-")] = ast.literal_eval(given["default"])
    return found


class Names:
    """A trained model and the characters it knows; makemore's token 0 starts and ends a name."""

    def __init__(self) -> None:
        options = defaults()
        words = [word.strip() for word in Path("names.txt").read_text(encoding="utf-8").splitlines()]
        characters = sorted(set("".join(words)))
        self.vocabulary = ["\n", *characters]
        self.index = {character: i for i, character in enumerate(self.vocabulary)}
        self.length = max(len(word) for word in words) + 1
        config = makemore.ModelConfig(
            block_size=self.length,
            vocab_size=len(self.vocabulary),
            **{name.replace("-", "_"): options[name] for name in ("n-layer", "n-head", "n-embd", "n-embd2")},
        )
        kind = str(options["type"])
        self.model = makemore.RNN(config, cell_type=kind) if kind in {"rnn", "gru"} else MODELS[kind](config)
        self.model.load_state_dict(torch.load(Path("out", "model.pt"), map_location="cpu"))
        self.model.eval()

    @torch.no_grad()
    def logits(self, prefixes: list[str]) -> list[list[float]]:
        """Return a row of logits over the vocabulary for each prefix of a name."""
        rows = []
        for start in range(0, len(prefixes), BATCH):
            part = prefixes[start : start + BATCH]
            tokens = [[0, *(self.index.get(c, 0) for c in prefix)][-self.length :] for prefix in part]
            x = torch.zeros(len(part), max(map(len, tokens)), dtype=torch.long)
            for i, line in enumerate(tokens):
                x[i, : len(line)] = torch.tensor(line)
            out = self.model(x)[0]
            last = torch.tensor([len(line) - 1 for line in tokens])
            rows += out[torch.arange(len(part)), last].tolist()
        return rows


def load() -> Names:
    """Read the trained model in the working directory."""
    return Names()
