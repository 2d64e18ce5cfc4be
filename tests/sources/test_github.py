"""GitHub issues: what is sent, what its answers become, both limits, recordings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, NotConfigured, RateLimited, Refused, SourceError, Unreachable
from api.pipeline.question.query_screen import without_operators
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.github import GitHubSource
from api.sources.web_client import Limit
from tests.loopback import Reply
from tests.sources.emulators import SECRET, found_by, on
from tests.sources.issue_emulators import GitHubEmulator, issue, remark


@pytest.fixture
def upstream() -> Iterator[GitHubEmulator]:
    """GitHub on loopback."""
    with GitHubEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: GitHubEmulator) -> AsyncIterator[Source]:
    """The real source that asks it, without a token."""
    made = SOURCES["github"].build(upstream.settings(github_token=None))
    yield made
    await made.aclose()


async def found(upstream: GitHubEmulator, source: Source, *rows: Any) -> tuple[Item, ...]:
    """What these issues become."""
    body = {"total_count": len(rows), "incomplete_results": False, "items": list(rows)}
    upstream.fault = on("/search/issues", Reply(body=body))
    return (await source.fetch(FetchPlan("mug", 10))).items


async def test_one_search_serves_the_refetch(upstream: GitHubEmulator, source: Source) -> None:
    """A hundred issues at once, of a phrase; never what is no issue."""
    plan = FetchPlan("Ember mug", 10, name="Ember mug")
    await source.fetch(plan)
    await source.fetch(plan.widened(2))

    (search,) = upstream.searches
    assert search.query["q"] == '"Ember mug" is:issue'
    assert (search.query["per_page"], search.query["page"]) == ("100", "1")
    assert search.headers["accept"] == "application/vnd.github+json"
    assert search.headers["user-agent"].startswith("listenpost")
    assert "authorization" not in search.headers


async def test_a_window_is_exact(upstream: GitHubEmulator, source: Source) -> None:
    """The place knows days; of the first one what is too old is left out here."""
    start = datetime.now(UTC) - timedelta(days=7)
    early, late = (start + timedelta(hours=hours) for hours in (-1, 1))
    old, new = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (early, late))
    rows = [issue(1, created_at=old), issue(6, created_at=new)]
    upstream.fault = on("/search", Reply(body={"total_count": 2, "items": rows}))

    batch = await source.fetch(FetchPlan("mug", 10, "week"))

    (search,) = upstream.searches
    assert search.query["q"] == f"mug is:issue created:>={start:%Y-%m-%d}"
    assert [item.id for item in batch.items] == ["7"]


async def test_a_token_is_sent_and_reads_everything(upstream: GitHubEmulator) -> None:
    """With it the comments of all kept issues are read, one request each."""
    source = SOURCES["github"].build(upstream.settings())
    items = await found_by(source, 8)
    read = await source.comments(items)
    await source.aclose()

    assert {asked.headers["authorization"] for asked in upstream.server.asked} == {f"Bearer {SECRET}"}
    assert len(upstream.paths) == 9
    assert read.notes == ()
    assert all(item.comments for item in read.items)


async def test_without_a_token_five_are_read(upstream: GitHubEmulator, source: Source) -> None:
    """Of those that have comments; the others say why they have none, and so does the whole."""
    silent = issue(0, comments=0)
    items = await found(upstream, source, silent, *(issue(number) for number in range(1, 9)))

    read = await source.comments(items)

    assert [item.key for item in read.items] == [item.key for item in items]
    assert [bool(item.comments) for item in read.items] == [False, *[True] * 5, *[False] * 3]
    assert read.items[0].notes == ()
    assert all("LISTENPOST_GITHUB_TOKEN" in item.notes[0] for item in read.items[6:])
    (note,) = read.notes
    assert note.startswith("comments of 3 of 8 issues were not read")
    assert len(upstream.paths) == 6


def test_the_price_follows_the_token(upstream: GitHubEmulator) -> None:
    """Five requests for comments at most without one; a blank one is none."""
    price = SOURCES["github"].price

    assert price(upstream.settings(github_token=" ")).threads == 5
    assert price(upstream.settings()).threads is None


def test_a_token_that_cannot_be_sent_is_named(upstream: GitHubEmulator) -> None:
    """And not shown."""
    with pytest.raises(NotConfigured, match="LISTENPOST_GITHUB_TOKEN") as caught:
        SOURCES["github"].build(upstream.settings(github_token=f"{SECRET}\u00fc"))

    assert SECRET not in str(caught.value)


OPERATORS = [
    ("repo:kiln/mugs leaks", "leaks"),
    ("mug OR (cup AND lid)", "mug or cup and lid"),
    ("@kiln #12", "kiln #12"),
    ('"ember mug" NOT cup', '"ember mug" not cup'),
    ('open"quote', "open quote"),
    ("C++ plaud.ai", "C++ plaud.ai"),
]
NOTHING_ELSE = ["-mug user:me", "is:pr author:@me"]


@pytest.mark.parametrize(("query", "sent"), OPERATORS)
async def test_operators_are_words(upstream: GitHubEmulator, source: Source, query: str, sent: str) -> None:
    """Nothing that a person writes is a command, when it comes as every query does."""
    await source.fetch(FetchPlan(without_operators(query, "github"), 5))

    assert upstream.searches[0].query["q"] == f"{sent} is:issue"


@pytest.mark.parametrize("query", NOTHING_ELSE)
def test_of_commands_alone_nothing_is_left(query: str) -> None:
    """Then the question is asked instead, see `Run.search`."""
    assert without_operators(query, "github") == ""


@pytest.mark.parametrize("query", ["mug " * 100, "m" * 400, f'"{"ember " * 60}mug" leaks'])
async def test_a_long_query_is_cut(upstream: GitHubEmulator, source: Source, query: str) -> None:
    """At 256 characters with all that belongs to it, no phrase left open, and it says so."""
    batch = await source.fetch(FetchPlan(query, 5, "day"))

    sent = upstream.searches[0].query["q"]
    assert 200 < len(sent) <= 256
    assert " is:issue created:>=" in sent
    assert sent.count('"') % 2 == 0
    assert any("256 characters" in note for note in batch.notes)


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"body": None}, {"body": "", "unfit": ""}),
    ({"body": "<!-- search first -->\n- [ ] I did\n\nIt leaks"}, {"body": "It leaks"}),
    ({"body": "## Model\n\n## Page\n\n_No response_\n\n### Steps\n"}, {"body": "", "unfit": ""}),
    ({"body": "# Bug\n## What\nIt leaks\n## Else\n"}, {"body": "# Bug\n## What\nIt leaks"}),
    ({"body": "#7 is worse"}, {"body": "#7 is worse"}),
    ({"pull_request": {"html_url": None}}, {"unfit": ""}),
    ({"pull_request": {"url": "x"}}, {"unfit": "a pull request, not an issue"}),
    ({"user": {"login": "stale[bot]"}}, {"unfit": "written by a bot"}),
    ({"user": {"login": "k8s-ci-robot"}}, {"unfit": "written by a bot"}),
    ({"user": {"login": "Codecov"}}, {"unfit": "written by a bot"}),
    ({"user": {"login": "kilnbot", "type": "Bot"}}, {"unfit": "written by a bot"}),
    ({"user": {"login": "talbot", "type": "User"}}, {"unfit": ""}),
    ({"user": None}, {"author": None}),
    ({"created_at": "1999-01-01T00:00:00Z"}, {"created_at": None}),
    ({"html_url": "javascript:x"}, {"url": "https://github.com/kiln/mugs/issues/2"}),
    ({"reactions": None}, {"engagement": {"reactions": None, "comments": 3}}),
    (
        {"repository_url": None, "url": "https://api.github.com/repos/a/b.c/issues/2"},
        {"place": "a/b.c", "key": "github:a/b.c#2"},
    ),
]


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_issues(upstream: GitHubEmulator, source: Source, fields: Any, expected: Any) -> None:
    """Programs, pull requests, templates, the fields of years before."""
    (item,) = await found(upstream, source, issue(1, **fields))

    assert {name: getattr(item, name) for name in expected} == expected
    assert "potter" not in (item.author or "")


@pytest.mark.parametrize("fields", [{"number": None}, {"title": None}, {"repository_url": "https://x/repos/../.."}])
async def test_what_is_no_issue_is_a_gap(upstream: GitHubEmulator, source: Source, fields: Any) -> None:
    """It counts as an entry and is none of the items."""
    (item,) = await found(upstream, source, issue(1) | fields, issue(2))

    assert item.id == "3"


async def test_an_incomplete_search_says_so(upstream: GitHubEmulator, source: Source) -> None:
    """What came counts."""
    body = {"total_count": 1, "incomplete_results": True, "items": [issue(1)]}
    upstream.fault = on("/search/issues", Reply(body=body))

    batch = await source.fetch(FetchPlan("mug", 5))

    assert len(batch.items) == 1
    assert any("ran out of time" in note for note in batch.notes)


async def test_nothing_is_asked_beyond_a_thousand(upstream: GitHubEmulator) -> None:
    """The last page is the tenth."""
    upstream.count = 5_000
    source = SOURCES["github"].build(upstream.settings())
    batch = await source.fetch(FetchPlan("mug", 2_000))
    await source.aclose()

    assert (len(batch.items), len(upstream.searches), batch.full) == (1_000, 10, False)


SPENT = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "4102444800"}
NEEDS = {"message": "Validation Failed", "errors": [{"message": "Query must include 'is:issue'"}]}
FAILURES: list[tuple[Reply, type[SourceError], str]] = [
    (Reply(403, {"message": "API rate limit exceeded"}, SPENT), RateLimited, "limit is reached"),
    (Reply(429, {"message": "API rate limit exceeded"}, SPENT), RateLimited, "limit is reached"),
    (Reply(403, {"message": "API rate limit exceeded"}), RateLimited, "limit is reached"),
    (
        Reply(403, {"message": "You have exceeded a secondary rate limit"}, {"retry-after": "60"}),
        RateLimited,
        "at once",
    ),
    (Reply(403, {"message": "You have exceeded a secondary rate limit"}), RateLimited, "at once"),
    (Reply(403, {"message": "Slow down"}, {"retry-after": "60"}), RateLimited, "limit is reached"),
    (Reply(429, {}), RateLimited, "429"),
    (Reply(429, "<h1>Whoa</h1>"), RateLimited, "429"),
    (Reply(422, NEEDS), Broken, "does not take"),
    (Reply(401, {"message": "Bad credentials"}), Refused, "LISTENPOST_GITHUB_TOKEN"),
    (Reply(403, {"message": "Resource not accessible"}), Refused, "403"),
    (Reply(403, "<h1>Forbidden</h1>"), Blocked, "web page"),
    (Reply(503, {"message": "timeout"}), Unreachable, "503"),
    (Reply(body="<html>unicorn</html>"), Blocked, "web page"),
    (Reply(body={"total_count": 0}), Broken, "without items"),
    (Reply(body=[]), Broken, "without items"),
]


@pytest.mark.parametrize(("answer", "expected", "words"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: GitHubEmulator,
    source: Source,
    answer: Reply,
    expected: type[SourceError],
    words: str,
) -> None:
    """Each of its own ways to fail is an outcome, never an empty page."""
    upstream.fault = on("/search", answer)

    with pytest.raises(SourceError, match=words) as caught:
        await source.fetch(FetchPlan("mug", 5))

    assert type(caught.value) is expected


async def test_the_secondary_limit_is_a_minute(upstream: GitHubEmulator, source: Source) -> None:
    """Also where no header says so; until then nothing is sent."""
    message = {"message": "You have exceeded a secondary rate limit"}
    upstream.fault = on("/search", Reply(403, message), times=1)
    with pytest.raises(RateLimited) as caught:
        await source.fetch(FetchPlan("mug", 5))

    with pytest.raises(RateLimited, match="nothing sent"):
        await source.fetch(FetchPlan("cup", 5))

    at = caught.value.retry_at
    assert at is not None
    assert 0 < (at - datetime.now(UTC)).total_seconds() <= 60
    assert len(upstream.searches) == 1


async def test_the_last_search_of_a_minute_is_known(upstream: GitHubEmulator, source: Source) -> None:
    """Its answer counts; the next search is not sent, while comments are another limit's."""
    later = str(int((datetime.now(UTC) + timedelta(minutes=1)).timestamp()))
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": later}
    body = {"total_count": 1, "items": [issue(1)]}
    upstream.fault = on("/search", Reply(body=body, headers=headers))
    (item,) = (await source.fetch(FetchPlan("mug", 5))).items

    with pytest.raises(RateLimited):
        await source.fetch(FetchPlan("cup", 5))
    (full,) = (await source.comments((item,))).items

    assert full.comments
    assert len(upstream.searches) == 1


