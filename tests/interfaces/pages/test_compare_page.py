"""`/compare` over a real store and the real clients."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest

from api.features.analyses.api_keys import LOCAL
from api.interfaces.pages.comparison_charts import share_figure
from api.reports.report import Report
from tests.features.comparisons.made import about, compared, posts, spoken
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import EVIL, Tags, hostile
from tests.interfaces.pages.visiting import begun, submit

TWO: dict[str, Any] = {
    "product": ["Oura", "Whoop", "", "", ""],
    "sure": "Oura, Whoop",
    "about": ["a smart ring", "", "", "", ""],
    "depth": "quick",
    "since": "all",
}
BETWEEN = "/compare/between"
HATED, MUG = "I hate the battery of the {}.", "It is a mug."


def fields_of(html: str, action: str) -> dict[str, list[str]]:
    """What the form of that address would send as it stands."""
    form = html.partition(f'action="{action}"')[2].partition("</form>")[0]
    fields: dict[str, list[str]] = {}
    for each in Tags(form).named("input"):
        fields.setdefault(each["name"] or "", []).append(each.get("value") or "")
    return fields


def said_of(name: str) -> list[str]:
    """Complaints of nine people about battery and price, none a copy of another."""
    battery = [f"After {days} days I hate the battery of the {name}." for days in range(2, 7)]
    return battery + [f"After {days} days the {name} has an awful price." for days in range(2, 6)]


def words_of(html: str) -> str:
    """What a person reads, on one line."""
    return " ".join(" ".join(Tags(html).words).split())


async def kept(served: Served, *reports: Report) -> str:
    """Reports of whoever sits at this machine; the address at which they are compared."""
    for report in reports:
        await served.app_context.store.finish(LOCAL.id, report)
    return address(*(report.id for report in reports))


def address(*ids: str) -> str:
    """Where analyses are compared."""
    return f"{BETWEEN}?{'&'.join(f'analysis={each}' for each in ids)}"


def mugs() -> tuple[Report, Report]:
    """Of two makers, of which one is complained of more."""
    hated = [HATED.format("Ember")] * 9 + [MUG] * 5
    return about("Ember", posts("Ember", *hated)), about("Ohom", posts("Ohom", *[MUG] * 15))


async def test_products_stand_side_by_side(served: Served) -> None:
    """First how far each is; then the table, under the same address, with each side's report."""
    served.sandbox.latency("openai.judge=1s")
    answer = await submit(served.client, "/compare", **TWO)
    place = answer.headers["location"]
    waiting = (await served.client.get(place)).text
    listed = (await served.client.get("/v1/analyses")).json()["analyses"]
    live = re.findall(r'data-live="([^"]+)"', waiting)
    while running := re.search(r'data-live="([^"]+)"', (await served.client.get(place)).text):
        await served.client.get(running[1])
    shown = (await served.client.get(place)).text

    assert answer.status_code == 303
    assert place.startswith(BETWEEN)
    assert [each["query"] for each in listed] == ["Whoop", "Oura"]
    assert live
    assert '<noscript><meta http-equiv="refresh" content="3"></noscript>' in waiting
    assert "Oura : under way, or waiting for its turn" in words_of(waiting)
    assert "Oura and Whoop, compared" in words_of(shown)
    assert "Each was asked alike and at the same time" in words_of(shown)
    assert "refresh" not in shown
    for each in listed:
        assert f'href="/analyses/{each["id"]}"' in waiting
        assert f'href="/analyses/{each["id"]}"' in shown
    oura = (await served.client.get(f"/v1/analyses/{listed[1]['id']}")).json()
    assert oura["about"] == "a smart ring"


async def test_what_is_compared_is_what_is_stored(served: Served) -> None:
    """Again and again without asking anybody; each product keeps its place in the address."""
    ember, ohom = mugs()
    first = await kept(served, ember, ohom)
    pages = [words_of((await served.client.get(first)).text) for _ in range(2)]
    turned = words_of((await served.client.get(address(ohom.id, ember.id))).text)

    assert pages[0] == pages[1]
    assert "Ember and Ohom, compared" in pages[0]
    assert "Ohom and Ember, compared" in turned
    for page in (pages[0], turned):
        assert "Where they differ Battery: spoken of more about Ember, in 9 of 14 posts" in page
        assert "The range after “95 %:” is where one lies with 95 % confidence" in page
        assert "What the intervals do not know" in page
    assert not served.sandbox.log


