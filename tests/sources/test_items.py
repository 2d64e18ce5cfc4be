"""A person's own items: any JSON lines become items, and nothing is lost in silence."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.domain import FetchPlan
from api.core.items import Item
from api.errors import UsageError
from api.pipeline.gate.caller_items import BODY_FIELDS, DATE_FIELDS
from api.sources.own_items import ItemsSource, OwnItems, item_of, own_items_of, read_items, read_lines

NOON = datetime(2023, 1, 15, 12, 34, 56, tzinfo=UTC)


def own(*rows: dict[str, Any]) -> OwnItems:
    """What is read of these objects."""
    return read_items("\n".join(json.dumps(row) for row in rows).encode())


def read(*rows: dict[str, Any]) -> tuple[Item, ...]:
    """The items of them."""
    return own(*rows).items


def test_every_field_is_read() -> None:
    """
    Texts, address, date, measures, place, comments; the author's name does not stay.
    """
    (item,) = read(
        {
            "id": "a1", "source": "forum", "title": " A ", "body": "B", "url": "https://a.example/",
            "author": "Jo Doe", "created_at": 1_700_000_000, "engagement": {"likes": 3, "x": None},
            "place": "board", "comments": [
                "first", {"id": "z", "text": "second", "author": "Jo Doe", "engagement": {"up": 1}},
            ],
        }
    )  # fmt: skip

    assert (item.key, item.id, item.source) == ("forum:a1", "a1", "forum")
    assert (item.title, item.body, item.url, item.place) == (
        "A",
        "B",
        "https://a.example/",
        "board",
    )
    assert item.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert item.engagement == {"likes": 3, "x": None}
    assert [(said.id, said.body) for said in item.comments] == [("1", "first"), ("z", "second")]
    assert item.author is not None
    assert item.author == item.comments[1].author
    assert "Doe" not in item.author


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        ({"body": "b", "content": "c"}, "b"),
        ({"body": "", "content": "c"}, "c"),
        ({"body": None, "description": "d"}, "d"),
        ({"content": 5}, "5"),
        ({"body": ["x", "y"]}, "x\n\ny"),
        ({}, ""),
        *(({name: "b"}, "b") for name in BODY_FIELDS),
    ],
)
def test_the_body_has_several_names(fields: dict[str, Any], body: str) -> None:
    """The first that holds text."""
    assert read({"title": "t", **fields})[0].body == body


def test_a_summary_is_the_title_of_a_review() -> None:
    """As in Amazon's lists of reviews; alone it is the text."""
    items = read({"reviewText": "It leaks.", "summary": "One star"}, {"summary": "It leaks."})

    assert [(item.title, item.body) for item in items] == [
        ("One star", "It leaks."), ("", "It leaks."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"Review": "x", "stars": 5}, "`Review`, `stars`, known are `title`, `body`, "),
        ({}, "its fields are none, known"),
        ({"kind": "Listing", "data": {"children": []}}, "`jq -c '.data.children[].data'`"),
        ({"kind": "youtube#searchListResponse", "items": [{}]}, "`jq -c '.items[].snippet'`"),
        ({"kind": "youtube#video", "snippet": {"title": "x"}}, "`jq -c .snippet`"),
        ({"a" * 99: 1, **{f"n{n}": n for n in range(20)}}, f"`{'a' * 40}`, `n0`, "),
        ({f"n{n}": n for n in range(20)}, "`n11` and 8 more, known are "),
    ],
)
def test_what_nobody_can_read_is_refused(fields: dict[str, Any], words: str) -> None:
    """With its line, the fields it has and the names that are known, never as a blank item."""
    with pytest.raises(UsageError) as refusal:
        read({"text": "fine"}, fields)

    assert str(refusal.value).startswith("line 2: no text in a field that is known; its fields are")
    assert words in str(refusal.value)
    assert all(f"`{name}`" in str(refusal.value) for name in ("selftext", "reviewText", "message"))


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("title", True, "text, a number or a list of texts, not true"),
        ("content", {"rendered": "x"}, "text, a number or a list of texts, not an object"),
        ("body", ["x", 5], "text, a number or a list of texts, and holds a number"),
        ("id", ["a1"], "text or a number, not a list"),
        ("source", {"name": "forum"}, "text or a number, not an object"),
        ("author", False, "text or a number, not false"),
        ("url", 5, "text, not a number"),
        ("created_at", True, "text or a number, not true"),
        ("date", ["2023"], "text or a number, not a list"),
        ("engagement", 5, "an object of numbers, not a number"),
        ("engagement", {"votes": 3, "stars": "5"}, "an object of numbers, and holds text"),
        ("comments", 12, "a list of texts and objects, not a number"),
        ("comments", ["fine", True], "a list of texts and objects, and holds true"),
    ],
)
def test_a_field_that_holds_what_it_cannot_is_named(field: str, value: Any, words: str) -> None:
    """By its line, or its place in a program's list; it would be lost, or become other words."""
    wrong = {"text": "t", field: value}
    with pytest.raises(UsageError) as in_a_file:
        read({"text": "fine"}, wrong)
    with pytest.raises(UsageError) as in_a_list:
        own_items_of([wrong])

    assert str(in_a_file.value) == f"line 2: `{field}` must be {words}"
    assert str(in_a_list.value) == f"`items[0]`: `{field}` must be {words}"


