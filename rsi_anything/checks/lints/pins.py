"""Pins: what an image and a judge are made of must be the same tomorrow."""

import re
from collections.abc import Iterator
from itertools import pairwise

from harness.task.problems import printable
from rsi_anything.checks.finding import Finding, Severity
from rsi_anything.checks.lints.dockerfile import Instruction, instructions
from rsi_anything.checks.lints.material import Material
from rsi_anything.checks.lints.shell import Command, commands
from rsi_anything.checks.rules import raised

DOCKERFILES = ("environment/Dockerfile", "tests/Dockerfile")
JUDGES = ("tests/test.sh",)
_PINNED = re.compile(r"[A-Za-z0-9._-]+(\[[^\]]*\])?\s*={2,3}\s*[^*\s]+\Z")
_NPM_PINNED = re.compile(r"(@[^/@]+/)?[^@]+@(npm:)?\d+(\.\d+)*([-+.].*)?\Z")
_SHELLS = {"sh", "bash", "dash", "zsh", "ash", "python", "python3", "perl", "ruby", "node"}
_FETCHERS = {"curl", "wget"}
_VALUED = {
    "-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t",
    "--target", "--platform", "--python-version", "--prefix", "--root", "-e", "--editable", "--timeout", "--retries",
    "--trusted-host", "--python", "-p", "--index", "--no-binary", "--only-binary", "--break-system", "-o", "--option",
    "--torch-backend", "--cache-dir", "-n", "--name", "--registry",
}  # fmt: skip
"""Options that take the next word as their value."""
_INSTALLERS = (
    ("pip", r"pip[0-9.]*|pipx", {"install"}),
    ("pip", r"uv", {"add", "tool"}),
    ("system", r"apt|apt-get|apk|yum|dnf|microdnf", {"install", "add"}),
    ("npm", r"npm|pnpm|yarn", {"install", "add", "i"}),
    ("conda", r"conda|mamba|micromamba", {"install", "create"}),
)
"""Kind of package, name of the program, the words that make it install."""


def pins(material: Material) -> Iterator[Finding]:
    """Yield what is not pinned in Dockerfiles, requirement files and the judge's script."""
    for file in DOCKERFILES:
        text = material.text(file)
        if text is not None:
            found = instructions(text)
            yield from _bases(file, found)
            for instruction in found:
                yield from _instruction(material, file, instruction)
    for file in JUDGES:
        for command in commands(material.text(file) or ""):
            yield from _judge_installs(material, file, command)


def _bases(file: str, found: list[Instruction]) -> Iterator[Finding]:
    stages: set[str] = set()
    defaults = dict(_argument(each) for each in found if each.name == "ARG")
    for each in found:
        if each.name != "FROM" or not each.words:
            continue
        words = each.words
        image = re.sub(r"\$\{?(\w+)(?::?-([^}]*))?\}?", lambda m: defaults.get(m[1]) or m[2] or m[0], words[0])
        if image.lower() != "scratch" and image not in stages:
            yield from _image(file, each.line, image)
        if len(words) >= 3 and words[1].upper() == "AS":
            stages.add(words[2])


def _argument(instruction: Instruction) -> tuple[str, str]:
    name, _, value = " ".join(instruction.words).partition("=")
    return name, value.strip("\"'")


def _image(file: str, line: int, image: str) -> Iterator[Finding]:
    if "@sha256:" in image:
        return
    name = printable(image)
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    if not tag or tag == "latest" or "$" in tag:
        reason = f"the base image {name} has no exact tag, so it changes under the task"
        yield raised("lint/base-image", reason, file=file, line=line, fix="name an exact tag and its digest")
    else:
        reason = f"the base image {name} is named by a tag alone, which can be moved"
        yield raised("lint/base-digest", reason, file=file, line=line, fix=f"write {name}@sha256:<digest>")


def _instruction(material: Material, file: str, instruction: Instruction) -> Iterator[Finding]:
    fetches = any(re.match(r"https?://", word) for word in instruction.words)
    checked = any(flag.startswith("--checksum=") for flag in instruction.flags)
    if instruction.name == "ADD" and fetches and not checked:
        reason = "ADD fetches a file without a checksum"
        fix = "give --checksum=sha256:<digest>"
        yield raised("lint/unchecked-download", reason, file=file, line=instruction.line, fix=fix)
    if instruction.name != "RUN":
        return
    found = instruction.commands()
    checked = any(command.name in {"sha256sum", "sha512sum", "shasum", "gpg", "cosign"} for command in found)
    switched = any(c.name == "git" and {"checkout", "reset", "switch", "fetch"} & set(c.words) for c in found)
    for place, command in enumerate(found):
        yield from installs(material, file, command)
        yield from _piped(file, command, found[place + 1 : place + 2])
        yield from _fetched(file, command, checked=checked, switched=switched)


def _piped(file: str, command: Command, following: list[Command]) -> Iterator[Finding]:
    if command.name in _FETCHERS and command.piped and following and following[0].name in _SHELLS:
        reason = f"what {command.name} fetches is run at once by {following[0].name}, unseen and unpinned"
        fix = "fetch a versioned file, compare its checksum, then run it"
        yield raised("lint/pipe-to-shell", reason, file=file, line=command.line, fix=fix)