async def test_the_same_products_are_asked_about_again_by_an_address(served: Served) -> None:
    """The form, filled in; the share of voice stands on the page with its picture."""
    place = await kept(served, spoken("Ember", {"reddit": 6}, about="a mug"), spoken("Ohom", {"reddit": 2}))
    shown = (await served.client.get(place)).text
    link = re.search(r'href="(/compare\?[^"]+)"', shown)

    assert "Share of the people who speak of any of them" in shown
    assert "No share of voice" not in shown
    assert link is not None
    fields = fields_of((await served.client.get(unescape(link[1]))).text, "/compare")
    assert (fields["product"][:2], fields["about"][:2]) == (["Ember", "Ohom"], ["a mug", ""])
    assert not served.sandbox.log


async def test_what_was_asked_differently_is_said(served: Served) -> None:
    """The interval holds for what was counted, and knows nothing of that."""
    ember, _ = mugs()
    place = await kept(served, ember, about("Ohom", posts("Ohom", *[MUG] * 15), depth="quick"))
    page = words_of((await served.client.get(place)).text)

    assert "They were not asked alike. Depth: standard for Ember; quick for Ohom." in page
    assert "that may be the reason, and no interval knows of it" in page


async def test_one_that_failed_is_said_with_its_reason(served: Served) -> None:
    """It hides none of the others; where all have failed there is nothing to compare."""
    ember, ohom = mugs()
    await kept(served, ember, ohom)
    for analysis_id in ("f1", "f2"):
        await served.app_context.store.begin(LOCAL.id, analysis_id, f"Mug {analysis_id}")
        await served.app_context.store.fail(LOCAL.id, analysis_id, "cancelled")
    some = words_of((await served.client.get(address(ember.id, "f1", ohom.id))).text)
    none = (await served.client.get(address("f1", "f2"))).text
    file = await served.client.get(address("f1", "f2").replace("?", "/export/csv?"))

    assert "Ember, Mug f1 and Ohom, compared" in some
    assert "Mug f1: has no report. Cancelled" in some
    assert "Where they differ" in some
    assert "Nothing to compare Mug f1 : has no report: cancelled" in words_of(none)
    assert "refresh" not in none
    assert file.status_code == 409


@pytest.mark.parametrize(
    ("ids", "status", "words"),
    [
        ([], 422, "A comparison takes 2 to 5 products, not 0."),
        (["idEmber"], 422, "A comparison takes 2 to 5 products, not 1."),
        (["idEmber"] * 6, 422, "A comparison takes 2 to 5 products, not 6."),
        (["idEmber", "idEmber"], 422, "“Ember” and “Ember” are the same product: name each once."),
        (["idEmber", "nothing"], 404, "There is no such analysis, or it is not yours."),
        (["idEmber", "%00"], 404, "There is no such analysis, or it is not yours."),
        (["idEmber", "foreign"], 404, "There is no such analysis, or it is not yours."),
    ],
)
async def test_what_cannot_be_compared_is_a_page(served: Served, ids: list[str], status: int, words: str) -> None:
    """In plain words; what belongs to somebody else is not there."""
    await kept(served, *mugs())
    foreign = about("Foreign", posts("Foreign", MUG)).model_copy(update={"id": "foreign"})
    await served.app_context.store.finish("somebody-else", foreign)
    for place in (address(*ids), address(*ids).replace("?", "/export/json?")):
        answer = await served.client.get(place)
        assert answer.status_code == status
        assert answer.headers["content-type"].startswith("text/html")
        assert words[1:].removesuffix(".") in words_of(answer.text)
    assert words in words_of((await served.client.get(address(*ids))).text)


@pytest.mark.parametrize(
    ("form", "media", "ending", "start"),
    [
        ("html", "text/html", "html", "<!doctype html>"),
        ("markdown", "text/markdown", "md", "# Ember and Ohom, compared"),
        ("csv", "text/csv", "csv", "\ufeff,Ember,Ohom"),
        ("json", "application/json", "json", '{"version":1'),
    ],
)
async def test_a_comparison_is_taken_along(served: Served, form: str, media: str, ending: str, start: str) -> None:
    """As the API gives it, but as a file; each format is offered on the page."""
    place = await kept(served, *mugs())
    page = (await served.client.get(place)).text
    file = place.replace("?", f"/export/{form}?")
    answer = await served.client.get(file)

    assert file in {each["href"] for each in Tags(page).named("a")}
    assert answer.headers["content-type"].startswith(media)
    name = f'attachment; filename="comparison-idEmber-idOhom.{ending}"'
    assert answer.headers["content-disposition"] == name
    assert answer.text.startswith(start)
    assert (await served.client.get(file.replace(form, "xml"))).status_code == 404


