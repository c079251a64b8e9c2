"""Finds a project's data: which files, how large, of what shape, with which label, and the scripts that make it."""

import posixpath
import re
import shlex
from collections.abc import Iterable

from rsi_anything.project.detect.code import Code, text_of
from rsi_anything.project.detect.findings import DataFile, DataScript
from rsi_anything.project.detect.scan import Scan, SourceFile, is_aside, kind_of, unique
from rsi_anything.project.detect.tables import Shape, shape_of
from rsi_anything.project.evidence import Evidence
from rsi_anything.project.export import FileEntry

_HEAD = 64 * 1024
_WHOLE = 8 * 1024 * 1024
_MOST = 60
_DATA = frozenset(
    {
        ".csv",
        ".tsv",
        ".txt",
        ".jsonl",
        ".ndjson",
        ".npy",
        ".npz",
        ".pkl",
        ".pickle",
        ".joblib",
        ".pt",
        ".pth",
        ".parquet",
        ".h5",
    }
    | {
        ".hdf5",
        ".arrow",
        ".feather",
        ".gz",
        ".bz2",
        ".xz",
        ".zst",
        ".zip",
        ".tar",
        ".bin",
        ".dat",
        ".data",
        ".mat",
        ".db",
        ".fasta",
    }
)
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm"})
_NO_DATA = re.compile(
    r"(licen[cs]e|readme|requirements|constraints|cmakelists|changelog|authors|copying|notice|citation|robots|version|todo|manifest)",
    re.IGNORECASE,
)
_LABELS = (
    ("label", "labels", "target", "targets", "class", "y", "output", "outcome"),
    (
        "species",
        "quality",
        "survived",
        "diagnosis",
        "price",
        "medv",
        "charges",
        "salary",
        "rating",
        "category",
        "sentiment",
    ),
)
_PLACE = re.compile(r"(^|/)(data|dataset|datasets|corpus|input)s?(/|$)")
_MAKES = re.compile(
    r"(^|/)(prepare|download|preprocess|get_data|make_data|build_data|fetch|create_data)\w*\.(py|sh)\Z", re.IGNORECASE
)
_LOADS = frozenset(
    {"urlretrieve", "load_dataset", "wget", "download_url", "hf_hub_download", "snapshot_download", "fetch_openml"}
)


def data_in(found: Scan, codes: list[Code]) -> list[DataFile]:
    """Return the data files, those that the code reads first, then the largest."""
    texts = [*found.files("python"), *found.files("prose"), *found.files("shell")]
    candidates = [entry for entry in found.project.files if _may_be_data(entry)]
    images = _image_folders(found.project.files)
    ranked = sorted(candidates, key=lambda entry: -entry.size)[:_MOST]
    data = [item for entry in ranked if (item := _data_file(found, entry, texts, codes)) is not None]
    data = [*data, *_class_files(data)]
    return sorted([*data, *images], key=lambda item: (-item.confidence, -item.size, item.path))


def _may_be_data(entry: FileEntry) -> bool:
    suffix = posixpath.splitext(entry.path)[1].lower()
    name = posixpath.basename(entry.path)
    if is_aside(entry.path) or not entry.size or _NO_DATA.match(name):
        return False
    return suffix in _DATA or (suffix == ".json" and entry.size > 50_000 and kind_of(entry.path) == "config")


def _data_file(found: Scan, entry: FileEntry, texts: list[SourceFile], codes: list[Code]) -> DataFile | None:
    path = found.project.folder / entry.path
    suffix = posixpath.splitext(entry.path)[1].lower()
    raw = found.project.read(entry.path, _WHOLE if entry.size <= _WHOLE else _HEAD)
    shape = shape_of(path, raw[:_HEAD], suffix, whole=entry.size <= _HEAD)
    uses = _mentions(entry.path, texts)
    if shape.kind == "text" and not uses and entry.size < 20_000:
        return None
    lines = raw.count(b"\n") + (1 if raw and not raw.endswith(b"\n") else 0)
    counted = shape.kind in {"lines", "text", "csv", "jsonl"} and len(raw) == entry.size
    label, why = _label(shape, codes) if shape.kind == "csv" else (None, ())
    amount = f", {lines} lines" if counted else ""
    evidence = Evidence(entry.path, 0, 0, f"{entry.size} bytes{amount}, {shape.kind}")
    in_data = bool(_PLACE.search(posixpath.dirname(entry.path)))
    confidence = 0.35 + 0.4 * bool(uses) + 0.15 * in_data + 0.1 * (shape.kind in {"csv", "lines", "jsonl"})
    if re.search(r"(^|/)(tests?|docs?|results?|logs?|outputs?|checkpoints?)(/|$)", entry.path):
        confidence *= 0.5
    examples = lines - (1 if shape.header else 0) if counted else None
    reason = "the code or the documentation names this file" if uses else "its name and content look like data"
    return DataFile(
        path=entry.path, size=entry.size, shape=shape.kind, columns=shape.columns[:64], label=label,
        detail=shape.detail, examples=examples, confidence=round(min(confidence, 0.95), 2), reason=reason,
        evidence=unique([evidence, *uses, *why]),
    )  # fmt: skip