def test_a_comment_that_nobody_can_read_is_named() -> None:
    """By its own place, in a file and in a program's list, not by that of its item."""
    wrong: dict[str, Any] = {"title": "t", "comments": ["fine", {"data": "x"}]}
    with pytest.raises(UsageError, match=r"^line 1, `comments\[1\]`: no text .* are `data`"):
        read(wrong)
    with pytest.raises(UsageError, match=r"^`items\[1\]\.comments\[1\]`: no text .* are `data`"):
        own_items_of([{"title": "t"}, wrong])
    wrong["comments"] = [{"text": "x", "url": 5}]
    with pytest.raises(UsageError, match=r"^line 1, `comments\[0\]`: `url` must be text, not a"):
        read(wrong)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"title": "[deleted by user]", "selftext": "[removed]"}, "title and text were removed"),
        ({"title": "[flagged]", "text": "[dead]"}, "title and text were removed"),
        ({"text": "*Permanently Deleted*"}, "title and text were removed"),
        ({"text": "*deleted by creator*"}, "title and text were removed"),
        ({"text": "(post deleted by author)"}, "title and text were removed"),
        ({"text": "(my phone was deleted by the author)"}, ""),
        ({"title": "\u200b\u2060", "text": "&#x200B;"}, "no title and no text that can be seen"),
        ({"title": "Weekly mugs", "author": "AutoModerator"}, "written by a bot"),
        ({"title": "Mugs", "author": "sneakpeekbot"}, "written by a bot"),
        ({"title": "Mugs", "author": "Talbot"}, ""),
        ({"title": "[deleted by user]", "selftext": "It leaks."}, ""),
    ],
)
def test_nobodys_opinion_says_why(fields: dict[str, Any], why: str) -> None:
    """As on Reddit, whose answers people hand in, too."""
    assert read(fields)[0].unfit == why


def test_comments_that_say_nothing_are_left_out() -> None:
    """Pictures, links, what is removed or cannot be seen, and bots; the others keep their ids."""
    said = [
        "![gif](giphy|abc)", "https://a.example/", "[removed]", "&#x200B;", "It leaks.",
        {"body": "I am a bot", "author": "RemindMeBot"}, "\u2764",
    ]  # fmt: skip
    (item,) = read({"title": "Mug", "comments": said})

    assert [(comment.id, comment.body) for comment in item.comments] == [
        ("5", "It leaks."), ("7", "\u2764"),
    ]  # fmt: skip


def test_a_key_of_its_own_wins() -> None:
    """
    Else source and id, else a name made of line and text, the same each time.
    """
    rows = ({"key": "reddit:t3_x", "id": "x", "title": "a"}, {"id": 7, "title": "a"},
            {"title": "a"}, {"title": "a"})  # fmt: skip
    keys = [item.key for item in read(*rows)]

    assert keys[:2] == ["reddit:t3_x", "items:7"]
    assert keys[2] != keys[3]
    assert keys == [item.key for item in read(*rows)]


