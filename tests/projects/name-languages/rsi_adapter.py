"""The candidate's side of prediction: reads the trained network and names the language of each surname.

The project's modules read the names and expect to run in their own folder, so the adapter goes there first.
"""

import os
import sys

import torch

FOLDER = "char-rnn-classification"


class Languages:
    """The network and the project's own way from a name to a tensor."""

    def __init__(self) -> None:
        os.chdir(FOLDER)
        sys.path.insert(0, os.getcwd())
        import data

        self.data = data
        self.rnn = torch.load("char-rnn-classification.pt", map_location="cpu", weights_only=False)

    @torch.no_grad()
    def predict(self, rows: list[dict[str, str]]) -> list[str]:
        """Return a language, named like its file, for each row; the column `text` holds the surname."""
        return [self.language(self.data.unicodeToAscii(row["text"])) for row in rows]

    def language(self, name: str) -> str:
        """Return the most likely language of a name of the project's letters."""
        hidden, output = self.rnn.initHidden(), None
        for letter in self.data.lineToTensor(name):
            output, hidden = self.rnn(letter, hidden)
        return self.data.all_categories[0 if output is None else int(output.argmax())]


def load() -> Languages:
    """Read the trained network below the working directory."""
    return Languages()
