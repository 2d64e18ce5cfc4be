"""`/history` over a real store."""

from __future__ import annotations

from dataclasses import replace

from api.bootstrap.background_work import watching_of
from api.features.analyses.api_keys import LOCAL
from api.features.watches.watch import new_watch
from api.features.watches.watch_service import utc_now
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import EVIL, Tags, hostile
from tests.interfaces.pages.visiting import submit
from tests.store.made import item, report, source, typed

URL = "/history"


async def kept(served: Served, id_: str, query: str, **more: object) -> None:
    """A finished analysis of whoever sits at this machine."""
    made = report(id_, item("reddit:t3_1"), **more) | {"query": query}
    await served.app_context.store.finish(LOCAL.id, typed(made))


async def shown(served: Served, **wanted: str) -> str:
    """The page."""
    answer = await served.client.get(URL, params=wanted)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_it_is_narrowed_to_what_somebody_looks_for(served: Served) -> None:
    """By the question's words, what came of it, the place and the time; each form keeps its say."""
    await kept(served, "a1", "Ember mug")
    await kept(served, "b2", "OURA ring", decision="short_report")
    await kept(served, "c3", "Whoop", sources={"hackernews": source() | {"source": "hackernews"}})

    for wanted, ids in (
        ({}, {"a1", "b2", "c3"}),
        ({"text": "oura"}, {"b2"}),
        ({"decision": "short_report"}, {"b2"}),
        ({"source": "hackernews"}, {"c3"}),
        ({"until": "2020-01-01"}, set()),
        ({"since": "2020-01-01", "text": "nobody asked this"}, set()),
    ):
        page = await shown(served, **wanted)
        assert {id_ for id_ in ("a1", "b2", "c3") if f'href="/analyses/{id_}"' in page} == ids
        assert ("Nothing here is like that." in page) == (not ids)
        assert all(f'value="{value}"' in page for value in wanted.values())
    assert 'href="/history/a1/delete"' in await shown(served)


async def test_each_says_how_it_was_asked(served: Served) -> None:
    """Depth and places, so that two of one question are told apart; not those that had none."""
    silent = source() | {"source": "youtube", "outcome": "not_configured"}
    asked = {"reddit": source(), "youtube": silent}
    await kept(served, "a1", "Ember mug", depth="deep", sources=asked)
    words = " ".join(Tags(await shown(served)).words)
    assert "Ember mug Deep" in " ".join(words.split())
    assert "asked: Reddit" in words
    assert "asked: Reddit, YouTube" not in words


async def test_a_question_that_was_not_asked_says_why(served: Served) -> None:
    """In its line and in the filter, whether it named nothing or several products."""
    await kept(served, "a1", "Oura vs Whoop", decision="clarify", compared=["Oura", "Whoop"])
    page = await shown(served, decision="clarify")

    assert page.count("nothing was asked: the question is unclear or compares products") == 3
    assert 'href="/analyses/a1"' in page


async def test_what_nobody_asked_by_itself_says_what_it_is_for(served: Served) -> None:
    """A watch by its name, also while it runs; a comparison; an own question says nothing."""
    for id_, query in (("a1", "Ember mug"), ("b2", "Oura"), ("c3", "Whoop"), ("d4", "Yeti")):
        await kept(served, id_, query)
    store = served.app_context.store
    await store.claim(LOCAL.id, "comparison:0:k", "d", "b2")
    await store.claim(LOCAL.id, "watch:r9:7d", "d", "c3")
    await store.claim(LOCAL.id, "mine", "d", "d4")
    words = " ".join(" ".join(Tags(await shown(served)).words).split())
    assert words.count("for a comparison") == 1
    assert words.count("for a watch") == 1
    assert words.index("for a watch") < words.index("Oura") < words.index("for a comparison")

    watch = replace(
        new_watch(LOCAL.id, "Oura", "mon 8:00", utc_now()),
        depth="quick", sources=("reddit",), name="<b>R",
    )  # fmt: skip
    await store.add_watch(watch, 9)
    run = await watching_of(served.app_context).run(watch)
    page = await shown(served, text="Oura")
    assert f'for the watch <a href="/watches/{watch.id}">&lt;b&gt;R</a>' in page
    assert page.index(f"/analyses/{run.report_id}") < page.index("for the watch")


