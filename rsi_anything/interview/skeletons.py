"""What an editor opens with where nothing is known yet: the shape of the code that the judge expects."""

from rsi_anything.contract.fields import Field, Values

CHARACTERS = '''\
"""The candidate's side of prediction: `load()` returns an object that names a distribution for the next character."""


class Trained:
    """The model that training left behind."""

    vocabulary: list[str] = []
    """Every character the model knows, each once; `logits` has one number for each, in this order."""

    def logits(self, prefixes: list[str]) -> list[list[float]]:
        """Return, for each beginning of a text, one unnormalised log-probability a character of the vocabulary."""
        raise NotImplementedError


def load() -> Trained:
    """Read what training wrote into the working directory."""
    return Trained()
'''

PREDICTIONS = '''\
"""The candidate's side of prediction: `load()` returns an object that answers held-out rows."""


class Trained:
    """The model that training left behind."""

    def {method}(self, rows: list[dict[str, str]]) -> list[{answer}]:
        """Return {words} for each row; a row maps each column but the label to its text."""
        raise NotImplementedError


def load() -> Trained:
    """Read what training wrote into the working directory."""
    return Trained()
'''

EVALUATOR = '''\
"""How a candidate is scored. It runs in the judge; `Invalid` and `Violation` of judge_kit name its faults."""


def evaluate(judge):
    """Return the metric of the candidate."""
    with judge.serve() as candidate:
        answer = candidate.call("answer", 6, 7)
    return abs(answer - 42)
'''

SHAPES = {
    "log-loss": ("predict_proba", "dict[str, float]", "the probability of each label"),
    "accuracy": ("predict", "str", "the label"),
    "error-rate": ("predict", "str", "the label"),
    "macro-f1": ("predict", "str", "the label"),
}
"""Method, type and words of an answer, by measure; all others ask for a number."""


def skeleton(field: Field, values: Values) -> str:
    """Return the text to begin with for a field, or an empty text."""
    if field.id == "evaluation.evaluator":
        return EVALUATOR
    if field.id != "evaluation.adapter":
        return ""
    if values.get("evaluation.kind") == "next-token":
        return CHARACTERS
    method, answer, words = SHAPES.get(str(values.get("evaluation.measure")), ("predict", "float", "a number"))
    return PREDICTIONS.format(method=method, answer=answer, words=words)
