"""Amazon over a socket: searching, paging, and every way of failing."""

from __future__ import annotations

import asyncio
import json

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.errors import (
    Blocked,
    Broken,
    NotConfigured,
    QuotaExhausted,
    RateLimited,
    Refused,
    SourceError,
    TimedOut,
    Unreachable,
)
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.amazon import UNDATED
from tests.loopback import Reply
from tests.sources.amazon_site import (
    JSON,
    Answer,
    Site,
    open_site,
    open_source,
    product_page,
    result_page,
    review,
    tile,
)
from tests.sources.emulators import AmazonEmulator, found_by, on

ASINS = [f"B0TESTAA{n:02}" for n in range(40)]
PLAN = FetchPlan("mug", 5)


def _paged(params: dict[str, str]) -> Answer:
    """Two pages of four tiles."""
    page = int(params["page"])
    tiles = [tile(asin) for asin in ASINS[page * 4 - 4 : page * 4]]
    return Answer(result_page(*tiles, following=page == 1))


async def test_an_item_is_its_tile() -> None:
    """Before the gate: title, rating and price as text, the address of the product."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))

        batch = await source.fetch(PLAN)

    (item,) = batch.items
    assert (item.key, item.id, item.source) == (f"amazon:{ASINS[0]}", ASINS[0], "amazon")
    assert (item.title, item.body) == ("Brava Mug", "4.5 stars, 1,234 ratings, $159.00")
    assert item.url == f"https://www.amazon.com/dp/{ASINS[0]}"
    assert dict(item.engagement) == {"stars": 4.5, "ratings": 1234}
    assert (item.created_at, item.place, item.comments, batch.full) == (None, None, (), False)


async def test_the_configured_shop_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With amazon.es as its root, products and reviews lead there; a proxy plays the shop."""
    async with open_site() as site:
        monkeypatch.setenv("http_proxy", site.url)
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))
        site.answers[f"/dp/{ASINS[0]}"] = Answer(product_page(review("R1TESTAAAA")))
        async with open_source(site, amazon_url="http://www.amazon.es/") as source:
            batch = await source.fetch(FetchPlan("taza", 1))
            read = await source.comments(batch.items)

    (full,) = read.items
    assert full.url == f"https://www.amazon.es/dp/{ASINS[0]}"
    assert full.comments[0].url == "https://www.amazon.es/gp/customer-reviews/R1TESTAAAA"


@pytest.mark.parametrize(
    ("provider", "path", "answer"),
    [
        ("omkar", "/amazon/search", {"results": [{"uid": 1}, {"uid": 2}]}),
        ("openwebninja", "/search", {"status": "OK", "data": {"products": [{"uid": 1}, "x"]}}),
    ],
)
async def test_products_nobody_understands_are_broken(provider: str, path: str, answer: object) -> None:
    """Of a provider, too: entries without the fields that are read are no empty shelf."""
    async with open_site() as site, open_source(site, provider) as source:
        site.answers[path] = Answer(json.dumps(answer), kind=JSON)

        with pytest.raises(Broken, match="without the fields"):
            await source.fetch(PLAN)


async def test_a_wider_plan_asks_only_for_what_is_missing() -> None:
    """Surplus first, then page two, never page one again; each request is charged."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = _paged

        with request_counter() as calls:
            first = await source.fetch(FetchPlan("mug", 2))
            wider = await source.fetch(FetchPlan("mug", 4))
            widest = await source.fetch(FetchPlan("mug", 10))

    assert [len(batch.items) for batch in (first, wider, widest)] == [2, 4, 8]
    assert [batch.full for batch in (first, wider, widest)] == [True, True, False]
    assert [params["page"] for _, params in site.asked] == ["1", "2"]
    assert calls.made == 2


async def test_concurrent_equal_searches_share_a_flight() -> None:
    """Two at once send each of the two pages that limit 5 needs once."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = _paged

        batches = await asyncio.gather(source.fetch(PLAN), source.fetch(PLAN))

    assert batches[0].items == batches[1].items
    assert len(site.asked) == 2


