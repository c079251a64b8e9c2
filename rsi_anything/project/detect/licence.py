"""Guesses the SPDX identifier of a project's licence from its files."""

import re

from rsi_anything.project.checkout import Project
from rsi_anything.project.detect.findings import Fact
from rsi_anything.project.detect.scan import Scan, SourceFile, read_text

_FILE = re.compile(r"(licen[cs]e|copying|unlicense|copyright)([-._][\w.-]*)?\Z", re.IGNORECASE)
_GPL = r"gnu (?P<kind>lesser |affero |library )?general public license\s+version (?P<number>[23](?:\.\d)?)"
_ISC = (
    r"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby "
)
_BSD = r"redistribution and use in source and binary forms"
_MIT = r"permission is hereby granted, free of charge, to any person obtaining a copy"
_TEXTS = (
    ("Apache-2.0", r"apache license,? version 2\.0"),
    ("MIT", _MIT + r"[\s\S]{0,1500}the software is provided"),
    ("ISC", _ISC + "granted, provided"),
    ("0BSD", _ISC + r"granted\."),
    ("BSD-3-Clause", _BSD + r"[\s\S]{0,1800}neither the name"),
    ("BSD-2-Clause", _BSD),
    ("MPL-2.0", r"mozilla public license,? (?:version|v\.) 2\.0"),
    ("Unlicense", r"this is free and unencumbered software released into the public domain"),
    ("CC0-1.0", r"cc0 1\.0 universal"),
    ("CC-BY-NC-SA-4.0", r"attribution-noncommercial-sharealike 4\.0"),
    ("CC-BY-NC-4.0", r"attribution-noncommercial 4\.0"),
    ("CC-BY-SA-4.0", r"attribution-sharealike 4\.0"),
    ("CC-BY-4.0", r"attribution 4\.0 international"),
    ("BSL-1.0", r"boost software license - version 1\.0"),
)
_NAMES = {
    "mit": "MIT", "mit license": "MIT", "the mit license": "MIT", "apache-2.0": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0", "apache license, version 2.0": "Apache-2.0", "cc0": "CC0-1.0",
    "apache software license": "Apache-2.0", "bsd-3-clause": "BSD-3-Clause", "bsd 3-clause": "BSD-3-Clause",
    "bsd-2-clause": "BSD-2-Clause", "gpl-3.0": "GPL-3.0-only", "gplv3": "GPL-3.0-only", "the unlicense": "Unlicense",
    "gpl-3.0-or-later": "GPL-3.0-or-later", "agpl-3.0": "AGPL-3.0-only", "mpl-2.0": "MPL-2.0", "isc": "ISC",
    "lgpl-3.0": "LGPL-3.0-only",
}  # fmt: skip
_FIELDS = (
    r"(?m)^license\s*=\s*\{\s*text\s*=\s*['\"]([^'\"\n]+)",
    r"(?m)(?:^|[(,])[ \t]*['\"]?license['\"]?\s*[=:]\s*['\"]?([A-Za-z0-9][^'\"\n,}]*)",
    r"License :: OSI Approved :: ([^'\"\n]+)",
    r"SPDX-License-Identifier:[ \t]*([\w.+-]+)",
)
_MENTION = re.compile(
    r"(?im)^#+[ \t]*licen[cs]e[ \t]*\n+(?:[^\n]*?\b)?"
    r"(MIT|Apache[- ]2\.0|Apache License,? Version 2\.0|BSD[- ][23]-Clause|GPLv3|ISC)\b"
)


def licences_in(project: Project, found: Scan) -> list[Fact]:
    """Return what the licence seems to be, the surest first: licence texts, then fields, then mentions."""
    facts: list[Fact] = []
    for entry in (*project.files, *project.above):
        if entry.path.count("/") <= 1 and _FILE.match(entry.path.rpartition("/")[2]) and entry.size < 200_000:
            file = read_text(project, entry, "prose")
            known = _of_text(file) if file else None
            if file and known:
                low = 0.2 if "/" in entry.path[1:] else 0.0
                facts.append(
                    _fact(file, known[0], known[1], 0.95 - low, "the licence file's text is that of this licence")
                )
    for file in [*found.files("needs"), *found.files("prose")]:
        if file.path.count("/") == 0:
            facts += _of_fields(file)
    return sorted(facts, key=lambda fact: -fact.confidence)


def _fact(file: SourceFile, value: str, offset: int, confidence: float, reason: str) -> Fact:
    evidence = (file.evidence(file.line_at(offset), f"licence {value}"),)
    return Fact(kind="licence", value=value, evidence=evidence, confidence=confidence, reason=reason)


def _of_text(file: SourceFile) -> tuple[str, int] | None:
    text = re.sub(r"\s", " ", file.text.lower())  # one for one, so that offsets stay
    gpl = re.search(_GPL.replace(r"\s+", r"\s{1,40}"), text)
    if gpl and gpl.start() < 400:
        prefix = {"lesser ": "L", "affero ": "A", "library ": "L"}.get(gpl["kind"] or "", "")
        number = gpl["number"] if "." in gpl["number"] else f"{gpl['number']}.0"
        return f"{prefix}GPL-{number}-only", gpl.start()
    for name, pattern in _TEXTS:
        match = re.search(pattern.replace(" ", r" {1,20}"), text)
        if match:
            return name, match.start()
    return None


def _of_fields(file: SourceFile) -> list[Fact]:
    facts = []
    for pattern in _FIELDS if file.kind == "needs" else _FIELDS[3:]:
        for match in re.finditer(pattern, file.text):
            known = _NAMES.get(match[1].strip().lower())
            if known:
                facts.append(_fact(file, known, match.start(1), 0.8, "the project's own description names it"))
                break
    mention = _MENTION.search(file.text) if file.kind == "prose" else None
    known = _NAMES.get(mention[1].lower()) if mention else None
    if mention and known:
        facts.append(_fact(file, known, mention.start(1), 0.7, "the README names it under a heading of its own"))
    return facts
