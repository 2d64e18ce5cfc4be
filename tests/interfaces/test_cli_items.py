"""`analyze --items`: a person's own items through the same gate and report."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import SAMPLE, Here, process

WORDS = ("analyze", "plaud.ai", "--items", "own.jsonl")
MINE: list[dict[str, Any]] = [
    {
        "title": "Plaud Note after a month", "body": "The Plaud recorder makes great transcripts.",
        "source": "reddit", "key": "reddit:t3_one", "url": "https://example.org/1",
        "created_at": "2026-11-02T10:00:00Z", "place": "r/gadgets", "engagement": {"votes": 7},
        "comments": ["my plaud battery lasts a week", {"id": "c2", "body": "same here"}],
    },
    {"title": "plaud.ai is too dear", "content": "I hate my recorder's subscription.", "id": 7},
    {"title": "Plaud NotePin review", "description": "Plaud's pin clips well.", "source": "forum"},
    {"title": "plaud note in court", "body": "plaud recordings were allowed", "source": "my blog"},
    {"title": "Sourdough at home", "body": "Flour, water, salt and time."},
]  # fmt: skip


def own(*rows: Any) -> None:
    """Write the file."""
    Path("own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_without_a_key_nothing_is_asked_and_it_says_so(here: Here) -> None:
    """The local judge, themes, no sample data; every citation is one of the items."""
    own(*MINE)
    ended = here(*WORDS, "--format", "json")

    report = ended.json
    keys = {item["key"]: item for item in report["items"]}
    assert ended.code == 0
    assert SAMPLE not in ended.err
    assert report["sample"] is False
    assert report["grading"] == "off"
    assert report["cost"] == {"usd": 0.0, "tokens": 0, "upstream_calls": 0}
    assert report["sources"]["items"]["gate"]["model"].startswith("local")
    assert any(note.startswith("no model wrote this") for note in report["quality_notes"])
    assert report["summary"].startswith("One person each said: “")
    assert {key for found in report["findings"] for key in found["cites"]} <= set(keys)
    assert any(one["title"] == "Sourdough at home" for one in report["dropped"])


def test_items_keep_their_names_and_keys(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that says it is from reddit stays so, and is counted among the person's items."""
    monkeypatch.setenv("LISTENPOST_JUDGE", "openai")  # without a key: everything is kept
    own(*MINE)
    report = here(*WORDS, "--format", "json").json

    items = {item["key"]: item for item in report["items"]}
    assert set(items) >= {"reddit:t3_one", "items:7"}
    assert items["reddit:t3_one"]["source"] == "reddit"
    assert items["reddit:t3_one"]["engagement"] == {"votes": 7}
    assert [one["id"] for one in items["reddit:t3_one"]["comments"]] == ["1", "c2"]
    assert {item["source"] for item in items.values()} == {"reddit", "items", "forum", "my blog"}
    assert list(report["sources"]) == ["items"]
    assert report["figures"]["sources"]["items"]["in_report"] == len(items)
    assert report["coverage"].startswith("Your items: kept 5 of 5")


def test_a_person_reads_who_judged(here: Here) -> None:
    """The terminal names the judge, the items and that no model wrote."""
    own(*MINE)
    ended = here(*WORDS)

    assert "The judge on this machine (local" in ended.out
    assert "No model wrote this" in ended.out
    assert "nothing was spent" in ended.out
    assert "Plaud Note after a month - Reddit (r/gadgets), 2026-11-02" in ended.out


def test_with_a_key_the_model_judges_and_writes(here: Here, upstream: Sandbox) -> None:
    """Its answer, graded; no source is asked, not even to look something up."""
    own(*MINE)
    ended = here(*WORDS, "--format", "json")

    report = ended.json
    keys = {item["key"] for item in report["items"]}
    assert ended.code == 0
    assert report["grading"] == "on"
    assert report["sources"]["items"]["gate"]["model"] == "gpt-4o-mini"
    assert upstream.requests("openai", "judge")
    assert upstream.requests("openai", "agent")
    assert not [one for one in upstream.log if one.upstream not in {"openai", "langfuse"}]
    assert report["findings"]
    assert {key for found in report["findings"] for key in found["cites"]} <= keys


def test_verbose_numbers_by_the_items_own_sources(here: Here, upstream: Sandbox) -> None:
    """A grade's line begins with where the item is from."""
    own(*MINE)
    ended = here(*WORDS, "--verbose")

    assert "\nreddit 1 (r/gadgets): score " in ended.err
    assert "\nforum 1: score " in ended.err


