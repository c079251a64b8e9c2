"""Finds what a project calls itself, and its field of research."""

import re

from rsi_anything.project.detect.code import Code
from rsi_anything.project.detect.findings import Fact
from rsi_anything.project.detect.scan import Scan, SourceFile

_HEADING = re.compile(r"(?m)\A(?:[^\n]*\n){0,60}?(?:#[ \t]+(?P<hash>[^\n]+)|(?P<line>[^\n=]+)\n={3,}[ \t]*$)")
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]+>|[*_`#]")
# The field, the words of a README that speak for it, and the imports that do.
_FIELDS = (
    (
        "language-modelling", {"tiktoken"},
        r"language model|\bGPT\b|char(?:acter)?-level|perplexity|next[- ](?:token|character)",
    ),
    (
        "vision", {"torchvision", "cv2"},
        r"\bMNIST\b|CIFAR|ImageNet|image classif\w+|convolutional|segmentation|super-resolution",
    ),
    (
        "reinforcement-learning", {"gym", "gymnasium"},
        r"reinforcement learning|policy gradient|\bPPO\b|\bDQN\b|OpenAI Gym|gymnasium",
    ),
    (
        "optimisation", {"sko", "deap"},
        r"genetic algorithm|particle swarm|simulated annealing|differential evolution|swarm intelligence",
    ),
    ("speech", {"torchaudio", "librosa"}, r"speech|audio|speaker|\bASR\b"),
    ("graphs", {"torch_geometric", "dgl"}, r"graph neural|node classif\w+|knowledge graph"),
    ("translation", {"sacrebleu"}, r"machine translation|\bBLEU\b"),
    (
        "tabular", {"xgboost", "lightgbm", "sklearn"},
        r"tabular|regression|wine quality|house prices|gradient boosting|elastic ?net",
    ),
)  # fmt: skip


def title_in(found: Scan) -> list[Fact]:
    """Return the README's heading."""
    for file in found.files("prose"):
        match = _HEADING.search(file.text) if "/" not in file.path and file.path.lower().startswith("readme") else None
        text = _MARKUP.sub(r"\1", (match["hash"] or match["line"])).strip() if match else ""
        if match and 1 < len(text) <= 120:
            line = file.line_at(match.start("hash") if match["hash"] else match.start("line"))
            evidence = (file.evidence(line, "heading of the README"),)
            return [Fact(kind="title", value=text, evidence=evidence, confidence=0.7, reason="the README is headed so")]
    return []


def category_in(found: Scan, codes: list[Code]) -> list[Fact]:
    """Return the fields of research that the README's words and the code's imports speak for, the surest first."""
    prose = [file for file in found.files("prose") if "/" not in file.path]
    facts = []
    for name, modules, words in _FIELDS:
        hits = [(file, match) for file in prose for match in list(re.finditer(f"(?i){words}", file.text))[:20]]
        imports = [
            (code.file, line, module)
            for code in codes
            for module, line in code.imports
            if module.partition(".")[0] in modules
        ]
        if hits or imports:
            facts.append(_field(name, hits, imports))
    return sorted(facts, key=lambda fact: -fact.confidence)[:3]


def _field(name: str, hits: list[tuple[SourceFile, re.Match[str]]], imports: list[tuple[SourceFile, int, str]]) -> Fact:
    evidence = [file.evidence(file.line_at(match.start()), f"says {match[0]}") for file, match in hits[:3]]
    evidence += [file.evidence(line, f"imports {module}") for file, line, module in imports[:2]]
    confidence = min(0.75, 0.25 + 0.05 * len(hits) + 0.1 * min(2, len(imports)))
    reason = "the README's words and the imports speak for it" if hits else "the imports speak for it"
    return Fact(kind="category", value=name, evidence=tuple(evidence), confidence=round(confidence, 2), reason=reason)
