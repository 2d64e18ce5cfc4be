"""`/v1/feeds`, and questions of tenants that follow one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interfaces.http.conftest import Opening
from tests.sources.feed_emulator import FeedsEmulator

URL = "/v1/feeds"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedsEmulator]:
    """A site whose server the settings name, by another address."""
    with FeedsEmulator(12) as server:
        monkeypatch.setenv("FEEDS", f"{server.server.url}/other.xml")
        yield server


async def test_a_tenants_feeds_are_its_own(opening: Opening, site: FeedsEmulator) -> None:
    """Added, read by its questions, removed; another key neither sees nor asks it."""
    address = f"{site.server.url}/feed.xml"
    question = {"query": "mug", "limit": 2}
    async with opening(keys="a,b") as served:
        mine, others = ({"Authorization": f"Bearer {key}"} for key in "ab")
        added = await served.client.post(URL, json={"address": address, "name": "Mugs of mine"}, headers=mine)
        again = await served.client.post(URL, json={"address": address}, headers=mine)
        wrong = await served.client.post(URL, json={"address": "http://10.0.0.1:x/"}, headers=mine)
        lists = [(await served.client.get(URL, headers=headers)).json()["feeds"] for headers in (mine, others)]
        await served.client.post("/v1/fetch/feeds", json=question, headers=others)
        before = list(site.paths)
        found = await served.client.post("/v1/fetch/feeds", json=question, headers=mine)
        gone = await served.client.delete(URL, params={"address": address}, headers=mine)
        twice = await served.client.delete(URL, params={"address": address}, headers=mine)

    assert (added.status_code, again.status_code, wrong.status_code) == (201, 201, 422)
    assert added.json()["entries"] == 12
    assert wrong.json()["error"]["code"] == "invalid_request"
    assert [[feed["of_settings"] for feed in listed] for listed in lists] == [[False, True], [True]]
    assert before == site.paths == ["/feed.xml", "/other.xml"]
    assert found.status_code == 200
    assert (gone.status_code, twice.status_code) == (204, 404)