def _mentions(path: str, texts: Iterable[SourceFile]) -> list[Evidence]:
    name = posixpath.basename(path)
    found = []
    for file in texts:
        at = file.text.find(name)
        if at >= 0 and file.path != path:
            found.append(file.evidence(file.line_at(at), f"names {name}"))
        if len(found) >= 4:
            break
    return found


def _label(shape: Shape, codes: list[Code]) -> tuple[str | None, tuple[Evidence, ...]]:
    """Return the column that is predicted: the one that the code takes apart, else one whose name says so."""
    if not shape.header:
        return None, ()
    for code in codes:
        for call in code.called("drop", "pop"):
            column = _column(call.node.args[0]) if call.node.args else None
            if column in shape.columns and column is not None:
                line = code.file.evidence(call.node.lineno, f"takes the column {column} away from the inputs")
                return column, (line,)
    lower = {column.lower(): column for column in shape.columns}
    for names in _LABELS:
        for name in names:
            if name in lower:
                return lower[name], ()
    return None, ()


def _column(node: object) -> str | None:
    elements = getattr(node, "elts", [])
    if len(elements) == 1:
        node = elements[0]
    return text_of(node) if node is not None else None  # type: ignore[arg-type]


def _class_files(data: list[DataFile]) -> list[DataFile]:
    """Return the folders in which each text file holds the lines of one class, such as one file a language."""
    folders: dict[str, list[DataFile]] = {}
    for item in data:
        if item.shape == "lines" and item.path.endswith(".txt"):
            folders.setdefault(posixpath.dirname(item.path), []).append(item)
    found = []
    for folder, items in folders.items():
        names = sorted(posixpath.basename(item.path).removesuffix(".txt") for item in items)
        if len(items) >= 3 and not {"train", "test", "val", "valid", "dev"} & {name.lower() for name in names}:
            lines = sum(item.examples or 0 for item in items)
            evidence = unique(Evidence(item.path, 0, 0, f"{item.examples} lines") for item in items)
            found.append(DataFile(
                path=f"{folder}/*.txt" if folder else "*.txt", shape="class-files", examples=lines,
                size=sum(item.size for item in items), detail=", ".join(names[:12]), evidence=evidence, confidence=0.6,
                reason=f"{len(items)} files of short lines lie in one folder, as if each were a class",
            ))  # fmt: skip
    return found


def _image_folders(files: Iterable[FileEntry]) -> list[DataFile]:
    folders: dict[str, list[FileEntry]] = {}
    for entry in files:
        if posixpath.splitext(entry.path)[1].lower() in _IMAGES and not is_aside(entry.path):
            folders.setdefault(posixpath.dirname(entry.path), []).append(entry)
    found = []
    for folder, entries in folders.items():
        documents = re.search(r"(^|/)(docs?|assets?|images?|img|figures?|imgs|static|pics?)(/|$)", folder)
        if len(entries) >= 30 or (len(entries) >= 10 and not documents):
            size = sum(entry.size for entry in entries)
            evidence = tuple(Evidence(entry.path, 0, 0, "image") for entry in entries[:3])
            found.append(DataFile(
                path=folder or ".", size=size, shape="image-folder", examples=len(entries), evidence=evidence,
                confidence=0.3 if documents else 0.6, reason=f"the folder holds {len(entries)} images",
            ))  # fmt: skip
    return found


def data_scripts_in(found: Scan, codes: list[Code]) -> list[DataScript]:
    """Return the scripts that download or make data, the surest first."""
    scripts = [script for code in codes if (script := _data_script(code)) is not None]
    for file in found.files("shell"):
        match = re.search(r"(?m)^[^#\n]*\b(wget|curl|gdown|kaggle|aws s3)\b", file.text)
        if match:
            urls = tuple(dict.fromkeys(re.findall(r"https?://[^\s'\"<>|)]{4,300}", file.text)))[:8]
            evidence = (file.evidence(file.line_at(match.start(1)), f"calls {match[1]}"),)
            scripts.append(DataScript(
                path=file.path,
                command=f"bash {shlex.quote(file.path)}", urls=urls, evidence=evidence, confidence=0.6,
                reason="it downloads something",
            ))  # fmt: skip
    return sorted(scripts, key=lambda script: (-script.confidence, script.path))


def _data_script(code: Code) -> DataScript | None:
    path = code.file.path
    named = bool(_MAKES.search(path))
    calls = [
        call for call in code.calls if call.last in _LOADS or call.name in {"requests.get", "urllib.request.urlopen"}
    ]
    if not named and not calls:
        return None
    urls = [item.value for item in code.assignments if (text_of(item.value) or "").startswith(("http://", "https://"))]
    urls += [item for call in calls for item in call.node.args if (text_of(item) or "").startswith("http")]
    lines = [node.lineno for node in urls] or [call.node.lineno for call in calls] or [1]
    runs = code.main_line is not None or any(not call.scope for call in calls)
    distinct = tuple(dict.fromkeys(text_of(url) or "" for url in urls))[:8]
    return DataScript(
        path=path, command=f"python {shlex.quote(path)}", urls=distinct,
        evidence=unique(code.file.evidence(line, "gets or makes data") for line in lines),
        confidence=round(0.3 + 0.35 * named + 0.15 * bool(calls) + 0.1 * runs, 2),
        reason="its name says that it prepares data" if named else "it downloads something",
    )  # fmt: skip
