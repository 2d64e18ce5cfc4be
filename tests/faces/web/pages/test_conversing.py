"""A chat beside a report: its posts are known, what is cited stands below each answer."""

from __future__ import annotations

import re

from tests.faces.web.conftest import Opening, Served
from tests.faces.web.pages.test_access import entered
from tests.faces.web.pages.visiting import QUICK, finished, submit


async def test_a_report_is_asked_on(served: Served) -> None:
    """Turn after turn in one session; each cites posts, and a reload shows them again."""
    report = await finished(served)
    place = f"/analyses/{report.id}/chat"
    empty = (await served.client.get(place)).text
    first = await submit(served.client, place, message="What annoys people about it?", session="")
    session = first.headers["location"].partition("#")[0].rpartition("/")[2]
    again = await submit(served.client, place, message="And the battery?", session=session)
    page = (await served.client.get(again.headers["location"])).text

    assert 'href="/analyses/' in empty
    assert (first.status_code, again.status_code) == (303, 303)
    where, _, turn = again.headers["location"].partition("#")
    assert where == f"{place}/{session}"
    assert f'id="{turn}"' in page
    # the report itself is what was said first
    assert re.findall(r"<h2>(.*?)</h2>", page) == [
        report.query, "What annoys people about it?", "And the battery?",
    ]  # fmt: skip
    assert re.search(
        r"<li>\[E\d+\] <a href=\"https://[^\"]+\" rel=\"noopener noreferrer nofollow", page
    )
    assert f'name="session" value="{session}"' in page


async def test_small_talk_is_answered_and_not_kept(served: Served) -> None:
    """The guidance stands on the page that was sent."""
    report = await finished(served)
    answer = await submit(
        served.client, f"/analyses/{report.id}/chat", message="hello there", session=""
    )

    assert answer.status_code == 200
    assert "<h2>hello there</h2>" in answer.text


async def test_a_conversation_is_ones_own(opening: Opening) -> None:
    """Another key sees neither the report nor what was said of it."""
    async with opening(keys="ann,ben") as served, served.calling() as ben:
        await entered(served.client, "ann")
        await entered(ben, "ben")
        place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
        await served.client.get(f"{place}/live")
        said = await submit(served.client, f"{place}/chat", message="What annoys people?")
        answers = [
            await ben.get(f"{place}/chat"),
            await ben.get(said.headers["location"]),
            await submit(ben, f"{place}/chat", message="What annoys people?"),
        ]

    assert said.status_code == 303
    assert {answer.status_code for answer in answers} == {404}


async def test_a_question_has_its_length(served: Served) -> None:
    """As everywhere."""
    report = await finished(served)
    answer = await submit(served.client, f"/analyses/{report.id}/chat", message="x" * 501)

    assert answer.status_code == 422