@pytest.mark.parametrize(("token", "searches"), [("", 10), ("any", 30)])
async def test_searches_of_a_minute(token: str, searches: int) -> None:
    """More are not sent, to anything but a server on this machine; see `Pace`."""
    source = SOURCES["github"].build(SourceSettings.model_validate({"github_token": token}))
    await source.aclose()

    assert isinstance(source, GitHubSource)
    assert source.limits == (Limit(searches, 60),)


async def test_comments_of_programs_are_left_out(upstream: GitHubEmulator, source: Source) -> None:
    """And those that say nothing."""
    (item,) = await found(upstream, source, issue(1))
    rows = [
        remark(1, user={"login": "stale[bot]", "type": "Bot"}),
        remark(2, body="<!-- nothing -->"),
        remark(3, body=None),
        remark(4, user=None),
    ]
    upstream.fault = on("/comments", Reply(body=rows))

    (full,) = (await source.comments((item,))).items

    (comment,) = full.comments
    assert (comment.id, comment.author) == ("5004", None)
    assert comment.url == "https://github.com/kiln/mugs/issues/1#issuecomment-5004"
    assert comment.engagement == {"reactions": 1}


async def test_the_probe_asks_for_limits_alone(upstream: GitHubEmulator, source: Source) -> None:
    """Which counts against none of them."""
    probe = await source.probe()

    assert upstream.paths == ["/rate_limit"]
    assert probe.detail == "29 of 30 searches a minute left, 29 of 30 comment requests an hour left"
    upstream.fault = on("/rate_limit", Reply(body={"resources": {"search": {"limit": "x"}}}))
    assert (await source.probe()).detail == ""
