"""The candidate's side of prediction: reads out/ckpt.pt and names a distribution for the next character of a text."""

import pickle
from collections import defaultdict
from pathlib import Path

import torch

from model import GPT, GPTConfig

BATCH = 256  # prefixes in one forward pass


class Text:
    """A trained model and the characters that prepare.py found."""

    def __init__(self) -> None:
        meta = pickle.loads(Path("data", "shakespeare_char", "meta.pkl").read_bytes())
        self.vocabulary = [meta["itos"][i] for i in range(meta["vocab_size"])]
        self.index = meta["stoi"]
        checkpoint = torch.load(Path("out", "ckpt.pt"), map_location="cpu")
        self.model = GPT(GPTConfig(**checkpoint["model_args"]))
        self.model.load_state_dict(checkpoint["model"])
        self.model.eval()

    @torch.no_grad()
    def logits(self, prefixes: list[str]) -> list[list[float]]:
        """Return a row of logits over the vocabulary for each prefix; a line end stands before an empty one.

        The model answers for the last position alone, so that only prefixes of one length go together.
        """
        by_length = defaultdict(list)
        for i, prefix in enumerate(prefixes):
            tokens = [self.index.get(c, 0) for c in prefix or "\n"][-self.model.config.block_size :]
            by_length[len(tokens)].append((i, tokens))
        rows: list[list[float]] = [[]] * len(prefixes)
        for group in by_length.values():
            for start in range(0, len(group), BATCH):
                part = group[start : start + BATCH]
                out = self.model(torch.tensor([tokens for _, tokens in part]))[0][:, -1]
                for (i, _), row in zip(part, out.tolist()):
                    rows[i] = row
        return rows


def load() -> Text:
    """Read the trained model in the working directory."""
    return Text()
