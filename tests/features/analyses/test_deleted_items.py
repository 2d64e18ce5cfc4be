"""What a place says is gone goes from what was stored before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from api.core.domain import REMOVED
from api.core.items import Item
from api.features.analyses.analysis_job import keep_report
from api.features.analyses.store_ports import Store
from api.reports.report import Report
from tests.store.made import dropped, item, report, source, typed


@dataclass
class StoredAnalysis:
    """Has these items; notes what is forgotten and stored."""

    items: Mapping[str, Item]
    done: list[Any] = field(default_factory=list)

    async def facts(self, tenant: str, keys: Iterable[str]) -> Mapping[str, Item]:
        return {key: self.items[key] for key in keys if key in self.items}

    async def forget(self, keys: Iterable[str]) -> int:
        self.done.append(sorted(keys))
        return 0

    async def finish(self, tenant: str, report: Report, work_id: str | None = None) -> bool:
        self.done.append(report.id)
        return True


def facts(key: str, **more: Any) -> Item:
    """An item as it is stored."""
    return Item.model_validate(item(key, **more))


def gone(key: str, **more: Any) -> dict[str, Any]:
    """An item that its place says is removed."""
    return dropped(key, REMOVED) | {"dropped_by": "unfit"} | more


EMPTY: dict[str, Any] = {"title": "", "body": "", "comments": []}


async def test_removed_items_are_forgotten_before_the_report_is_stored() -> None:
    """Those with words of them that were stored before, wherever the report lists them."""
    kept = StoredAnalysis(
        {
            "reddit:t3_1": facts("reddit:t3_1"),
            "reddit:t3_2": facts("reddit:t3_2", **EMPTY | {"body": "so"}),
            "reddit:t3_3": facts("reddit:t3_3", **EMPTY | {"comments": item("x:y")["comments"]}),
            "reddit:t3_4": facts("reddit:t3_4", **EMPTY),
            "reddit:t3_5": facts("reddit:t3_5"),
            "reddit:t3_6": facts("reddit:t3_6"),
        }
    )
    met = report(
        "r1", item("reddit:t3_6"),
        out=[gone(f"reddit:t3_{number}") for number in (1, 2, 4, 9)]
        + [gone("reddit:t3_5", reason="written by a bot"), dropped("reddit:t3_6", REMOVED)],
        sources={"reddit": source(gone("reddit:t3_3"))},
    )  # fmt: skip

    await keep_report(cast(Store, kept), "a", typed(met))

    assert kept.done == [["reddit:t3_1", "reddit:t3_2", "reddit:t3_3"], "r1"]


async def test_without_them_nothing_is_looked_up() -> None:
    """Nor when what is gone was never stored, or is of the sample data."""
    kept = StoredAnalysis({"reddit:t3_1": facts("reddit:t3_1")})
    made_up = report("r1", out=[gone("reddit:t3_1")], sample=True)

    for met in (made_up, report("r2"), report("r3", out=[gone("reddit:t3_9")])):
        await keep_report(cast(Store, kept), "a", typed(met))

    assert kept.done == ["r1", "r2", "r3"]
