"""A run of a watch with one change and one post."""

from __future__ import annotations

from typing import Any

from api.features.watches.watch_run import VERSION, Change, NewPost, WatchRun
from tests.features.watches.made import MONDAY, of, week

POST = NewPost(
    key="reddit:1", source="reddit", title="My\nEmber <!channel>", url="https://r.example/1",
    created_at=MONDAY, passage="I hate the battery.", complains=True,
)  # fmt: skip

CHANGE = Change(
    measure="posts", subject="reddit", more=True, count=20, of=None, past=30, past_of=None,
    usual=(1, 11), chance=0.001, cites=("reddit:1",), text="Reddit: 20 posts in this time.",
)  # fmt: skip


def run(**more: Any) -> WatchRun:
    """A run that changed nothing, but for this."""
    return WatchRun(
        **{
            "version": VERSION, "id": "run1", "watch_id": "w1", "state": "changed", "reason": None,
            "report_id": "r1", "counts": week(0, reddit=of(1)), "new": (), "kept": 1,
            "unusual": (), "looked_at": 0, "new_aspects": (), "gaps": (), "sample": False,
            "created_at": MONDAY,
        }
        | more
    )  # fmt: skip
