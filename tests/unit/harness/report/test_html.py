"""The report stands alone, may be published, and is not broken by what an agent writes."""

from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.report.html import page
from harness.report.markup import Markup, element, foreign
from harness.report.record import load
from harness.run.journal import Journal
from harness.run.state import Kind

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</bdi></details></main><h1>Best: 0.0</h1>",
    "\u202egnissecorp txet \x1b[31mred\x00",
    "--><!-- ]]> </style></title></svg>",
    "&lt;b&gt; &#60;script&#62;",
]


class Page(HTMLParser):
    """Collects tags, attributes and whether every tag is closed."""

    void = frozenset({"meta", "br", "hr"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_report_says_what_the_run_found(make_run, handed) -> None:
    html = page(load(make_run(handed=[handed(2.2, score=0.93), handed(2.031, score=1.07, feedback="well done")])))
    read = Page(html)
    words = " ".join(read.words)
    assert read.open == []
    for expected in (
        "20 times the noise",
        "Linux namespaces",
        "1" * 64,
        "2" * 64,
        "well done",
        "8 submissions",
        "1.070",
    ):
        assert expected in words
    assert read.tags.count("h1") == 1
    assert read.tags.count("caption") == read.tags.count("table") == 2
    assert ("lang", "en") in read.attributes
    assert ("role", "img") in read.attributes


def test_the_report_needs_nothing_else(make_run, handed) -> None:
    read = Page(page(load(make_run(handed=[handed(2.0)]))))
    assert not {"script", "link", "img", "iframe", "object", "form", "a"} & set(read.tags)
    for name, value in read.attributes:
        assert name not in {"src", "srcset", "href", "action"}, (name, value)
        assert not name.startswith("on")
        assert name != "xlink:href" or value.startswith("#")
        assert name.startswith("xmlns") or "http:" not in value


def test_hostile_words_stay_words(make_run, handed) -> None:
    plain = Page(page(load(make_run("plain", handed=[handed(2.0, message="m", feedback="f") for _ in HOSTILE]))))
    runs = [handed(2.0, message=text, feedback=text, evidence=text) for text in HOSTILE]
    read = Page(page(load(make_run("hostile", handed=runs))))
    assert read.tags == plain.tags
    assert "\x1b" not in " ".join(read.words)
    assert "\u202e" not in " ".join(read.words)
    for text in HOSTILE[:3]:
        assert text in " ".join(read.words)


def test_long_words_are_cut(make_run, handed) -> None:
    html = page(load(make_run(handed=[handed(2.0, message="x" * 2_000_000, feedback="<" * 2_000_000)])))
    assert len(html) < 200_000
    assert "cut; 2,000,000 characters in all" in html


def test_other_languages_pass_unharmed(make_run, handed) -> None:
    words = " ".join(Page(page(load(make_run(handed=[handed(2.0, message="خفضت معدل التعلم — 学習率 ü")])))).words)
    assert "خفضت معدل التعلم — 学習率 ü" in words


def test_nothing_private_is_published(make_run, handed, own_home) -> None:
    told = f"looked at {own_home}/rsi/runs/x and /home/secret-person/projects/tiny-lm/tests"
    folder = make_run(handed=[handed(2.0, message=told, feedback=told, evidence="THE PRIVATE EVIDENCE")])
    html = page(load(folder))
    for secret in ("987654321", "secret-person", str(own_home), str(folder.path), "THE PRIVATE EVIDENCE"):
        assert secret not in html


def test_a_submission_judged_again_shows_its_lineage(make_run, handed) -> None:
    folder = make_run(handed=[handed(2.0, score=1.1)])
    found = {"metric": 2.3, "score": 0.8, "values": [2.3], "message": "mended", "evidence": "", "tests": "9" * 64}
    with Journal.open(folder.journal) as journal:
        journal.append(Kind.REJUDGED, number=1, verdict="scored", reason="judge mended", **found)
    record = load(folder)
    words = " ".join(Page(page(record)).words)
    assert "Judging 1: scored, metric 2.0000, score 1.100" in words
    assert "Judging 2: scored, metric 2.3000, score 0.800, judged again by the operator" in words
    assert "scored (again)" in words


def test_empty_and_plain_runs_have_a_report(make_run, handed) -> None:
    for index, options in enumerate(({"handed": []}, {"contract": None, "control": None, "handed": [handed(0.4)]})):
        assert Page(page(load(make_run(f"run-{index}", **options)))).open == []


def test_the_same_journal_gives_the_same_bytes(make_run, handed) -> None:
    record = load(make_run(handed=[handed(2.0), handed(None, "violation")]))
    assert page(record) == page(record)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200))
def test_any_text_is_one_text_node(text) -> None:
    read = Page(element("p", foreign(text), title=text))
    assert read.tags == ["p", "bdi"]
    assert isinstance(element("p", text), Markup)
    ET.fromstring(element("p", text).encode("utf-8", "replace"))
