"""What an item holds, and what of it is published."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from api.core.items import Comment, Item, person_of

LOCAL = datetime(2026, 9, 27, 12, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))


def item(**fields: object) -> Item:
    """A post by somebody, with a comment by somebody else."""
    comment = Comment(id="c1", body="b", author="bob", credit="Bob")
    known = {"key": "x:1", "id": "1", "source": "x", "title": "t", "author": "ann"}
    return Item(**{**known, "comments": (comment,), **fields})


@pytest.mark.parametrize("wrong", [{"title": None}, {"body": 7}, {"body": ["x"]}, {"comments": 3}])
def test_what_is_no_text_makes_no_item(wrong: dict[str, object]) -> None:
    """Wherever it comes from, a copy included."""
    with pytest.raises(ValidationError):
        item(**wrong)
    with pytest.raises(ValidationError):
        item().edited(**wrong)


def test_times_are_utc_to_the_second() -> None:
    """Whatever clock a source has."""
    assert item(created_at=LOCAL).created_at == datetime(2026, 9, 27, 10, 0, tzinfo=UTC)


def test_authors_are_not_published() -> None:
    """Those whom a licence names are."""
    whole = item(unfit="removed")
    published = whole.published

    assert (whole.author, whole.comments[0].author) == ("ann", "bob")
    assert (published.author, published.comments[0].author, published.unfit) == (None, None, "")
    assert published.comments[0].credit == "Bob"
    assert "author" not in published.model_dump_json()


def test_an_author_is_one_person_in_small_and_capital_letters() -> None:
    """A text without an author is by somebody of its own, and a name means another person at another place."""
    comments = (Comment(id="1", body="a", author="ADA"), Comment(id="2", body="b"))
    item = Item(key="k", id="i", source="s", title="t", author="Ada", comments=comments)

    assert person_of(item) == person_of(item, "1")
    assert len({person_of(item), person_of(item, "2"), person_of(item.edited(author=None))}) == 3
    assert person_of(item) != person_of(item.edited(source="r"))
