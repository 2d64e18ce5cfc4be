"""`/watches` over a real store and the real clients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.services.keeping.keys import LOCAL
from api.services.watching.running import utc_now
from api.services.watching.watch import Watch, new_watch
from tests.faces.web.conftest import Opening, Served
from tests.faces.web.pages.visiting import submit
from tests.faces.web.test_export import EVIL, Tags
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
    (watch,) = await served.house.store.watches(LOCAL.id)
    before = await text(served, path)
    ran = await submit(served.client, f"{path}/run")
    again = await submit(served.client, f"{path}/run")
    page = await text(served, path)
    runs = await served.house.store.watch_runs(LOCAL.id, watch.id, 5)

    assert (added.status_code, path) == (303, f"/watches/{watch.id}")
    assert (watch.every, watch.zone, watch.sources) == ("mon 8:00", "Asia/Tokyo", ("reddit",))
    assert "It has not run yet." in before
    assert ran.headers["location"] == again.headers["location"] == path
    assert [run.state for run in runs] == ["nothing", "baseline"]
    assert f"{len(runs[1].new)} new post" in page
    assert runs[1].new[0].title in page
    html = (await served.client.get(path)).text
    assert f"/analyses/{runs[1].report_id}" in html
    assert 'aria-label="Posts a week: reddit"' in html
    assert f"Week Reddit {runs[1].created_at:%G}-W" in page
    assert "mon 8:00 (Asia/Tokyo) · next run" in await text(served, "/watches")


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
    for step in ("run", "pause", "resume", "remove"):
        assert (await submit(served.client, f"{path}/{step}")).status_code == 404


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"every": "sometimes"}, "sometimes"),
        ({"tz": "Mars/Olympus"}, "Mars/Olympus"),
        ({"notify": "file:/etc/passwd"}, "https://"),
        ({"source": ["myspace"]}, "myspace"),
        ({"depth": "deepest"}, "`depth`"),
        ({"query": ""}, "`query`"),
    ],
)
async def test_what_is_wrong_stands_in_the_form(
    served: Served, change: dict[str, Any], words: str
) -> None:
    """With what was written, so that nobody writes it again; nothing is kept."""
    answer = await submit(served.client, "/watches", **OURA | {"about": "a ring"} | change)
    tags = Tags(answer.text)
    fields = {each.get("name"): each.get("value") for each in tags.named("input")}
    alert = answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert answer.status_code == 422
    assert words in alert
    assert fields["about"] == "a ring"
    assert not await served.house.store.watches(LOCAL.id)


async def test_the_secret_is_shown_once(served: Served) -> None:
    """To whoever adds a watch that tells a webhook; its address is shown to nobody again."""
    told = OURA | {"notify": "https://hooks.example/hush", "tell_first": "true"}
    added = await submit(served.client, "/watches", **told)
    (watch,) = await served.house.store.watches(LOCAL.id)
    page = await served.client.get(f"/watches/{watch.id}")
    assert watch.secret in added.text
    assert watch.tell_first
    assert "webhook:hooks.example" in page.text
    assert watch.secret not in page.text
    assert "hush" not in page.text


async def test_who_is_told_can_be_tried(opening: Opening) -> None:
    """What became of it stands on the page, and of a watch that tells nobody it is said."""
    with Loopback(lambda request: Reply()) as hook:
        async with opening(NOTIFY_PRIVATE="true") as served:
            told = {**OURA, "notify": f"{hook.url}/hush"}
            await submit(served.client, "/watches", **told)
            await submit(served.client, "/watches", **OURA, name="silent")
            loud, silent = await served.house.store.watches(LOCAL.id)
            page = (await submit(served.client, f"/watches/{loud.id}/try")).text
            nobody = await submit(served.client, f"/watches/{silent.id}/try")
    assert "Told: webhook:127.0.0.1" in page
    assert len(hook.asked) == 1
    assert (nobody.status_code, "tells nobody" in nobody.text) == (422, True)


async def test_a_form_of_somebody_else_does_nothing(served: Served) -> None:
    """Neither adds nor removes."""
    path = (await submit(served.client, "/watches", **OURA)).headers["location"]
    for target in ("/watches", f"{path}/remove", f"{path}/run", f"{path}/pause"):
        assert (await served.client.post(target, data={**OURA, "csrf": "x"})).status_code == 403
    (watch,) = await served.house.store.watches(LOCAL.id)
    assert not watch.paused


async def test_strangers_cannot_write_the_page(served: Served) -> None:
    """Names and questions are text."""
    watch: Watch = replace(
        new_watch(LOCAL.id, f"mug {' '.join(EVIL[:5])}", "hourly", utc_now()), name=EVIL[0]
    )
    await served.house.store.add_watch(watch, 10)
    for path in ("/watches", f"/watches/{watch.id}", f"/watches/{watch.id}/remove"):
        page = (await served.client.get(path)).text
        assert not Tags(page).named("img") + Tags(page).named("svg"), path
        assert len(Tags(page).named("script")) == 1
