"""The made-up posts of the places that are asked without a key, and their labels."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PLACES = {"hackernews", "stackexchange", "github", "lemmy", "discourse"}
KINDS = {
    *("direct", "question", "comparison", "no_name", "foreign"),
    *("homonym", "rival", "name_drop", "chatter", "bot", "hostile"),
}
ALWAYS = {"direct": True, "question": True, "comparison": True, "no_name": True} | dict.fromkeys(
    ("homonym", "rival", "name_drop", "chatter", "bot", "hostile"), False
)
"""Kind -> what a row of it is; `foreign` may be either."""
MADE_UP = {"example.org", "example.com"}

Rows = dict[str, list[dict[str, Any]]]


def _read(folder: Path) -> Rows:
    """Product -> the rows of its file."""
    return {
        file.stem: [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        for file in sorted(folder.glob("*.jsonl"))
    }


@pytest.fixture(scope="module")
def shelf(root: Path) -> Rows:
    """The shipped posts."""
    return _read(root / "api/sandbox/data/keyless")


@pytest.fixture(scope="module")
def labels(root: Path) -> Rows:
    """Their labels."""
    return _read(root / "api/sandbox/data/keyless_labels")


def _texts(row: dict[str, Any]) -> list[str]:
    """Everything somebody wrote in a row."""
    comments = (comment["body"] for comment in row["comments"])
    return [text for text in (row["title"], row["body"], *comments) if text]


def test_every_row_has_one_label_of_a_known_kind(shelf: Rows, labels: Rows) -> None:
    """Numbers match one to one and in order, and the kind agrees with the judgement."""
    assert set(shelf) == set(labels)
    for slug, rows in shelf.items():
        assert [row["n"] for row in rows] == list(range(1, len(rows) + 1)), slug
        assert [label["n"] for label in labels[slug]] == [row["n"] for row in rows], slug
        for label in labels[slug]:
            assert label["kind"] in KINDS, (slug, label)
            assert ALWAYS.get(label["kind"], label["relevant"]) is label["relevant"], (slug, label)
            assert label["reason"].endswith("."), (slug, label)


def test_yields_differ_enough_to_refetch_and_not_to(shelf: Rows, labels: Rows) -> None:
    """Each product has both sorts in each place; some pages hold over 60 %, some under 40 %."""
    yields = {}
    for slug, rows in shelf.items():
        own = {label["n"] for label in labels[slug] if label["relevant"]}
        for place in PLACES:
            page = [row["n"] in own for row in rows if row["source"] == place]
            if page:
                yields[slug, place] = sum(page) / len(page)

    assert all(0 < share < 1 for share in yields.values()), yields
    for place in PLACES:
        assert any(share > 0.6 for (_, where), share in yields.items() if where == place), place
        assert any(share < 0.4 for (_, where), share in yields.items() if where == place), place


def test_each_place_is_filled_for_most_products(shelf: Rows) -> None:
    """Five rows and more of each place, in six products at least."""
    for place in PLACES:
        filled = [s for s, rows in shelf.items() if sum(r["source"] == place for r in rows) >= 5]
        assert len(filled) >= 6, (place, filled)


def test_a_row_has_what_its_place_has(shelf: Rows) -> None:
    """Views on Stack Exchange alone, a repository for GitHub, and no comment before its post."""
    for slug, rows in shelf.items():
        for row in rows:
            here = (slug, row["n"])
            assert row["source"] in PLACES, here
            assert ("views" in row) is (row["source"] == "stackexchange"), here
            assert (row["place"] == "") is (row["source"] == "hackernews"), here
            assert (row["place"].count("/") == 1) is (row["source"] == "github"), here
            assert row["title"], here
            assert len(row["body"]) <= 1000, here
            assert all(remark["age_days"] <= row["age_days"] for remark in row["comments"]), here
            assert all(bool(remark["body"]) or remark["deleted"] for remark in row["comments"])


def test_no_text_is_in_two_rows(shelf: Rows) -> None:
    """Every title, body and comment is written once."""
    texts = Counter(text.casefold() for rows in shelf.values() for row in rows for text in _texts(row))

    assert [text for text, count in texts.items() if count > 1] == []


def test_nobody_and_nothing_real_is_addressed(shelf: Rows) -> None:
    """No e-mail address, and links to example hosts only."""
    for slug, rows in shelf.items():
        for row in rows:
            for text in (*_texts(row), row["link"] or ""):
                # An address with a name and a dotted host, as in `owner@example.org`.
                assert not re.search(r"[\w.+-]+@[\w-]+\.\w", text), (slug, row["n"])
                # The host of a link, as in `https://example.org/page`.
                hosts = re.findall(r"(?:https?://|\bwww\.)([\w.-]+)", text)
                assert set(hosts) <= MADE_UP, (slug, row["n"], hosts)
