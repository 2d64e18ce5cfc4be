"""A wrapper forwards what it does not change."""

from __future__ import annotations

from api.core.domain import FetchPlan
from api.core.ports import WrappedSource
from tests.services.fakes import FakeSource, items


async def test_a_wrapped_source_is_the_source_inside() -> None:
    """
    Name, pages, comments, remarks, probe and end are its own.
    """
    inner = FakeSource(items(2), name="youtube")
    wrapped = WrappedSource(inner)

    batch = await wrapped.fetch(FetchPlan("x", 5))
    commented = await wrapped.comments(batch.items)
    item = await wrapped.with_best_comments(batch.items[1])
    probe = await wrapped.probe()
    await wrapped.aclose()

    assert wrapped.name == "youtube"
    assert [item.id for item in batch.items] == ["0", "1"]
    assert [len(item.comments) for item in commented.items] == [1, 1]
    assert (item, inner.looked) == (None, ["1"])
    assert (probe.outcome, inner.closed) == ("ok", True)