def test_sandbox_by_name_keeps_the_key_unspent(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """`LISTENPOST_MODE=sandbox`: no model at all, and what a person brings is no sample."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    own(*MINE)
    ended = here(*WORDS, "--format", "json")

    assert ended.json["sample"] is False
    assert ended.json["grading"] == "off"
    assert ended.json["cost"]["usd"] == 0


def test_nothing_about_it_is_three(here: Here) -> None:
    """All judged, none kept."""
    own(MINE[-1], {"title": "Rye bread", "body": "Rye and caraway."})
    ended = here(*WORDS, "--format", "json")

    assert ended.code == 3
    assert ended.json["sources"]["items"]["outcome"] == "irrelevant"
    assert "those that you handed in" in ended.json["explanation_text"]
    assert "forum" not in ended.json["explanation_text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"title": "a"}\n\n{"title": \n', "`own.jsonl`: line 3 is no JSON object"),
        ("[1]\n", "`own.jsonl`: line 1 begins a JSON array"),
        ('"text"', "`own.jsonl`: line 1 is no JSON object"),
        ("[" * 100_000, "`own.jsonl`: line 1 begins a JSON array"),
        ("\n \n", "`own.jsonl`: there is no item"),
        ("", "`own.jsonl`: there is no item"),
    ],
)
def test_a_wrong_line_is_named(here: Here, text: str, said: str) -> None:
    """By its number in the file, before anything is asked."""
    Path("own.jsonl").write_text(text)
    ended = here(*WORDS)

    assert (ended.code, ended.out) == (2, "")
    assert f"listenpost: error: {said}; write one" in ended.err


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"Review": "plaud"}, "line 2: no text in a field that is known; its fields are `Review`"),
        ({"kind": "Listing", "data": {"children": []}}, "jq -c '.data.children[].data'"),
        ({"kind": "youtube#searchListResponse", "items": [{}]}, "jq -c '.items[].snippet'"),
        ([MINE[0], MINE[1]], "line 2 begins a JSON array; write one object per line, with `jq"),
    ],
)
def test_what_nobody_can_read_is_refused(here: Here, row: Any, words: str) -> None:
    """Named and with a way out, never one blank item."""
    own(MINE[0], row)
    ended = here(*WORDS)

    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


def test_times_that_are_lost_are_noted(here: Here) -> None:
    """Undated in the JSON and in the timeline, and counted in a note."""
    times = (0, -5, "0001-01-01", 4_070_908_800_000, "soon")
    own(*MINE[:3], *({**MINE[0], "key": f"items:{at}", "created_at": at} for at in times))
    report = here(*WORDS, "--format", "json").json

    noted = "5 times could not be read or cannot be true, and counted as undated"
    assert noted in report["sources"]["items"]["notes"]
    created = {item["key"]: item["created_at"] for item in report["items"]}
    assert [at for key, at in created.items() if key.startswith("items:")] == [None] * len(
        [key for key in created if key.startswith("items:")]
    )


def test_a_folder_is_no_file(here: Here) -> None:
    """It is told like a file that is not there."""
    Path("own.jsonl").mkdir()

    ended = here(*WORDS)
    assert ended.code == 2
    assert "`own.jsonl` cannot be read: Is a directory" in ended.err


def test_a_device_is_no_file(here: Here) -> None:
    """It may never end."""
    ended = here("analyze", "plaud.ai", "--items", os.devnull)

    assert ended.code == 2
    assert f"`{os.devnull}`: is neither file nor pipe; name a file of at most 64 MB" in ended.err


def test_a_file_has_a_largest_size(here: Here) -> None:
    """Beyond it the file is not parsed."""
    own(MINE[0])
    os.truncate("own.jsonl", 64_000_001)

    ended = here(*WORDS)
    assert ended.code == 2
    assert "`own.jsonl`: holds more than 64 MB; split it" in ended.err


def test_a_pipe_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines come from another command as well as from a file."""
    monkeypatch.chdir(tmp_path)
    ended = process("analyze", "plaud.ai", "--items", "/dev/stdin", stdin=b"{}\n7\n")

    assert ended.code == 2
    assert "`/dev/stdin`: line 2 is no JSON object" in ended.err


def test_other_sources_are_not_there(here: Here) -> None:
    """With own items these are the only source."""
    own(*MINE)
    ended = here(*WORDS, "--source", "reddit")

    assert ended.code == 2
    assert "there is no source `reddit`; there are `items`" in ended.err


def test_the_window_leaves_old_items_out(here: Here) -> None:
    """`--since` holds for dated items; undated ones stay."""
    own({**MINE[0], "created_at": "2001-01-01"}, *MINE[1:4])
    report = here(*WORDS, "--since", "year", "--format", "json").json

    assert report["sources"]["items"]["fetched"] == 3
    assert "reddit:t3_one" not in {item["key"] for item in report["items"]}


def test_what_no_json_can_hold_does_not_come_out(here: Here) -> None:
    """NaN, endless numbers, lone surrogates and escapes go in; one proper object comes out."""
    Path("own.jsonl").write_text(
        '{"title": "plaud \\ud83d \\u001b[31mred", "body": "plaud note", '
        '"engagement": {"a": NaN, "b": 1e999, "c": 2}, "created_at": NaN}\n'
        '{"title": "plaud pin", "body": "plaud\\u2028note", "created_at": 1e300}\n'
    )
    ended = here(*WORDS, "--format", "json")

    items = {item["title"]: item for item in ended.json["items"]}
    assert set(items) == {"plaud \ufffd red", "plaud pin"}
    assert items["plaud \ufffd red"]["engagement"] == {"a": None, "b": None, "c": 2}
    assert "\x1b" not in ended.out


def test_a_table_is_read_as_import_reads_it(here: Here) -> None:
    """A column of reviews is known, stars are the tone, and others are named with `--map`."""
    rows = [f"u{at % 3},The Plaud Note number {at} keeps its charge.,{1 + at % 5},Plaud Note" for at in range(6)]
    Path("known.csv").write_text("\n".join(["reviewer,reviews.text,Rating,Product", *rows]))
    Path("named.csv").write_text("\n".join(["who,said,grade,thing", *rows]))
    mapped = ("--map", "body=said,rating=grade,product=thing,author=who")
    known = here("analyze", "Plaud Note", "--items", "known.csv", "--format", "json").json
    named = here("analyze", "Plaud Note", "--items", "named.csv", *mapped, "--format", "json").json
    guessed = here("analyze", "Plaud Note", "--items", "named.csv", "--format", "json").json
    Path("numbers.csv").write_text("who,grade\nu1,4\nu2,5\n")
    lost = here("analyze", "Plaud Note", "--items", "numbers.csv")
    alone = here("analyze", "Plaud Note", *mapped)

    for report in (known, named):
        first = min(report["items"], key=lambda item: item["body"])
        assert first["engagement"] == {"stars": 1}
        assert first["place"] == "Plaud Note"
        felt = report["figures"]["sentiment"]
        assert felt["n"] == report["figures"]["authors"]["people"] == 3
        assert felt["n"] + felt["repeated"] == len(report["items"]) == 6
    assert len(guessed["items"]) == 6
    assert "no column has a known name for a text; `said` is read, as it holds sentences" in str(guessed["sources"])
    assert lost.code == alone.code == 2
    assert "has no column for a text; say it with `--map body=COLUMN`: `who`, `grade`" in lost.err
    assert "it belongs to `--items FILE`" in alone.err


def test_a_post_without_a_title_is_called_by_its_first_words(here: Here) -> None:
    """In the list of what is cited."""
    own(*({"body": f"My Plaud Note keeps its charge for {at} weeks."} for at in range(2, 5)))

    assert (
        "] “My Plaud Note keeps its charge for 2 weeks.” - Your items" in here("analyze", "Plaud Note", *WORDS[2:]).out
    )


def test_ratings_of_another_scale_are_no_stars(here: Here) -> None:
    """Of a table or of JSON lines: one value above five tells that all are on another scale."""
    rows = [{"body": f"The Plaud Note number {at} works.", "rating": rating} for at, rating in enumerate((4, 9, 3))]
    own(*rows)
    Path("ten.csv").write_text("\n".join(["body,rating", *(f"{row['body']},{row['rating']}" for row in rows)]))
    for name in ("own.jsonl", "ten.csv"):
        report = here("analyze", "Plaud Note", "--items", name, "--format", "json").json
        assert [item["engagement"] for item in report["items"]] == [{}] * 3
