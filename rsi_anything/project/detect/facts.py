"""Finds single facts: hardware hints, seeds, test suites, and files that a candidate should not change."""

import posixpath
import re

from rsi_anything.project.detect.code import Code, scalar
from rsi_anything.project.detect.findings import Fact, Launch
from rsi_anything.project.detect.scan import Scan, SourceFile

_SEEDS = frozenset(
    {
        "seed",
        "manual_seed",
        "manual_seed_all",
        "set_seed",
        "seed_everything",
        "PRNGKey",
        "default_rng",
        "set_random_seed",
    }
)
_SPREAD = r"\btorchrun\b|torch\.distributed|init_process_group|DistributedDataParallel|deepspeed|horovod"
_CUDA = r"\.cuda\(|['\"]cuda(?::\d)?['\"]|cuda\.is_available|tf\.device\(['\"]/?gpu|CUDA_VISIBLE_DEVICES"
_CPU = r"(?:default|device|map_location)\s*=\s*['\"]cpu['\"]|--device[= ]cpu|else ['\"]cpu['\"]"
_HARDWARE = (
    ("several processes", _SPREAD, 0.6),
    ("cuda", _CUDA, 0.5),
    ("cpu", _CPU, 0.5),
    ("mps", r"['\"]mps['\"]|backends\.mps", 0.4),
    ("tpu", r"torch_xla|TPUStrategy|jax\.devices\(['\"]tpu", 0.5),
)
_GPU_TALK = re.compile(
    r"(?i)\b(?:(?P<count>\d{1,3})\s*[x\u00d7]?\s*(?:nvidia\s+)?(?:(?:a|h|v|p|b)\d{2,3}s?|rtx\s*\d{4}|tesla\s*\w+|gpus?)\b"
    r"|(?P<one>single|one)\s+(?:\w+\s+)?gpu)"
)
_FROZEN = re.compile(
    r"(^|/)(eval(?:uat\w*)?|evaluation|scor\w*|metrics?|judge|benchmark|data(?:_?(?:loader|set|utils|sets))?|dataloader)\.py\Z"
)
_TESTS = re.compile(r"(^|/)(test_[^/]+|[^/]+_test)\.py\Z")


def hardware_in(found: Scan, launches: list[Launch]) -> list[Fact]:
    """Return hints about the hardware, the surest first."""
    facts = [_asked(launch) for launch in launches[:5] if launch.gpus is not None]
    for kind, pattern, confidence in _HARDWARE:
        hits = [(file, match) for file in found.files("python", "shell") if (match := re.search(pattern, file.text))]
        if hits:
            evidence = tuple(file.evidence(file.line_at(match.start()), match[0][:60]) for file, match in hits[:8])
            facts.append(
                Fact(kind="hardware", value=kind, evidence=evidence, confidence=confidence, reason="the code names it")
            )
    for file in found.files("prose"):
        for match in list(_GPU_TALK.finditer(file.text))[:4]:
            count = match["count"] or "1"
            facts.append(_spoken(file, match, count))
    return sorted(facts, key=lambda fact: -fact.confidence)


def _asked(launch: Launch) -> Fact:
    value = f"{launch.gpus} GPUs" if launch.gpus else "no GPU"
    confidence = round(0.8 * launch.confidence, 2)
    return Fact(
        kind="hardware",
        value=value,
        evidence=launch.evidence,
        confidence=confidence,
        reason="a training command says so",
    )


def _spoken(file: SourceFile, match: re.Match[str], count: str) -> Fact:
    line = file.line_at(match.start())
    evidence = (file.evidence(line, match[0].strip()[:60]),)
    value = f"{count} GPUs" if count != "1" else "1 GPU"
    return Fact(
        kind="hardware", value=value, evidence=evidence, confidence=0.4, reason="the documentation speaks of it"
    )


def seeds_in(codes: list[Code]) -> list[Fact]:
    """Return where randomness is seeded, and with what where that is a constant."""
    facts = []
    for code in codes:
        for call in code.calls:
            value = scalar(call.node.args[0]) if call.node.args else None
            if call.last in _SEEDS and (call.node.args or call.node.keywords) and not isinstance(value, str):
                evidence = (code.file.evidence(call.node.lineno, f"{call.name} is called"),)
                shown = str(value) if value is not None else "from a setting"
                facts.append(
                    Fact(
                        kind="seed", value=shown, evidence=evidence, confidence=0.8, reason="the code seeds randomness"
                    )
                )
    return facts[:40]


def suites_in(found: Scan) -> list[Fact]:
    """Return the test suites, one a folder."""
    folders: dict[str, list[str]] = {}
    for entry in found.by_kind.get("python", []):
        if _TESTS.search(entry.path):
            folders.setdefault(posixpath.dirname(entry.path) or ".", []).append(entry.path)
    facts = []
    texts = {file.path: file for file in found.files("python")}
    for folder, paths in sorted(folders.items(), key=lambda item: -len(item[1]))[:10]:
        evidence = tuple(texts[path].evidence(1, "test file") for path in paths[:3] if path in texts)
        if evidence:
            reason = f"the folder holds {len(paths)} test files"
            facts.append(Fact(kind="tests", value=folder, evidence=evidence, confidence=0.8, reason=reason))
    return facts


def frozen_in(codes: list[Code]) -> list[Fact]:
    """Return files that measure or load data by their name: a candidate should leave them as they are."""
    facts = []
    for code in codes:
        match = _FROZEN.search(code.file.path)
        if match:
            evidence = (code.file.evidence(1, f"named {posixpath.basename(code.file.path)}"),)
            reason = "its name says that it measures or loads data"
            depth = 0.05 * code.file.path.count("/")
            confidence = round(max(0.2, (0.7 if not match[2].startswith("data") else 0.5) - depth), 2)
            facts.append(
                Fact(kind="frozen", value=code.file.path, evidence=evidence, confidence=confidence, reason=reason)
            )
    return sorted(facts, key=lambda fact: -fact.confidence)
