"""What a door takes, as filters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.errors import UsageError
from api.features.archive.search_values import EVERYTHING, ArchiveFilters, filters_of

NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_empty_is_no_filter() -> None:
    """Blanks, too."""
    assert filters_of("", None, "  ", {"reddit"}, " ") == EVERYTHING


def test_what_is_given_filters() -> None:
    """A product on one line, a language's code in any case."""
    filters = filters_of("reddit", NOON, "Ember\nmug", {"reddit"}, "DE", kept=False)

    assert filters == ArchiveFilters("reddit", NOON, None, False, "Ember mug", "de")


@pytest.mark.parametrize(
    ("source", "language", "words"),
    [
        ("my\nspace", "", "there is no source `my space`"),
        ("", "xx", "`xx` is no code of a language"),
    ],
)
def test_what_is_not_known_is_named(source: str, language: str, words: str) -> None:
    """With its remedy."""
    with pytest.raises(UsageError, match=words):
        filters_of(source, None, "", {"reddit"}, language)
