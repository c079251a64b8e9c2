"""Ranks the ways in which a project can be started, those that train first."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from rsi_anything.project.detect.code import Code
from rsi_anything.project.detect.commands import Command
from rsi_anything.project.detect.findings import EntryPoint, Launch, Option
from rsi_anything.project.detect.scan import Scan

_TRAINS = frozenset({"backward", "fit", "minimize", "SGD", "fit_generator", "train_on_batch", "partial_fit", "fmin"})
_MAYBE = frozenset(
    {"train", "step", "run", "optimize", "learn", "fit_transform", "evolve", "train_model", "train_one_epoch"}
)
_SEARCHES = frozenset({"run", "optimize", "evolve", "solve"})
_GOOD = re.compile(r"train|finetun|fit\b|main|experiment|optimi[sz]|learn|run(?!ner)", re.IGNORECASE)
_BAD = re.compile(
    r"sampl|generat|infer|predict|eval|test|download|prepare|preproc|dataset|data[_/]|plot|visuali|convert|export|setup|install"
    r"|bench|demo_data|serve|server|lint|format|docs?\b|--help|--version|score|profile",
    re.IGNORECASE,
)
_SPREAD = re.compile(r"torchrun|nnodes|mpirun|horovodrun|deepspeed|srun|accelerate +launch|torch\.distributed")
_GPUS = re.compile(r"(?:nproc[_-]per[_-]node|num[_-](?:gpus|processes)|gpus|n_gpu|devices)[= ](\d+)")
_CPU = re.compile(
    r"--?(?:device|accelerator)[= ]'?cpu\b|--no-cuda|--no-accel|CUDA_VISIBLE_DEVICES=(?:''|\"\"|-1)?(?= )"
)
_NO_TRAINING = re.compile(
    r"--?(?:sample|eval|test|generate|predict|infer|no[_-]train)\w*(?:[-_]only)?(?![\w-])(?! *=? *\d)"
)
_MOST_SOURCES = 60
_MEASURES = re.compile(r"eval|test|infer|sampl|predict", re.IGNORECASE)
_WEIGHT = {"prose": 0.3, "script": 0.25, "makefile": 0.2, "inline": 0.2, "docstring": 0.2}


@dataclass(frozen=True)
class _Target:
    script: str
    workdir: str
    configs: tuple[str, ...]


def training_strength(code: Code) -> float:
    """Say from 0 to 1 how much a file looks as if running it trains something."""
    lasts = {call.last for call in code.calls}
    searches = bool(lasts & _SEARCHES) and "print" in lasts
    strength = max(0.6 * bool(lasts & _TRAINS), 0.4 * searches) + 0.2 * bool(lasts & _MAYBE)
    return min(1.0, strength + 0.2 * bool(_GOOD.search(posixpath.basename(code.file.path))))


def launches_in(
    found: Scan, codes: list[Code], commands: list[Command], entries: Iterable[EntryPoint], options: Iterable[Option]
) -> list[Launch]:
    """Return the commands that train, best first; a script that nobody tells how to start counts by its content."""
    strengths = {code.file.path: training_strength(code) for code in codes}
    local = _local_imports(codes)
    for path in list(strengths):
        below = max((strengths.get(other, 0.0) for other in local.get(path, ())), default=0.0)
        strengths[path] = max(strengths[path], 0.7 * below)
    endless = {option.file: option for option in options if _is_endless(option)}
    launches: dict[str, Launch] = {}
    for command in commands:
        launch = _launch(found, command, strengths, endless)
        if launch is not None and launch.command not in launches:
            launches[launch.command] = launch
    started = {launch.script for launch in launches.values()}
    for entry in entries:
        strength = strengths.get(entry.path, 0.0)
        if entry.kind in {"script", "module"} and entry.path not in started and strength >= 0.2:
            named = 0.1 if _GOOD.search(posixpath.basename(entry.path)) else 0.0
            low = 0.5 if _BAD.search(entry.path) else 1.0
            depth = 0.03 * entry.path.count("/")
            launches.setdefault(entry.command, Launch(
                command=entry.command, script=entry.path, endless=_endless_flag(endless, entry.path, entry.command),
                confidence=round(max(0.05, (0.5 * strength + named - depth) * low), 2),
                reason="running this script trains something, by the calls in it; nothing says how to start it",
                evidence=entry.evidence,
            ))  # fmt: skip
    ranked = sorted(launches.values(), key=lambda launch: -launch.confidence)
    return [replace(launch, sources=_reached(launch.script, local)) for launch in ranked]


def _reached(script: str, local: dict[str, set[str]]) -> tuple[str, ...]:
    """Return the files that a script imports, directly or through others."""
    seen = {script}
    waiting = [script]
    while waiting and len(seen) < _MOST_SOURCES:
        for path in sorted(local.get(waiting.pop(), ())):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
    return tuple(sorted(seen - {script}))


def _local_imports(codes: list[Code]) -> dict[str, set[str]]:
    """Return for each file the project's files that it imports, found by name alone."""
    modules: dict[str, str] = {}
    for code in codes:
        path = code.file.path.removesuffix(".py").removesuffix("/__init__")
        modules.setdefault(posixpath.basename(path), code.file.path)
        modules[path.replace("/", ".")] = code.file.path
    found: dict[str, set[str]] = {}
    for code in codes:
        for name, _ in code.imports:
            plain = name.lstrip(".")
            target = modules.get(plain) or modules.get(plain.rpartition(".")[2])
            if target and target != code.file.path:
                found.setdefault(code.file.path, set()).add(target)
    return found


