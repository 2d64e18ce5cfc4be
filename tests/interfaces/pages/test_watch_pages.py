"""`/watches` over a real store and the real clients."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.core.domain import Outcome
from api.features.analyses.api_keys import LOCAL
from api.features.watches.watch import MOST_WATCHES, Target, Watch, new_watch
from api.features.watches.watch_run import Delivery, Gap, NewPost, NewQuestion
from api.features.watches.watch_service import utc_now
from api.interfaces.pages.watch_pages import RUNS, receivers_of
from tests.features.watches.example_run import CHANGE
from tests.features.watches.example_run import run as made_run
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import EVIL, URLS, Tags
from tests.interfaces.pages.visiting import csrf, submit
from tests.loopback import Loopback, Reply

OURA: dict[str, Any] = {
    "query": "Oura", "every": "mon 8:00", "tz": "Asia/Tokyo", "depth": "quick",
    "source": ["reddit"],
}  # fmt: skip


async def text(served: Served, path: str) -> str:
    """The words of a page."""
    answer = await served.client.get(path)
    assert answer.status_code == 200, answer.text
    return " ".join(" ".join(Tags(answer.text).words).split())


async def test_watch_is_added_run_and_looked_at(served: Served) -> None:
    """The form keeps what the API keeps; each run says what was new, with its report."""
    added = await submit(served.client, "/watches", **OURA)
    path = added.headers["location"]
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    before = await text(served, path)
    ran = await submit(served.client, f"{path}/run")
    # a second run may stand in the next week, so the picture of one week is looked at before it
    first_page = (await served.client.get(path)).text
    again = await submit(served.client, f"{path}/run")
    page = await text(served, path)
    runs = await served.app_context.store.watch_runs(LOCAL.id, watch.id, 5)

    assert (added.status_code, path) == (303, f"/watches/{watch.id}")
    assert (watch.every, watch.zone, watch.sources) == ("mon 8:00", "Asia/Tokyo", ("reddit",))
    assert "It has not run yet." in before
    assert ran.headers["location"] == again.headers["location"] == path
    assert [run.state for run in runs] == ["nothing", "baseline"]
    assert f"{len(runs[1].new)} post to begin with" in page
    assert "No new posts since" in page
    assert "It is too early to say what is unusual." in page
    assert runs[1].new[0].title in page
    html = (await served.client.get(path)).text
    assert f"/analyses/{runs[1].report_id}" in html
    assert "One week so far, from" in " ".join(Tags(first_page).words)
    assert "<svg" not in first_page  # of one week there is no picture
    listed = await text(served, "/watches")
    assert "Its first run begins now, by itself; after that it looks every Monday at 08:00 (Asia/Tokyo time)." in before
    assert "Next run: Monday " in listed
    assert ", 08:00." in listed


async def test_watch_is_paused_resumed_and_removed(served: Served) -> None:
    """Each by a form; before it goes somebody is asked."""
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]

    await submit(served.client, f"{path}/pause")
    assert "Paused" in await text(served, "/watches")
    await submit(served.client, f"{path}/resume")
    assert "Paused" not in await text(served, "/watches")
    assert "This cannot be undone." in await text(served, f"{path}/remove")
    assert "Oura" in await text(served, "/watches")
    assert (await submit(served.client, f"{path}/remove")).headers["location"] == "/watches"
    assert "Nothing is watched yet." in await text(served, "/watches")
    assert (await served.client.get(path)).status_code == 404
    for step in ("run", "pause", "resume", "remove", "edit", "feed", "feed/close", "runs/a/tell"):
        assert (await submit(served.client, f"{path}/{step}")).status_code == 404


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"every": "sometimes"}, "every", "sometimes"),
        ({"tz": "Mars/Olympus"}, "tz", "Mars/Olympus"),
        ({"notify": "file:/etc/passwd"}, "notify", "https://"),
        ({"notify": " mailto:a@b.example" * 6}, "notify", "a list of at most 5"),
        ({"source": ["myspace"]}, "", "myspace"),
        ({"depth": "deepest"}, "", "This must be “quick”, “standard” or “deep”"),
        ({"query": ""}, "query", "Nothing was asked."),
        ({"query": "hello"}, "query", "Hello!"),
        ({"name": "second"}, "name", "is there already"),
    ],
)
async def test_what_is_wrong_stands_beside_its_field(
    served: Served, change: dict[str, Any], field: str, words: str
) -> None:
    """With what was written, so that nobody writes it again; nothing is kept, new or changed."""
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]
    await submit(served.client, "/watches", **OURA, name="second")
    before = await served.app_context.store.watches(LOCAL.id)
    for target in ("/watches", f"{path}/edit"):
        answer = await submit(served.client, target, **OURA | {"about": "a ring", "name": "third"} | change)
        tags = Tags(answer.text)
        fields = {each.get("name"): each for each in tags.named("input") + tags.named("textarea")}
        wrong = [name for name, each in fields.items() if "aria-invalid" in each]
        alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]
        assert answer.status_code == 422
        assert wrong == ([field] if field else [])
        assert words in alert
        assert fields["about"]["value"] == "a ring"
        assert fields["every"]["value"] == change.get("every", OURA["every"])
    assert await served.app_context.store.watches(LOCAL.id) == before


async def test_a_watch_says_what_it_costs(served: Served) -> None:
    """On its page, and of what stands in the form; of what cannot be asked nothing is said."""
    await served.app_context.product()
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]
    watch = (await served.client.get(path)).text
    edit = (await served.client.get(f"{path}/edit")).text
    wrong = (await submit(served.client, "/watches", **OURA | {"every": "sometimes"})).text
    price = re.compile(
        r"Each run: likely \d+ requests, [\d.]+ USD; at most [\d.]+ USD\. "
        r"1 run a week: likely [\d.]+ USD, at most [\d.]+ USD\."
    )

    (figure,) = price.findall(watch)
    assert price.findall(edit) == [figure]
    assert "Each run" not in wrong


async def test_an_everyday_word_is_not_watched_at_once(served: Served) -> None:
    """Saying what it is, or watching it anyway, begins."""
    hint = await submit(served.client, "/watches", **OURA | {"query": "Notion"})
    kept = await served.app_context.store.watches(LOCAL.id)
    named = await submit(served.client, "/watches", **OURA | {"query": "Notion", "about": "notes"})
    again = OURA | {"query": "Notion", "name": "other", "sure": "Notion"}
    anyway = await submit(served.client, "/watches", **again)

    assert "also an everyday word" in hint.text
    assert "Watch it anyway" in hint.text
    assert kept == []
    assert (named.status_code, anyway.status_code) == (303, 303)


async def test_too_many_watches_are_said_above_the_form(served: Served) -> None:
    """A message that is about no field."""
    for number in range(MOST_WATCHES):
        watch = replace(new_watch(LOCAL.id, "Oura", "hourly", utc_now()), name=str(number))
        await served.app_context.store.add_watch(watch, MOST_WATCHES)
    answer = await submit(served.client, "/watches", **OURA)
    alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert (answer.status_code, alert) == (
        422,
        f"There are {MOST_WATCHES} watches; remove one first.",
    )


async def test_watch_is_changed(served: Served) -> None:
    """The form holds what is kept, but for addresses; whoever is ticked is told further."""
    notify = "https://hooks.example/hush mailto:ann@example.org"
    await submit(served.client, "/watches", **OURA, notify=notify)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    path = f"/watches/{watch.id}"
    html = (await served.client.get(f"{path}/edit")).text
    inputs = Tags(html).named("input")
    fields = {each["name"]: each.get("value") for each in inputs if each.get("type") != "checkbox"}
    ticked = [each["value"] for each in inputs if "checked" in each]
    change = OURA | {"query": "Oura ring", "every": "daily 07:30", "depth": "deep"}
    change |= {"name": "Ring", "only": "complaints", "source": ["reddit", "youtube"]}
    marks = [mark for mark, _ in receivers_of(watch)]
    kept = {"offered": marks, "kept": marks[1], "notify": "mailto:bob@example.org"}
    saved = await submit(served.client, f"{path}/edit", **change, **kept)
    (new,) = await served.app_context.store.watches(LOCAL.id)
    page = await text(served, path)

    assert (fields["query"], fields["every"], fields["tz"]) == ("Oura", "mon 8:00", "Asia/Tokyo")
    assert ticked == [*marks, "reddit"]
    assert "hush" not in html
    assert saved.headers["location"] == path
    assert new == replace(
        watch, query="Oura ring", name="Ring", every="daily 07:30", depth="deep",
        only="complaints", sources=("reddit", "youtube"), due_at=new.due_at,
        notify=(Target("mail", "ann@example.org"), Target("mail", "bob@example.org")),
    )  # fmt: skip
    assert "e-mail to ann@example.org e-mail to bob@example.org" in page
    assert "Looks every day at 07:30 (Asia/Tokyo time). Next run: " in page
    assert ", 07:30. It has not run yet." in page


async def test_notes_of_days_stand_one_a_line(served: Served) -> None:
    """They are kept, listed from the first day on, changed and refused where one has no day."""
    await submit(served.client, "/watches", **OURA, notes="2026-11-20 Version 2.1\r\n\r\n2026-11-02 Sale")
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    path = f"/watches/{watch.id}/edit"
    html = (await served.client.get(path)).text
    listed = (await served.client.get(f"/watches/{watch.id}")).text
    refused = await submit(served.client, path, **OURA, notes="Sale")
    assert "2026-11-20 Version 2.1<br>" in listed
    assert watch.notes == ("2026-11-20 Version 2.1", "2026-11-02 Sale")
    assert "2026-11-20 Version 2.1\n2026-11-02 Sale</textarea>" in html
    assert (refused.status_code, "“Sale” is no note of a day" in refused.text) == (422, True)


async def test_a_rule_stands_beside_its_receiver(served: Served) -> None:
    """It is changed without the address, which is shown nowhere; a wrong one is said."""
    notify = "https://hooks.slack.com/hush only unusual\r\nmailto:ann@example.org digest 08:00"
    await submit(served.client, "/watches", **OURA, notify=notify)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    path = f"/watches/{watch.id}"
    html = (await served.client.get(f"{path}/edit")).text
    rules = [each.get("value") for each in Tags(html).named("input") if each.get("name") == "rule"]
    marks = [mark for mark, _ in receivers_of(watch)]
    await submit(served.client, f"{path}/edit", **OURA, offered=marks, kept=marks, rule=["", "only complaints"])
    (new,) = await served.app_context.store.watches(LOCAL.id)
    page = await text(served, path)
    wrong = {"offered": marks, "kept": marks, "rule": ["sometimes", ""]}
    marks = [mark for mark, _ in receivers_of(new)]
    refused = await submit(served.client, f"{path}/edit", **OURA, **wrong | {"offered": marks, "kept": marks})

    assert (rules, "hush" in html) == (["only unusual", "digest 08:00"], False)
    assert [target.rule for target in new.notify] == ["", "only complaints"]
    assert [target.address for target in new.notify] == [target.address for target in watch.notify]
    assert "Slack at hooks.slack.com e-mail to ann@example.org only complaints" in page
    assert (refused.status_code, "“sometimes” is no rule of a receiver" in refused.text) == (422, True)
    assert 'value="sometimes"' in refused.text


async def test_watch_is_not_changed_into_one_of_several_products(served: Served) -> None:
    """The form says so beside the question."""
    await submit(served.client, "/watches", **OURA)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    answer = await submit(served.client, f"/watches/{watch.id}/edit", **OURA | {"query": "Oura vs Whoop"})
    alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]

    assert (answer.status_code, await served.app_context.store.watches(LOCAL.id)) == (422, [watch])
    assert alert == "A watch is of one product, not of Oura and Whoop: add one for each."


async def test_what_the_form_has_no_field_for_stays(served: Served) -> None:
    """How many posts, made-up data, and, once it has run, whether the first run is told."""
    watch = replace(
        new_watch(LOCAL.id, "Oura", "hourly", utc_now()),
        limit=7, sandbox=True, tell_first=True, began_at=utc_now(),
    )  # fmt: skip
    await served.app_context.store.add_watch(watch, 9)
    path = f"/watches/{watch.id}/edit"
    assert "tell_first" not in (await served.client.get(path)).text
    await submit(served.client, path, **OURA | {"every": "hourly", "source": []}, about="a ring")
    (new,) = await served.app_context.store.watches(LOCAL.id)
    assert (new.about, new.limit, new.sandbox, new.tell_first) == ("a ring", 7, True, True)


async def test_exclusions_stand_in_the_form_a_line_each(served: Served) -> None:
    """They are kept as they are when something else is changed, and can be emptied."""
    lines = {"not_about": "a river\r\n\r\na lake"}
    await submit(served.client, "/watches", **OURA | lines)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    assert "(not a river; not a lake)" in (await served.client.get(f"/watches/{watch.id}")).text
    path = f"/watches/{watch.id}/edit"
    page = (await served.client.get(path)).text
    await submit(served.client, path, **OURA | {"not_about": ""})
    (emptied,) = await served.app_context.store.watches(LOCAL.id)

    assert watch.not_about == ("a river", "a lake")
    assert ">a river\na lake</textarea>" in page
    assert emptied.not_about == ()


async def test_the_secret_is_shown_once(served: Served) -> None:
    """To whoever adds a watch that tells a webhook; its address is shown to nobody again."""
    told = OURA | {"notify": "https://hooks.example/hush", "tell_first": "true"}
    added = await submit(served.client, "/watches", **told)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    page = await served.client.get(f"/watches/{watch.id}")
    assert watch.secret in added.text
    assert watch.tell_first
    assert "a program (webhook) at hooks.example" in page.text
    assert watch.secret not in page.text
    assert "hush" not in page.text
    path = f"/watches/{watch.id}/edit"
    ((mark, _),) = receivers_of(watch)
    again = await submit(served.client, path, **told, offered=mark, kept=mark)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    marks = [mark for mark, _ in receivers_of(watch)]
    silent = await submit(served.client, path, **OURA, offered=marks)
    first = await submit(served.client, path, **told)
    assert [again.status_code, silent.status_code, first.status_code] == [303, 303, 200]
    assert watch.secret in first.text


async def test_a_form_of_before_forgets_nobody(served: Served) -> None:
    """Whoever it did not show stays; whoever is gone meanwhile does not come back as another."""
    told = OURA | {"notify": "https://a.example/1 https://a.example/2"}
    await submit(served.client, "/watches", **told)
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    (first, _), (second, _) = receivers_of(watch)
    path = f"/watches/{watch.id}/edit"
    stale = {"offered": [first, second], "kept": [first]}
    added = OURA | {"notify": "https://b.example/3"}
    await submit(served.client, path, **added, offered=[first, second], kept=[first, second])
    await submit(served.client, path, **OURA, **stale)
    (new,) = await served.app_context.store.watches(LOCAL.id)

    assert [target.address for target in new.notify] == [
        "https://a.example/1", "https://b.example/3",
    ]  # fmt: skip


async def test_who_is_told_can_be_tried(opening: Opening) -> None:
    """What became of it stands on the page, and of a watch that tells nobody it is said."""
    with Loopback(lambda request: Reply()) as hook:
        async with opening(NOTIFY_PRIVATE="true") as served:
            told = {**OURA, "notify": f"{hook.url}/hush"}
            await submit(served.client, "/watches", **told)
            await submit(served.client, "/watches", **OURA, name="silent")
            loud, silent = await served.app_context.store.watches(LOCAL.id)
            page = (await submit(served.client, f"/watches/{loud.id}/try")).text
            nobody = await submit(served.client, f"/watches/{silent.id}/try")
    assert "Delivered: a program (webhook) at 127.0.0.1" in page
    assert len(hook.asked) == 1
    assert (nobody.status_code, "notifies nobody" in nobody.text) == (422, True)


async def test_what_was_not_delivered_is_told_again(opening: Opening) -> None:
    """By a button beside its run, which says what came back, and is gone once all are reached."""
    replies = [Reply(410), Reply(410), Reply()]
    with Loopback(lambda request: replies.pop(0)) as hook:
        async with opening(NOTIFY_PRIVATE="true") as served:
            fields = {**OURA, "notify": f"{hook.url}/hush", "tell_first": "true"}
            await submit(served.client, "/watches", **fields)
            (watch,) = await served.app_context.store.watches(LOCAL.id)
            path = f"/watches/{watch.id}"
            await submit(served.client, f"{path}/run")
            (run,) = await served.app_context.store.watch_runs(LOCAL.id, watch.id, 5)
            button = f'action="{path}/runs/{run.id}/tell"'
            before = (await served.client.get(path)).text
            for _ in range(RUNS):  # so that it is none of the last
                await submit(served.client, f"{path}/run")
            refused = await submit(served.client, f"{path}/runs/{run.id}/tell")
            reached = await submit(served.client, f"{path}/runs/{run.id}/tell")
            none = await submit(served.client, f"{path}/runs/none/tell")
    status = refused.text.partition('role="status">')[2].partition("</div>")[0]
    assert "Not delivered: a program (webhook) at 127.0.0.1 (it answered 410)" in before
    assert "Not delivered: a program (webhook) at 127.0.0.1 (it answered 410)" in status
    assert button in before
    assert button in refused.text
    assert "Delivered: a program (webhook) at 127.0.0.1" in reached.text
    assert button not in reached.text
    assert {asked.headers["listenpost-run"] for asked in hook.asked} == {run.id}
    assert none.status_code == 404


async def test_feed_is_made_replaced_and_closed(served: Served) -> None:
    """Its address is shown once, whole, by the name that the browser has for this server."""
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]
    before = await text(served, path)
    addresses = []
    for origin in ({}, {"origin": "https://localhost"}):
        fields = {"csrf": await csrf(served.client)}
        made = await served.client.post(f"{path}/feed", data=fields, headers=origin)
        (field,) = [each for each in Tags(made.text).named("input") if each.get("id") == "feed"]
        assert "readonly" in field
        assert f'<a href="{field["value"]}">' in made.text
        addresses.append(str(field["value"]))
    shown = (await served.client.get(path)).text
    read = [(await served.client.get(address)).status_code for address in addresses]
    closed = await submit(served.client, f"{path}/feed/close")
    after = await text(served, path)

    assert addresses[0].startswith(f"http://localhost/v1/feeds{path.removeprefix('/watches')}?")
    assert addresses[1].startswith("https://localhost/v1/feeds/")
    assert read == [404, 200]
    assert addresses[1].partition("token=")[2] not in shown
    assert "Make a feed" in before
    assert "It has a feed" in shown
    assert closed.headers["location"] == path
    assert "Make a feed" in after
    assert (await served.client.get(addresses[1])).status_code == 404


async def test_a_form_of_somebody_else_does_nothing(served: Served) -> None:
    """Neither adds nor removes."""
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]
    steps = ("remove", "run", "pause", "edit", "try", "feed", "feed/close", "runs/a/tell")
    for target in ("/watches", *(f"{path}/{step}" for step in steps)):
        assert (await served.client.post(target, data={**OURA, "csrf": "x"})).status_code == 403
    (watch,) = await served.app_context.store.watches(LOCAL.id)
    assert not watch.paused


async def test_strangers_cannot_write_the_page(served: Served) -> None:
    """Names, questions, addresses, reasons and posts are text; links lead to http(s) alone."""
    worst = " ".join(EVIL)
    watch: Watch = replace(
        new_watch(LOCAL.id, f"mug {worst}", "hourly", utc_now()),
        name=EVIL[0], about=worst, notify=(Target("file", worst),),
    )  # fmt: skip
    await served.app_context.store.add_watch(watch, 10)
    claim = await served.app_context.store.claim_watch(
        LOCAL.id, watch.id, watch.due_at, watch.due_at + timedelta(hours=1), "evil"
    )
    assert claim is not None
    posts = tuple(
        NewPost(
            key=f"reddit:{number}", source="reddit", title=worst, url=url, created_at=None,
            passage=worst, complains=False,
        )
        for number, url in enumerate(URLS)
    )  # fmt: skip
    evil = made_run(
        id="evil", watch_id=watch.id, news=True, created_at=watch.due_at, new=posts,
        unusual=(CHANGE.model_copy(update={"text": worst}),), new_aspects=(worst,),
        questions=(NewQuestion(text=worst, cites=("reddit:0",)),),
        gaps=(Gap(source=EVIL[2], outcome=Outcome.BROKEN, reason=worst),),
        deliveries=(Delivery(target=f"file:{worst}", delivered=False, tries=1, reason=worst),),
    )  # fmt: skip
    assert await served.app_context.store.finish_run(claim, evil, (), watch.due_at)
    paths = ("/watches", f"/watches/{watch.id}")
    for path in (*paths, f"/watches/{watch.id}/edit", f"/watches/{watch.id}/remove"):
        tags = Tags((await served.client.get(path)).text)
        assert not tags.named("img") + tags.named("svg") + tags.named("style"), path
        assert len(tags.named("script")) == 1
        assert not [each for tag, each in tags.tags if any(key.startswith("on") for key in each)]
        links = [str(each.get("href")) for each in tags.named("a")]
        assert not [link for link in links if not link.startswith(("/", "http", "#"))]


async def test_times_are_chosen_or_written(served: Served) -> None:
    """What is written counts before the list."""
    for fields, every in (({"often": "daily 08:00", "every": ""}, "daily 08:00"),
                          ({"often": "daily 08:00", "every": "sun 18:30"}, "sun 18:30")):  # fmt: skip
        added = await submit(served.client, "/watches", **OURA | fields | {"name": every})
        assert added.status_code == 303
        (*_, watch) = await served.app_context.store.watches(LOCAL.id)
        assert watch.every == every