async def test_older_ones_are_a_page_further(served: Served) -> None:
    """The link keeps what is looked for, and no analysis stands on two pages."""
    for number in range(25):
        await kept(served, f"m{number:02}", "mug")

    first = await shown(served, source="reddit")
    links = [each["href"] or "" for each in Tags(first).named("a") if each.get("rel") == "next"]
    second = (await served.client.get(links[0])).text

    ids = [[f"m{number:02}" for number in range(25) if f'"/analyses/m{number:02}"' in page] for page in (first, second)]
    assert "source=reddit" in links[0]
    assert (len(ids[0]), len(ids[1])) == (20, 5)
    assert not set(ids[0]) & set(ids[1])
    assert 'rel="next"' not in second


async def test_finished_ones_are_ticked_to_be_compared(served: Served) -> None:
    """Each with its name for those who do not see the box; one alone has no other beside it."""
    await kept(served, "a1", "Ember mug")
    await served.app_context.store.begin(LOCAL.id, "r1", "Ohom")
    alone = await shown(served)
    await kept(served, "b2", "OURA ring")
    page = await shown(served)

    boxes = [each for each in Tags(page).named("input") if each.get("type") == "checkbox"]
    (form,) = [each for each in Tags(page).named("form") if each.get("id")]
    assert [(box["name"], box["value"], box["aria-label"]) for box in boxes] == [
        ("analysis", "b2", "Compare OURA ring"), ("analysis", "a1", "Compare Ember mug"),
    ]  # fmt: skip
    assert {box["form"] for box in boxes} == {form["id"]}
    assert (form["method"], form["action"]) == ("get", "/compare/between")
    assert "Compare selected reports" in page
    assert "Compare selected reports" not in alone


async def test_one_is_deleted_after_a_question(served: Served) -> None:
    """Looking deletes nothing, and neither does a form of somebody else."""
    await kept(served, "a1", "Ember mug")
    path = f"{URL}/a1/delete"

    asked = await served.client.get(path)
    forged = await served.client.post(path, data={"csrf": "guessed"})
    assert "This cannot be undone." in asked.text
    assert (asked.status_code, forged.status_code) == (200, 403)
    assert "Ember mug" in await shown(served)

    gone = await submit(served.client, path)
    assert (gone.status_code, gone.headers["location"]) == (303, URL)
    assert "Nothing has been asked yet." in await shown(served)
    assert (await submit(served.client, path)).status_code == 404
    assert (await served.client.get(path)).status_code == 404


async def test_strangers_cannot_write_the_page(served: Served) -> None:
    """A question is text."""
    await served.app_context.store.finish(LOCAL.id, typed(hostile(report("a1", item("reddit:t3_1")))))
    tags = Tags(await shown(served))
    assert not tags.named("img") + tags.named("svg") + tags.named("style")
    assert all((each["src"] or "").startswith("/static/") for each in tags.named("script"))
    assert EVIL[1] in "".join(tags.words)


async def test_each_key_has_its_own(opening: Opening) -> None:
    """Without a login there is nothing to see."""
    async with opening(keys="ann") as served:
        answer = await served.client.get(URL)
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/history")


async def test_what_cannot_be_looked_for_is_said_beside_its_field(served: Served) -> None:
    """In plain words, and the other fields stay."""
    for wrong, words in (
        ({"since": "soon"}, "This needs a day, such as “2026-03-01”."),
        ({"until": "2026-13-01"}, "This needs a day, such as “2026-03-01”."),
        ({"decision": "maybe"}, "This must be “"),
        ({"source": "myspace"}, "This names no source; there are “"),
        ({"cursor": "x" * 600}, "“cursor” must be text of at most 500 characters."),
    ):
        answer = await served.client.get(URL, params={"text": "mug", **wrong})
        page = Tags(answer.text)
        tied = [attributes["id"] for _, attributes in page.tags if attributes.get("aria-invalid")]

        assert answer.status_code == 422
        assert words in " ".join(page.words), " ".join(page.words)
        assert "`" not in answer.text
        assert tied == [name for name in wrong if name != "cursor"]
        assert 'value="mug"' in answer.text
