"""What a stored report quotes of an item that its source deleted."""

from __future__ import annotations

from typing import Any

from api.store.report_json import without_items


def test_quotes_of_what_was_deleted_are_removed() -> None:
    """Three words or more, of the item or its comments; what others wrote, and a single word, stay."""
    kept: dict[str, Any] = {"key": "x:2", "body": "They say “it hums all night” in the forum"}
    gone = {"key": "x:1", "body": "Mine is loud:\nit hums all night long", "comments": [{"body": "The lid broke off"}]}
    report = {
        "summary": "One each said: “it hums  all night …”, “The lid broke off”, “loud” and “They say so too”.",
        "findings": [{"text": 'Some say "hums all night".', "cites": ["x:1", "x:2"]}],
        "items": [gone, kept],
        "quality_notes": [],
    }

    left = without_items(report, {"x:1"})

    assert left["summary"] == "One each said: “[removed]”, “[removed]”, “loud” and “They say so too”."
    assert left["findings"][0]["text"] == "Some say “[removed]”."
    assert left["items"] == [kept]
