"""Labelled queries: what is read, what is refused, what is filled in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.errors import UsageError
from api.evaluation.labelled_items import LabelledQuery, language_of, mentions, pure, read_labelled


def line(*items: dict[str, Any], **fields: Any) -> str:
    """One labelled query as it stands in a file."""
    query = {"query": "ember mug", "source_hint": "reddit", "items": list(items)}
    return json.dumps(query | fields)


def read(*lines: str) -> list[LabelledQuery]:
    """The lines of a file called `labels`."""
    return read_labelled(lines, "labels")


def test_a_line_becomes_a_query() -> None:
    """Every field arrives; blank lines do not count; items lose their labels when shown."""
    text = {"title": "My Ember", "body": "x" * 300, "place": "r/mugs"}
    item = text | {"relevant": True, "grade": 5, "neg_kind": "k"}
    queries = read("", line(item, family="brand", about="the mug"))
    (made,) = queries[0].items
    (shown,) = queries[0].shown()

    assert (queries[0].query, queries[0].source) == ("ember mug", "reddit")
    assert (queries[0].family, queries[0].about) == ("brand", "the mug")
    assert (made.title, made.relevant, made.grade, made.kind) == ("My Ember", True, 5, "k")
    assert (shown.title, len(shown.body), shown.source) == ("My Ember", 300, "reddit")
    assert shown.place == "r/mugs"


def test_null_and_number_are_text() -> None:
    """A title of null or 7 is read like anywhere else in the product."""
    (query,) = read(line({"title": None, "body": 7, "relevant": False}))

    assert (query.items[0].title, query.items[0].body) == ("", "7")


def test_a_given_mention_and_language_win_over_the_guess() -> None:
    """What the file says stands; what it does not say is found out."""
    item = {"title": "an ember in the fire", "relevant": False}
    (query,) = read(line(item, item | {"mention": False, "language": "nl"}))

    assert [item.mention for item in query.items] == [True, False]
    assert [item.language for item in query.items] == ["en", "nl"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "line"),
        ("[]", "line"),
        (line(), "items"),
        (line({"title": "x"}), "items.0.relevant"),
        (line({"relevant": "false"}), "items.0.relevant"),
        (line({"relevant": True}, {"relevant": True, "grade": 6}), "items.1.grade"),
        (line({"relevant": True}, query=""), "query"),
        (line({"relevant": True}, source_hint=None), "source_hint"),
    ],
)
def test_a_malformed_line_is_named_with_its_remedy(text: str, named: str) -> None:
    """The message holds file, line, field and the shape that is wanted."""
    with pytest.raises(UsageError) as caught:
        read(line({"relevant": True}), text)

    assert str(caught.value).startswith(f"`labels` line 2: `{named}`")
    assert '"items": [{' in str(caught.value)


def test_a_file_without_a_query_is_refused() -> None:
    """An empty file is a mistake, not a result of zero."""
    with pytest.raises(UsageError, match="`labels` holds no labelled query"):
        read("", " ")


def test_pure_pages_hold_one_class() -> None:
    """A mixed query becomes two, an all-relevant one stays one."""
    good, bad = {"relevant": True}, {"relevant": False}
    split = pure(read(line(good, bad, good), line(good)))

    assert [[item.relevant for item in query.items] for query in split] == [
        [True, True],
        [False],
        [True],
    ]


@pytest.mark.parametrize(
    ("query", "text", "held"),
    [
        ("Ember mug", "EMBER is hot", True),
        ("Ember mug", "December mugs", False),
        ("小米", "我買了小米手機", True),
        ("小米", "手機", False),
        ("Café Rô", "cafe", True),
    ],
)
def test_a_mention_is_a_whole_word_of_the_query(query: str, text: str, held: bool) -> None:
    """Case and accents aside, and within the text where a script has no blanks."""
    assert mentions(query, text) is held


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("the battery of my mug is dead and it is not new", "en"),
        ("la batería de mi taza está muerta y no es nueva", "es"),
        ("a bateria da minha caneca não é nova e foi muito cara", "pt"),
        ("la batteria della mia tazza non è nuova, come sono gli altri", "it"),
        ("la batterie de ma tasse est morte et je ne suis pas sur", "fr"),
        ("die Batterie ist nicht neu und ich mag das nicht", "de"),
        ("我買了小米手機", "zh"),
        ("このマグカップは", "ja"),
        ("батарея умерла", "ru"),
        ("qwerty 123", "other"),
        ("", "other"),
    ],
)
def test_the_language_is_guessed(text: str, language: str) -> None:
    """By script, then by common words; unsure is `other`."""
    assert language_of(text) == language
