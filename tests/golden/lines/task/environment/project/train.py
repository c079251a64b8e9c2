#!/usr/bin/env python3
import json
import math

SMOOTH = 0.1


def main():
    with open("config.json", encoding="utf-8") as file:
        weight = json.load(file)["weight"]
    with open("data/names.txt", encoding="utf-8", newline="") as file:
        names = file.read().replace("\r", "").split()
    signs = sorted({*"".join(names), "\n"})
    counts = {sign: dict.fromkeys(signs, SMOOTH) for sign in signs}
    for name in names:
        for before, after in zip("\n" + name, name + "\n"):
            counts[before][after] += 1
    table = {sign: [weight * math.log(row[after]) for after in signs] for sign, row in counts.items()}
    with open("model.json", "w", encoding="utf-8") as file:
        json.dump({"signs": signs, "table": table}, file)


main()
