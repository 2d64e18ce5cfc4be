"""`/compare` over a real store and the real clients."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faces.web.conftest import Served
from tests.faces.web.pages.visiting import submit
from tests.faces.web.test_export import EVIL, Tags

TWO: dict[str, Any] = {"product": ["Oura", "Whoop", "", "", ""], "depth": "quick", "since": "all"}


def fields_of(html: str, action: str) -> dict[str, list[str]]:
    """What the form of that address would send as it stands."""
    form = html.partition(f'action="{action}"')[2].partition("</form>")[0]
    fields: dict[str, list[str]] = {}
    for each in Tags(form).named("input"):
        fields.setdefault(each["name"] or "", []).append(each.get("value") or "")
    return fields


async def test_products_stand_side_by_side(served: Served) -> None:
    """First their analyses, which run on their own; then the table, with each side's report."""
    form = fields_of((await served.client.get("/compare")).text, "/compare")
    begun = await submit(served.client, "/compare", **TWO, key=form["key"])
    again = fields_of(begun.text, "/compare")
    shown = await served.client.post("/compare", data=again)
    listed = (await served.client.get("/v1/analyses")).json()["analyses"]
    page = " ".join(" ".join(Tags(shown.text).words).split())

    assert (begun.status_code, shown.status_code) == (200, 200)
    assert (again["product"], again["key"]) == (TWO["product"], form["key"])
    assert {each["query"] for each in listed} == {"Oura", "Whoop"}
    assert len(listed) == 2
    assert "Oura and Whoop, compared" in page
    assert "Each was asked alike" in page
    for each in listed:
        assert f'href="/analyses/{each["id"]}"' in begun.text
        assert f'href="/analyses/{each["id"]}"' in shown.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"product": ["Oura", ""]}, "`products`"),
        ({"product": ["Oura", "OURA"]}, "are the same product"),
        ({"source": ["myspace"]}, "myspace"),
        ({"depth": "deepest"}, "`depth`"),
    ],
)
async def test_what_is_wrong_stands_in_the_form(
    served: Served, change: dict[str, Any], words: str
) -> None:
    """With what was written; nothing begins."""
    answer = await submit(served.client, "/compare", **TWO | change)
    fields = fields_of(answer.text, "/compare")
    assert answer.status_code == 422
    assert words in answer.text.partition('role="alert">')[2].partition("</p>")[0]
    assert fields["product"][0] == "Oura"
    assert (await served.client.get("/v1/analyses")).json()["analyses"] == []


async def test_a_form_of_somebody_else_begins_nothing(served: Served) -> None:
    """It would spend money."""
    assert (await served.client.post("/compare", data=TWO | {"csrf": "x"})).status_code == 403
    assert (await served.client.get("/v1/analyses")).json()["analyses"] == []


async def test_names_are_text(served: Served) -> None:
    """They come back in their fields, and break out of them nowhere."""
    answer = await submit(served.client, "/compare", product=[EVIL[2], EVIL[2]])
    assert not Tags(answer.text).named("svg")
    assert fields_of(answer.text, "/compare")["product"][0] == EVIL[2]
