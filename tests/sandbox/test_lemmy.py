"""The sandbox's Lemmy: parts of words in order, windows, threads, its own words of trouble."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox

ROWS: list[dict[str, Any]] = [
    {
        "source": "lemmy", "place": "gadgets", "title": "Lumo lamp after a year", "votes": 5,
        "body": "It glows", "age_days": 3, "link": "https://example.org/lumo",
        "comments": [
            {"body": "My Lumo lamp hums", "age_days": 2, "votes": 1},
            {"body": "Mine does not", "age_days": 1, "votes": 9},
            {"body": "Lumo lamp gone", "deleted": True},
        ],
    },
    {"source": "lemmy", "place": "lights", "title": "Illumoination by lamplight", "votes": 50,
     "age_days": 400},
    {"source": "lemmy", "place": "deals", "title": "[deal-bot] Lumo lamp -10%", "age_days": 1},
    {"source": "lemmy", "place": "gadgets", "title": "Lumo lamp deleted", "deleted": True},
]  # fmt: skip


def search(sandbox: Sandbox, **params: Any) -> dict[str, Any]:
    """The answer to a search."""
    given = {"type_": "Posts", "sort": "TopAll", "q": "lumo lamp"} | params
    answer: dict[str, Any] = httpx.get(f"{sandbox.url}/api/v3/search", params=given).json()
    return answer


def test_words_stand_in_their_order_as_parts_of_words() -> None:
    """Best voted first, whatever it is about; programs are marked, deleted posts are not listed."""
    with Sandbox.start(ROWS) as sandbox:
        posts = search(sandbox)["posts"]
        turned = search(sandbox, q="lamp lumo")["posts"]

    assert [entry["counts"]["score"] for entry in posts] == [50, 5, 0]
    assert [entry["creator"]["bot_account"] for entry in posts] == [False, False, True]
    assert posts[1]["post"]["url"] == "https://example.org/lumo"
    assert "body" not in posts[0]["post"]
    assert turned == []


def test_comments_windows_and_pages() -> None:
    """Comments are apart and know no window; a page has fifty at most."""
    with Sandbox.start(ROWS) as sandbox:
        comments = search(sandbox, type_="Comments", q="m", sort="New")["comments"]
        month = search(sandbox, sort="TopMonth")["posts"]
        pages = [search(sandbox, limit=2, page=page)["posts"] for page in (1, 2)]
        everything = search(sandbox, type_="All")
        greedy = search(sandbox, limit=51)

    assert [entry["comment"]["content"] for entry in comments] == [
        "Mine does not", "My Lumo lamp hums",
    ]  # fmt: skip
    assert len(month) == 2
    assert list(map(len, pages)) == [2, 1]
    assert everything["posts"] == everything["comments"] == []
    assert "error" in greedy


def test_the_version_and_the_threads() -> None:
    """Comments of a post best voted first, of a comment the comment itself."""
    with Sandbox.start(ROWS) as sandbox:
        post = search(sandbox)["posts"][1]["post"]["id"]
        listed = f"{sandbox.url}/api/v3/comment/list"
        thread = httpx.get(listed, params={"post_id": post}).json()["comments"]
        parent = thread[1]["comment"]["id"]
        alone = httpx.get(listed, params={"parent_id": parent}).json()["comments"]
        node = httpx.get(f"{sandbox.url}/nodeinfo/2.1").json()
        site = httpx.get(f"{sandbox.url}/api/v3/site").json()

    assert [entry["counts"]["score"] for entry in thread] == [9, 1]
    assert [entry["comment"]["id"] for entry in alone] == [parent]
    assert node["software"]["version"] == site["version"] == "0.19.20"


@pytest.mark.parametrize(
    ("kind", "status", "page"),
    [
        ("rate_limit", 400, False),
        ("400", 400, False),
        ("403html", 403, True),
        ("anubis", 200, True),
    ],
)
def test_trouble_in_its_words(kind: str, status: int, page: bool) -> None:
    """A limit is a bad request there, and a wall may say that all is well."""
    with Sandbox.start(ROWS, faults=[f"lemmy.search={kind}"]) as sandbox:
        answer = httpx.get(f"{sandbox.url}/api/v3/search", params={"q": "lamp"})

    assert answer.status_code == status
    assert ("html" in answer.headers["content-type"]) is page
