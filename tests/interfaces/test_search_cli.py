"""`listenpost search` over a real database."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.features.archive.search_values import ArchiveAnswer, Retrieval
from api.interfaces.cli.archive_commands import _print_hits
from tests.interfaces.command import Here
from tests.interfaces.stored_history import keep, url
from tests.store.made import ODD, item, report

__all__ = ["url"]
TIPS = "It leaks when the lid tips over in a bag."


def lid(number: int, **fields: Any) -> dict[str, Any]:
    """A post about a lid."""
    words = {"title": f"Ember mug lid, part {number}", "body": TIPS, "comments": []}
    return item(f"reddit:t3_{number}", **words | fields)


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is real."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")


def test_a_hit_has_its_words_its_place_and_its_link(here: Here, url: str, live: None) -> None:
    """As text, and as the JSON of the HTTP door; code 0."""
    keep(url, [report("r1", lid(1), item("reddit:t3_9", title="Notion is slow", body="So slow."))])

    text = here("search", "does the Ember lid leak?")
    as_json = here("search", "does the Ember lid leak?", "--format", "json")

    assert text.code == 0, text.err
    assert "1 stored entry may answer this." in text.out
    assert "[E1] Ember mug lid, part 1" in text.out
    assert "Reddit, 2026-11-20, relevance 100% (mugs)" in text.out
    assert f"“{TIPS}”" in text.out
    assert "https://example.org/t3_1" in text.out
    answer = json.loads(as_json.out)
    assert [hit["key"] for hit in answer["hits"]] == ["reddit:t3_1"]
    assert answer["hits"][0]["passage"] == TIPS
    assert answer["retrieval"]["shown"] == 1
    assert answer["sample"] is False


def test_a_search_that_did_not_compare_all_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Without vectors, or while they are still being read."""
    for retrieval in (Retrieval(words_only=True), Retrieval(unread=1), Retrieval(unread=1200)):
        _print_hits(ArchiveAnswer(query="q", text="t", guidance="", hits=(), retrieval=retrieval), 8)

    told = capsys.readouterr().err
    assert "found by words alone" in told
    assert "1 entry not compared by meaning yet" in told
    assert "1,200 entries not compared by meaning yet" in told


def test_made_up_and_heard_are_never_searched_together(here: Here, url: str, live: None) -> None:
    """What the sandbox said is found in the sandbox alone, is marked, and has no link."""
    keep(url, [report("r1", lid(1), sample=True)])

    heard = here("search", "does the Ember lid leak?")
    made_up = here("search", "does the Ember lid leak?", "--sandbox")

    assert heard.code == 3
    assert "No real post is stored yet." in heard.out
    assert 'listenpost analyze "does the Ember lid leak?"' in heard.err
    assert made_up.code == 0
    assert "SAMPLE DATA" in made_up.out
    assert "https://" not in made_up.out


def test_what_is_too_little_gets_guidance(here: Here, url: str, live: None) -> None:
    """Small talk; code 3 and nothing on stdout. One word is a search, and none of it is said."""
    keep(url, [report("r1", lid(1))])

    hello, none, tips = [here("search", text) for text in ("hello", "battery", "tips")]

    assert (hello.code, hello.out) == (3, "")
    assert "for example" in hello.err
    assert none.code == 3
    assert "None of 1 stored entry holds `battery`." in none.out
    assert tips.code == 0


def test_filters_narrow(here: Here, url: str, live: None) -> None:
    """By place, time, product and count; what does not exist is named."""
    later = lid(2, created_at="2026-11-27T10:00:00Z")
    # scores are stretched over what was found: the last of two entries would have none
    other = [item(f"reddit:t3_x{n}", title=f"Notion {n}", body="So slow.") for n in range(9)]
    keep(url, [report("r1", lid(1), *other), report("r2", later, query="yeti")])

    def found(*options: str) -> set[str]:
        ended = here("search", "does the Ember lid leak?", "--format", "json", *options)
        return {hit["key"] for hit in json.loads(ended.out)["hits"]}

    assert found() == {"reddit:t3_1", "reddit:t3_2"}
    assert len(found("--k", "1")) == 1
    assert found("--source", "youtube") == set()
    assert found("--since", "2026-11-25") == {"reddit:t3_2"}
    assert found("--about", "Yeti") == {"reddit:t3_2"}
    assert found("--kept") == {"reddit:t3_1", "reddit:t3_2"}
    assert found("--dropped") == set()
    for option, value, words in (
        ("--source", "nope", "no source `nope`"),
        ("--language", "xx", "`xx` is no code of a language"),
    ):
        unknown = here("search", "does the Ember lid leak?", option, value)
        assert unknown.code == 2
        assert words in unknown.err


def test_a_language_is_told_by_its_small_words(here: Here, url: str, live: None) -> None:
    """The German post alone; every language that a short text may be in counts."""
    german = lid(2, body="Der Deckel ist nicht dicht und das ist mir zu teuer für die Tasse.")
    other = [item(f"reddit:t3_x{n}", title=f"Notion {n}", body="So slow.") for n in range(9)]
    keep(url, [report("r1", lid(1), german, *other)])

    ended = here("search", "Ember mug lid", "--language", "de", "--format", "json")

    assert {hit["key"] for hit in json.loads(ended.out)["hits"]} == {"reddit:t3_2"}


def test_odd_text_is_found_and_shown(here: Here, url: str, live: None) -> None:
    """Two Chinese letters are enough; nothing of a post is markup or a control sign."""
    keep(url, [report("r1", lid(1, title=ODD, body="小米手环很好 \x1b[31mred\x1b[0m"))])

    ended = here("search", "小米")

    assert ended.code == 0, ended.err
    assert "小米手环很好" in ended.out
    assert "\x1b" not in ended.out
