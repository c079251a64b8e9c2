import json


class Table:
    def __init__(self, table):
        self.table = table

    def predict_proba(self, rows):
        return [{"rain": self.table["rain"], "sun": 1 - self.table["rain"]} for _ in rows]


def load():
    with open("weights/table.json", encoding="utf-8") as file:
        return Table(json.load(file))
