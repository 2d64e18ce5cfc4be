"""The same question about each product."""

from __future__ import annotations

import pytest

from api.core.progress import Listener, ProductEvent, Writing
from api.core.work import Failure
from api.errors import UsageError
from api.features.comparisons.compare import analyze_each, asks_of
from api.reports.report import Report
from api.services.product import Ask
from tests.features.comparisons.made import about
from tests.services.fakes import SourceAnswer

LIKE = Ask("", "quick", ("reddit",), 7, sandbox=True, since="week")


def test_all_but_the_product_is_the_same() -> None:
    """Depth, sources, window and limit; the names on one line, as the reports have them."""
    asks = asks_of([("Ember  mug\n", "it heats"), ("Ohom cup", "")], LIKE)

    assert asks == (
        Ask("Ember mug", "quick", ("reddit",), 7, "it heats", sandbox=True, since="week"),
        Ask("Ohom cup", "quick", ("reddit",), 7, sandbox=True, since="week"),
    )


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["Ember"], "takes 2 to 5 products, not 1"),
        (["a1", "b2", "c3", "d4", "e5", "f6"], "takes 2 to 5 products, not 6"),
        (["Ember mug", "EMBER-MUG"], "“Ember mug” and “EMBER-MUG” are the same product"),
        (["Ember mug", "hello"], "“hello”: Hello!"),
        (["Ember mug", "x" * 501], f"“{'x' * 60}”: It is too long"),
        (["Ember mug", "\x1b[31m"], "“”: Nothing was asked"),
    ],
)
def test_what_cannot_be_compared_is_named(names: list[str], words: str) -> None:
    """Before anybody is asked."""
    with pytest.raises(UsageError) as caught:
        asks_of([(name, "") for name in names], LIKE)
    assert words in str(caught.value)


async def test_each_is_analyzed_under_its_name() -> None:
    """One that fails leaves the other alone; what is heard says of which it is."""
    reports = {"Ember": about("Ember", [])}
    heard = SourceAnswer()

    async def analyze(ask: Ask, listener: Listener) -> Report:
        listener(Writing(exhibits=3))
        return reports[ask.query]

    answers = await analyze_each(analyze, [Ask("Ember"), Ask("Ohom")], heard)

    assert answers[0] is reports["Ember"]
    assert isinstance(answers[1], Failure)
    assert answers[1].code == "internal"
    assert heard.events == [ProductEvent(product=name, event=Writing(exhibits=3)) for name in ("Ember", "Ohom")]
