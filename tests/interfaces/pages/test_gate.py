"""`/gate` over a real store."""

from __future__ import annotations

from html import unescape

import pytest

from api.features.analyses.api_keys import LOCAL
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.store.made import item, report, source, typed

LANGFUSE = {
    "LANGFUSE_BASE_URL": "https://langfuse.example", "LANGFUSE_PUBLIC_KEY": "pk-1",
    "LANGFUSE_SECRET_KEY": "sk-1",
}  # fmt: skip


async def text(served: Served, **wanted: str) -> str:
    """The words of the page."""
    answer = await served.client.get("/gate", params=wanted)
    assert answer.status_code == 200, answer.text
    return " ".join(" ".join(Tags(answer.text).words).split())


async def test_it_shows_what_the_api_counts(served: Served) -> None:
    """Yields, second fetches and cost, over the same analyses; failing open by its reason."""
    served.sandbox.fault("openai.judge=500")
    await served.client.post("/v1/analyses", json=QUESTION)
    served.sandbox.heal()
    await served.client.post("/v1/analyses", json=QUESTION | {"depth": "standard"})
    stats = (await served.client.get("/v1/stats")).json()

    page = await text(served)

    assert page.count("2 analyses since") == 1
    items = stats["items"]
    assert f"{items['relevant']} of {items['judged']} judged posts" in page
    for name, figures in stats["sources"].items():
        failures = figures["fail_open_reasons"]["http_error"]
        assert f"failed open: an HTTP error ({failures})" in page, name
    assert f"{stats['cost']['usd']:.4f} USD" in page
    assert f"of {items['judged']} judged posts are about the question" in page
    assert f"posts kept in reports {items['kept']}" in page
    assert "USD spent 0.0" in page


async def test_two_days_are_drawn(served: Served) -> None:
    """With the table behind it; a day that nobody asked on is a gap."""
    for id_, day in (("a1", 20), ("b2", 22)):
        asked = {"reddit": source(kept=1), "youtube": source()}
        made = report(id_, item(f"reddit:t3_{id_}"), sources=asked)
        made["created_at"] = f"2026-11-{day}T10:00:00Z"
        await served.app_context.store.finish(LOCAL.id, typed(made))
    page = (await served.client.get("/gate", params={"since": "all"})).text

    assert page.count("<figure>") == 2
    assert page.count("2026-11-20</th>") == 1
    assert "Share about the question per day (UTC), 20 Nov 2026 to 22 Nov 2026" in page


async def test_each_place_has_a_row(served: Served) -> None:
    """A bar of its yield on the first day already, and all its figures in the table behind."""
    await served.app_context.store.finish(LOCAL.id, typed(report("a1", item("reddit:t3_1"))))
    page = (await served.client.get("/gate", params={"since": "all"})).text
    assert page.count("<figure>") == 1
    assert '<th scope="col">searched again</th>' in page
    assert '<th scope="row">Reddit</th><td>1 of 1</td>' in page


@pytest.mark.parametrize(("share", "line"), [("0.3", "(the line: 30%)"), ("0", "")], ids=["set", "never again"])
async def test_the_picture_of_places_knows_the_setting(opening: Opening, share: str, line: str) -> None:
    """By which a place is searched again; without it there is no line."""
    async with opening(MIN_YIELD=share) as served:
        await served.app_context.store.finish(LOCAL.id, typed(report("a1", item("reddit:t3_1"))))
        page = await text(served, since="all")

    assert ("a wider one follows" in page, line in page) == (bool(line), True)


async def test_nothing_is_a_sentence(served: Served) -> None:
    """No table of nothing; what is no time is said."""
    page = (await served.client.get("/gate", params={"since": "7d"})).text
    assert "0 analyses since" in page
    assert "<table" not in page
    wrong = await served.client.get("/gate", params={"since": "soon"})
    assert (wrong.status_code, "“since” needs" in unescape(wrong.text)) == (422, True)


async def test_traces_are_linked_where_they_are_sent(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the Langfuse that gets them; without one, and of what has no trace, there is no link."""
    for variables, links in (({}, []), (LANGFUSE, ["https://langfuse.example/trace/t1"])):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        async with opening() as served:
            for id_, trace in (("a1", "t1"), ("b2", None)):
                made = report(id_, item("reddit:t3_1"), trace_id=trace)
                await served.app_context.store.finish(LOCAL.id, typed(made))
            page = Tags((await served.client.get("/gate", params={"since": "all"})).text)
        hrefs = [each["href"] or "" for each in page.named("a")]
        assert [href for href in hrefs if "trace" in href] == links
