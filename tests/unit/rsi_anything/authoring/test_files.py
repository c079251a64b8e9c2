"""Which files of a project come along, and which are refused."""

import os
from pathlib import Path

import pytest

from harness.errors import InputError
from rsi_anything.authoring import files
from rsi_anything.authoring.files import project_files


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in (
        "train.py",
        "src/model.py",
        "data/träin.txt",
        "LICENSE",
        "NOTICE.md",
        ".git/config",
        "src/__pycache__/model.cpython-311.pyc",
        "src/old.pyc",
        ".env",
        ".gitignore",
        ".gitattributes",
        "venv/lib/x.py",
        "node_modules/a/b.js",
        "x.egg-info/PKG-INFO",
        ".github/workflows/ci.yml",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path, encoding="utf-8")
    (root / "train.py").chmod(0o755)
    return root


def test_histories_caches_and_secrets_stay_out(project: Path) -> None:
    found = project_files(project, ())
    assert list(found) == [
        ".github/workflows/ci.yml",
        "LICENSE",
        "NOTICE.md",
        "data/träin.txt",
        "src/model.py",
        "train.py",
    ]
    assert found["train.py"].mode == 0o755
    assert found["src/model.py"].mode == 0o644
    assert found["src/model.py"].data == b"src/model.py"


def test_what_is_excluded_stays_out_but_never_the_licence(project: Path) -> None:
    found = project_files(project, ("*", "data/**", ".github/**"))
    assert list(found) == ["LICENSE", "NOTICE.md", "src/model.py"]


def test_an_excluded_folder_takes_what_is_in_it(project: Path) -> None:
    assert "src/model.py" not in project_files(project, ("src",))


def test_links_within_the_project_become_what_they_lead_to(project: Path) -> None:
    (project / "again.py").symlink_to("train.py")
    (project / "lib").symlink_to("src")
    found = project_files(project, ())
    assert found["again.py"] == found["train.py"]
    assert found["lib/model.py"] == found["src/model.py"]


@pytest.mark.parametrize(
    ("link", "target", "words"),
    [
        ("out", "../secret", "leaves the project"),
        ("abs", "/etc/passwd", "leaves the project"),
        ("src/up", "..", "above itself"),
        ("gone", "nowhere", "leads nowhere"),
        ("round", "round", "leads nowhere"),
        ("config", ".git/config", "does not come along"),
    ],
)
def test_other_links_are_refused_by_name(project: Path, link: str, target: str, words: str) -> None:
    (project.parent / "secret").write_text("x", encoding="utf-8")
    (project / link).symlink_to(target)
    with pytest.raises(InputError, match=words) as caught:
        project_files(project, ())
    assert caught.value.where == link
    assert link in caught.value.next_step
    assert link not in project_files(project, (link,))


def test_what_is_no_file_is_refused(project: Path) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(InputError, match="neither a file nor a folder: pipe"):
        project_files(project, ())


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe", b"back\\slash", b"\xe2\x80\xae"])
def test_names_that_others_cannot_read_are_refused(project: Path, name: bytes) -> None:
    Path(os.fsdecode(bytes(project) + b"/" + name)).write_bytes(b"x")
    with pytest.raises(InputError, match="file name"):
        project_files(project, ())


def test_too_much_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 40)
    with pytest.raises(InputError, match="holds more than"):
        project_files(project, ())
    with pytest.raises(InputError, match="no such project folder"):
        project_files(project / "nowhere", ())
