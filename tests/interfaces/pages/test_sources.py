"""`/sources` against the real clients."""

from __future__ import annotations

import pytest

from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import entered, submit
from tests.sources.feed_emulator import FeedsEmulator


def items(html: str) -> list[str]:
    """What is said of each."""
    return [" ".join(" ".join(Tags(part).words).split()) for part in html.split("<li>")[1:]]


async def test_looking_asks_nobody(opening: Opening) -> None:
    """What a place lacks is read from the settings."""
    async with opening() as served:
        before = len(served.sandbox.log)
        page = (await served.client.get("/sources")).text
        assert len(served.sandbox.log) == before
    assert "Nobody has been asked yet." in page
    assert any(each.startswith("Reddit ready") for each in items(page))


async def test_a_button_tries_each(served: Served) -> None:
    """What doctor says stands here: who answers, who does not, and what helps; never a key."""
    served.sandbox.fault("reddit=401")
    page = (await submit(served.client, "/sources")).text
    rows = items(page.partition('id="answers"')[2])

    assert served.sandbox.log
    (reddit,) = [row for row in rows if row.startswith("Reddit")]
    (youtube,) = [row for row in rows if row.startswith("YouTube")]
    assert "refused" in reddit
    assert "Fix: check" in reddit
    assert youtube.startswith("YouTube ok")
    assert any(row.startswith("Langfuse not configured") for row in rows)
    for name, value in served.sandbox.environment.items():
        assert "KEY" not in name or value not in page


async def test_a_key_does_not_see_what_is_left(opening: Opening) -> None:
    """It would show whether another key watches the same."""
    async with opening(keys="ann,ben") as served:
        await entered(served.client, "ann")
        pages = [(await served.client.get(path)).text for path in ("/", "/sources")]
        pages.append((await submit(served.client, "/sources")).text)
    assert any(row.startswith("YouTube ok") for row in items(pages[-1].partition('id="answers"')[2]))
    assert not any(" left" in " ".join(items(page)) for page in pages)


async def test_only_a_form_of_ours_tries(served: Served) -> None:
    """A page of somebody else spends no quota."""
    before = len(served.sandbox.log)
    answer = await served.client.post("/sources", data={"csrf": "guessed"})
    assert answer.status_code == 403
    assert len(served.sandbox.log) == before


async def test_feeds_are_followed_and_removed_on_the_page(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be followed is explained beside its field; of the settings' feeds none is removed here."""
    with FeedsEmulator(3) as site:
        own, of_settings = f"{site.server.url}/own.xml", f"{site.server.url}/feed.xml"
        monkeypatch.setenv("FEEDS", of_settings)
        async with opening() as served:
            wrong = await submit(served.client, "/sources/feeds", address="no address")
            followed = await submit(served.client, "/sources/feeds", address=own, name="My <b>mugs")
            shown = (await served.client.get("/sources")).text
            removed = await submit(served.client, "/sources/feeds/remove", address=own)
            left = (await served.client.get("/sources")).text

    assert wrong.status_code == 422
    assert "begins with" in wrong.text.partition('id="wrong"')[2][:200]
    assert 'value="no address"' in wrong.text
    assert (followed.status_code, removed.status_code) == (303, 303)
    assert any(each.startswith(f"My <b>mugs {own} 3 entries") for each in items(shown))
    assert "<b>" not in shown
    assert shown.count('action="/sources/feeds/remove"') == 1
    assert own not in left
    assert any("of `FEEDS`" in each for each in items(left))


async def test_the_sandbox_follows_no_feeds(opening: Opening) -> None:
    """It has feeds of its own."""
    async with opening(MODE="sandbox") as served:
        assert "/sources/feeds" not in (await served.client.get("/sources")).text
