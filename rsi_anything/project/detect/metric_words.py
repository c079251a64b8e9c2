"""The words that people use for metrics: which way each improves, its unit and its domain."""

import re
from dataclasses import dataclass
from functools import lru_cache

_HUGE = 1e9
_OBJECTIVE = re.compile(r"(?:(?:g ?)?best ?y|y ?best|(?:best )?(?:fitness|objective|value)|best score)\Z")
_THROUGHPUT = r"throughput|(?:tokens?|tok|samples?|it)(?: per)? s(?:ec(?:ond)?)?|fps|[tg]flops|mfu|speedup"


@dataclass(frozen=True)
class Word:
    """One kind of metric; `weight` says how likely it is what the project is about."""

    kind: str
    names: re.Pattern[str]
    direction: str
    unit: str
    lowest: float
    highest: float
    weight: float


def _down(kind: str, names: str, unit: str, highest: float, weight: float) -> Word:
    return Word(kind, re.compile(rf"(?:{names})\Z"), "minimize", unit, 0.0, highest, weight)


def _up(kind: str, names: str, unit: str, bounds: tuple[float, float], weight: float) -> Word:
    return Word(kind, re.compile(rf"(?:{names})\Z"), "maximize", unit, *bounds, weight)


# The order matters: a text is of the first kind that fits.
WORDS = (
    _down("perplexity", "perplexity|ppl", "", _HUGE, 0.9),
    _down("bpb", "bpb|bits per byte|bpc|bits per char(?:acter)?|bpd|bits per dim", "bits", 100.0, 0.95),
    _down("nll", "nll|negative log ?likelihood|logprob|log ?loss|cross ?entropy|xent|bce|ce", "nats", 100.0, 0.9),
    _down("rmse", "rmse|root mean squared? error", "", _HUGE, 0.9),
    _down("mse", "mse|mean squared? error", "", _HUGE, 0.85),
    _down("mae", "mae|mean absolute error", "", _HUGE, 0.85),
    _down("mape", "mape|smape", "", _HUGE, 0.8),
    _down("wer", "wer|cer|word error rate", "", _HUGE, 0.9),
    _down("fid", "fid|fd dinov2", "", _HUGE, 0.9),
    _down("regret", "regret", "", _HUGE, 0.8),
    _up("r2", "r2|r 2|r squared|r2 score|coefficient of determination", "", (-_HUGE, 1.0), 0.85),
    _up("auc", "auc|auroc|roc auc|average precision|map|mean average precision", "", (0.0, 1.0), 0.85),
    _up("f1", "f1|f1 score|f score|macro f1|micro f1|dice(?: score)?", "", (0.0, 1.0), 0.9),
    _up("iou", "iou|miou|mean iou|jaccard", "", (0.0, 1.0), 0.85),
    _up("bleu", "bleu|rouge(?: ?[12l])?|meteor", "", (0.0, 100.0), 0.85),
    _up("ndcg", "ndcg|ndcg ?\\d*|mrr|recall ?\\d+|hit rate|hits ?\\d+", "", (0.0, 1.0), 0.85),
    _up("psnr", "psnr", "dB", (0.0, 1000.0), 0.8),
    _up("ssim", "ssim", "", (-1.0, 1.0), 0.8),
    _up("accuracy", "acc(?:uracy)?|acc ?[15]|top ?[15](?: acc(?:uracy)?)?|correct|success rate", "", (0.0, 1.0), 0.9),
    _up("reward", "reward|rewards|return|returns|episodic return|episode reward|mean reward", "", (-_HUGE, _HUGE), 0.8),
    _up("precision", "precision", "", (0.0, 1.0), 0.6),
    _up("recall", "recall|sensitivity", "", (0.0, 1.0), 0.6),
    _down("loss", "loss|losses|cost|elbo|energy", "", _HUGE, 0.8),
    _down("error", "err|error|errors|error rate|test error", "", _HUGE, 0.7),
    Word("objective", _OBJECTIVE, "minimize", "", -_HUGE, _HUGE, 0.6),
    _up("throughput", _THROUGHPUT, "", (0.0, 1e15), 0.5),
    _down("time", "time|elapsed|latency|duration|runtime|seconds|wall time|dt", "s", _HUGE, 0.3),
    _up("score", "score", "", (-_HUGE, _HUGE), 0.5),
)  # fmt: skip
SPLITS = {
    "train": "train", "training": "train", "tr": "train", "trn": "train", "val": "val", "valid": "val",
    "validation": "val", "dev": "val", "eval": "val", "evaluation": "val", "test": "test", "testing": "test",
    "tst": "test", "heldout": "test",
}  # fmt: skip
_FILLER = frozenset(
    {
        "average",
        "avg",
        "mean",
        "total",
        "final",
        "current",
        "epoch",
        "step",
        "set",
        "the",
        "on",
        "of",
        "data",
        "running",
    }
)
_PIECE = re.compile(r"[A-Za-z]+[0-9]*|[0-9]+")
_LONGEST = 4


def words_of(text: str) -> list[str]:
    """Return a name or a phrase as lower-case words."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text.replace("_", " "))
    return [word.lower() for word in _PIECE.findall(spaced)]


@lru_cache(maxsize=8192)
def recognise(text: str) -> tuple[Word, str] | None:
    """Return the kind of metric that a phrase ends with, and its split, or None."""
    words = words_of(text)[-8:]
    split = next((SPLITS[word] for word in reversed(words) if word in SPLITS), "")
    core = [word for word in words if word not in SPLITS and word not in _FILLER]
    for length in range(min(_LONGEST, len(core)), 0, -1):
        phrase = " ".join(core[-length:])
        for word in WORDS:
            if word.names.match(phrase):
                return word, split
    return None
