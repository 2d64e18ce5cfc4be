"""Feedback: checked, kept, then told to whoever watches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from api.choices import MAX_COMMENT_LENGTH
from api.errors import NotFound, StoreUnavailable, UsageError
from api.features.analyses.feedback import Given, Rated, RatedReport, Send, Vote, author_of, give, source_of
from api.features.analyses.store_ports import Feedback
from tests.services.shelf import NOW, Shelf
from tests.store.made import dropped, item, report, source, typed

GONE = dropped("youtube:v9")
REPORT = report(
    "r1", item("reddit:t3_1"), item("items:a"), trace_id="f" * 32,
    out=[GONE, dropped("reddit:t3_7")],
    sources={"reddit": source(kept=2), "youtube": source(GONE)},
)  # fmt: skip


@dataclass
class Book(Shelf):
    """A shelf that also keeps feedback."""

    kept: list[Feedback] = field(default_factory=list)
    gone: bool = False

    async def keep_feedback(self, tenant: str, given: Feedback, most: int) -> Feedback | None:
        self._may("keep_feedback")
        if self.gone:
            return None
        self.kept.append(replace(given, created_at=NOW))
        return self.kept[-1]

    async def feedback(self, tenant: str, analysis_id: str) -> tuple[Feedback, ...]:
        return tuple(self.kept)


@dataclass
class Watcher:
    """Somebody who is told, and may refuse."""

    why: str = ""
    told: list[tuple[str, Feedback]] = field(default_factory=list)

    async def __call__(self, rated: Rated) -> str:
        assert isinstance(rated, RatedReport)
        self.told.append((rated.report.id, rated.feedback))
        return self.why


async def given(opinion: Vote, send: Send | None = None, book: Book | None = None, **fields: Any) -> Given:
    """What becomes of an opinion on `REPORT`."""
    book = book or Book()
    await book.begin("ada", "r1", "mug")
    await book.finish("ada", typed(REPORT | fields))
    return await give(book.store, "ada", "somebody", "r1", opinion, send)


async def test_the_same_thumb_again_is_known_as_that() -> None:
    """Another comment makes no other thumb; another thumb, or subject, does."""
    book = Book()
    votes = [Vote("up"), Vote("up", "still"), Vote("down"), Vote("up", finding=1)]

    assert [(await given(vote, book=book)).repeated for vote in votes] == [
        False, True, False, False,
    ]  # fmt: skip
    assert (await given(Vote("up"), sample=True)).sample


@pytest.mark.parametrize(
    ("opinion", "subject"),
    [
        (Vote("up"), "report"),
        (Vote("down", finding=2), "finding"),
        (Vote("down", item_key="reddit:t3_1"), "item"),
        (Vote("up", item_key="youtube:v9"), "item"),
    ],
)
async def test_an_opinion_is_kept_and_told(opinion: Vote, subject: str) -> None:
    """With what it is about, whose it is, and the decision of the report."""
    book, watcher = Book(), Watcher()
    result = await given(opinion, watcher, book)

    (kept,) = book.kept
    assert watcher.told == [("r1", kept)]
    assert (kept.subject, kept.rating, kept.author) == (subject, opinion.rating, "somebody")
    assert (kept.finding, kept.item_key) == (opinion.finding, opinion.item_key)
    assert result == Given(kept, "full_report", "sent")


async def test_who_does_not_take_it_loses_nothing() -> None:
    """It is kept, and the answer says why it was not taken."""
    book = Book()
    result = await given(Vote("up"), Watcher("Langfuse is away"), book)

    assert book.kept == [result.feedback]
    assert (result.watched, result.why) == ("failed", "Langfuse is away")


@pytest.mark.parametrize("fields", [{"trace_id": None}, {"sample": True}])
async def test_without_a_trace_nobody_is_told(fields: dict[str, Any]) -> None:
    """Nor of sample data, whose trace is nowhere; nor when nobody watches."""
    watcher = Watcher()

    assert (await given(Vote("up"), watcher, **fields)).watched == "off"
    assert (await given(Vote("up"))).watched == "off"
    assert watcher.told == []


async def test_a_comment_is_cleaned_and_bounded() -> None:
    """Terminal escapes go; markup and everything else stays text."""
    hostile = "<script>x</script>\x1b[2J\x00 '; DROP TABLE feedback"

    kept = (await given(Vote("up", hostile))).feedback
    assert kept.comment == "<script>x</script> '; DROP TABLE feedback"
    assert (await given(Vote("up", "x" * MAX_COMMENT_LENGTH))).feedback.comment == "x" * MAX_COMMENT_LENGTH
    with pytest.raises(UsageError, match="2000 characters at most; yours has 2001"):
        await given(Vote("up", "x" * (MAX_COMMENT_LENGTH + 1)))


@pytest.mark.parametrize(
    ("opinion", "error", "words"),
    [
        (Vote("up", finding=0), NotFound, "no finding 0; the report has 2"),
        (Vote("up", finding=3), NotFound, "no finding 3; the report has 2"),
        (Vote("up", item_key="reddit:t3_2"), NotFound, "no item `reddit:t3_2`"),
        (Vote("up", item_key=""), NotFound, "no item ``"),
        (Vote("up", finding=1, item_key="items:a"), UsageError, "not both"),
    ],
)
async def test_what_is_not_there_cannot_be_rated(opinion: Vote, error: type[Exception], words: str) -> None:
    """Nothing is kept, and nobody is told."""
    book, watcher = Book(), Watcher()

    with pytest.raises(error, match=words):
        await given(opinion, watcher, book)

    assert (book.kept, watcher.told) == ([], [])


async def test_a_report_that_cannot_be_rated() -> None:
    """Another's, one that runs, one that goes meanwhile, none while the store is away."""
    book, watcher = Book(), Watcher()
    await book.begin("ada", "r2", "mug")
    for tenant, analysis_id, error in (
        ("eve", "r1", NotFound), ("ada", "r3", NotFound), ("ada", "r2", UsageError),
    ):  # fmt: skip
        with pytest.raises(error):
            await give(book.store, tenant, "x", analysis_id, Vote("up"), watcher)
    with pytest.raises(NotFound):
        await given(Vote("up"), watcher, Book(gone=True))
    with pytest.raises(StoreUnavailable):
        await given(Vote("up"), watcher, Book(broken={"keep_feedback"}))

    assert watcher.told == []


@pytest.mark.parametrize(
    ("key", "source_name"),
    [("reddit:t3_1", "reddit"), ("items:a", "items"), ("youtube:v9", "youtube"),
     ("reddit:t3_7", "reddit"), ("reddit:t3_8", None)],
)  # fmt: skip
def test_an_item_has_a_source(key: str, source_name: str | None) -> None:
    """Of what was kept, of what a gate dropped, of what was dropped later; else there is none."""
    assert source_of(typed(REPORT), key) == source_name


def test_an_author_is_a_pseudonym() -> None:
    """The same for the same person, another for another, and no name in it."""
    names = [author_of("key_ada"), author_of("key_ada", "u1"), author_of("key_eve", "u1")]

    assert len(set(names)) == 3
    assert author_of("key_ada") == names[0]
    assert all(len(name) == 16 and "ada" not in name for name in names)
