"""Reordering by words."""

from __future__ import annotations

from api.core.domain import Verdict
from api.core.items import Assessed, Comment, Item
from api.pipeline.evidence.ranking import best_comments, by_words


def item(title: str, body: str = "", comments: tuple[Comment, ...] = ()) -> Item:
    """A post named by its title."""
    return Item(key=f"r:{title}", id=title, source="r", title=title, body=body, comments=comments)


def test_words_of_the_question_decide() -> None:
    """
    What holds more of the question's content words comes first; ties keep their order.
    """
    items = [item("Is the tea"), item("Kettle", "the lid, CRACKED!"), item("Lid"), item("Kettle")]
    window = [Assessed(one, Verdict(True)) for one in items]

    found = by_words("is the kettle lid cracked?")(window)

    assert [one.item for one in found] == [items[1], items[2], items[3], items[0]]


def test_comments_on_the_subject_come_before_loud_ones() -> None:
    """
    A joke with nine thousand votes stands behind a small remark about the post.
    """
    comments = (
        Comment(id="joke", body="I also choose this person's dog", engagement={"votes": 9000}),
        Comment(id="quiet", body="No idea"),
        Comment(id="lid", body="My lid cracked too", engagement={"votes": 3}),
        Comment(id="null", body="Kettle!", engagement={"votes": None}),
    )

    found = best_comments(item("Cracked lid", comments=comments), "kettle")

    assert [comment.id for comment in found] == ["lid", "null", "joke", "quiet"]
