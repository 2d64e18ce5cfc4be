"""The sandbox's Hacker News: every word, paging, threads, its own words of trouble."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox

ROWS: list[dict[str, Any]] = [
    {
        "source": "hackernews", "title": "Show HN: Lumo lamp", "body": "It glows/warm\n\nand on",
        "votes": 12, "age_days": 3, "link": "https://example.org/lumo",
        "comments": [
            {"body": "My Lumo lamp hums", "age_days": 2},
            {"body": "gone", "deleted": True},
        ],
    },
    {"source": "hackernews", "title": "Any lamp at all", "age_days": 400},
]  # fmt: skip


def search(sandbox: Sandbox, **params: Any) -> dict[str, Any]:
    """The answer to a search."""
    answer = httpx.get(f"{sandbox.url}/api/v1/search", params=params)
    found: dict[str, Any] = answer.json()
    return found


def test_stories_and_comments_hold_every_word() -> None:
    """A comment is a hit of its own; what has no value is no key."""
    with Sandbox.start(ROWS) as sandbox:
        hits = search(sandbox, query="lumo lamp", hitsPerPage=100)["hits"]

    assert [hit["_tags"][0] for hit in hits] == ["story", "comment"]
    story, comment = hits
    assert story["story_text"] == "It glows&#x2F;warm<p>and on"
    assert (comment["story_title"], comment["comment_text"]) == (
        "Show HN: Lumo lamp", "My Lumo lamp hums",
    )  # fmt: skip
    assert "points" not in comment
    assert "comment_text" not in story


def test_pages_windows_and_the_thousandth() -> None:
    """Pages count from 0, windows are exact, and beyond 1,000 there is a message."""
    with Sandbox.start(ROWS) as sandbox:
        first = search(sandbox, query="lamp", hitsPerPage=1)
        month = sandbox.world.created(30)
        recent = search(sandbox, query="lamp", numericFilters=f"created_at_i>={month}")
        beyond = search(sandbox, query="lamp", hitsPerPage=1000, page=1)

    assert (first["nbPages"], len(first["hits"])) == (3, 1)
    assert recent["nbHits"] == 2
    assert "1000 hits" in beyond["message"]


def test_threads_hold_what_was_deleted_as_nulls() -> None:
    """By the id of a story or of a comment; unknown ones are not found."""
    with Sandbox.start(ROWS) as sandbox:
        story, comment = search(sandbox, query="lumo lamp")["hits"]
        root = f"{sandbox.url}/api/v1/items"
        thread = httpx.get(f"{root}/{story['objectID']}").json()
        reply = httpx.get(f"{root}/{comment['objectID']}").json()
        missing = httpx.get(f"{root}/1")

    assert [child["text"] for child in thread["children"]] == ["My Lumo lamp hums", None]
    assert (reply["text"], reply["children"]) == ("My Lumo lamp hums", [])
    assert missing.status_code == 404


@pytest.mark.parametrize(("kind", "status"), [("400", 400), ("403html", 403), ("429", 429)])
def test_trouble_in_its_words(kind: str, status: int) -> None:
    """JSON from the search itself, pages from what stands before it."""
    with Sandbox.start(ROWS, faults=[f"hackernews={kind}"]) as sandbox:
        answer = httpx.get(f"{sandbox.url}/api/v1/search", params={"query": "lamp"})

    assert answer.status_code == status
    assert ("html" in answer.headers["content-type"]) is (kind != "400")
