"""`/sources` against the real clients."""

from __future__ import annotations

from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import submit


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


async def test_only_a_form_of_ours_tries(served: Served) -> None:
    """A page of somebody else spends no quota."""
    before = len(served.sandbox.log)
    answer = await served.client.post("/sources", data={"csrf": "guessed"})
    assert answer.status_code == 403
    assert len(served.sandbox.log) == before
