import collections
import json
import math

USE = True

with open("poem.txt", encoding="utf-8") as file:
    found = collections.Counter(file.read())
with open("counts.json", "w", encoding="utf-8") as file:
    json.dump({sign: math.log(count) if USE else 0.0 for sign, count in found.items()}, file)