async def test_while_one_runs_there_is_no_file(served: Served) -> None:
    """It would hold half of the comparison."""
    place = await kept(served, mugs()[0])
    await served.app_context.store.begin(LOCAL.id, "r1", "Ohom")
    answer = await served.client.get(f"{place}&analysis=r1".replace("?", "/export/json?"))
    assert answer.status_code == 409
    assert "holds no report yet" in answer.text


async def test_what_it_costs_stands_on_the_form(served: Served) -> None:
    """Of two products until more are named; what cannot be asked is said beside its field."""
    await served.app_context.product()
    empty = (await served.client.get("/compare")).text
    estimate = TWO | {"step": "estimate", "about": []}
    three = (await submit(served.client, "/compare", **estimate | {"product": ["Oura", "Whoop", "Ember"]})).text
    one = (await submit(served.client, "/compare", **estimate | {"product": ["Oura", ""]})).text
    wrong = await submit(served.client, "/compare", **estimate | {"depth": "deepest"})
    price = re.compile(r"With these fields.*: likely (\d+) requests, [\d.]+ USD; at most [\d.]+ USD")
    requests = [int(price.findall(page)[0]) for page in (one, three)]

    assert re.search(r"standard, \d+ places, likely \d+ requests", empty)
    assert requests[1] * 2 == requests[0] * 3
    assert 'value="Oura"' in one
    assert (wrong.status_code, "With these fields" in wrong.text) == (422, False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"product": ["Oura", ""]}, "A comparison takes 2 to 5 products, not 1."),
        ({"product": ["Oura", "OURA"]}, "are the same product"),
        ({"product": ["Oura", "", "hello"]}, "“hello”: Hello!"),
        ({"source": ["myspace"]}, "myspace"),
        ({"depth": "deepest"}, "This must be “quick”, “standard” or “deep”"),
    ],
)
async def test_what_is_wrong_stands_in_the_form(served: Served, change: dict[str, Any], words: str) -> None:
    """With what was written; nothing begins."""
    answer = await submit(served.client, "/compare", **TWO | change)
    fields = fields_of(answer.text, "/compare")
    assert answer.status_code == 422
    assert words in answer.text.partition('role="alert">')[2].partition("</p>")[0]
    written = [*(TWO | change)["product"], "", "", ""][:5]
    assert (fields["product"], fields["about"]) == (written, TWO["about"])
    assert '<details class="fold" open>' in answer.text
    assert await begun(served) == 0


async def test_a_form_of_somebody_else_begins_nothing(served: Served) -> None:
    """It would spend money."""
    assert (await served.client.post("/compare", data=TWO | {"csrf": "x"})).status_code == 403
    assert await begun(served) == 0


async def test_strangers_cannot_write_the_pages(served: Served) -> None:
    """Names come back in their fields as text, and so do the posts' words in a comparison."""
    answer = await submit(served.client, "/compare", product=[EVIL[2], EVIL[2]])
    assert not Tags(answer.text).named("svg")
    assert fields_of(answer.text, "/compare")["product"][0] == EVIL[2]

    evil = []
    for report in mugs():
        plain = json.loads(report.model_dump_json())
        evil.append(Report.model_validate(hostile(plain) | {"id": report.id}))
    page = (await served.client.get(await kept(served, *evil))).text
    tags = Tags(page)
    names = [name for name, _ in tags.tags]
    assert "compared" in page
    assert not {"img", "iframe", "style", "svg", "b"} & set(names)
    assert names.count("script") == 1


async def test_a_bookmark_survives_the_login(opening: Opening) -> None:
    """Whoever logs in comes to the comparison that was asked for."""
    async with opening(keys="ann") as served:
        answer = await served.client.get(address("a1", "b2"))
        login = answer.headers["location"]
        target = fields_of((await served.client.get(login)).text, "/login")["next"]
    assert answer.status_code == 303
    assert target == [address("a1", "b2")]


async def test_what_is_beyond_a_limit_keeps_what_was_typed(opening: Opening) -> None:
    """As it does where one product is asked about."""
    async with opening(keys="ann", LIMIT_ANALYSES_PER_DAY="1") as served:
        await served.client.post("/login", data={"key": "ann"})
        answer = await submit(served.client, "/compare", product=["Oura ring", "Fitbit"])

    assert answer.status_code == 429
    assert "analyses are used up" in answer.text
    assert 'value="Oura ring"' in answer.text


