"""Every recorded answer of the places without a key through the real client: what each gives."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from api.core.domain import FetchPlan
from api.errors import Broken, NotConfigured, QuotaExhausted, RateLimited, SourceError
from api.sources import SOURCES
from tests.loopback import Reply
from tests.replay import MORE, NO_MORE
from tests.sources.emulators import Emulator, on
from tests.sources.issue_emulators import GitHubEmulator, StackExchangeEmulator
from tests.sources.json_emulators import DiscourseEmulator, HackerNewsEmulator, LemmyEmulator

pytestmark = pytest.mark.skipif(not MORE.is_dir(), reason=NO_MORE)


@dataclass(frozen=True)
class Recorded:
    """What a recorded search gives: items and how many have a field, or an error."""

    file: str
    items: int | type[SourceError]
    filled: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A place's recordings, and how its source is pointed at them."""

    emulator: type[Emulator]
    searches: tuple[Recorded, ...]
    threads: frozenset[str] = frozenset()
    """Recordings of what is said under an item; its own tests read them."""
    settings: dict[str, object] = field(default_factory=dict)
    part: str = ""
    """What the request of the recording holds; empty: a search."""


PLACES = (
    Place(
        HackerNewsEmulator,
        (
            Recorded(
                "search_by_date_comments_2018.json",
                2,
                {"title": 2, "body": 2, "thread": 2, "author": 2},
            ),
            Recorded("empty_2021.json", 0),
            Recorded("error_400_numeric_points.json", Broken),
        ),
        frozenset({"item_show_hn_2018.json"}),
    ),
    Place(
        StackExchangeEmulator,
        (
            Recorded("questions_page1_2016.json", 1, {"title": 0, "url": 0, "created_at": 1, "credit": 1}),
            Recorded(
                "questions_backoff_2016.json",
                1,
                {"title": 0, "url": 0, "created_at": 1, "credit": 1},
            ),
            Recorded(
                "question_keyless_2016.json",
                1,
                {"title": 1, "url": 1, "created_at": 1, "credit": 1},
            ),
            Recorded("empty.json", 0),
            Recorded("error_400_throttle_violation.json", QuotaExhausted),
            Recorded("error_400_bad_site.json", NotConfigured),
        ),
        settings={"stackexchange_sites": "superuser"},
        part="'page': '1'",  # each promises more, which is nowhere recorded
    ),
    Place(
        GitHubEmulator,
        (
            Recorded("search_issues_2022.json", 2, {"body": 2, "author": 2, "created_at": 2, "unfit": 0}),
            Recorded(
                "search_issues_2014_first6.json",
                6,
                {"place": 6, "author": 6, "created_at": 6, "unfit": 6},
            ),
            Recorded("search_empty_2018.json", 0),
            Recorded("error_422_needs_is_issue.json", Broken),
            Recorded("error_422_validation_2022.json", Broken),
        ),
        settings={"github_token": None},
    ),
    Place(
        LemmyEmulator,
        (
            Recorded(
                "search_v3_all_2026.json",
                2,
                {
                    "title": 2,
                    "body": 1,
                    "thread": 1,
                    "author": 2,
                    "created_at": 2,
                    "place": 2,
                    "link": 1,
                },
            ),
            Recorded(
                "post_list_v3_2026.json",
                3,
                {
                    "title": 3,
                    "body": 1,
                    "author": 3,
                    "created_at": 3,
                    "place": 3,
                    "link": 2,
                    "unfit": 1,
                },
            ),
            Recorded("empty_v3.json", 0),
            Recorded("error_400_rate_limit_v3.json", RateLimited),
        ),
        frozenset({"comment_list_v3_2026.json"}),
    ),
    Place(
        DiscourseEmulator,
        (
            Recorded(
                "search_2020.json",
                1,
                {"title": 1, "body": 1, "author": 1, "created_at": 1, "unfit": 1},
            ),
            Recorded(
                "search_query_2015.json",
                5,
                {"title": 5, "body": 5, "author": 5, "created_at": 5, "unfit": 0},
            ),
            Recorded("error_429_search.json", RateLimited),
        ),
        frozenset({"topic_first6.json", "topic_2019.json", "topic_page2_2020.json"}),
    ),
)
SEARCHES = [(place, recorded) for place in PLACES for recorded in place.searches]


@pytest.mark.parametrize(("place", "recorded"), SEARCHES, ids=[f"{p.emulator.name} {r.file}" for p, r in SEARCHES])
async def test_recorded_searches(place: Place, recorded: Recorded) -> None:
    """Outcome, items and filled fields of each recorded answer."""
    folder, name = MORE / place.emulator.name, recorded.file
    meta = json.loads((folder / "index.json").read_text("utf-8"))[name]
    answer = Reply(meta.get("status", 200), (folder / name).read_bytes(), meta.get("headers", {}))
    with place.emulator() as upstream:
        upstream.fault = on(place.part or upstream.search_path, answer)
        source = SOURCES[upstream.name].build(upstream.settings(**place.settings))
        try:
            if isinstance(recorded.items, int):
                items = (await source.fetch(FetchPlan("mug", recorded.items or 5))).items
                filled = {n: sum(bool(getattr(i, n)) for i in items) for n in recorded.filled}
                assert len(items) == recorded.items
                assert filled == recorded.filled
            else:
                with pytest.raises(recorded.items):
                    await source.fetch(FetchPlan("mug", 5))
        finally:
            await source.aclose()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.emulator.name)
def test_every_recording_is_read(place: Place) -> None:
    """One that is in no table is a gap."""
    files = {path.name for path in (MORE / place.emulator.name).iterdir()} - {"index.json"}

    assert files == {recorded.file for recorded in place.searches} | place.threads
