import json


class Nearest:
    def __init__(self, rows):
        self.rows = rows

    def predict(self, rows):
        return [min(self.rows, key=lambda known: abs(known[0] - float(row["x"])))[1] for row in rows]


def load():
    with open("model/rows.json", encoding="utf-8") as file:
        return Nearest(json.load(file))
