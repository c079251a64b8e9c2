"""What a setting does, told from its name: how much it matters, and the range in which it is worth varying."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


@dataclass(frozen=True)
class Role:
    """A role; `way` says how its range follows from the present value."""

    name: str
    names: re.Pattern[str]
    way: str


def _role(name: str, way: str, *names: str) -> Role:
    return Role(name, re.compile(rf"(?:{'|'.join(names)})\Z"), way)


# In the order of how much they usually matter. Names are compared in lower case with underscores.
ROLES = (
    _role(
        "learning-rate", "decade",
        r"(?!min_|final_|end_|decay_)(?:\w+_)?(?:lr|learning_rate|eta|step_size)(?:_(?:init|max|base|g|d))?",
        "init_lr|lr0",
    ),
    _role("min-learning-rate", "decade", r"(?:\w+_)?(?:min|final|end|lr)_(?:lr|learning_rate|min|end)", "lrf"),
    _role(
        "batch-size", "size",
        r"(?:train_|mini_|micro_|per_device_train_|total_|device_)?(?:batch_?size|batch|bs|bsz|minibatch_size)(?:_train)?",
    ),
    _role(
        "regularisation", "decade-or-zero",
        r"weight_decay|wd|l[12](?:_(?!ratio)\w+)?|lmbda|lambda\w*|reg(?:_\w+)?|alpha|decay|reg_strength",
    ),
    _role("dropout", "probability", r"(?:\w+_)?(?:drop(?:out|_?rate|_?prob)?(?:_\w+)?|p_drop|dropout)"),
    _role(
        "width", "double", r"n_embd\d*|nz|ngf|ndf",
        r"(?:\w+_)?(?:hidden|width|embed(?:ding)?|channels?|units|d_model|d_ff|dim|nhid|emsize|filters)"
        r"(?:_(?:size|dim|units|channels))?\d*",
    ),
    _role("depth", "size", r"(?:\w+_)?(?:n|num|no)_?(?:hidden_)?(?:layers?|blocks?)|nlayers?|depth|max_depth|layers"),
    _role(
        "steps", "size", "t_max|n_iter|niters?|max_iter",
        r"(?:max|num|n|total|train(?:ing)?)?_?(?:steps?|iters?|iterations?|epochs?|updates|rounds|generations|gen)",
    ),
    _role("warmup", "size-or-zero", r"(?:\w+_)?warm_?(?:up|down)(?:_\w+)?"),
    _role(
        "schedule", "scale-to-one",
        r"(?:lr_)?(?:decay|anneal|cool(?:down)?)_(?:iters|steps|epochs|rate|ratio|frac|factor)",
        r"lr_decay\w*|lr_step\w*|gamma|cooling",
    ),
    _role("momentum", "momentum", r"momentum|nesterov_momentum|beta_?[123]|betas?|rho|ema(?:_decay)?"),
    _role("heads", "double", r"(?:\w+_)?(?:n|num|no)_?(?:kv_|attention_|attn_)?heads?|nhead"),
    _role("context", "size", r"block_size|(?:max_)?(?:seq(?:uence)?|context)_?(?:len(?:gth)?|size)|bptt|(?:n_)?ctx"),
    _role(
        "gradient-clip", "scale",
        r"(?:max_)?(?:grad(?:ient)?|clip)_?(?:clip(?:ping)?|norm|grad(?:ient)?s?)?(?:_(?:norm|val|value))?",
    ),
    _role("gradient-accumulation", "size", r"(?:gradient|grad)_accum(?:ulation)?(?:_steps)?|accum\w*_(?:steps|iter)"),
    _role("trees", "size", r"n_estimators|num_trees|ntrees|num_leaves|min_(?:samples|child)_\w+|num_boost_round"),
    _role(
        "subsample", "fraction",
        r"subsample|colsample_\w+|max_features|feature_fraction|bagging_fraction|l1_ratio|label_smoothing",
    ),
    _role("neighbours", "size", r"n_neighbou?rs|k_neighbou?rs|n_clusters|n_components"),
    _role("penalty", "decade", r"c|epsilon|eps|tol"),
    _role(
        "population", "size", r"(?:size_)?(?:pop|population|swarm|ants|particles)(?:_?size)?",
        r"n_?(?:pop|ants|particles)|size_pop|max_stay_counter|l",
    ),
    _role(
        "mutation", "fraction", r"(?:prob|p|rate)_?(?:mut(?:ation)?|cross(?:over)?|f|cr)?",
        r"(?:mutation|crossover)_?(?:rate|prob)?",
    ),
    _role("swarm", "scale", r"w|c1|c2|c_?[12]|inertia|q|f|t_min"),
    _role(
        "temperature", "scale",
        r"temperature|temp|tau|entropy_coef\w*|ent_coef|vf_coef|value_coef|clip_(?:range|eps|coef|epsilon)",
    ),
    _role("discount", "momentum", "discount|gae_lambda|td_lambda"),
)  # fmt: skip
_PLACES = {role.name: place for place, role in enumerate(ROLES)}
_NEVER = re.compile(
    r"(?:\w+_)?(?:seed|port|workers?|num_proc|procs?|n_jobs|jobs|threads|rank|world_size|nodes?|gpus?|device|devices|verbose|debug"
    r"|(?:log|eval|save|print|sample|checkpoint|report|val|test|valid|display|plot)_(?:\w+_)?(?:interval|every|freq|steps?|iters?|epochs?|size)"
    r"|(?:eval|test|val|valid|validation)_batch_?size|version|timeout|width_px|fig_?size|dpi|num_samples|top_k|top_p|vocab_size|patience"
    r"|random_state|test_size|n_samples|num_classes|n_classes|n_dim|year|height|classes)\Z"
)  # fmt: skip
_LONE = {"c", "l", "w", "q", "f", "p", "decay", "rate", "prob", "grad", "gradient", "clip", "reg", "alpha", "gamma"}
_LONE |= {"step", "iter", "epoch", "gen", "dim", "channels", "layers", "channel", "hidden", "embed", "temp", "units"}


@lru_cache(maxsize=8192)
def normal(name: str) -> str:
    """Return a name in lower case with underscores, whatever its spelling."""
    flat = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
    parts = [word for piece in flat.split("_") for word in (_WORDS.findall(piece) if not piece.islower() else [piece])]
    return "_".join(parts).lower()


@lru_cache(maxsize=8192)
def role_of(name: str) -> Role | None:
    """Return the role that a name tells, or None; a dotted name tells it by its last part."""
    plain = normal(name.rpartition(".")[2])
    if _NEVER.match(plain):
        return None
    return next((role for role in ROLES if role.names.match(plain)), None)


def role_for(name: str, value: object) -> Role | None:
    """Return the role of a name with this value: a flag has none, and steps are counted in whole numbers."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and normal(name).endswith("step_size"):
        return next(role for role in ROLES if role.name == "schedule")
    return role_of(name)