@pytest.mark.parametrize("query", ["café ☕ 小米", 'McDonald\'s "best" {x} & y=1#?%', "a\ud83db"])
async def test_any_text_can_be_asked(query: str) -> None:
    """The query arrives as it was typed; a lone surrogate is replaced."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))

        batch = await source.fetch(FetchPlan(query, 1))

    assert len(batch.items) == 1
    assert site.asked[0][1]["k"] == query.replace("\ud83d", "\ufffd")


async def test_html_asks_like_a_browser_and_keeps_no_cookies() -> None:
    """Browser headers, no key, and a cookie that was set is not sent back."""
    async with open_site() as site, open_source(site) as source:
        page = result_page(tile(ASINS[0]))
        site.answers["/s"] = Answer(page, headers={"set-cookie": "session-id=1; Path=/"})

        await source.fetch(FetchPlan("mug", 1))
        await source.fetch(FetchPlan("cup", 1))

    assert all("Mozilla/5.0" in headers["user-agent"] for headers in site.headers)
    assert not any("cookie" in headers or "api-key" in headers for headers in site.headers)


async def test_nothing_found_is_an_empty_batch() -> None:
    """Amazon's own words for an empty shelf."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer("<body>No results for mug.</body>")

        batch = await source.fetch(PLAN)

    assert (batch.items, batch.full) == ((), False)


async def test_a_window_is_admitted_to_be_unused() -> None:
    """Products have no date, so the batch says that the window did nothing."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))

        batch = await source.fetch(FetchPlan("mug", 1, "week"))

    assert (len(batch.items), batch.notes) == (1, (UNDATED,))


CAPTCHA = '<form action="/errors/validateCaptcha"></form>'
FAILURES = [
    ("html", Answer('<a href="/ref=cs_503_d"></a>', 503), Blocked),
    ("html", Answer(CAPTCHA), Blocked),
    ("html", Answer("<script src='x.awswaf.com/challenge.js'></script>", 202), Blocked),
    ("html", Answer("", 202), Blocked),
    ("html", Answer("<div>" * 20_000), Broken),
    ("html", Answer(status=302, headers={"location": "/ap/cvf/request?arb=1"}), Blocked),
    ("html", Answer("<p>no</p>", 403), Blocked),
    ("html", Answer("<p>slow down</p>", 429), Blocked),
    ("html", Answer(status=302, headers={"location": "/ap/signin?x=1"}), Blocked),
    ("html", Answer(status=302, headers={"location": "https://else.example/ap/signin"}), Blocked),
    ("html", Answer(status=302, headers={"location": "https://else.example/s"}), Broken),
    ("html", Answer(status=302, headers={"location": "/s"}), Broken),
    ("html", Answer("<body>hello</body>"), Broken),
    ("html", Answer(""), Broken),
    ("html", Answer("x" * 8_000_001), Broken),
    ("html", Answer("<p>gone</p>", 404), Broken),
    ("html", Answer("<p>oops</p>", 500), Unreachable),
    ("html", Answer("x", headers={"content-encoding": "gzip"}), Broken),
    ("omkar", Answer("{}", 401, JSON), Refused),
    ("omkar", Answer('{"message": "not subscribed"}', 403, JSON), Refused),
    ("omkar", Answer("<p>no</p>", 403), Blocked),
    ("omkar", Answer("{}", 402, JSON), QuotaExhausted),
    ("omkar", Answer("{}", 429, JSON), RateLimited),
    ("omkar", Answer("", 429, "text/plain"), RateLimited),
    ("omkar", Answer('{"message": "quota per second"}', 429, JSON), RateLimited),
    ("openwebninja", Answer('{"message": "MONTHLY quota"}', 429, JSON), QuotaExhausted),
    ("omkar", Answer("bad gateway", 502, "text/plain"), Unreachable),
    ("omkar", Answer("{}", 400, JSON), Broken),
    ("omkar", Answer("not json", 200, JSON), Broken),
    ("openwebninja", Answer('{"status": "ERROR", "error": {"code": 500}}', 200, JSON), Unreachable),
    ("openwebninja", Answer('{"success": false}', 200, JSON), Broken),
    ("omkar", Answer('{"success": false, "message": "Invalid API key"}', 200, JSON), Refused),
    ("omkar", Answer('{"error": "rate limit"}', 200, JSON), RateLimited),
    ("omkar", Answer('{"error": "out of credits"}', 200, JSON), QuotaExhausted),
]


@pytest.mark.parametrize(
    ("provider", "answer", "outcome"),
    FAILURES,
    ids=[f"{p}-{a.status}-{n}" for n, (p, a, _) in enumerate(FAILURES)],
)
async def test_each_failure_has_its_outcome(provider: str, answer: Answer, outcome: type[SourceError]) -> None:
    """The type says what happened; the message holds neither key nor body nor address."""
    async with open_site() as site, open_source(site, provider) as source:
        for path in ("/s", "/search", "/amazon/search"):
            site.answers[path] = answer

        with pytest.raises(SourceError) as caught:
            await source.fetch(FetchPlan("mug query", 5))

    assert type(caught.value) is outcome
    told = str(caught.value)
    assert not [word for word in ("s3cret", "mug", "127.0.0.1", "subscribed") if word in told]


async def test_failures_are_not_remembered() -> None:
    """After a block page the next call asks again."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(CAPTCHA)
        with pytest.raises(Blocked):
            await source.fetch(PLAN)
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))

        batch = await source.fetch(PLAN)

    assert len(batch.items) == 1


