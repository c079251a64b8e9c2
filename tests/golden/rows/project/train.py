import csv
import json
import os

os.makedirs("model", exist_ok=True)
with open("table.csv", encoding="utf-8", newline="") as file:
    rows = [(float(row["x"]), row["class; of it"]) for row in csv.DictReader(file, delimiter=";")]
with open("model/rows.json", "w", encoding="utf-8") as file:
    json.dump(rows, file)
