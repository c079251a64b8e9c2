"""The documentation says what the code does: generated pages are fresh, commands are real, links lead somewhere."""

import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from harness.errors import ExitCode
from harness.report.data import record_json
from harness.report.record import load
from rsi_anything import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
README = (ROOT / "README.md").read_text("utf-8")


def blocks(text: str, *languages: str) -> list[str]:
    """Return the code blocks of a page in the given languages."""
    return [
        body
        for language, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        if language in languages
    ]


def commands(page: Path) -> list[str]:
    """Return every `rsi` and `make` command of a page's shell blocks, joined over line ends."""
    lines = "\n".join(blocks(page.read_text("utf-8"), "sh")).replace("\\\n", " ").splitlines()
    return [line.split(" #")[0].strip() for line in lines if re.match(r"(rsi|make) ", line)]


def test_generated_pages_are_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for path, text in module.pages().items():
        assert path.read_text("utf-8") == text, f"{path.name} is stale: run `make docs`"


def test_the_exit_codes_of_the_page_are_those_of_the_code() -> None:
    text = (ROOT / "docs/reference/exit-codes.md").read_text("utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == [int(code) for code in ExitCode]


def test_the_first_screen_sells_and_starts() -> None:
    lines = README.splitlines()
    assert lines[0] == "# RSI-Anything"
    sentence = next(line for line in lines[1:] if line)
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")
    picture = next(number for number, line in enumerate(lines, 1) if line.startswith("![") or "<img" in line)
    assert picture <= 10
    shell = next(number for number, line in enumerate(lines, 1) if line.startswith("```sh"))
    first = next(number for number, line in enumerate(lines, 1) if line.startswith("rsi ") or line == "make demo")
    assert shell < first <= 25


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_real(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command in commands(page):
        words = shlex.split(command)
        if words[0] == "make":
            assert all(re.search(rf"^{word}:", makefile, re.MULTILINE) for word in words[1:] if "=" not in word), (
                command
            )
            continue
        ours = words[1 : words.index("--")] if "--" in words else words[1:]
        if {"--help", "--version"} & set(ours):
            continue
        args, extra = cli.build_parser().parse_known_args(ours)
        assert not extra, command
        assert args.command, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
        todo += [(page.parent / link).resolve() for link in links if not link.startswith("http")]
    assert {page.relative_to(ROOT) for page in PAGES} - {page.relative_to(ROOT) for page in seen} == set()


def test_the_json_page_names_every_key(make_run, handed) -> None:
    text = (ROOT / "docs/reference/json.md").read_text("utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", text))
    shown = record_json(load(make_run(handed=[handed(2.0)], refused=["too early"])))
    json.dumps(shown, allow_nan=False)
    parts = [shown, shown["metric"], shown["baseline"], shown["best"], shown["submissions"], shown["refused"]]
    parts += [shown["controls"][0], shown["submission_list"][0], shown["submission_list"][0]["judgings"][0]]
    keys = {key for part in parts for key in part}
    assert keys - documented == set()


def test_the_json_page_names_every_key_of_the_authors_commands(tmp_path: Path, capsys) -> None:
    text = (ROOT / "docs/reference/json.md").read_text("utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", text))
    sample, task = ROOT / "templates/sample", str(tmp_path / "task")
    keys: set[str] = set()
    for argv in (
        ["new", str(sample / "project"), "--answers", str(sample / "answers.toml"), "--out", task],
        ["check", task, "--only", "lint"],
        ["run", task, "--agent", "nop", "--level", "process", "--dry-run"],
    ):
        assert cli.main([*argv, "--json"]) == ExitCode.DONE
        shown = json.loads(capsys.readouterr().out)
        keys |= set(shown)
        for one in [*shown.get("files", []), *shown.get("rungs", [])]:
            keys |= set(one)
        for rung in shown.get("rungs", []):
            keys |= {key for finding in rung["findings"] for key in finding}
    assert keys - documented == set()
