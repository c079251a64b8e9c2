import json


class Counts:
    def __init__(self, counts):
        self.vocabulary, self.row = list(counts), list(counts.values())

    def logits(self, prefixes):
        return [self.row for _ in prefixes]


def load():
    with open("counts.json", encoding="utf-8") as file:
        return Counts(json.load(file))
