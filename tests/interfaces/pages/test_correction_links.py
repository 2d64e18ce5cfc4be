"""`/corrections/...`: the link below a post of a watch's message, opened by whoever reads that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from api.core.domain import Question
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.corrections import question_digest
from api.features.analyses.feedback import withdraw
from api.features.analyses.inbox import undo
from api.features.analyses.share_links import CorrectionLink
from api.features.watches.notification import LINK_LIFETIME, correction_path, correction_signature
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import EntryState
from api.features.watches.watch_run import WatchRun
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.watch_requests import OURA, URL


async def ran(served: Served, **more: Any) -> tuple[Watch, WatchRun]:
    """A watch of the sample data after its first run."""
    added = (await served.client.post(URL, json=OURA | more)).json()
    run = (await served.client.post(f"{URL}/{added['id']}/run")).json()
    (watch,) = [one for one in await served.app_context.store.watches(LOCAL.id) if one.id == added["id"]]
    return watch, WatchRun.model_validate(run)


def path_of(watch: Watch, run: WatchRun, key: str = "", report_id: str = "", until: int | None = None) -> str:
    """The link of a post of the run, the first of them unless another is named."""
    until = int((run.created_at + LINK_LIFETIME).timestamp()) if until is None else until
    return correction_path(watch, report_id or run.report_id or "", key or run.new[0].key, until)


async def corrections(served: Served) -> dict[str, bool]:
    """What is corrected of the watch's question, by key."""
    entries = await served.app_context.store.corrections(LOCAL.id, question_digest(Question(OURA["query"])))
    return {entry.correction.key: entry.correction.relevant for entry in entries}


async def test_a_link_asks_and_its_button_corrects_once(served: Served) -> None:
    """Opening it changes nothing, however often; the second press says that it was used, until that is undone."""
    watch, run = await ran(served)
    path = path_of(watch, run)

    opened = [await served.client.get(path) for _ in range(2)]
    before = await corrections(served)
    pressed = await served.client.post(path)
    held = await corrections(served)
    again = await served.client.post(path)
    later = await served.client.get(path)
    await withdraw(served.app_context.store, LOCAL.id, run.report_id or "", run.new[0].key)
    undone = await served.client.get(path)

    assert [answer.status_code for answer in opened] == [200, 200]
    assert opened[0].headers["X-Robots-Tag"] == "noindex, nofollow"
    assert f"The watch “{watch.name}” found this post." in opened[0].text
    assert before == {}
    assert pressed.status_code == 200
    assert "It is marked as not about Oura." in pressed.text
    assert held == {run.new[0].key: False}
    assert (again.status_code, later.status_code) == (409, 409)
    assert undone.status_code == 200
    assert "this post was marked as not about it on" in later.text.replace("This post", "this post")


async def test_a_link_stars_and_marks_as_read_each_once(served: Served) -> None:
    """Until that is undone; the correction is one of the inbox, too."""
    watch, run = await ran(served, tell_first=True)
    path, key, store = path_of(watch, run), run.new[0].key, served.app_context.store

    async def state() -> EntryState:
        entry = await store.inbox_entry_of(LOCAL.id, watch.id, key)
        assert entry is not None
        return entry.state

    opened = await served.client.get(path)
    starred = await served.client.post(path, data={"do": "star"})
    again = await served.client.post(path, data={"do": "star"})
    assert ("Mark as read</button>" in opened.text, 'value="star"' in opened.text) == (True, True)
    assert ("<h1>Starred</h1>" in starred.text, 'value="star"' in starred.text) == (True, False)
    assert (again.status_code, "is starred already" in again.text) == (409, True)
    assert (await state()).starred
    await undo(store, LOCAL.id)
    assert (await served.client.post(path, data={"do": "star"})).status_code == 200

    read = [(await served.client.post(path, data={"do": "read"})).status_code for _ in range(2)]
    unknown = await served.client.post(path, data={"do": "mute"})
    assert (read, unknown.status_code, await corrections(served)) == ([200, 409], 422, {})
    wrong = await served.client.post(path, data={"do": "not_about"})
    assert "It is marked as not about Oura." in wrong.text
    assert (await state()).not_about
    assert await corrections(served) == {key: False}
    assert (await served.client.get(path)).status_code == 409


async def test_a_post_that_is_not_in_the_inbox_can_be_corrected_alone(served: Served) -> None:
    """As those of a first run that told nobody."""
    watch, run = await ran(served)
    path = path_of(watch, run)
    assert 'value="star"' not in (await served.client.get(path)).text
    assert (await served.client.post(path, data={"do": "star"})).status_code == 404
    assert (await served.client.post(path, data={"do": "not_about"})).status_code == 200


async def test_what_was_changed_in_a_link_is_refused(served: Served) -> None:
    """Another post, report, watch, end or signature; nothing is corrected."""
    watch, run = await ran(served)
    other, elsewhere = await ran(served, name="other", query="Whoop")
    path, key = path_of(watch, run), run.new[0].key
    wrong = [
        path.replace("item=", "item=x"),
        path.replace(str(run.report_id), str(elsewhere.report_id)),
        path.replace(watch.id, other.id),
        path.replace("until=", "until=1"),
        path[:-1] + ("0" if path[-1] != "0" else "1"),
        path.partition("?")[0],
        # signed by a watch, of a report that its tenant has not
        path_of(watch, run, report_id="f" * 32),
        path_of(watch, run, key="reddit:none"),
    ]
    for link in wrong:
        assert (await served.client.get(link)).status_code in {404, 422}, link
        assert (await served.client.post(link)).status_code in {404, 422}, link
    assert await corrections(served) == {}
    assert key


async def test_a_link_ends_and_a_removed_watch_has_none(served: Served) -> None:
    """After 14 days, with the day on which it ended."""
    watch, run = await ran(served)
    ended = run.created_at - timedelta(days=1)
    old = await served.client.post(path_of(watch, run, until=int(ended.timestamp())))
    await served.client.delete(f"{URL}/{watch.id}")
    gone = await served.client.post(path_of(watch, run))

    assert (old.status_code, gone.status_code) == (404, 404)
    assert f"his link ended on {ended:%Y-%m-%d}" in old.text
    assert await corrections(served) == {}


@pytest.mark.parametrize("sign", ["", "é", "0" * 64])
async def test_no_signature_of_a_stranger_fits(served: Served, sign: str) -> None:
    """Nor one of the body of a webhook, which has another form."""
    watch, run = await ran(served)
    link = CorrectionLink(watch.id, run.report_id or "", run.new[0].key, 4_000_000_000, sign)
    assert correction_signature(watch, link.report_id, link.key, link.until) != sign
    answer = await served.client.post(
        f"/corrections/{link.watch_id}/{link.report_id}",
        params={"item": link.key, "until": link.until, "sign": sign},
    )
    assert answer.status_code == 404
