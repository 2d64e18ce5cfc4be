"""`/search` over a real store."""

from __future__ import annotations

import re

from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.hostile_report import EVIL, Tags
from tests.store.made import item, report, typed

LEAK = "The lid leaks when it tips over. <img src=x onerror=alert(1)> Batteries last."
QUESTION = "Ember mug lid leaking"


async def shown(served: Served, **wanted: str) -> Tags:
    """The page."""
    answer = await served.client.get("/search", params=wanted)
    assert answer.status_code == 200, answer.text
    return Tags(answer.text)


def words_of(page: Tags) -> str:
    """What a person reads, on one line."""
    return " ".join(" ".join(page.words).split())


async def keep(served: Served, **more: object) -> None:
    """An analysis that kept one post about the mug."""
    made = item("reddit:t3_1", title="Ember mug lid", body=LEAK, comments=[], **more)
    await served.app_context.store.finish(LOCAL.id, typed(report("a1", made)))


async def test_words_of_the_question_stand_out(served: Served) -> None:
    """In the post's own words, as text; nobody is asked for it."""
    await keep(served)
    before = len(served.sandbox.log)
    page = await shown(served, q=QUESTION)
    text = words_of(page)
    marks = [tag for tag, _ in page.tags].count("mark")

    assert len(served.sandbox.log) == before
    assert "Ember mug lid" in text
    assert marks
    assert not page.named("img")
    assert {"href": "https://example.org/t3_1", "rel": "noopener noreferrer nofollow ugc"} in (page.named("a"))


async def test_an_address_that_is_none_is_no_link(served: Served) -> None:
    """What strangers call a link may run something."""
    await keep(served, url="javascript:alert(1)")
    page = await shown(served, q=QUESTION)
    assert "Ember mug lid" in words_of(page)
    assert not [each for each in page.named("a") if "rel" in each]


async def test_one_word_is_enough(served: Served) -> None:
    """What holds it is shown; of a word that nothing holds it is said, and how much is stored."""
    assert "No real post is stored yet." in words_of(await shown(served, q="battery"))
    await keep(served)
    for q in ("batteries", "battery", "lid tips"):
        assert "Ember mug lid" in words_of(await shown(served, q=q)), q
    none = words_of(await shown(served, q="zzzzqq"))
    assert "None of 1 stored entry holds `zzzzqq`." in none
    away = words_of(await shown(served, q="battery", source="youtube"))
    assert "or without filters" in away


async def test_a_hit_leads_to_the_post_and_to_its_report(served: Served) -> None:
    """By visible links; no number stands beside a hit, whose order is said once."""
    await keep(served)
    page = await shown(served, q=QUESTION)
    text = words_of(page)
    assert "Reddit (mugs), 2026-11-20 · Open on Reddit · In a report" in text
    assert {"href": "/analyses/a1/evidence?text=Ember%20mug%20lid"} in page.named("a")
    assert not re.findall(r"\d ?%", text)


async def test_a_product_narrows_the_search(served: Served) -> None:
    """To what was found for it; the questions that were asked are offered."""
    await keep(served)
    page = await shown(served, q=QUESTION)
    assert page.named("option")[0].get("value") == "plaud note"
    assert "Ember mug lid" in words_of(await shown(served, q=QUESTION, about="plaud note"))
    assert not (await shown(served, q=QUESTION, about="Oura")).named("blockquote")


async def test_what_is_searched_is_narrowed(served: Served) -> None:
    """By place and time; an empty question finds nothing and small talk is answered."""
    await keep(served)
    assert "Ember mug lid" in words_of(await shown(served, q=QUESTION, source="reddit"))
    for wanted in ({"q": QUESTION, "source": "youtube"}, {"q": QUESTION, "since": "1d"}, {"q": ""}):
        page = await shown(served, **wanted)
        assert not page.named("blockquote"), wanted
    assert [tag for tag, _ in (await shown(served, q="hello")).tags].count("li") == 0


async def test_the_question_itself_is_text(served: Served) -> None:
    """It comes back in the field, and breaks out of it nowhere."""
    for words in EVIL:
        page = await shown(served, q=f"mug {words}")
        assert not page.named("img") + page.named("svg") + page.named("style")
        assert len(page.named("script")) == 1


async def test_what_cannot_be_searched_is_said_beside_its_field(served: Served) -> None:
    """In plain words, and the question stays."""
    for wrong, words in (
        ({"since": "soon"}, "This needs days or weeks (“30d”, “12w”)"),
        ({"source": "myspace"}, "This names no source; there are “"),
        ({"q": "mug" * 200}, "This must be text of at most 500 characters."),
    ):
        answer = await served.client.get("/search", params={"q": "mug", **wrong})
        page = Tags(answer.text)
        tied = [tag for tag, attributes in page.tags if attributes.get("aria-invalid")]

        assert answer.status_code == 422
        assert words in words_of(page)
        assert "`" not in answer.text
        assert tied == ["input" if "q" in wrong else "select"]
        assert f'value="{wrong.get("q", "mug")}"' in answer.text