async def test_redirects_within_the_site_are_followed_and_charged() -> None:
    """Up to three; each is a request."""
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(status=301, headers={"location": "/s/b?k=mug"})
        site.answers["/s/b"] = Answer(result_page(tile(ASINS[0])))

        with request_counter() as calls:
            batch = await source.fetch(PLAN)

    assert (len(batch.items), calls.made) == (1, 2)


async def test_a_dripping_server_meets_the_deadline() -> None:
    """Bytes that keep coming do not extend the deadline of real time."""
    async with open_site() as site, open_source(site, source_timeout=0.3) as source:
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])), drip=0.05)
        started = asyncio.get_running_loop().time()

        with pytest.raises(TimedOut):
            await source.fetch(PLAN)

    assert asyncio.get_running_loop().time() - started < 2


async def test_a_closed_port_is_unreachable() -> None:
    """Nobody listens."""
    async with open_site() as site:
        pass
    async with open_source(site) as source:
        with pytest.raises(Unreachable):
            await source.fetch(PLAN)


async def test_a_provider_is_asked_page_by_page() -> None:
    """Until it has no more products; its key goes in the header."""

    def answer(params: dict[str, str]) -> Answer:
        rows = [{"asin": asin, "title": "Mug"} for asin in ASINS[:2]] if params["page"] == "1" else []
        return Answer(json.dumps({"results": rows}), kind=JSON)

    async with open_site() as site, open_source(site, "omkar") as source:
        site.answers["/amazon/search"] = answer

        batch = await source.fetch(PLAN)

    assert (len(batch.items), batch.full, len(site.asked)) == (2, False, 2)
    assert {headers["api-key"] for headers in site.headers} == {"s3cret"}


async def test_a_proxy_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy from the environment does not stand between us and this machine."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with open_site() as site, open_source(site) as source:
        site.answers["/s"] = Answer(result_page(tile(ASINS[0])))

        assert len((await source.fetch(PLAN)).items) == 1


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({}, "AMAZON_PROVIDER"),
        ({"amazon_provider": "omkar"}, "AMAZON_API_KEY"),
        ({"amazon_provider": "omkar", "amazon_api_key": " "}, "AMAZON_API_KEY"),
        ({"amazon_provider": "omkar", "amazon_api_key": "ké\ny"}, "AMAZON_API_KEY"),
    ],
)
def test_what_is_missing_is_named(values: dict[str, str], named: str) -> None:
    """Building without provider or key says which variable to set."""
    with pytest.raises(NotConfigured, match=named) as caught:
        SOURCES["amazon"].build(SourceSettings.model_validate(values))

    assert "ké" not in str(caught.value)


async def probe(site: Site, provider: str = "html") -> tuple[str, str]:
    """What the probe says about the site."""
    async with open_source(site, provider) as source:
        found = await source.probe()
    return found.outcome, found.detail


async def test_probe() -> None:
    """The root page for html, with its failures; no request at all for a paid provider."""
    async with open_site() as site:
        assert (await probe(site, "omkar"))[0] == "ok"
        assert site.asked == []
        assert (await probe(site))[0] == "ok"
        site.answers["/"] = Answer(CAPTCHA)
        assert (await probe(site))[0] == "blocked"
        site.answers["/"] = Answer("<p>oops</p>", 500)
        outcome, detail = await probe(site)

    assert outcome == "unreachable"
    assert "500" in detail


async def test_every_kept_connection_that_died_is_passed_over() -> None:
    """Two were kept and both hang up: the product is read over a third, and each try is counted."""
    with AmazonEmulator() as upstream:
        source = SOURCES["amazon"].build(upstream.settings())
        items = await found_by(source, 2)
        await source.comments(items)
        upstream.fault = on("/dp/", Reply(manner="hang up"), times=2)

        with request_counter() as calls:
            read = await source.comments(items[:1])
        await source.aclose()

    assert read.items[0].comments
    assert calls.made == 3
