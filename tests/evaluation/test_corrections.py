"""What people say of items, as labels for the evaluation."""

from __future__ import annotations

import json

from api.choices import Rating
from api.evaluation.labelled_items import LabelledItem, corrections, read_labelled
from api.features.analyses.store_ports import Feedback
from tests.store.made import dropped, item, report, source, typed

GONE = dropped("reddit:t3_9", "the gate") | {"dropped_by": "gate", "verdict": False}
COPY = dropped("reddit:t3_8", "a copy") | {"dropped_by": "duplicate"}
REPORT = typed(
    report(
        "r1", *(item(f"reddit:t3_{number}") for number in range(1, 4)),
        item("youtube:v") | {"source": "youtube"},
        item("reddit:open") | {"verdict": None}, sources={"reddit": source(GONE, COPY, kept=4)},
    )
)  # fmt: skip


def said(key: str | None, rating: Rating, author: str = "ada") -> Feedback:
    """A thumb."""
    return Feedback("r1", author, "item" if key else "report", rating, None, key)


def test_a_thumb_down_turns_the_verdict() -> None:
    """A line for each source, which the evaluation reads."""
    opinions = [
        said("reddit:t3_1", "up"), said("reddit:t3_2", "down"), said("reddit:t3_9", "down"),
        said("youtube:v", "down"), said(None, "down"),
    ]  # fmt: skip
    lines = corrections(REPORT, opinions)
    reddit, youtube = read_labelled(map(json.dumps, lines), "corrections")

    assert (reddit.query, reddit.source, youtube.source) == ("plaud note", "reddit", "youtube")
    assert [entry.relevant for entry in reddit.items] == [True, False, True]
    kept, gone = reddit.items[0], reddit.items[2]
    assert isinstance(kept, LabelledItem)
    assert (kept.title, kept.body) == (REPORT.items[0].title, REPORT.items[0].body)
    assert (gone.title, gone.body) == (GONE["title"], "")
    assert [entry.relevant for entry in youtube.items] == [False]


def test_what_says_nothing_of_the_gate_is_no_label() -> None:
    """Two that differ, an item nobody judged, a copy, and one that is gone."""
    opinions = [
        said("reddit:t3_3", "up"), said("reddit:t3_3", "down", "eve"), said("reddit:open", "down"),
        said("reddit:t3_8", "down"), said("reddit:away", "up"),
    ]  # fmt: skip

    assert corrections(REPORT, opinions) == []