def is_vague(name: str) -> bool:
    """Say whether a name means this role only by chance, as a single letter does."""
    return normal(name.rpartition(".")[2]) in _LONE


_EVALUATION = re.compile(r"eval|test|valid|sampl|generat|plot|predict|infer|infos?|print|show|logg", re.IGNORECASE)


def is_evaluation(name: str) -> bool:
    """Say whether a function's name tells that it measures or shows, so that its settings are no part of the recipe."""
    return bool(_EVALUATION.search(name))


def never_a_knob(name: str) -> bool:
    """Say whether a name tells that its value is no part of the recipe."""
    return bool(_NEVER.match(normal(name.rpartition(".")[2])))


def order_of(role: Role | None) -> int:
    """Return the role's place, smaller being more important."""
    return _PLACES[role.name] if role else len(ROLES)


def range_of(role: Role | None, value: float) -> tuple[tuple[float, float], str, bool] | None:
    """Return range, scale and whether values are whole, or None where no sensible range follows from the value."""
    whole = isinstance(value, int)
    way = role.way if role else "scale"
    if isinstance(value, bool) or not math.isfinite(value) or abs(value) > 1e15:
        return None
    found = _range(way, value, whole)
    if found is None or not found[0][0] < found[0][1]:
        return None
    return found


def choices_of(role: Role | None, value: object) -> tuple[int, ...] | None:
    """Return the values worth trying where only a few fit, such as widths that heads must divide."""
    if role is None or role.way != "double" or not isinstance(value, int) or isinstance(value, bool) or value < 1:
        return None
    return (value // 2, value, value * 2) if value % 2 == 0 else (value, value * 2)


def _range(way: str, value: float, whole: bool) -> tuple[tuple[float, float], str, bool] | None:
    found: tuple[tuple[float, float], str, bool] | None = None
    if way == "probability":
        found = ((0.0, 0.5), "linear", False) if 0 <= value < 1 else None
    elif way == "decade-or-zero" and value == 0:
        found = (0.0, 0.1), "linear", False
    elif way == "fraction" and 0 < value <= 1:
        found = (_round(value * 0.2), min(1.0, _round(value * 5))), "linear", False
    elif way == "momentum" and 0 < value < 1:
        found = (0.5 if value >= 0.5 else 0.0, 0.999), "linear", False
    elif way in {"decade", "decade-or-zero"} and value > 0:
        found = (_round(value / 10), _round(value * 10)), "log", False
    elif whole and value > 0:
        found = (max(1, value // 2), value * 2), "log" if value >= 16 else "linear", True
    elif value > 0:
        most = 1.0 if way == "scale-to-one" and value < 1 else math.inf
        found = (_round(value / 2), min(most, _round(value * 2))), "linear", False
    return found


def _round(value: float) -> float:
    return float(f"{value:.3g}")
