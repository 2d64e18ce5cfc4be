"""A run of a watch with one change and one post."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from api.core.items import Item
from api.features.analyses.store_ports import Store
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import SeenPost
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


def new_post(number: int, **more: Any) -> NewPost:
    """A post on Reddit, but for this."""
    fields = {
        "title": f"Post {number}",
        "url": f"https://www.reddit.com/r/mugs/{number}/",
        "passage": f"Words {number}.",
    }
    return NewPost(
        **{"key": f"reddit:{number}", "source": "reddit", "created_at": MONDAY, "complains": False} | fields | more
    )


async def bring(
    store: Store, watch: Watch, *posts: NewPost, hours: float = 0, place: str = "r/mugs", **more: Any
) -> None:
    """Store a run of a watch that is news and brought these posts, so many hours after that Monday."""
    moment = MONDAY + timedelta(hours=hours)
    claim = await store.claim_watch(watch.tenant, watch.id, moment, moment, f"run{hours}")
    assert claim is not None
    learnt = [
        SeenPost(
            post.key, item=Item(key=post.key, id=post.key, source=post.source, title=post.title, place=place or None)
        )
        for post in posts
    ]
    fields = {"id": claim.run_id, "watch_id": watch.id, "new": posts, "created_at": moment, "news": True} | more
    assert await store.finish_run(claim, run(**fields), learnt, watch.due_at)