@pytest.mark.parametrize(
    ("given_time", "time"),
    [
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05+03:00", datetime(2026, 1, 2, 0, 4, 5, tzinfo=UTC)),
        (1_673_786_096_000, NOON),
        ("1673786096", NOON),
        ("1673786096000", NOON),
        ("1673786096.0", NOON),
        ("2023-01-15 12:34:56", NOON),
        ("2023-01-15 12:34:56 UTC", NOON),
        ("2023-01-15 12:34:56 gmt", NOON),
        ("Sun, 15 Jan 2023 13:34:56 +0100", NOON),
        ("Sun, 15 Jan 2023 12:34:56 -0000", NOON),
        ("09 4, 2015", datetime(2015, 9, 4, tzinfo=UTC)),
        ("September 4, 2015", datetime(2015, 9, 4, tzinfo=UTC)),
        ("2015/09/04", datetime(2015, 9, 4, tzinfo=UTC)),
        ("20150904", datetime(2015, 9, 4, tzinfo=UTC)),
        (0, None),
        ("0", None),
        (-1_673_786_096, None),
        ("1970-01-01", None),
        ("0001-01-01", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("2099-01-01", None),
        (4_070_908_800_000, None),
        ("yesterday", None),
        ("2023", None),
        ("2023-01-15" + " " * 9 + "x" * 99, None),
        ("1" * 16, None),
    ],
)
def test_times_are_utc_or_nothing(given_time: Any, time: datetime | None) -> None:
    """What cannot be read or cannot be true is undated with a note, never an error."""
    handed = own({"title": "t", "created_at": given_time})

    assert handed.items[0].created_at == time
    assert bool(handed.notes) == (time is None)


@pytest.mark.parametrize("name", DATE_FIELDS)
def test_a_time_has_several_names(name: str) -> None:
    """Those of the sites; nothing said is no flaw."""
    handed = own({"title": "t", "created_at": None, name: "2023-01-15T12:34:56Z"})

    assert (handed.items[0].created_at, handed.notes) == (NOON, ())


async def test_times_that_are_lost_are_counted() -> None:
    """Those of comments, too; the note is the batch's."""
    handed = own(
        {"title": "a", "created_at": "0001-01-01"}, {"title": "b", "created_at": ""},
        {"title": "c", "date": "soon", "comments": ["x", {"text": "y", "created_utc": 0}]},
    )  # fmt: skip
    batch = await ItemsSource(handed).fetch(FetchPlan("x", 5))

    assert batch.notes == ("3 times could not be read or cannot be true, and counted as undated",)
    assert [item.created_at for item in batch.items] == [None] * 3


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1e16", "null"])
def test_what_is_no_count_is_no_measure(value: str) -> None:
    """It is left out or unknown; the rest stays."""
    (item,) = read_items(f'{{"text": "t", "engagement": {{"bad": {value}, "good": 1.5}}}}'.encode()).items

    assert item.engagement.get("bad") is None
    assert item.engagement["good"] == 1.5


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://a.example", "5", None])
def test_only_web_addresses_are_links(url: Any) -> None:
    """Anything else is no address."""
    assert read({"title": "t", "url": url})[0].url == ""


def test_lines_end_where_json_lines_end() -> None:
    """
    A line separator inside a string is text; CRLF, a BOM and no end of line at all are fine.
    """
    text = '\ufeff{"title": "a\u2028b\x85c"}\r\n\n  \n{"title": "d"}'.encode()
    lines = read_lines(text)

    assert [line.number for line in lines] == [1, 4]
    assert lines[0].fields == {"title": "a\u2028b\x85c"}
    assert b"".join(line.raw for line in lines) == text.replace(b"\n\n  \n", b"\n")


def test_wrong_bytes_are_replaced_and_kept_as_they_were() -> None:
    """
    Latin-1 in a UTF-8 world: judged with a sign for the unknown, handed back untouched.
    """
    raw = b'{"title": "caf\xe9"}\n'
    (line,) = read_lines(raw)

    assert line.fields == {"title": "caf\ufffd"}
    assert line.raw == raw


@pytest.mark.parametrize("wrong", ["{", "null", "1", '"a"', "{'a': 1}", "a,b", '{"a":' * 50_000])
def test_a_line_that_is_no_object_is_named(wrong: str) -> None:
    """By the number an editor shows."""
    with pytest.raises(UsageError, match=r"^line 3 is no JSON object; write one object per line$"):
        read_items(f'{{"title": "a"}}\n\n{wrong}\n'.encode())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(b'{"title": "a"}'), "the input is compressed with gzip; unpack it"),
        (b"PK\x03\x04sheet", "the input is a zip archive or a spreadsheet;"),
        ('{"title": "a"}'.encode("utf-16"), "the input is UTF-16; write UTF-8, with `iconv"),
        ('{"title": "a"}'.encode("utf-16-be"), "the input is UTF-16; write UTF-8, with `iconv"),
        (b"title,body\na,b\n", "the input looks like CSV; write one JSON object per line, with"),
        (b'"title";"body"\n"a";"b"\n', "the input looks like CSV;"),
        (b"\xef\xbb\xbftitle\tbody\n", "the input looks like CSV;"),
        (b'[{"title": "a"}, {"title": "b"}]', "line 1 begins a JSON array; write one object per"),
        (b'\n[\n{"title": "a"}\n]', "line 2 begins a JSON array; write one object per line, with"),
        (b"[" * 50_000, "line 1 begins a JSON array;"),
        (b'{"title": "a"}\n[{"title": "b"}]', "line 2 begins a JSON array;"),
        (b'{\n  "title": "a"\n}', "line 1 begins an object of several lines; write each on one"),
    ],
)
def test_another_kind_of_file_is_named(data: bytes, words: str) -> None:
    """And how it becomes JSON lines."""
    with pytest.raises(UsageError) as refusal:
        read_items(data)

    assert str(refusal.value).startswith(words)


