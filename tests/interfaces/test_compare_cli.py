"""`listenpost compare`: over the sandbox, in each format, and how it ends."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import SAMPLE, Here

TWO = ("compare", "Oura", "Whoop", "--depth", "quick")
NAMES = [["Oura"], ["Oura", "OURA"], ["Oura", "hello"], ["a1", "b2", "c3", "d4", "e5", "f6"]]


def test_the_table_comes_first_then_the_words_of_each(here: Here) -> None:
    """What stands in the documentation: no difference that chance would not make, then passages of each."""
    ended = here("compare", "Oura", "Whoop", "--sandbox", env={"LISTENPOST_SOURCES": ""})
    head, _, rest = ended.out.partition("What is said of each")

    assert ended.code == 0, ended.err
    assert head.startswith("Oura and Whoop, compared\n===")
    assert "depth standard, posts of any time." in head
    assert re.search(r"^ +Oura +Whoop$", head, re.M)
    assert re.search(r"^about it +31\+ +37\+$", head, re.M)
    assert re.search(r"^on YouTube +5 +7$", head, re.M)
    assert re.search(r"^temperature +6 of 31 +1 of 37$", head, re.M)
    assert "No difference is marked" in head
    assert re.search(r"^    Oura: “.+\n?.*” \[\d+\]", rest, re.M)
    assert re.search(r"^    Whoop: “", rest, re.M)
    assert re.search(r"^- Oura and Whoop: Six months with Oura on the finger", rest, re.M)
    assert "requests to the sample data, nothing was spent." in rest
    assert "http" not in rest


def test_each_product_is_kept_as_an_analysis(here: Here) -> None:
    """Its report is shown by the id in the table; progress says of which product it is."""
    ended = here(*TWO, "--format", "json")
    kept = re.findall(r"kept as (\w{32})", ended.err)

    assert [product["analysis_id"] for product in ended.json["products"]] == kept
    assert here("reports", "show", kept[1][:8]).out.startswith("What people say about Whoop")
    assert SAMPLE in ended.err
    assert re.search(r"^Whoop: Reddit: \d+ of \d+ results were about it", ended.err, re.M)


def test_a_question_that_compares_runs_the_comparison(here: Here) -> None:
    """With the options of `analyze`; two reports are kept."""
    ended = here("analyze", "Oura or Whoop?", "--depth", "quick")

    assert ended.code == 0, ended.err
    assert ended.out.startswith("Oura and Whoop, compared\n===")
    assert len(re.findall(r"kept as (\w{32})", ended.err)) == 2


@pytest.mark.parametrize("form", ["markdown", "html", "csv", "text"])
def test_every_format_has_the_same_table(here: Here, form: str, tmp_path: Path) -> None:
    """And is written to a file."""
    path = tmp_path / "comparison"
    ended = here(*TWO, "--format", form, "--output", str(path))

    text = path.read_text("utf-8-sig")
    assert (ended.code, ended.out) == (0, "")
    if form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert rows[0] == ["", "Oura", "Whoop"]
        assert {len(row) for row in rows} == {3}
    for name in ("posts found", "about it", "battery"):
        assert name in text


@pytest.mark.parametrize("names", NAMES)
def test_what_cannot_be_compared_is_two(here: Here, names: list[str]) -> None:
    """Nobody is asked, and the message names it."""
    ended = here("compare", *names)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("listenpost: error: ")


def test_every_product_has_its_description_or_none(here: Here) -> None:
    """In their order."""
    ended = here(*TWO, "--about", "a ring", "--about", "a band", "--format", "json")
    assert [product["about"] for product in ended.json["products"]] == ["a ring", "a band"]
    assert here(*TWO, "--about", "a ring").err == ("listenpost: error: `about` has 1 text for 2 products\n")
    assert here(*TWO, "--source", "myspace").code == 2


def test_an_estimate_is_the_sum(here: Here) -> None:
    """Of the bounds for each, and nothing is asked."""
    estimates = [
        here(*words, "--depth", "quick", "--estimate", "--format", "json").json
        for words in (("analyze", "Oura"), ("analyze", "Whoop"), ("compare", "Oura", "Whoop"))
    ]
    first, second, both = (each["maximum"]["upstream_calls"] for each in estimates)
    assert both == first + second
    assert "upstream_calls: " in here(*TWO, "--estimate").out
    assert here(*TWO, "--estimate", "--source", "myspace").code == 2


def test_one_that_nobody_knows_stands_beside_the_other(here: Here) -> None:
    """Too little to compare is 3; the table says which."""
    ended = here("compare", "Oura", "Zorvexolin Q9", "--depth", "quick")

    assert ended.code == 3
    assert re.search(r"^outcome +compared +nothing was about it$", ended.out, re.M)
    assert "Nothing could be compared: posts were counted for fewer than two products." in ended.out
    assert re.search(r"^Zorvexolin Q9: nothing was about it\. ", ended.out, re.M)


def test_when_no_source_could_be_asked_it_is_four(here: Here, upstream: Sandbox) -> None:
    """For any product; the reasons stand below the table."""
    for fault in ("reddit=403html", "youtube=search_quota", "amazon=captcha"):
        upstream.fault(fault)
    words = ("--source", "reddit", "--source", "youtube", "--source", "amazon")
    ended = here(*TWO, *words)

    assert ended.code == 4
    assert re.search(r"^outcome +could not be asked +could not be asked$", ended.out, re.M)
    assert "Oura: could not be asked. Reddit" in " ".join(ended.out.split())


def test_hostile_names_are_words(here: Here) -> None:
    """In a terminal, a page and a table alike."""
    names = ("Oura <script>alert(1)</script>", "=HYPERLINK Whoop \x1b[31m|`*")
    text = here("compare", *names, "--depth", "quick", "--verbose").out
    page = here("compare", *names, "--depth", "quick", "--format", "html").out
    table = here("compare", *names, "--depth", "quick", "--format", "csv").out
    markdown = here("compare", *names, "--depth", "quick", "--format", "markdown").out

    assert "\x1b" not in text
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "'=HYPERLINK" in table
    assert "<script" not in markdown.replace("\\<script", "")


def test_a_narrow_terminal_gets_sentences(here: Here) -> None:
    """Where the columns do not fit."""
    ended = here("compare", "Oura", "Whoop", "Kindle Scribe", "--depth", "quick", env={"COLUMNS": "40"})
    assert re.search(r"^- about it: Oura \d+\+?, Whoop \d+\+?, Kindle\n  Scribe \d+\+?$", ended.out, re.M)
    assert max(map(len, ended.out.splitlines())) <= 40


def test_five_products_have_a_table_too(here: Here) -> None:
    """With shorter cells."""
    five = ("Oura", "Whoop", "Kindle Scribe", "Ember mug", "plaud.ai")
    ended = here("compare", *five, "--depth", "quick", env={"COLUMNS": "80"})
    assert re.search(r"^ +Oura +Whoop +Kindle Scribe +Ember mug +plaud.ai$", ended.out, re.M)
    assert re.search(r"^battery( +\d+/\d+( \(\+\d -\d\))?){5}$", ended.out, re.M)
