"""Session files: whole at any moment, locked, and found again."""

import os
from pathlib import Path

import pytest

from harness import paths
from harness.errors import InputError, RefusedError, RsiError
from rsi_anything.contract.draft import Draft, Who
from rsi_anything.interview.session import about, create, names, new_setting, resume, slug


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RSI_HOME", str(tmp_path / "home"))
    return tmp_path


def draft(**values) -> Draft:
    made = Draft()
    for name, value in values.items():
        made = made.answer(name.replace("__", "."), value, Who.PERSON)
    return made


def test_saved_answers_come_back() -> None:
    session = create("My Project!", new_setting("/p", "/out"), draft(source__title="题 🧪 שלום"))
    assert session.name == "my-project"
    session.save(draft(source__title="题 🧪 שלום", source__name="x"), "source.identity")
    session.close()
    again = resume("my-project")
    assert again.draft == draft(source__title="题 🧪 שלום", source__name="x")
    assert again.at == "source.identity"
    assert again.setting.out == "/out"
    again.close()


def test_names_do_not_collide_and_the_last_comes_first() -> None:
    made = [create("a", new_setting("/p", None), Draft()) for _ in range(3)]
    assert [session.name for session in made] == ["a", "a-2", "a-3"]
    for position, session in enumerate(made):
        os.utime(session.folder / "session.json", (1000 + position, 1000 + position))
        session.close()
    assert names() == ["a-3", "a-2", "a"]
    last = resume("a-3")
    last.discard()
    assert names() == ["a-2", "a"]


def test_open_elsewhere_is_refused() -> None:
    session = create("a", new_setting("/p", None), Draft())
    with pytest.raises(RefusedError, match="another terminal"):
        resume("a")
    session.close()
    resume("a").close()


@pytest.mark.parametrize("name", ["../a", "", "b", "/etc"])
def test_unknown_names(name: str) -> None:
    create("a-session", new_setting("/p", None), Draft()).close()
    with pytest.raises(InputError) as caught:
        resume(name)
    assert "a-session" in caught.value.next_step


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2}', '{"version": 1}', "\0", '{"version":1,"answers":3}'])
def test_broken_file_is_an_error_and_not_a_traceback(text: str) -> None:
    session = create("a", new_setting("/p", None), Draft())
    session.close()
    (session.folder / "session.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        resume("a")
    (session.folder / "session.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError):  # and the lock was let go
        resume("a")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failed_write_keeps_the_old_answers(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = create("a", new_setting("/p", None), draft(source__name="old"))

    def fails(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fails)
    with pytest.raises(RsiError, match="No space left"):
        session.save(draft(source__name="new"), "")
    session.close()
    again = resume("a")
    assert again.draft == draft(source__name="old")
    again.close()


def test_unfinished_sessions_about_a_project_are_found() -> None:
    for name, project in (("a", "/p"), ("b", "/q"), ("c", "/p")):
        create(name, new_setting(project, None), Draft()).close()
    (paths.sessions() / "c" / "session.json").write_text("torn", encoding="utf-8")
    assert about("/p") == ["a"]


def test_slugs() -> None:
    assert slug("Nano GPT_2") == "nano-gpt-2"
    assert slug("项目") == "task"
    assert len(slug("x" * 200)) <= 50
    assert paths.sessions().name == "sessions"