def test_no_line_is_no_source() -> None:
    """
    An empty file is a mistake, not an answer.
    """
    with pytest.raises(UsageError, match="there is no item"):
        read_items(b"\n\n")


def test_a_caller_can_say_where_an_item_is_from() -> None:
    """
    Whatever the line says.
    """
    item = item_of({"source": "reddit", "title": "t", "id": "1"}, 1, "youtube")

    assert (item.source, item.key) == ("youtube", "youtube:1")


async def test_all_items_are_handed_over_once() -> None:
    """
    The limit does not cut a person's own list, and there is never more to fetch.
    """
    source = ItemsSource(own(*({"id": n, "title": "t"} for n in range(30))))
    batch = await source.fetch(FetchPlan("anything", limit=5))

    assert len(batch.items) == 30
    assert not batch.full
    assert batch.notes == ()
    assert (await source.comments(batch.items)).items == batch.items
    assert (await source.probe()).detail == "30 items"
    await source.aclose()


async def test_a_key_that_comes_again_is_told() -> None:
    """
    The first of a key stays, in its place, and a note counts the others.
    """
    rows = ({"id": 1, "title": "a"}, {"id": 2, "title": "b"}, {"id": 1, "title": "c"})
    batch = await ItemsSource(own(*rows)).fetch(FetchPlan("x", 5))

    assert [item.title for item in batch.items] == ["a", "b"]
    assert batch.notes == ("1 of 3 items have the key of an earlier one and were left out",)


async def test_the_window_is_kept() -> None:
    """
    Old items are outside, which a note counts; undated ones are not held against.
    """
    rows = ({"id": 1, "title": "a", "created_at": "2001-01-01"}, {"id": 2, "title": "b"})
    batch = await ItemsSource(own(*rows)).fetch(FetchPlan("x", 5, "year"))

    assert [item.id for item in batch.items] == ["2"]
    assert batch.notes == ("1 of 2 items are older than a year and were left out",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    "key id source title body content description url author created_at engagement place comments"
    .split()
)  # fmt: skip


@given(st.lists(st.dictionaries(FIELDS, JSON), min_size=1, max_size=4))
def test_any_objects_become_items(rows: list[dict[str, Any]]) -> None:
    """Whatever the fields hold: one item each, with a key, encodable and finite, or a refusal."""
    try:
        items = read(*rows)
    except UsageError:
        return

    assert len(items) == len(rows)
    for item in items:
        assert item.key
        assert item.id
        json.dumps([item.title, item.body, dict(item.engagement)], allow_nan=False).encode()
