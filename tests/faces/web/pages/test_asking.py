"""The first screen: what stands there, what a question costs, and where asking leads."""

from __future__ import annotations

import re

import pytest

from api import wiring
from api.faces.web.app import create_app
from api.faces.web.pages.asking import SAMPLES
from api.sources import SOURCES, TITLES
from api.wiring.serving import open_house
from tests.faces.web.conftest import Opening, Served
from tests.faces.web.pages.visiting import QUICK, begun, finished, submit


async def test_every_place_says_whether_it_can_be_asked(opening: Opening) -> None:
    """Those that lack a setting are switched off and name it, and nobody is asked."""
    async with opening(SOURCES="") as served:
        page = (await served.client.get("/")).text
        analyses = await begun(served)
    for name, title in TITLES.items():
        if name in SOURCES:
            assert f'value="{name}"' in page
            assert title in page
    assert analyses == 0


async def test_a_place_that_lacks_a_setting_names_it(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And cannot be chosen."""
    monkeypatch.setenv("YOUTUBE_API_KEY", "")
    async with opening() as served:
        page = (await served.client.get("/")).text

    (switch,) = re.findall(r'<label class="choice"><input[^>]*value="youtube".*?</label>', page)
    assert " disabled" in switch
    assert "not configured: set YOUTUBE_API_KEY, see docs/sources/youtube.md" in switch


async def test_what_is_left_of_a_quota_stands_beside_the_place(served: Served) -> None:
    """By the ledger, before and after a search; on both screens, and nobody is asked."""
    before = await served.client.get("/")
    await finished(served)
    after = [await served.client.get(path) for path in ("/", "/sources")]

    counts = [
        re.findall(r"ready, (\d+) search(?:es)? left today", page.text) for page in (before, *after)
    ]
    ((first,), (ask,), (sources,)) = counts
    assert int(first) > int(ask)
    assert ask == sources


async def test_asking_leads_to_the_analysis(served: Served) -> None:
    """It runs whoever waits, and the same question is the same analysis."""
    first = await submit(served.client, "/ask", **QUICK)
    again = await submit(served.client, "/ask", **QUICK)

    assert first.status_code == 303
    assert first.headers["location"].startswith("/analyses/")
    assert first.headers["location"] == again.headers["location"]


async def test_the_cost_is_said_before_it_is_spent(served: Served) -> None:
    """Of every depth, and by a button of what is chosen; nothing is begun."""
    await served.house.product()
    page = (await served.client.get("/")).text
    answer = await submit(served.client, "/ask", **QUICK, step="estimate", source=["reddit"])

    assert len(re.findall(r"likely \d+ requests, 0\.\d{3} USD; at most 0\.\d{3} USD", page)) == 3
    assert 'id="estimate"' in answer.text
    assert re.search(r'value="reddit" checked', answer.text)
    assert not re.search(r'value="youtube" checked', answer.text)
    assert 'value="plaud.ai"' in answer.text
    assert await begun(served) == 0


async def test_an_everyday_word_is_hinted_at_once(served: Served) -> None:
    """Saying what it is, or asking anyway, begins."""
    hint = await submit(served.client, "/ask", query="Notion", depth="quick")
    named = await submit(served.client, "/ask", query="Notion", about="notes app", depth="quick")
    anyway = await submit(served.client, "/ask", query="Notion", sure="Notion", depth="quick")

    assert "also an everyday word" in hint.text
    assert "Ask anyway" in hint.text
    assert (hint.status_code, named.status_code, anyway.status_code) == (200, 303, 303)


async def test_what_cannot_be_asked_is_explained(served: Served) -> None:
    """Small talk in the words of the guard, beside the field; a field that is none of ours."""
    talk = await submit(served.client, "/ask", query="hello there")
    wrong = await submit(served.client, "/ask", query="plaud.ai", depth="fast")
    place = await submit(served.client, "/ask", query="plaud.ai", source="myspace")

    assert (talk.status_code, wrong.status_code, place.status_code) == (422, 422, 422)
    assert 'id="wrong"' in talk.text
    assert "`depth` must be `quick`, `standard` or `deep`" in wrong.text
    assert "there is no source `myspace`" in place.text


async def test_a_question_can_be_handed_over(served: Served) -> None:
    """In the address, as text; a page that links here begins nothing by that."""
    page = (await served.client.get("/", params={"query": '"><script>alert(1)</script>'})).text

    assert 'value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in page
    assert await begun(served) == 0


async def test_the_sample_world_says_so(sandbox: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """And offers three questions, each of which gets an answer."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    house = await open_house(wiring.load_settings())
    served = Served(create_app(house), house, None, None)  # type: ignore[arg-type]
    async with served.calling() as client:
        page = (await client.get("/")).text
        answers = [await submit(client, "/ask", query=each, depth="quick") for each in SAMPLES]
        reports = []
        for answer in answers:
            place = answer.headers["location"]
            stream = await client.get(f"{place}/live")
            assert "event: over" in stream.text
            reports.append((await client.get(place)).text)
    await house.aclose()

    assert "Sample world" in page
    assert all(f'value="{each}"' in page for each in SAMPLES)
    assert all("Enough was found" in report for report in reports)
