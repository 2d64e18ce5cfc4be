"""A report for whoever has its link."""

from __future__ import annotations

import re

from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.pages.visiting import QUICK, assert_harmless, entered, finished, link_in, poisoned, submit


async def test_link_is_made_shown_once_replaced_and_ended(served: Served) -> None:
    """And says that it opens on this machine alone."""
    place = f"/analyses/{(await finished(served)).id}"
    empty = await served.client.get(f"{place}/share")
    old = link_in(await submit(served.client, f"{place}/share"))
    made = await served.client.get(f"{place}/share")
    new = link_in(await submit(served.client, f"{place}/share"))
    answers = [(await served.client.get(path)).status_code for path in (old, new)]
    ended = await submit(served.client, f"{place}/unshare")
    after = await served.client.get(new)

    assert "There is no link." in empty.text
    assert "opens here only" in empty.text
    assert "It cannot be shown again" in made.text
    assert "token=" not in made.text
    assert answers == [404, 200]
    assert (ended.status_code, ended.headers["location"]) == (303, f"{place}/share")
    assert after.status_code == 404
    assert "ask whoever sent it for another" in after.text


async def test_link_shows_one_report_to_whoever_has_no_key(opening: Opening) -> None:
    """All of its posts; no menu, no form, no way to anything else, and search engines skip it."""
    async with opening(keys="ann") as served, served.calling(peer="192.0.2.7") as stranger:
        await entered(served.client, "ann")
        place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
        await served.client.get(f"{place}/live")
        link = link_in(await submit(served.client, f"{place}/share"))
        answer = await stranger.get(link)
        refused = [
            await stranger.get(path) for path in (place, f"{place}/evidence", f"{place}/share", f"/shared{place[9:]}")
        ]

    assert answer.status_code == 200
    assert 'class="claims"' in answer.text
    assert "requests" not in answer.text.partition('id="about"')[2]
    assert " dropped</h2>" in answer.text
    assert "<nav" not in answer.text
    assert 'action="' not in answer.text
    assert not re.search(r'href="/(?!static/page.css|")', answer.text)
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    assert [each.status_code for each in refused] == [303, 303, 303, 404]


async def test_a_token_that_is_none_finds_nothing(served: Served) -> None:
    """However long it is; and what an address holds that the API does not describe is no fault."""
    for path in ("/shared/x", "/v1/feeds/x"):
        answer = await served.client.get(path, params={"token": "a" * 5000})
        assert answer.status_code == 404, path
    assert (await served.client.get("/analyses/x/evidence?kept_from=-1")).status_code == 422


async def test_without_keys_a_link_opens_here_alone(served: Served) -> None:
    """As everything else."""
    place = f"/analyses/{(await finished(served)).id}"
    link = link_in(await submit(served.client, f"{place}/share"))
    async with served.calling(peer="192.0.2.7") as stranger:
        assert (await stranger.get(link)).status_code == 403


async def test_what_strangers_wrote_is_text(served: Served) -> None:
    """On the shared page, too."""
    place = f"/analyses/{(await poisoned(served)).id}"
    share = await submit(served.client, f"{place}/share")
    assert_harmless(await served.client.get(link_in(share)))


async def test_only_what_is_yours_and_finished_has_a_link(served: Served) -> None:
    """Others are not found; one that runs has nothing to show yet."""
    await served.app_context.store.begin("local", "a" * 32, "mug")
    running = await submit(served.client, f"/analyses/{'a' * 32}/share")
    unknown = await submit(served.client, f"/analyses/{'b' * 32}/share")

    assert (running.status_code, unknown.status_code) == (409, 404)