def _fetched(file: str, command: Command, *, checked: bool, switched: bool) -> Iterator[Finding]:
    if command.name in _FETCHERS and not command.piped and not checked and _remote(command):
        reason = f"{command.name} fetches a file without comparing a checksum"
        fix = "add `echo '<sha256>  FILE' | sha256sum -c`"
        yield raised("lint/unchecked-download", reason, file=file, line=command.line, fix=fix)
    if command.name == "git" and "clone" in command.words and not switched:
        reason = "git clone takes whatever the branch holds at build time"
        fix = "add `git checkout <full commit hash>`, or COPY the files"
        yield raised("lint/unpinned-checkout", reason, file=file, line=command.line, fix=fix)


def _remote(command: Command) -> bool:
    return any(re.match(r"(https?|ftp)://(?!localhost|127\.)", word) for word in command.arguments)


def installs(material: Material, file: str, command: Command) -> Iterator[Finding]:
    """Yield the unpinned packages that one command installs."""
    kind, packages = installed(command)
    if kind == "system":
        loose = [name for name in packages if "=" not in name]
        if loose:
            reason = f"{command.name} installs {_listed(loose)} in whatever version there is"
            fix = "write name=version, or take a base image by digest that has them"
            yield raised("lint/unpinned-system-package", reason, file=file, line=command.line, fix=fix)
    elif kind == "pip":
        yield from _pip(material, file, command, packages)
    elif kind in {"npm", "conda"}:
        pinned = _NPM_PINNED if kind == "npm" else re.compile(r"[^=<>]+={1,2}[0-9][^*<>]*\Z")
        loose = [name for name in packages if not pinned.match(name) and not name.startswith((".", "/"))]
        yield from _loose(file, command.line, loose, "name@1.2.3" if kind == "npm" else "name=1.2.3")


def installed(command: Command) -> tuple[str, list[str]]:
    """Return what kind of packages a command installs, and their names as written; an empty kind where none."""
    words = command.arguments
    name = command.name
    if re.fullmatch(r"python[0-9.]*", name) and words[:2] == ["-m", "pip"]:
        name, words = "pip", words[2:]
    if name == "uv" and words[:1] == ["pip"]:
        name, words = "pip", words[1:]
    if name in {"uvx", "npx"}:
        return "pip" if name == "uvx" else "npm", _with(words) + _plain(words)[:1]
    verb = next((word for word in words if not word.startswith("-")), "")
    for kind, names, verbs in _INSTALLERS:
        if re.fullmatch(names, name) and verb in verbs:
            rest = _plain(words[words.index(verb) + 1 :])
            return kind, rest[1:] if verb == "tool" else rest
    return "", []


def _with(words: list[str]) -> list[str]:
    return [after for word, after in pairwise(words) if word in {"--with", "-w", "--from"}]


def _plain(words: list[str]) -> list[str]:
    """Return the words that are neither options, nor their values, nor redirections."""
    out: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _VALUED or word in {"--with", "-w", "--from", ">", ">>", "2>", "<"}:
            skip = True
        elif not word.startswith("-") and not re.match(r"[0-9]?>|<|&", word):
            out.append(word)
    return out


def _pip(material: Material, file: str, command: Command, packages: list[str]) -> Iterator[Finding]:
    loose = [name for name in packages if not _pip_pinned(name)]
    yield from _loose(file, command.line, loose, "name==1.2.3")
    for word, after in pairwise(command.words):
        if word in {"-r", "--requirement"}:
            base = after.rsplit("/", 1)[-1]
            for entry in material.below(file.split("/", 1)[0]):
                if entry.path.rsplit("/", 1)[-1] == base:
                    yield from requirements(entry.path, material.text(entry.path) or "")


def requirements(file: str, text: str) -> Iterator[Finding]:
    """Yield the lines of a requirements file that are not pinned."""
    for number, line in enumerate(text.splitlines(), start=1):
        wanted = re.split(r"\s#|^#|\s*;|\s+--", line, maxsplit=1)[0].strip().rstrip("\\").strip()
        if wanted and not wanted.startswith("-") and not _pip_pinned(wanted):
            yield from _loose(file, number, [wanted], "name==1.2.3")


def _pip_pinned(name: str) -> bool:
    if name.startswith((".", "/", "file:", "$")) or name.endswith((".whl", ".tar.gz", ".zip")):
        return True
    if "git+" in name:
        return re.search(r"@[0-9a-f]{40}(?:#|\Z)", name) is not None
    if "://" in name:
        return "#sha256=" in name or re.search(r"\d+\.\d+", name) is not None
    return _PINNED.match(name) is not None


def _loose(file: str, line: int, names: list[str], form: str) -> Iterator[Finding]:
    if names:
        reason = f"{_listed(names)} installed without an exact version"
        yield raised("lint/unpinned-package", reason, file=file, line=line, fix=f"write {form}")


def _listed(names: list[str]) -> str:
    shown = ", ".join(printable(name, 40) for name in names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _judge_installs(material: Material, file: str, command: Command) -> Iterator[Finding]:
    kind, _ = installed(command)
    update = command.name in {"apt-get", "apt", "apk"} and "update" in command.words
    fetches = command.name in _FETCHERS and _remote(command)
    clones = command.name == "git" and {"clone", "pull", "fetch"} & set(command.words)
    synced = command.name == "uv" and {"sync", "run"} & set(command.words) and "--offline" not in command.words
    if not (kind or update or fetches or clones or synced):
        return
    weight = Severity.ERROR if material.contract is not None else Severity.WARNING
    reason = f"{command.name} installs or fetches while it judges: a mirror that is down becomes a lost measurement"
    fix = "install in environment/Dockerfile, or ship the files in tests/"
    yield raised("lint/judge-installs", reason, file=file, line=command.line, fix=fix, severity=weight)
