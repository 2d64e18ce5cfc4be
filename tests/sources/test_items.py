"""A person's own items: any JSON lines become items, and nothing is lost in silence."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import UsageError
from api.services.schemas import FetchPlan, Item
from api.sources.items import ItemsSource, item_of, read_items, read_lines


def read(*rows: dict[str, Any]) -> list[Item]:
    """The items of these objects."""
    return read_items("\n".join(json.dumps(row) for row in rows).encode())


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
        ({"body": ["x"]}, ""),
        ({}, ""),
    ],
)
def test_the_body_has_several_names(fields: dict[str, Any], body: str) -> None:
    """The first that holds text."""
    assert read({"title": "t", **fields})[0].body == body


def test_a_key_of_its_own_wins() -> None:
    """
    Else source and id, else a name made of line and text, the same each time.
    """
    rows = ({"key": "reddit:t3_x", "id": "x"}, {"id": 7}, {"title": "a"}, {"title": "a"})
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
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("0001-01-01T00:00:00+14:00", None),
        ("yesterday", None),
        (1e300, None),
        (True, None),
        ([], None),
        (None, None),
    ],
)
def test_times_are_utc_or_nothing(given_time: Any, time: datetime | None) -> None:
    """ISO 8601 and epoch seconds; what cannot be read is undated, never an error."""
    assert read({"title": "t", "created_at": given_time})[0].created_at == time


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1e16", '"5"', "true"])
def test_what_is_no_count_is_no_measure(value: str) -> None:
    """It is left out or unknown; the rest stays."""
    (item,) = read_items(f'{{"engagement": {{"bad": {value}, "good": 1.5}}}}'.encode())

    assert item.engagement.get("bad") is None
    assert item.engagement["good"] == 1.5


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://a.example", 5, None])
def test_only_web_addresses_are_links(url: Any) -> None:
    """Anything else is no address."""
    assert read({"url": url})[0].url == ""


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


@pytest.mark.parametrize("wrong", ["{", "[]", "null", "1", '"a"', "{'a': 1}", "[" * 50_000])
def test_a_line_that_is_no_object_is_named(wrong: str) -> None:
    """By the number an editor shows."""
    with pytest.raises(UsageError, match=r"^line 3 is no JSON object; write one object per line$"):
        read_items(f'{{"title": "a"}}\n\n{wrong}\n'.encode())


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
    source = ItemsSource(read(*({"id": n, "title": "t"} for n in range(30))))
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
    batch = await ItemsSource(read(*rows)).fetch(FetchPlan("x", 5))

    assert [item.title for item in batch.items] == ["a", "b"]
    assert batch.notes == ("1 of 3 items have the key of an earlier one and were left out",)


async def test_the_window_is_kept() -> None:
    """
    Old items are outside; undated ones are not held against.
    """
    rows = ({"id": 1, "created_at": "2001-01-01"}, {"id": 2})
    batch = await ItemsSource(read(*rows)).fetch(FetchPlan("x", 5, "year"))

    assert [item.id for item in batch.items] == ["2"]


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
    """Whatever the fields hold: one item each, with a key, encodable and finite."""
    items = read(*rows)

    assert len(items) == len(rows)
    for item in items:
        assert item.key
        assert item.id
        json.dumps([item.title, item.body, dict(item.engagement)], allow_nan=False).encode()
