"""Reports on two makers of mugs, as small as a comparison needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.core.display_names import SourceLabel
from api.core.work import Failure
from api.features.comparisons.compare import comparison_of
from api.features.comparisons.comparison import Comparison
from api.reports.report import Report
from api.services.product import Ask
from tests.store.made import item, report, source, typed

PLACES = {"reddit": SourceLabel("reddit", "Reddit", ""), "lemmy": SourceLabel("lemmy", "Lemmy", "")}


def posts(name: str, *texts: str, place: str = "reddit", **more: Any) -> list[dict[str, Any]]:
    """A post about a product for each text, whose keys begin with its name."""
    return [
        item(
            f"{place}:{name}{number}", title=f"My {name}", body=text, comments=[], sentiment=None,
            probability=0.9,
            **more,
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


def about(
    name: str,
    items: Sequence[Mapping[str, Any]],
    sources: Mapping[str, Mapping[str, Any]] | None = None,
    **more: Any,
) -> Report:
    """The report on a product; its sources are read to the end where nothing else is said."""
    names = dict.fromkeys(entry["source"] for entry in items) or {"reddit": None}
    asked = {place: source(kept=0) | {"capped": False, "source": place} for place in names}
    for place, fields in (sources or {}).items():
        asked[place] = source() | {"capped": False, "source": place} | dict(fields)
    fields = {"query": name, "sources": asked, "findings": [], "quotes": []} | more
    return typed(report(f"id{name}", *map(dict, items), **fields))


def spoken(name: str, people: dict[str, int], weeks: dict[str, int] | None = None, **more: Any) -> Report:
    """A report whose posts so many people of each place wrote, in these weeks of the first place."""
    items = [post for place, count in people.items() for post in posts(name, *["It is a mug."] * count, place=place)]
    voices: dict[str, Any] = {place: {"people": n, "weeks": {}, "undated": 0} for place, n in people.items()}
    if weeks:
        next(iter(voices.values()))["weeks"] = weeks
    return about(name, items, figures={"voices": voices}, **more)


def compared(*answers: Report | Failure, **like: Any) -> Comparison:
    """These side by side; the first failure is of `Failed1`, and so on."""
    asks = [
        Ask(answer.query if isinstance(answer, Report) else f"Failed{number}", **like)
        for number, answer in enumerate(answers)
    ]
    return comparison_of(asks, answers, PLACES)
