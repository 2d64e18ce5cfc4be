"""The first screen: what stands there, what a question costs, and where asking leads."""

from __future__ import annotations

import re
from html import unescape

import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.features.analyses.store_ports import StoredAnalysis
from api.interfaces.http.app import create_app
from api.interfaces.pages.ask_page import SAMPLES
from api.sources import SOURCE_TITLES, SOURCES
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import QUICK, begun, finished, submit


async def test_every_place_says_whether_it_can_be_asked(opening: Opening) -> None:
    """Those that lack a setting are switched off and name it, and nobody is asked."""
    async with opening(SOURCES="") as served:
        page = (await served.client.get("/")).text
        analyses = await begun(served)
    for name, title in SOURCE_TITLES.items():
        if name in SOURCES:
            assert f'value="{name}"' in page
            assert title in page
    assert analyses == 0


async def test_a_place_that_lacks_a_setting_names_it(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
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

    counts = [re.findall(r"ready, (\d+) search(?:es)? left today", page.text) for page in (before, *after)]
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


async def test_what_it_is_not_is_asked_too(served: Served) -> None:
    """A line is one thing that it is not, and mentions can be enough; both are in the report."""
    fields = {"not_about": "the river\r\na lake", "aim": "mention"}
    answer = await submit(served.client, "/ask", **QUICK, **fields)
    analysis = await served.app_context.store.get("local", answer.headers["location"].split("/")[2])
    assert isinstance(analysis, StoredAnalysis)
    report = await served.app_context.runner.outcome(analysis)

    assert (report.not_about, report.aim) == (("river", "lake"), "mention")


async def test_the_cost_is_said_before_it_is_spent(served: Served) -> None:
    """Of every depth, and by a button of what is chosen; nothing is begun."""
    await served.app_context.product()
    page = (await served.client.get("/")).text
    answer = await submit(served.client, "/ask", **QUICK, step="estimate", source=["reddit"])

    assert len(set(re.findall(r"likely \d+ requests, 0\.\d{3} USD; at most 0\.\d{3} USD", page))) == 3
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


@pytest.mark.parametrize(
    ("query", "stopped"),
    [
        ("Does the Ember mug battery last?", False),
        ("Does Notion crash on a phone?", False),
        ("What annoys people about Notion?", True),
        (" Notion ", True),
    ],
)
async def test_a_question_that_holds_more_than_an_everyday_word_is_not_stopped(
    served: Served, query: str, stopped: bool
) -> None:
    """It tells itself what to look for."""
    answer = await submit(served.client, "/ask", query=query, depth="quick")
    assert ("also an everyday word" in answer.text) == stopped
    assert answer.status_code == (200 if stopped else 303)


async def test_what_cannot_be_asked_is_explained(served: Served) -> None:
    """In plain words beside the field, and everything that was typed stands there again."""
    typed = {"query": "plaud.ai", "about": "a recorder", "since": "week", "source": ["", "reddit"]}
    for wrong, words in (
        ({"query": "hello there"}, "Hello! Say which product"),
        ({"depth": "fast"}, "This must be “quick”, “standard” or “deep”, not “fast”."),
        ({"since": "ever"}, "This must be “day”, “week”, “month”, “year” or “all”, not “ever”."),
        ({"source": ["", "myspace"]}, "There is no source “myspace”"),
        ({"about": "x" * 5001}, "This must be text of at most 5000 characters."),
    ):
        sent = {**typed, **wrong}
        answer = await submit(served.client, "/ask", **sent)
        form = answer.text[answer.text.index('class="ask"') :]
        (message,) = re.findall(r'id="wrong" class="wrong" role="alert">([^<]*)', form)

        assert answer.status_code == 422
        assert message.startswith(words), message
        assert f'value="{sent["query"]}"' in form
        assert f'value="{sent["about"]}"' in form
        assert ('value="week" selected' in form) == (sent["since"] == "week")
        assert re.findall(r'value="(\w+)" checked', form)[-1:] == sent["source"][-1:] or ("myspace" in sent["source"])
        assert 'aria-describedby="wrong"' in form or "depth" in wrong


@pytest.mark.parametrize("step", [{}, {"step": "estimate"}])
async def test_who_unticks_every_place_is_told_to_choose_one(served: Served, step: dict[str, str]) -> None:
    """Beside the places, of which none is ticked again; nothing is begun."""
    page = (await served.client.get("/")).text
    assert '<input type="hidden" name="source" value="">' in page
    answer = await submit(served.client, "/ask", **QUICK, source="", about="a recorder", **step)
    places = answer.text[answer.text.index("<legend>Where") :]

    assert answer.status_code == 422
    assert "Choose at least one place." in places
    assert '<fieldset aria-describedby="wrong">\n<legend>Where' in answer.text
    assert " checked" not in places
    assert 'value="a recorder"' in answer.text
    assert await begun(served) == 0


async def test_the_price_is_that_of_what_is_ticked(served: Served) -> None:
    """The note and each radio are one figure, and what page.js asks for is the same."""
    await served.app_context.product()
    chosen = {"query": '"plaud" ai', "since": "week", "source": ["", "hackernews"]}
    shown = []
    for depth in ("quick", "deep"):
        answer = await submit(served.client, "/ask", **chosen, depth=depth, step="estimate")
        radios = dict(re.findall(r'data-price="(\w+)">([^<]+)<', answer.text))
        (note,) = re.findall(r'id="estimate"[^>]*>([^<]+)<', answer.text)
        assert note == f"Depth {depth}, 1 place: {radios[depth]}"
        shown.append(radios)
    usual = dict(re.findall(r'data-price="(\w+)">([^<]+)<', (await served.client.get("/")).text))
    script = await served.client.get("/ask/prices", params=chosen)
    nowhere = await served.client.get("/ask/prices", params={"source": ""})

    assert shown[0] == shown[1] == script.json()
    assert all(usual[depth] != shown[0][depth] for depth in usual)
    assert nowhere.json() == {}


@pytest.mark.parametrize("query", ["", "hello there"])
async def test_a_price_needs_no_question(served: Served, query: str) -> None:
    """It is said, and what was chosen stays."""
    answer = await submit(served.client, "/ask", query=query, depth="deep", source=["", "reddit"], step="estimate")

    assert answer.status_code == 200
    assert re.search(r'id="estimate"[^>]*>Depth deep, 1 place: likely \d+ requests, 0', answer.text)
    assert 'value="deep" checked' in answer.text
    assert 'id="wrong"' not in answer.text


async def test_an_empty_depth_is_the_usual_one(served: Served) -> None:
    """As of whoever leaves the field out."""
    fields = {"query": "plaud.ai", "depth": "", "step": "estimate"}
    answer = await submit(served.client, "/ask", **fields)
    assert answer.status_code == 200
    assert re.search(r'value="standard" checked', answer.text)


async def test_what_is_beyond_a_limit_keeps_what_was_typed(opening: Opening) -> None:
    """So that it can be asked tomorrow."""
    async with opening(keys="ann", LIMIT_ANALYSES_PER_DAY="1") as served:
        await served.client.post("/login", data={"key": "ann"})
        first = await submit(served.client, "/ask", **QUICK)
        second = await submit(served.client, "/ask", query="Ember mug", about="a heated mug")

    assert (first.status_code, second.status_code) == (303, 429)
    assert "The day's 1 analyses are used up" in unescape(second.text)
    assert 'value="Ember mug"' in second.text
    assert 'value="a heated mug"' in second.text


async def test_who_has_set_up_no_place_is_told_so(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is none to tick."""
    monkeypatch.setenv("YOUTUBE_API_KEY", "")
    async with opening(SOURCES="youtube") as served:
        answer = await submit(served.client, "/ask", **QUICK, source="")

    assert answer.status_code == 422
    assert "No place is set up here: each says what it lacks." in answer.text


async def test_a_question_can_be_handed_over(served: Served) -> None:
    """In the address, as text; a page that links here begins nothing by that."""
    page = (await served.client.get("/", params={"query": '"><script>alert(1)</script>'})).text

    assert 'value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in page
    assert await begun(served) == 0


async def test_who_has_asked_nothing_sees_examples(served: Served) -> None:
    """Each fills the field when it is chosen; whoever has asked sees those questions instead."""
    first = Tags((await served.client.get("/")).text)
    chosen = next(each["href"] or "" for each in first.named("a") if "vs" in (each["href"] or ""))
    await served.client.post("/v1/analyses", json=QUESTION)
    later = (await served.client.get("/")).text

    assert "For example" in first.words
    assert 'value="Notion vs Obsidian"' in (await served.client.get(chosen)).text
    assert "For example" not in later
    assert "Asked before" in later


async def test_the_sample_world_says_so(sandbox: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """And offers three questions, each of which gets an answer."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    app_context = await open_app_context(bootstrap.load_settings())
    served = Served(create_app(app_context), app_context, None, None)  # type: ignore[arg-type]
    async with served.calling() as client:
        page = (await client.get("/")).text
        answers = [await submit(client, "/ask", query=each, depth="quick") for each in SAMPLES]
        reports = []
        for answer in answers:
            place = answer.headers["location"]
            stream = await client.get(f"{place}/live")
            assert "event: over" in stream.text
            reports.append((await client.get(place)).text)
    await app_context.aclose()

    assert "Sample data: posts, people and links here are made up" in page
    assert all(f'value="{each}"' in page for each in SAMPLES)
    assert all("Enough was found" in report for report in reports)
    (complaining,) = (at for at, each in enumerate(SAMPLES) if "annoys" in each)
    assert "What people dislike about" in reports[complaining]
    assert "none recognised as a complaint" not in reports[complaining]
