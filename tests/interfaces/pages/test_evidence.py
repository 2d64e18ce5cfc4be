"""`/analyses/{id}/evidence` over a real store: who dropped what, and why."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import stopwordsiso

from api.core.domain import Sense
from api.features.analyses.api_keys import LOCAL
from api.interfaces.shared.presentation import LANGUAGES, UNCLEAR
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import finished, submit
from tests.store.made import dropped, item, report, source, typed

SILENT = {"judge": "gpt-4o-mini", "probability": None}
"""A judge that answers yes or no."""


def gone(key: str, **more: Any) -> dict[str, Any]:
    """A dropped item of a judge that gives no reason, with all that is kept of one."""
    return {
        **dropped(f"reddit:{key}", "judged off topic by gpt-4o-mini"), **SILENT,
        "url": f"https://example.org/{key}", "created_at": "2026-03-01T10:00:00Z",
        "place": "r/mugs", "snippet": f"What {key} begins with", **more,
    }  # fmt: skip


async def keep(served: Served, *out: dict[str, Any], **more: Any) -> None:
    """A stored report with these dropped."""
    made = report("a1", item("reddit:t3_1"), out=list(out), **more)
    made["sources"] = {"reddit": source(kept=1)}
    await served.app_context.store.finish(LOCAL.id, typed(made))


async def cards(served: Served, **wanted: str) -> list[str]:
    """The words of each card of the dropped ones."""
    _, _, listed = (await page_of(served, **wanted)).partition('<section id="dropped">')
    parts = re.findall(r'<li id="dropped-\d+">.*?</li>', listed, re.S)
    return [" ".join("".join(Tags(part).words).split()) for part in parts]


async def page_of(served: Served, **wanted: str) -> str:
    """The page."""
    answer = await served.client.get("/analyses/a1/evidence", params=wanted)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_a_card_says_everything_that_is_known_and_each_once(served: Served) -> None:
    """Who dropped it, why, how likely, when, where and how it begins; nothing twice."""
    await keep(
        served,
        gone("t3_2"),
        gone("t3_3", judge="local-en", probability=0.07, reason="names no mug (7 % likely)"),
        gone("t3_4", dropped_by="cutoff", score=2, reason="score 2 of 5, below the cutoff 3: dull"),
        gone("t3_5", dropped_by="duplicate", reason="copy of reddit:t3_1"),
        gone("t3_6", disputed=True),
    )

    shown = await cards(served)

    said = "Title reddit:{} Not about it Reddit, r/mugs, 2026-03-01, dropped by {}"
    marking = " Mark as about plaud note"
    assert shown[0] == said.format("t3_2", "gpt-4o-mini") + " · Open on Reddit What t3_2 begins with" + marking
    likely = ", 7 % likely to be about it · Open on Reddit names no mug What t3_3 begins with"
    assert shown[1] == said.format("t3_3", "local-en") + likely + marking
    assert "2 of 5 points for what it says about the question; 3 are needed. The grader: dull" in shown[2]
    assert "The same as [1] Title t3_1" in shown[3]
    assert "copy of" not in shown[3]
    assert "another judge was sure of the opposite" in shown[4]


async def test_that_there_is_no_reason_is_said_once(served: Served) -> None:
    """Of the judges that gave none, above the list; not where all gave one."""
    await keep(served, gone("t3_2"), gone("t3_3"))
    words = "The judge gpt-4o-mini answers yes or no and gives no reason."
    assert (await page_of(served)).count(words) == 1

    await keep(served, gone("t3_2"), gone("t3_3", judge="other", reason="judged off topic by other"))
    assert "The judges gpt-4o-mini and other answer yes or no and give no reason." in await page_of(served)

    await keep(served, gone("t3_2", probability=0.2))
    assert "yes or no" not in await page_of(served)


async def test_both_lists_are_counted_and_a_step_away(served: Served) -> None:
    """Links stand before the first card; the dropped ones by who dropped them."""
    await keep(served, gone("t3_2"), gone("t3_3"), gone("t3_4", dropped_by="floor", reason="weak"))
    page = await page_of(served)
    assert '<a href="#kept">Kept: 1</a> <a href="#dropped">Dropped: 3</a>' in page
    assert "<li>Not about it: 2 posts, decided by gpt-4o-mini</li>" in page
    assert "<li>Too little about it: 1 post, decided by the relevance floor</li>" in page
    narrowed = await page_of(served, stage="floor")
    assert '<a href="#kept">Kept: 0</a> <a href="#dropped">Dropped: 1</a>' in narrowed
    assert "<summary>Filter: too little about it</summary>" in narrowed


async def test_words_are_looked_for_in_all_that_is_shown(served: Served) -> None:
    """Of a dropped one also its text, its place and who dropped it; the page says where."""
    await keep(
        served,
        gone("t3_2", snippet="The battery is flat"),
        gone("t3_4", dropped_by="cutoff", reason="score 2 of 5, below the cutoff 3: dull"),
    )
    for text, number in (
        ("BATTERY", 1), ("grader", 1), ("dull", 1), ("r/mugs", 2), ("2026-03", 2), ("lid", 0),
    ):  # fmt: skip
        assert len(await cards(served, text=text)) == number, text
    assert "Kept: 1" in await page_of(served, text="body t3_1")


async def test_a_long_list_goes_on(served: Served) -> None:
    """The next part keeps what is looked for; none stands in two."""
    await keep(served, *(gone(f"t3_n{number:03}") for number in range(130)))

    page = await page_of(served, text="begins")
    [link] = [tag for tag in Tags(page).named("a") if tag.get("rel") == "next"]
    address = (link["href"] or "").partition("#")[0]
    later = await served.client.get(f"/analyses/a1/evidence{address}")

    first = set(re.findall(r"What (\w+) begins", page))
    second = set(re.findall(r"What (\w+) begins", later.text))
    assert (len(first), len(second), len(first | second)) == (50, 50, 100)
    assert "text=begins" in address
    assert "51 to 100 of 130" in later.text
    assert 'rel="prev"' in later.text
    last = (await served.client.get("/analyses/a1/evidence", params={"text": "begins", "dropped_from": 100})).text
    assert 'rel="next"' not in last


async def test_languages_are_called_by_their_names(served: Served) -> None:
    """In English, each that words can tell."""
    await keep(served, gone("t3_2", title="Der Deckel ist nicht dicht und das ist schade"))
    assert '<option value="de">German</option>' in await page_of(served)
    assert set(LANGUAGES) == {*stopwordsiso.langs(), UNCLEAR}


async def test_what_its_source_deleted_is_gone_here_too(served: Served) -> None:
    """With its beginning; the others stay."""
    await keep(served, gone("t3_2"), gone("t3_3"))
    await served.app_context.store.forget(["reddit:t3_2"])
    page = await page_of(served)
    assert "What t3_2 begins with" not in page
    assert "What t3_3 begins with" in page


async def test_whoever_is_quoted_is_named(served: Served) -> None:
    """Where a licence asks; of what is made up without a profile that nobody has."""
    ada = "Ada (https://superuser.com/users/7/ada)"
    for sample, linked in ((False, True), (True, False)):
        await keep(served, gone("t3_2", credit=ada), sample=sample)
        page = unescape(await page_of(served))
        assert "by " in (await cards(served))[0]
        assert ("https://superuser.com/users/7/ada" in page) == linked


async def test_a_post_is_corrected_with_one_button(served: Served) -> None:
    """The page comes back at that post, says what was corrected, and takes it back."""
    await keep(served, gone("t3_2"), gone("t3_5", dropped_by="duplicate", reason="copy"))
    client, url = served.client, "/analyses/a1/correction"
    buttons = re.findall(r'name="correct" value="([^"]+)"', await page_of(served))
    assert buttons == ["no reddit:t3_1", "yes reddit:t3_2"]

    dropped_answer = await submit(client, url, correct=buttons[1], list="stage=gate&text=a%26b")
    kept_answer = await submit(client, url, correct=buttons[0])

    assert dropped_answer.status_code == kept_answer.status_code == 303
    back = "/analyses/a1/evidence?stage=gate&text=a%26b#dropped-1"
    assert dropped_answer.headers["location"] == back
    assert kept_answer.headers["location"] == "/analyses/a1/evidence?#source-1"
    corrected = await page_of(served)
    assert "You marked this as not about plaud note." in corrected
    assert "You marked this as about plaud note." in corrected
    buttons = re.findall(r'name="correct" value="([^"]+)"', corrected)
    assert buttons == ["undo reddit:t3_1", "undo reddit:t3_2"]
    for button in buttons:
        assert (await submit(client, url, correct=button)).status_code == 303
    assert "You marked" not in await page_of(served)


async def test_what_is_no_correction_is_refused(served: Served) -> None:
    """Another word, an item that is not there, nothing to undo, and a form of somebody else."""
    await keep(served, gone("t3_2"))
    client, url = served.client, "/analyses/a1/correction"

    assert (await submit(client, url, correct="maybe reddit:t3_1")).status_code == 422
    assert (await submit(client, url)).status_code == 422
    assert (await submit(client, url, correct="yes reddit:t3_99")).status_code == 404
    assert (await submit(client, url, correct="undo reddit:t3_1")).status_code == 404
    foreign = await client.post(url, data={"csrf": "x", "correct": "yes reddit:t3_1"})
    assert foreign.status_code == 403
    elsewhere = await submit(client, url, correct="no reddit:t3_1", list="//evil.example#x")
    assert elsewhere.headers["location"] == "/analyses/a1/evidence?#source-1"


async def test_posts_are_judged_again_with_the_corrections(served: Served) -> None:
    """A button stands there once something is corrected; it leads to the new report."""
    report = await finished(served)
    url = f"/analyses/{report.id}"
    assert "Judge these posts again" not in (await served.client.get(f"{url}/evidence")).text
    wrong = report.items[0].key
    await submit(served.client, f"{url}/correction", correct=f"no {wrong}")
    page = (await served.client.get(f"{url}/evidence")).text
    assert "Judge these posts again with 1 correction" in page

    answer = await submit(served.client, f"{url}/again", again="")
    begun = await served.app_context.store.get(LOCAL.id, answer.headers["location"].split("/")[2])
    assert begun is not None
    again = await served.app_context.runner.outcome(begun)

    assert answer.status_code == 303
    assert again.again_of == report.id
    assert wrong not in {item.key for item in again.items}


async def test_one_of_the_meanings_is_taken_with_one_button(served: Served) -> None:
    """They stand ahead of the first finding; the one that is taken is remembered."""
    report = await finished(served)
    senses = (
        Sense(1, ("recorder", "notes"), ("<b>A</b>", "B"), 5, 4), Sense(2, ("fish",), ("C",), 3),
    )  # fmt: skip
    await served.app_context.store.finish(LOCAL.id, report.model_copy(update={"senses": senses}))
    page = (await served.client.get(f"/analyses/{report.id}")).text
    heading = "falls into 2 groups that have little in common; most posts below are of group 1."
    assert 0 < page.index(heading) < page.index('class="claims"')
    assert "recorder, notes: 5 posts, 4 of them kept, such as “&lt;b&gt;A&lt;/b&gt;”" in page
    saved = (await served.client.get(f"/analyses/{report.id}/export/html")).text
    assert heading in saved
    assert "Only this one" not in saved

    wrong = await submit(served.client, f"/analyses/{report.id}/again", sense="x")
    none = await submit(served.client, f"/analyses/{report.id}/again", sense="9")
    answer = await submit(served.client, f"/analyses/{report.id}/again", sense="1")
    begun = await served.app_context.store.get(LOCAL.id, answer.headers["location"].split("/")[2])
    assert begun is not None
    again = await served.app_context.runner.outcome(begun)

    assert (wrong.status_code, none.status_code, answer.status_code) == (422, 404, 303)
    assert (again.about, again.not_about) == ("recorder, notes", ("fish",))
    assert "Described as" not in page
    page = (await served.client.get(f"/analyses/{again.id}")).text
    assert "Described as “recorder, notes”; not meant: “fish”." in page
