"""What several questions and the runs of a watch would cost, as the screens say it."""

from __future__ import annotations

import re

import pytest

from api import bootstrap
from api.features.watches.watch import schedule_of
from api.interfaces.pages.ask_page import price, price_of_runs
from api.services.product import Ask
from api.settings import Settings

ASK = Ask("Ember mug", "quick", ("reddit", "hackernews"))
SHAPE = r"likely (\d+) requests, (0\.\d{3}) USD; at most (0\.\d{3}) USD"


@pytest.fixture
def settings(sandbox: object) -> Settings:
    """With a model of a known price."""
    return bootstrap.load_settings()


def figures(words: str) -> list[float]:
    """Those of a price."""
    match = re.fullmatch(SHAPE, words)
    assert match is not None, words
    return [float(figure) for figure in match.groups()]


def test_questions_add_up(settings: Settings) -> None:
    """Two that are alike cost twice, within what is rounded away; their words cost nothing."""
    once, twice = figures(price(settings, [ASK])), figures(price(settings, [ASK, ASK]))

    assert twice == pytest.approx([2 * figure for figure in once], abs=0.0011)
    assert price(settings, [Ask("", "quick", ASK.sources)]) == price(settings, [ASK])


@pytest.mark.parametrize(
    ("every", "often", "runs"),
    [
        ("mon 08:00", "1 run", 1),
        ("hourly", "168 runs", 168),
        ("every 28 days", "0.2 runs", 0.25),
    ],
)
def test_a_watch_has_a_price_a_week(settings: Settings, every: str, often: str, runs: float) -> None:
    """By its schedule."""
    each = price(settings, [ASK])
    _, likely, _ = figures(each)
    words = price_of_runs(settings, ASK, schedule_of(every))
    match = re.search(rf"{often} a week: likely (\d+\.\d\d) USD, at most \d+\.\d\d USD\.$", words)

    assert words.startswith(f"Each run: {each}. ")
    assert match is not None, words
    assert float(match[1]) == pytest.approx(runs * likely, abs=0.0005 * runs + 0.006)


def test_what_costs_nothing_has_no_price(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the sample data; and of a model elsewhere whose price nobody knows none is said."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    sample = price_of_runs(bootstrap.load_settings(), ASK, schedule_of("hourly"))
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("LISTENPOST_AGENT_MODEL", "a-model-of-ours")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://models.example/v1")
    unknown = price_of_runs(bootstrap.load_settings(), ASK, schedule_of("hourly"))

    assert re.fullmatch(r"Each run: free with sample data\.", sample)
    assert re.fullmatch(r"Each run: likely \d+ requests; nobody knows the price .*\.", unknown)
