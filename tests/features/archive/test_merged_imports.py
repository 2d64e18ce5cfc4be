"""What several files say of one item becomes one item."""

from __future__ import annotations

from typing import Any

from api.features.archive.import_file import MOST_COMMENTS, STUB, Merged, merged, without_comments


def facts(**more: Any) -> dict[str, Any]:
    """An item."""
    return {"key": "x:1", "title": "Mug", "body": "It leaks.", "url": "", "notes": [],
            "comments": []} | more  # fmt: skip


def remark(id_: str, votes: float | None = None, at: str | None = None) -> dict[str, Any]:
    """A comment."""
    return {"id": id_, "body": "so", "engagement": {"votes": votes}, "created_at": at}


def names(result: Merged) -> list[str]:
    """Ids of the comments that are there now."""
    return [comment["id"] for comment in result.facts["comments"]]


def test_the_first_sight_stays_and_gaps_are_filled() -> None:
    """A text that was edited does not take the place of the one that reports quote."""
    result = merged(facts(), facts(title="Mug!", url="https://x.example", place="r/mugs"))

    assert result.facts == facts(url="https://x.example", place="r/mugs")
    assert (result.again, result.new, result.comments) == (1, False, ())


def test_a_dropped_item_gets_the_rest_of_its_facts() -> None:
    """Of one that a report dropped only key, title and address are stored."""
    result = merged({"key": "x:1", "title": "Mug", "url": ""}, facts(comments=[remark("a")]))

    assert result.facts == facts(comments=[remark("a")])
    assert (result.new, result.again) == (False, 1)


def test_a_stub_gives_way_to_the_post() -> None:
    """In either order; the comments of both are there."""
    stub = facts(title="mug", body="", notes=[STUB], comments=[remark("a")])
    post = facts(comments=[remark("b")])

    later, earlier = merged(stub, post), merged(post, stub)

    assert later.facts == facts(comments=[remark("a"), remark("b")])
    assert (later.new, later.again, later.comments) == (True, 0, ("b",))
    assert earlier.facts == facts(comments=[remark("b"), remark("a")])
    assert (earlier.new, earlier.again, earlier.comments) == (False, 0, ("a",))


def test_a_new_item_is_new_and_a_new_stub_is_none() -> None:
    """Also one without a list of comments."""
    bare = {"key": "x:1", "title": "Mug"}

    assert merged(None, bare) == Merged(bare, new=True)
    assert merged(None, facts(notes=[STUB])).new is False


def test_a_comment_is_there_once() -> None:
    """By its id, within a file and across them; damaged ones are let go."""
    result = merged(facts(comments=[remark("a"), "damaged", {}]), facts(comments=[remark("a"), remark("b")] * 2))

    assert names(result) == ["a", "b"]
    assert (result.comments, result.again, result.gain) == (("b",), 4, 1)


def test_of_too_many_comments_the_best_stay() -> None:
    """The best voted, then the newest; votes that nobody knows count least."""
    known = [remark(f"k{n}", 5) for n in range(MOST_COMMENTS - 1)]
    fresh = [
        remark("low", 1), remark("hidden"), remark("high", 9), remark("new", 5, "2026"),
        {"id": "bare", "body": "so"},
    ]  # fmt: skip

    result = merged(facts(comments=known), facts(comments=fresh))

    assert len(names(result)) == MOST_COMMENTS
    assert (result.gain, result.over) == (1, 4)
    assert names(result)[:2] == ["high", "new"]
    assert result.comments == ("high", "new")


def test_what_an_import_brought_is_what_is_left_of_it() -> None:
    """So the list does not grow with comments that better ones displaced."""
    result = merged(facts(comments=[remark("a"), remark("b")]), facts(comments=[remark("c")]))

    assert result.brought(["b", "gone"]) == ["b", "c"]


def test_comments_can_be_taken_away() -> None:
    """The rest of the item stays."""
    left = without_comments(facts(comments=[remark("a"), remark("b")]), frozenset({"a"}))

    assert left == facts(comments=[remark("b")])
