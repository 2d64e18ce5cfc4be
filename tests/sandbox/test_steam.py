"""The sandbox's Steam: the shop, defaults that hide reviews, windows, pages, its faults."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import httpx
import pytest

from api.core.domain import FetchPlan
from api.errors import Blocked, Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.sandbox.corpus import game_id
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES

ROWS: list[dict[str, Any]] = [
    {"source": "steam", "place": "Lumo", "title": "", "body": f"It glows {number} times", "age_days": number,
     "votes": number % 7, "stars": 5 if number % 3 else 1, "sponsored": number == 1,
     "comments": [{"body": "Thank you", "age_days": 0}] if number == 2 else []}
    for number in range(150)
] + [
    {"source": "steam", "place": "Lumo", "title": "", "body": "Es glüht", "age_days": 2},
    {"source": "steam", "place": "Lumo II", "title": "", "body": "It glows twice", "age_days": 400},
]  # fmt: skip
ALL: dict[str, Any] = {
    "appid": game_id("Lumo"), "languages[0]": "all", "purchase_type": 1, "filter": 1, "num_per_page": 100,
}  # fmt: skip


def reviews(sandbox: Sandbox, **params: Any) -> dict[str, Any]:
    """The answer about reviews."""
    path = f"{sandbox.url}/IUserReviewsService/GetAppReviews/v1/"
    answer: dict[str, Any] = httpx.get(path, params=ALL | params).json()["response"]
    return answer


def test_the_shop_finds_names_by_a_word() -> None:
    """Those with most reviews first; without a hit the list is empty."""
    with Sandbox.start(ROWS) as sandbox:
        found, none = (
            httpx.get(f"{sandbox.url}/api/storesearch/", params={"term": term}).json() for term in ("lumo lamp", "zzz")
        )

    assert [entry["name"] for entry in found["items"]] == ["Lumo", "Lumo II"]
    assert none == {"total": 0, "items": []}


def test_defaults_hide_reviews() -> None:
    """Other languages, other purchases and what is older than a month, as Steam's do."""
    with Sandbox.start(ROWS) as sandbox:
        every = reviews(sandbox)
        bought = reviews(sandbox, purchase_type=0)
        english = reviews(sandbox, **{"languages[0]": "english"})
        helpful = reviews(sandbox, filter=0)
        old = reviews(sandbox, filter=0, appid=game_id("Lumo II"))

    assert every["total_matching"] == 151
    assert bought["total_matching"] == english["total_matching"] == 150
    assert helpful["total_matching"] == 32
    assert old["total_matching"] == 1


def test_pages_windows_and_the_end() -> None:
    """A cursor leads on, dates hold only together, and the end has no list."""
    with Sandbox.start(ROWS) as sandbox:
        first = reviews(sandbox)
        second = reviews(sandbox, cursor=first["cursor"])
        after = reviews(sandbox, cursor=second["cursor"])
        start = int(sandbox.world.created(9.5))
        window = reviews(sandbox, date_range_start=start, date_range_end=start + 10**7)
        ignored = reviews(sandbox, date_range_start=start)
        unknown = reviews(sandbox, appid=5)

    assert [len(answer["reviews"]) for answer in (first, second)] == [100, 51]
    assert "total_reviews" in first["query_summary"]
    assert "total_reviews" not in second["query_summary"]
    assert "reviews" not in after
    assert (window["total_matching"], ignored["total_matching"]) == (11, 151)
    assert unknown == {}


async def test_its_faults_are_told_apart() -> None:
    """Too often, gone, promised and not given, one cursor again and again."""
    with Sandbox.start(ROWS) as sandbox:
        settings = SourceSettings.model_validate(sandbox.environment)

        async def answer(fault: str, limit: int = 5) -> Any:
            sandbox.heal()
            sandbox.fault(f"steam.reviews={fault}")
            source = SOURCES["steam"].build(settings)
            try:
                return await source.fetch(FetchPlan("Lumo", limit))
            except (RateLimited, Broken) as error:
                return error
            finally:
                await source.aclose()

        moved, empty = await answer("redirect"), await answer("empty")
        ended, doubted = await answer("end"), await answer("end@1x2")
        repeated, limited = await answer("repeat", 300), await answer("429")

    assert isinstance(moved, Broken)
    assert (empty.items, empty.full) == ((), False)
    assert "Steam listed 0 of 41" in empty.notes[1]
    assert (ended.items, len(doubted.items)) == ((), 5)
    assert (len(repeated.items), repeated.full) == (100, False)
    assert isinstance(limited, RateLimited)


@pytest.mark.parametrize(
    ("kind", "expected"), [("500", Unreachable), ("hang", TimedOut), ("drip", TimedOut), ("notjson", Blocked)]
)
@pytest.mark.parametrize("endpoint", ["shop", "reviews"])
async def test_a_server_that_fails_is_no_empty_answer(kind: str, expected: type[SourceError], endpoint: str) -> None:
    """Whichever request meets it."""
    with Sandbox.start(ROWS) as sandbox:
        sandbox.fault(f"steam.{endpoint}={kind}")
        source = SOURCES["steam"].build(SourceSettings.model_validate(sandbox.environment | {"source_timeout": 1}))
        async with aclosing(source):
            with pytest.raises(SourceError) as caught:
                await source.fetch(FetchPlan("Lumo", 5))

    assert type(caught.value) is expected