def _is_endless(option: Option) -> bool:
    limits = re.search(r"(max|num|total|n)_?(steps|iters|iterations|epochs)", option.name)
    return bool(limits) and (option.default in {-1, 0} or "infinite" in option.help)


def _endless_flag(endless: dict[str, Option], script: str, command: str) -> str:
    option = endless.get(script)
    if option is None or any(flag in command for flag in option.flags):
        return ""
    return next((flag for flag in option.flags if flag.startswith("--")), option.flags[0])


def _launch(found: Scan, command: Command, strengths: dict[str, float], endless: dict[str, Option]) -> Launch | None:
    target = _target(found, command)
    if target is None or re.search(
        r"\bpip3? install\b|-m (?:pip|venv|pytest|unittest|http|build|twine)\b", command.text
    ):
        return None
    strength = strengths.get(target.script, 0.3 if target.script.endswith((".sh", "")) else 0.0)
    score = 0.2 + _WEIGHT[command.where] + 0.3 * strength
    reasons = [f"the project's {_WORDS[command.where]} says so"]
    name = posixpath.basename(target.script) or command.text
    if _GOOD.search(name) or re.search(r"\btrain", command.text):
        score += 0.1
        reasons.append("its name says training")
    other = any(_MEASURES.match(posixpath.basename(config)) for config in target.configs)
    named = _BAD.search(name) and not (name == "test.py" and strength >= 0.6)
    if named or other or _NO_TRAINING.search(command.text):
        score *= 0.35
        reasons.append("but it seems to do something else than train")
    gpus = None
    if _CPU.search(command.text):
        score, gpus = score + 0.08, 0
        reasons.append("it runs without a GPU")
    elif _SPREAD.search(command.text):
        score -= 0.2
        counted = _GPUS.search(command.text)
        gpus = int(counted[1]) if counted and len(counted[1]) < 5 else None
        reasons.append("but it spreads over several processes")
    if re.search(r"resume|fine-?tun|pretrained|checkpoint", command.text):
        score -= 0.08
    if target.workdir != ".":
        score -= 0.05
    return Launch(
        command=command.text, script=target.script, configs=target.configs, workdir=target.workdir, gpus=gpus,
        endless=_endless_flag(endless, target.script, command.text), confidence=round(min(0.95, max(0.05, score)), 2),
        reason=", ".join(reasons), evidence=(command.evidence,),
    )  # fmt: skip


_WORDS = {
    "prose": "documentation", "inline": "documentation", "script": "shell script", "makefile": "Makefile",
    "docstring": "own docstring",
}  # fmt: skip


def _target(found: Scan, command: Command) -> _Target | None:
    """Return the project's file that a command starts; a path may be relative to the text's own folder."""
    words = command.words()
    own = posixpath.dirname(command.evidence.path)
    for base in dict.fromkeys((".", own or ".")):
        paths = [(word, posixpath.normpath(posixpath.join(base, word))) for word in words]
        known = [path for word, path in paths if found.project.has(path) and not word.startswith("-")]
        scripts = [path for path in known if path.endswith((".py", ".sh", ".ipynb"))]
        module = _module(found, words, base)
        if module:
            scripts.insert(0, module)
        if scripts:
            rest = tuple(path for path in known if path != scripts[0] and path.endswith((".py", *_SETTINGS)))
            return _Target(scripts[0], base, rest)
    if words and words[0] in {"make", "mlflow", "dvc"}:
        return _Target("", "." if words[0] == "make" and not own else own or ".", ())
    return None


_SETTINGS = (".json", ".toml", ".yaml", ".yml", ".ini", ".cfg", ".gin")


def _module(found: Scan, words: list[str], base: str) -> str | None:
    for flag, name in pairwise(words):
        if flag == "-m" and re.fullmatch(r"[\w.]+", name):
            path = posixpath.normpath(posixpath.join(base, name.replace(".", "/")))
            for candidate in (f"{path}.py", f"{path}/__main__.py", f"src/{path}.py", f"src/{path}/__main__.py"):
                if found.project.has(candidate):
                    return candidate
    return None
