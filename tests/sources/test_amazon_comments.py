"""Reading product pages of kept items: bullets, reviews, and what happens when some fail."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from api.core.context import request_counter
from api.core.display_names import OUTCOME_REASONS
from api.core.domain import Outcome
from api.errors import QuotaExhausted
from api.sources.amazon import NO_REVIEWS, SIGN_IN
from tests.sources.amazon_site import JSON, Answer, item, open_site, open_source, product_page, review

ASINS = [f"B0TESTAA{n:02}" for n in range(12)]
CAPTCHA = Answer('<form action="/errors/validateCaptcha"></form>')
GOOD = Answer(product_page(review("R1TESTAAAA"), review("R2TESTAAAA", helpful="7 people")))


async def test_bullets_become_the_body_and_reviews_the_comments() -> None:
    """With pseudonym, stars, votes, day, and an address of its own."""
    async with open_site() as site, open_source(site) as source:
        site.answers[f"/dp/{ASINS[0]}"] = GOOD

        with request_counter() as calls:
            read = await source.comments([item(ASINS[0])])

    (full,) = read.items
    first, second = full.comments
    assert (full.body, full.place, full.notes) == ("Steel inside\nHolds 350 ml", "Brava", ())
    assert first.body == "Keeps coffee hot\nStill warm\nafter lunch."
    assert first.url == "https://www.amazon.com/gp/customer-reviews/R1TESTAAAA"
    assert first.created_at == datetime(2026, 7, 30, tzinfo=UTC)
    assert [dict(each.engagement) for each in (first, second)] == [
        {"stars": 4.0, "helpful": 1},
        {"stars": 4.0, "helpful": 7},
    ]
    assert first.author is not None
    assert first.author.startswith("shopper-")
    assert (read.notes, calls.made) == ((), 1)


async def test_comments_per_item_is_a_limit() -> None:
    """One means one; none means that no page is asked for."""
    async with open_site() as site:
        site.answers[f"/dp/{ASINS[0]}"] = GOOD
        async with open_source(site, comments_per_item=1) as source:
            one = await source.comments([item(ASINS[0])])
        async with open_source(site, comments_per_item=0) as source:
            none = await source.comments([item(ASINS[0])])

    assert len(one.items[0].comments) == 1
    assert none.items == (item(ASINS[0]),)
    assert len(site.asked) == 1


async def test_at_most_four_pages_at_once() -> None:
    """Twelve items, in their order, four under way at a time."""
    async with open_site() as site, open_source(site) as source:
        for asin in ASINS:
            site.answers[f"/dp/{asin}"] = GOOD

        read = await source.comments([item(asin) for asin in ASINS])

    assert [each.id for each in read.items] == ASINS
    assert all(each.comments for each in read.items)
    assert 1 < site.busiest <= 4


async def test_no_reviews_has_its_cause() -> None:
    """A page without reviews keeps the product and says why; nobody rated is another cause."""
    async with open_site() as site, open_source(site) as source:
        site.answers[f"/dp/{ASINS[0]}"] = Answer(product_page())

        read = await source.comments([item(ASINS[0])])

    assert read.items[0].body == "Steel inside\nHolds 350 ml"
    assert (read.items[0].notes, read.notes) == ((SIGN_IN,), (SIGN_IN,))
    assert SIGN_IN == "reviews need a sign-in"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Answer("<p>gone</p>", 404), "broken"),
        (Answer("<p>oops</p>", 500), "unreachable"),
        (Answer("<body>hello</body>"), "broken"),
        (CAPTCHA, "blocked"),
    ],
)
async def test_one_failing_page_leaves_the_others(answer: Answer, code: str) -> None:
    """The item stays as its tile, with a note; the batch says how many failed and why."""
    async with open_site() as site, open_source(site) as source:
        for asin in ASINS[:6]:
            site.answers[f"/dp/{asin}"] = GOOD
        site.answers[f"/dp/{ASINS[1]}"] = answer

        read = await source.comments([item(asin) for asin in ASINS[:6]])

    assert [len(each.comments) for each in read.items] == [2, 0, 2, 2, 2, 2]
    assert read.items[1].body == "4.5 stars"
    assert read.items[1].notes[0].startswith("reviews could not be read: ")
    assert read.notes == (f"reviews: 1 of 6 failed ({OUTCOME_REASONS[Outcome(code)]})",)


async def test_four_blocked_pages_in_a_row_end_the_reading() -> None:
    """What was read stays read, the rest is not asked for, and each says what happened to it."""
    async with open_site() as site, open_source(site) as source:
        for asin in ASINS:
            site.answers[f"/dp/{asin}"] = GOOD if asin == ASINS[0] else CAPTCHA

        read = await source.comments([item(asin) for asin in ASINS])

    assert [each.id for each in read.items] == ASINS
    assert len(read.items[0].comments) == 2
    assert read.items[1].notes == ("reviews could not be read: captcha page",)
    assert read.items[11].notes == ("reviews not asked for: blocked",)
    assert read.notes == ("reviews: 11 of 12 failed (blocked by a captcha, login wall or 403 page)",)
    assert len(site.asked) < len(ASINS)


async def test_used_up_credits_stop_the_round() -> None:
    """A paid provider that says no is not asked again for the rest."""
    async with open_site() as site, open_source(site, "omkar") as source:
        site.answers["/amazon/product-details"] = Answer("{}", 402, JSON)

        with pytest.raises(QuotaExhausted):
            await source.comments([item(asin) for asin in ASINS])

    assert len(site.asked) <= 4


async def test_a_provider_completes_the_tile() -> None:
    """A cut title is completed; unknown rating and count come from the product."""
    answer = {
        "product_name": "Brava Mug 350 ml",
        "full_description": "A mug.",
        "rating": 4.2,
        "reviews": 0,
        "top_reviews": None,
    }
    async with open_site() as site, open_source(site, "omkar") as source:
        site.answers["/amazon/product-details"] = Answer(json.dumps(answer), kind=JSON)

        read = await source.comments([item(ASINS[0])])

    (full,) = read.items
    assert (full.title, full.body) == ("Brava Mug 350 ml", "A mug.")
    assert dict(full.engagement) == {"stars": 4.5, "ratings": 12}
    assert full.notes == ("no reviews given by `omkar`",)


async def test_nobody_rated_yet() -> None:
    """Zero ratings explain the missing reviews better than a sign-in."""
    unrated = item(ASINS[0])
    unrated = type(unrated)(
        key=unrated.key,
        id=unrated.id,
        source="amazon",
        title="Brava Mug",
        engagement={"stars": None, "ratings": 0},
    )
    async with open_site() as site, open_source(site) as source:
        site.answers[f"/dp/{ASINS[0]}"] = Answer(product_page())

        read = await source.comments([unrated])

    assert read.items[0].notes == (NO_REVIEWS,)