async def test_a_place_that_there_is_not_has_no_price(served: Served) -> None:
    """It is refused as when it is asked."""
    fields = {"product": ["Oura", "Whoop"], "source": "evil", "step": "estimate"}
    answer = await submit(served.client, "/compare", **fields)
    assert answer.status_code == 422
    assert "likely 0" not in answer.text


async def test_everyday_words_are_hinted_at_before_anything_is_spent(served: Served) -> None:
    """Once; whoever compares anyway begins."""
    fields = {"product": ["Notion", "Oura ring"], "depth": "quick"}
    hint = await submit(served.client, "/compare", **fields)
    held = await begun(served)
    sure = await submit(served.client, "/compare", **fields, sure="Notion, Oura ring")

    assert "“Notion” is also an everyday word" in hint.text
    assert "Compare anyway" in hint.text
    assert (held, sure.status_code) == (0, 303)


async def test_a_question_that_compares_leads_to_the_filled_in_form(served: Served) -> None:
    """From the first screen, with what was chosen there; only the button of that form begins."""
    chosen = {"depth": "quick", "since": "year", "not_about": "a band", "source": ["", "reddit"]}
    answer = await submit(served.client, "/ask", query="Oura ring vs Fitbit", **chosen)
    form = (await served.client.get(answer.headers["location"])).text
    held = await begun(served)
    fields = fields_of(form, "/compare")

    assert (answer.status_code, held) == (303, 0)
    assert answer.headers["location"].startswith("/compare?product=Oura+ring&product=Fitbit&")
    assert fields["product"] == ["Oura ring", "Fitbit", "", "", ""]
    assert re.findall(r'<option value="(\w+)" selected', form)[1:3] == ["quick", "year"]
    assert re.findall(r'value="(\w+)" checked', form) == ["reddit"]
    assert "a band</textarea>" in form


async def test_a_question_that_compares_costs_as_its_products_together(served: Served) -> None:
    """On the first screen, by both of its ways; the form of comparisons says the same."""
    await served.app_context.product()
    chosen = {"query": "Oura ring vs Fitbit", "source": ["", "reddit"], "depth": "quick"}
    priced = await submit(served.client, "/ask", **chosen, step="estimate")
    by_depth = (await served.client.get("/ask/prices", params=chosen)).json()
    alone = (await served.client.get("/ask/prices", params={**chosen, "query": "Fitbit"})).json()
    compared = await submit(
        served.client, "/compare", product=["Oura ring", "Fitbit"], source="reddit", depth="quick", step="estimate"
    )
    requests = [int(re.findall(r"likely (\d+) request", prices["quick"])[0]) for prices in (alone, by_depth)]

    assert f"Depth quick, 1 place, 2 products: {by_depth['quick']}" in words_of(priced.text)
    assert requests[1] == 2 * requests[0]
    assert by_depth["quick"] in words_of(compared.text)
    assert await begun(served) == 0


def test_products_are_told_apart_in_a_picture() -> None:
    """Names that begin alike are cut at their beginning; those of two products have a line each, in any script."""
    alike = ("Sony WH-1000XM4 headphones", "Sony WH-1000XM5 headphones", "Sony WF")
    wide = ("ソニーワイヤレスノイズキャンセリングヘッドホン", "ボーズクワイエットコンフォートウルトラ")
    three, two = (
        share_figure(compared(*(about(name, posts(name, *said_of(name))) for name in names))) for names in (alike, wide)
    )

    assert ">WH-1000XM4 hea…<" in three
    assert ">WH-1000XM5 hea…<" in three
    assert "<title>Sony WH-1000XM4 headphones</title>" in three
    assert '" y="12" class="dim" text-anchor="end">ソニーワイヤレスノイズキャン… →<' in two
    assert '" y="28" class="dim">← ボーズクワイエットコンフォー…<' in two
    assert "-0 " not in two


async def test_a_picture_holds_every_difference(served: Served) -> None:
    """Of two products the difference with its interval, of three a bar each; the table has the numbers."""
    products = [
        about(name, posts(name, *[HATED.format(name)] * hates, *[f"The {name} has an awful price."] * 4, *[MUG] * 5))
        for name, hates in (("Ember", 9), ("Ohom", 1), ("Mugly", 3))
    ]
    two = words_of((await served.client.get(await kept(served, *products[:2]))).text)
    three = words_of((await served.client.get(await kept(served, *products[1:], products[0]))).text)

    assert two.index("Which is spoken of more") < two.index("said of each")
    assert "battery 9 of 18 1 of 10 +40 " in two
    assert "price 4 of 18 4 of 10 -18 " in two
    assert "Share of the posts that speak of each aspect" in three
    assert "battery Ember 9 of 18 29% to 71%" in three
