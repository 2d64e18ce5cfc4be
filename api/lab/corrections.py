"""What people say of a report's items, as labels: the gate's verdict, or the opposite of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api.services.keeping.storage import Feedback, Rating
from api.services.reporting.report import Report


def corrections(report: Report, opinions: Iterable[Feedback]) -> list[dict[str, Any]]:
    """A line of labelled queries for each source whose items were rated; read by `read_labelled`.

    A thumb up says that the gate was right about an item, a thumb down that it was wrong. Items on
    which people differ have no label, nor have those that no gate kept or dropped. Of a dropped one
    the title is all that is kept.
    """
    thumbs: dict[str, set[Rating]] = {}
    for opinion in opinions:
        if opinion.item_key is not None:
            thumbs.setdefault(opinion.item_key, set()).add(opinion.rating)
    judged: dict[str, tuple[str, bool, dict[str, Any]]] = {}
    for item in report.items:
        if item.verdict is not None:
            texts = {"title": item.title, "body": item.body, "place": item.place or ""}
            judged[item.key] = item.source, True, texts
    for name, source in report.sources.items():
        for gone in source.dropped:
            if gone.dropped_by == "gate":
                judged[gone.key] = name, False, {"title": gone.title}
    labelled: dict[str, list[dict[str, Any]]] = {}
    for key, given in thumbs.items():
        if key in judged and len(given) == 1:
            name, kept, texts = judged[key]
            labelled.setdefault(name, []).append({**texts, "relevant": kept == (given == {"up"})})
    return [
        {"query": report.query, "about": report.about, "source_hint": name, "items": items}
        for name, items in labelled.items()
    ]
