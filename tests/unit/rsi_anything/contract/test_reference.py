"""The documentation of answers is the catalogue's own."""

from pathlib import Path

from rsi_anything.contract.fields import CATALOGUE
from rsi_anything.contract.reference import answers_reference

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "answers.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == answers_reference()


def test_every_answer_is_on_it() -> None:
    page = answers_reference()
    for field in CATALOGUE:
        assert f"**`{field.id}`**" in page
