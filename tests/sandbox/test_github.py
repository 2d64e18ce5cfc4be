"""The sandbox's GitHub: qualifiers, paging, comments, both limits and its words of trouble."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import Options

ROWS: list[dict[str, Any]] = [
    {
        "source": "github", "place": "lumo/firmware", "title": "Lumo lamp flickers",
        "body": "Since 2.1", "votes": 4, "age_days": 5,
        "comments": [
            {"body": "Fixed", "votes": 2, "age_days": 1}, {"body": "Same", "age_days": 4},
            {"body": "gone", "deleted": True},
        ],
    },
    {"source": "github", "place": "lumo/app", "title": "Lamp digest", "bot": True, "age_days": 90},
]  # fmt: skip


def ask(sandbox: Sandbox, query: str = "lamp is:issue", **params: Any) -> httpx.Response:
    """The answer to a search."""
    return httpx.get(f"{sandbox.url}/search/issues", params={"q": query} | params)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("lamp is:issue", 2),
        ("lumo lamp is:issue", 1),
        ('"lamp flickers" is:issue', 1),
        ("lamp repo:lumo/app is:issue", 1),
        ('lamp "repo:lumo/app" is:issue', 0),
        ("lamp author:x is:issue", 0),
    ],
)
def test_qualifiers_outside_of_quotes(query: str, count: int) -> None:
    """Every word must occur, and what is quoted is words."""
    with Sandbox.start(ROWS) as sandbox:
        answer = ask(sandbox, query).json()

    assert (answer["total_count"], answer["incomplete_results"]) == (count, False)


def test_pages_windows_and_the_thousandth() -> None:
    """By the day; nothing is given beyond 1,000."""
    with Sandbox.start(ROWS) as sandbox:
        pages = [ask(sandbox, per_page=1, page=page).json()["items"] for page in (1, 2, 3)]
        day = f"{sandbox.world.moment(30):%Y-%m-%d}"
        (recent,) = ask(sandbox, f"lamp is:issue created:>={day}").json()["items"]
        beyond = ask(sandbox, per_page=100, page=11)

    assert [len(page) for page in pages] == [1, 1, 0]
    assert recent["repository_url"] == "https://api.github.com/repos/lumo/firmware"
    assert (recent["user"]["type"], recent["reactions"]["total_count"]) == ("User", 4)
    assert {page[0]["user"]["type"] for page in pages[:2]} == {"User", "Bot"}
    assert beyond.status_code == 422


def test_comments_come_in_the_order_of_time() -> None:
    """Of an issue by its repository and number; others are not found."""
    with Sandbox.start(ROWS) as sandbox:
        (issue, *_) = ask(sandbox, "flickers is:issue").json()["items"]
        path = f"issues/{issue['number']}/comments"
        comments = httpx.get(f"{sandbox.url}/repos/lumo/firmware/{path}").json()
        missing = httpx.get(f"{sandbox.url}/repos/lumo/app/{path}")

    assert [comment["body"] for comment in comments] == ["Same", "Fixed"]
    assert (missing.status_code, missing.json()["message"]) == (404, "Not Found")


def test_both_limits_are_counted_apart() -> None:
    """A token has its own; limits may be read freely."""
    options = Options(github_searches=1, github_requests=0)
    with Sandbox.start(ROWS, options=options) as sandbox:
        first, second = ask(sandbox), ask(sandbox)
        comments = httpx.get(f"{sandbox.url}/repos/lumo/firmware/issues/1/comments")
        headers = {"authorization": "Bearer t"}
        resources = [
            httpx.get(f"{sandbox.url}/rate_limit", headers=given).json()["resources"] for given in ({}, headers)
        ]

    assert first.headers["x-ratelimit-remaining"] == "0"
    assert (second.status_code, comments.status_code) == (403, 403)
    assert [answer.headers["x-ratelimit-resource"] for answer in (second, comments)] == [
        "search", "core",
    ]  # fmt: skip
    assert [part["search"]["remaining"] for part in resources] == [0, 30]
    assert resources[0]["core"]["limit"] == 0


FAULTS = [("401", 401), ("403", 403), ("429", 429), ("secondary", 403), ("422", 422), ("500", 500)]


@pytest.mark.parametrize(("kind", "status"), FAULTS)
def test_trouble_in_its_words(kind: str, status: int) -> None:
    """With what each says of waiting."""
    with Sandbox.start(ROWS, faults=[f"github.search={kind}"]) as sandbox:
        answer = ask(sandbox)

    assert answer.status_code == status
    assert answer.headers.get("retry-after") == ("60" if kind == "secondary" else None)
    assert answer.headers.get("x-ratelimit-remaining") == ("0" if kind in {"403", "429"} else None)


def test_a_query_needs_its_kind_and_may_be_cut_short() -> None:
    """Without `is:issue` it is refused; a search that ran out of time says so."""
    with Sandbox.start(ROWS, faults=["github.search=incomplete@2"]) as sandbox:
        refused = ask(sandbox, "lamp")
        incomplete = ask(sandbox).json()

    assert refused.status_code == 422
    assert "is:issue" in refused.json()["errors"][0]["message"]
    assert (incomplete["incomplete_results"], incomplete["total_count"]) == (True, 2)
