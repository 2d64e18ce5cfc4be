"""The sandbox's Discourse: search, its limits, topics, its own words of trouble."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.sandbox.discourse_server import FORUM
from api.sandbox.server import Sandbox

ROWS: list[dict[str, Any]] = [
    {
        "source": "discourse", "place": "Help", "title": "Lumo & lamp", "votes": 5, "views": 70,
        "body": "It's warm\n\nand on", "age_days": 3,
        "comments": [
            {"body": "Mine hums", "age_days": 2, "votes": 1},
            {"body": "gone", "deleted": True},
            {"body": "<b>", "age_days": 1},
        ],
    },
    {"source": "discourse", "place": "Help", "title": "???", "body": "a lamp", "age_days": 400},
    {"source": "discourse", "place": "Help", "title": "Lamp deleted", "deleted": True},
]  # fmt: skip


def search(sandbox: Sandbox, **params: Any) -> httpx.Response:
    """The answer to a search."""
    return httpx.get(f"{sandbox.url}{FORUM}/search.json", params=params)


def test_posts_and_topics_stand_beside_each_other() -> None:
    """Every word must occur, deleted topics do not; days are counted from `after:`."""
    with Sandbox.start(ROWS) as sandbox:
        answer = search(sandbox, q="lamp").json()
        since = f"{sandbox.world.moment(30):%Y-%m-%d}"
        recent = search(sandbox, q=f"lamp after:{since}").json()
        nothing = search(sandbox, q="kettle").json()

    assert [post["topic_id"] for post in answer["posts"]] == [row["id"] for row in answer["topics"]]
    assert [row["slug"] for row in answer["topics"]] == ["lumo-lamp", "topic"]
    assert answer["posts"][0]["blurb"] == "It&#x27;s warm and on"
    assert answer["topics"][0]["fancy_title"] == "Lumo &amp; lamp"
    assert len(recent["posts"]) == 1
    assert (nothing["posts"], nothing["topics"]) == ([], None)


def test_short_words_and_far_pages_are_bad_requests() -> None:
    """From three characters, ten pages of fifty."""
    rows = [{"source": "discourse", "title": f"Lamp {n}", "age_days": n} for n in range(60)]
    with Sandbox.start(rows) as sandbox:
        first, last = (search(sandbox, q="lamp", page=page).json() for page in (1, 2))
        short, far = search(sandbox, q="hp"), search(sandbox, q="lamp", page=11)

    assert [len(page["posts"]) for page in (first, last)] == [50, 10]
    assert first["grouped_search_result"]["more_full_page_results"] is True
    assert last["grouped_search_result"]["more_full_page_results"] is None
    assert (short.status_code, far.status_code) == (400, 400)


def test_a_topic_holds_its_posts() -> None:
    """As HTML with their likes, deleted ones left out; unknown topics are not found."""
    with Sandbox.start(ROWS) as sandbox:
        id_ = search(sandbox, q="lumo").json()["topics"][0]["id"]
        topic = httpx.get(f"{sandbox.url}{FORUM}/t/{id_}.json").json()
        missing = httpx.get(f"{sandbox.url}{FORUM}/t/1.json")

    posts = topic["post_stream"]["posts"]
    assert [post["cooked"] for post in posts] == [
        "<p>It&#x27;s warm</p><p>and on</p>", "<p>Mine hums</p>", "<p>&lt;b&gt;</p>",
    ]  # fmt: skip
    assert [post["post_number"] for post in posts] == [1, 2, 4]
    assert [post["actions_summary"] for post in posts] == [
        [{"id": 2, "count": 5}], [{"id": 2, "count": 1}], [],
    ]  # fmt: skip
    assert topic["views"] == 70
    assert missing.status_code == 404


@pytest.mark.parametrize(
    ("kind", "path", "status", "holds"),
    [
        ("overload", "/search.json?q=lamp", 200, "extremely high load"),
        ("429", "/search.json?q=lamp", 429, "FAILED"),
        ("429", "/t/1.json", 429, "wait_seconds"),
        ("403", "/search.json?q=lamp", 403, "not_logged_in"),
        ("503", "/search.json?q=lamp", 503, "<h1>"),
    ],
)
def test_trouble_in_its_words(kind: str, path: str, status: int, holds: str) -> None:
    """Too much load looks like any other answer."""
    with Sandbox.start(ROWS, faults=[f"discourse={kind}"]) as sandbox:
        answer = httpx.get(f"{sandbox.url}{FORUM}{path}")

    assert answer.status_code == status
    assert holds in answer.text
