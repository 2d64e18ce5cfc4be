"""The cascade in the whole product: what is asked of the model, and what the report, its page and `stats` say of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import get_args

import pytest

from api import bootstrap
from api.bootstrap.storage import with_agreement
from api.choices import Window
from api.features.analyses.statistics import stats_of
from api.features.analyses.store_ports import Store
from api.interfaces.shared.markdown_report import report_markdown
from api.interfaces.shared.presentation import judged_by
from api.interfaces.shared.statistics_text import sentences
from api.reports.report import Report
from api.services import product
from api.services.product import Ask
from api.store import open_store
from tests.cases.conftest import World
from tests.loopback import Reply
from tests.sources.emulators import listing, on, post


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An empty database."""
    opened = await open_store(store_url)
    yield opened
    await opened.aclose()


def posts(start: int, count: int) -> Reply:
    """A page of posts that nobody has seen; the local judge is sure of each."""
    made = []
    for number in range(start, start + count):
        words = {
            "title": f"Ember mug after {number} days",
            "selftext": f"The Ember mug kept coffee warm, day {number}.",
        }
        if number % 2:
            words = {"title": f"Tram number {number}", "selftext": f"A tram {number} late again in the city."}
        made.append(post(f"p{number}", created_utc=datetime.now(UTC).timestamp() - number, **words))
    return Reply(body=listing(made))


async def analysis(world: World, store: Store, number: int) -> Report:
    """The report on another page of fifty posts, kept as a command keeps it."""
    world.reddit.fault = on("/search", posts(50 * number, 50))
    built = with_agreement(world.built, bootstrap.load_settings(), store)
    # of a time that was not asked for before, whose page nobody remembers
    ask = Ask("Ember mug", sources=("reddit",), limit=50, depth="quick", since=get_args(Window)[number])
    report = await product.analyze(built, ask)
    await store.finish("local", report)
    return report


async def test_what_the_local_judge_decides_is_told(
    world: World, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a sample that the model has paid for; in JSON, words, statistics, and item by item."""
    monkeypatch.setenv("LISTENPOST_AGREEMENT", "0.9")
    world.mind.relevant = lambda text: "Ember" in text
    before = [await analysis(world, store, number) for number in range(4)]
    asked = sum(map(len, world.mind.judged))

    report = await analysis(world, store, 4)

    first, agreement = before[0].sources["reddit"].agreement, report.sources["reddit"].agreement
    assert first is not None
    assert (first.judged, first.local, first.sample) == (50, 0, 50)
    assert not any("local judge decided" in note for note in before[0].quality_notes)
    assert agreement is not None
    by_model = sum(map(len, world.mind.judged)) - asked
    assert (agreement.judged, agreement.local) == (50, 50 - by_model)
    assert by_model < 25
    judges = [item.judge for item in (*report.items, *report.dropped)]
    assert sum(judge is not None and judge.startswith("local-") for judge in judges) == agreement.local
    [note] = [note for note in report.quality_notes if "local judge decided" in note]
    assert note.startswith(
        f"Reddit: the local judge decided {agreement.local} of 50 posts in place of the model; at least 90 % of "
        f"the verdicts there are the model's or the same, with 95 % confidence, by {agreement.sample} posts that "
    )
    assert "the local judge decided" in report_markdown(report, dropped=False)
    assert "`, and for some posts the local judge in its place, judged what is" in judged_by(report.sources.values())
    stats = await stats_of(store, "local", None, datetime.now(UTC))
    assert stats.agreement is not None
    local = sum(
        each.sources["reddit"].agreement.local for each in (*before, report) if each.sources["reddit"].agreement
    )
    assert (stats.agreement.judged, stats.agreement.local) == (250, local)
    assert stats.agreement.saved_tokens == 89 * local + 200 * stats.agreement.saved_calls
    assert dict(sentences(stats))["local judge"].startswith(
        f"{local} of 250 verdicts in place of the model; saved about"
    )


async def test_without_the_setting_the_model_judges_everything(world: World, store: Store) -> None:
    """And nothing is kept or said."""
    for number in range(5):
        report = await analysis(world, store, number)

    assert sum(map(len, world.mind.judged)) == 250
    assert "agreement" not in report.model_dump_json()
    assert (await stats_of(store, "local", None, datetime.now(UTC))).agreement is None
