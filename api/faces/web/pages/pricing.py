"""What questions would cost, in the words of the screens; nobody is asked, nothing is begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, get_args

from api.services.listening import Ask
from api.services.question.query import screen
from api.services.text import many
from api.services.watching.schedule import Schedule, runs_a_week
from api.settings import DepthName, Settings
from api.wiring import mode_of

_UNNAMED = "a product"
"""Stands in for a question that is not written yet: a price hardly depends on its words."""


def price(settings: Settings, asks: Sequence[Ask]) -> str:
    """Of questions together: `likely 66 requests, 0.040 USD; at most 0.310 USD`.

    Raises:
        UsageError: one of them is for no place that there is.
    """
    return _worded(settings, *_figures(settings, asks))


def prices(settings: Settings, ask: Ask) -> dict[DepthName, str]:
    """Of one question, by how deep it is asked."""
    at_depth = partial(replace, ask)
    return {depth: price(settings, [at_depth(depth=depth)]) for depth in get_args(DepthName)}


def price_of_runs(settings: Settings, ask: Ask, schedule: Schedule) -> str:
    """Of a watch: what each run is likely to take, and what that makes in a week."""
    runs, (likely, most) = runs_a_week(schedule), _figures(settings, [ask])
    words = f"Each run: {_worded(settings, likely, most)}."
    if mode_of(settings) == "sandbox" or likely["usd"] is None or most["usd"] is None:
        return words
    often = "1 run" if runs == 1 else f"{runs:,.1f} runs".replace(".0 ", " ")
    return (
        f"{words} {often} a week: likely {runs * likely['usd']:.2f} USD, "
        f"at most {runs * most['usd']:.2f} USD."
    )


def _figures(
    settings: Settings, asks: Sequence[Ask]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What is likely, and the bound."""
    from api.wiring.estimating import estimate, together  # loads with the product

    worded = [ask if screen(ask.query).ok else replace(ask, query=_UNNAMED) for ask in asks]
    figures = together([estimate(settings, ask) for ask in worded])
    return figures.likely, figures.most


def _worded(settings: Settings, likely: Mapping[str, Any], most: Mapping[str, Any]) -> str:
    requests = f"likely {many(likely['upstream_calls'], 'request')}"
    if mode_of(settings) == "sandbox":
        return f"{requests} to the sample world, nothing is spent"
    if likely["usd"] is None or most["usd"] is None:
        return f"{requests}; nobody knows the price of the model"
    return f"{requests}, {likely['usd']:.3f} USD; at most {most['usd']:.3f} USD"
