import random


class Walk:
    def __init__(self):
        self.random = random.Random(5)
        self.best, self.at = float("inf"), [0.0, 0.0]

    def ask(self):
        return [each + self.random.gauss(0, 0.7) for each in self.at]

    def tell(self, x, value):
        if value < self.best:
            self.best, self.at = value, x
