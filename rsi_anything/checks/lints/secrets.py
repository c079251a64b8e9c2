"""Secrets: shapes of keys and tokens that belong to nobody's task. What is found is never repeated."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain, islice

from rsi_anything.checks.finding import Finding
from rsi_anything.checks.lints.material import MOST_SCANNED, Material
from rsi_anything.checks.rules import raised

MOST_TOTAL = 256 << 20
"""Bytes scanned in one task; beyond it files are named as not scanned."""
_SHAPES: tuple[tuple[str, bytes, re.Pattern[bytes]], ...] = tuple(
    (kind, sign, re.compile(shape))
    for kind, sign, shape in (
        (
            "private key",
            b"PRIVATE KEY",
            rb"-----BEGIN [A-Z ]{0,24}PRIVATE KEY(?: BLOCK)?-----\s+[A-Za-z0-9+/=:\s-]{48}",
        ),
        ("AWS access key", b"AKIA", rb"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("AWS access key", b"ASIA", rb"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("GitHub token", b"gh", rb"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{36,255}"),
        ("GitHub token", b"github_pat_", rb"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{59,255}"),
        ("GitLab token", b"glpat-", rb"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,64}(?![A-Za-z0-9_-])"),
        ("Anthropic key", b"sk-ant-", rb"(?<![A-Za-z0-9])sk-ant-[A-Za-z0-9]{2,12}-[A-Za-z0-9_-]{24,200}"),
        ("OpenAI key", b"sk-", rb"(?<![A-Za-z0-9])sk-(?:proj-|svcacct-|admin-)?(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{32,250}"),
        ("Hugging Face token", b"hf_", rb"(?<![A-Za-z0-9])hf_[A-Za-z]{34}(?![A-Za-z0-9])"),
        ("Google key", b"AIza", rb"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
        ("Slack token", b"xox", rb"(?<![A-Za-z0-9])xox[abeprs]-[0-9]{6,14}-[A-Za-z0-9-]{16,200}"),
        (
            "Slack webhook",
            b"hooks.slack",
            rb"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,30}",
        ),
        ("Stripe key", b"k_live_", rb"(?<![A-Za-z0-9])[rs]k_live_[A-Za-z0-9]{20,120}"),
        ("npm token", b"npm_", rb"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
        ("PyPI token", b"pypi-", rb"(?<![A-Za-z0-9])pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,250}"),
        ("signed web token", b".eyJ", rb"(?<![A-Za-z0-9])eyJ[\w-]{12,2000}\.eyJ[\w-]{12,2000}\.[\w-]{24,}"),
        ("password in an address", b"://", rb"://[^\s/:@'\"$<>{}]{1,64}:(?P<value>[^\s/:@'\"$<>{}]{6,64})@"),
    )
)
"""Kind, a sign without which it cannot be there (a plain search is many times faster), and the shape itself."""
_TELLING = re.compile(rb"secret|passw|api[_-]?key|access[_-]?(?:key|token)|auth[_-]?token|private[_-]?key")
_NAMED = re.compile(
    rb"(?i)(?<![A-Za-z])(?:[A-Za-z0-9]{1,24}[_.-])?(?:secret|passwd|password|api[_-]?key|access[_-]?key|auth[_-]?token"
    rb"|access[_-]?token|private[_-]?key)(?:[_-]?key)?[\"']?\s{0,4}(?:=|:=|:|=>)\s{0,4}[\"']?"
    rb"(?P<value>[A-Za-z0-9+/_~-]{20,200}={0,2})(?![A-Za-z0-9+/_(.\[])"
)
_LONGEST = 400
"""Bytes around a telling name in which its value stands."""
_HARMLESS = re.compile(
    rb"(?i)example|placeholder|change.?me|dummy|fake|passw|your[_-]|redacted|xxxx|test[_-]?key|0123456789|abcdef"
)
_MOST_FINDINGS = 20
_MOST_PLACES = 200
"""Places looked at in one file; counting the lines before each takes time."""


def secrets(material: Material) -> Iterator[Finding]:
    """Yield each place that holds what looks like a secret, by kind; the secret is left where it is."""
    total = 0
    count = 0
    for entry in material.files:
        if entry.size > MOST_SCANNED or total + entry.size > MOST_TOTAL:
            reason = f"{entry.size >> 20:,} MiB were not scanned for secrets and leaks"
            yield raised("lint/not-scanned", reason, file=entry.path, fix="keep large data out of the task folder")
            continue
        total += entry.size
        for line, kind in _found(material.content(entry.path) or b""):
            count += 1
            if count > _MOST_FINDINGS:
                return
            fix = "remove it, and have it revoked: whoever has the folder has it"
            yield raised("lint/secret", f"holds what looks like a {kind}", file=entry.path, line=line, fix=fix)


def _found(content: bytes) -> Iterator[tuple[int, str]]:
    lines: set[int] = set()
    for start, kind in islice(chain(_shaped(content), _named(content)), _MOST_PLACES):
        line = content.count(b"\n", 0, start) + 1
        if line not in lines:
            lines.add(line)
            yield line, kind


def _shaped(content: bytes) -> Iterator[tuple[int, str]]:
    for kind, sign, shape in _SHAPES:
        for match in shape.finditer(content) if sign in content else ():
            value = match.groupdict().get("value") or match.group()
            if sign == b"://" and not _chosen(value):
                continue
            if sign == b"PRIVATE KEY" or not _HARMLESS.search(value):
                yield match.start(), kind


def _named(content: bytes) -> Iterator[tuple[int, str]]:
    for place in _TELLING.finditer(content.lower()):
        start = max(0, place.start() - 25)
        match = _NAMED.search(content, start, place.end() + _LONGEST)
        value = match["value"] if match else b""
        if match and not _HARMLESS.search(value) and _random(value):
            yield match.start(), "secret under a telling name"


def _chosen(value: bytes) -> bool:
    """Say whether a password is one: a mere word such as postgres stands for none."""
    sorts = sum(re.search(sort, value) is not None for sort in (rb"[a-z]", rb"[A-Z]", rb"[0-9]", rb"[^A-Za-z0-9]"))
    return sorts >= 2 and len(set(value)) >= 5


def _random(value: bytes) -> bool:
    """Say whether a value looks drawn by lot: three sorts of characters and hardly any repetition."""
    sorts = sum(re.search(sort, value) is not None for sort in (rb"[a-z]", rb"[A-Z]", rb"[0-9]"))
    counts = Counter(value)
    entropy = -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())
    hexadecimal = re.fullmatch(rb"[0-9a-f]{32,}", value) is not None
    return (sorts == 3 and entropy >= 3.6) or (hexadecimal and entropy >= 3.3)
