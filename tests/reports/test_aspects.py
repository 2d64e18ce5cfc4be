"""The words of aspects: what they speak of, and what they do not."""

from __future__ import annotations

import pytest

from api.reports.keyless.aspects import aspects_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my hrv", []),
        ("deep sleep", ["sleep"]),
        ("a ride that never happened", ["rides"]),
        ("the driver cancelled on me", ["drivers"]),
        ("充電ケーブルが専用", []),
        ("充电线太短", []),
        ("充電が早い", ["battery"]),
        ("the charging cable", []),
        ("the charging dock", []),
        ("the charging time", ["battery"]),
        ("1 year warranty", []),
        ("replaced under warranty", ["support"]),
        ("Support had me reset it", ["support"]),
        ("good summaries", ["summaries"]),
        ("in summary", []),
        ("a transcript", ["transcripts"]),
        ("an app builder", []),
        ("one minute per app", []),
        ("the app", ["app"]),
        ("sleep mode", []),
        ("comfortable with it", []),
        ("a comfortable strap", ["comfort"]),
        ("signed up for the beta", []),
        ("signed up for an account", ["account"]),
        ("shipped four scripts", []),
        ("it shipped late", ["delivery"]),
        ("it scratched my desk", []),
        ("it scratches", ["build"]),
        ("PDF zoom", []),
        ("optical zoom", ["camera"]),
        ("Fedora 43 and firmware 1.4.2", []),
        ("the new firmware", ["updates"]),
        ("please update to 2.1", []),
        ("I had no memory of it", []),
        ("too little memory", ["memory"]),
        ("it reads precisely this file", []),
        ("it measures precisely", ["accuracy"]),
        ("the bedroom heating", []),
        ("one fan is easy", []),
        ("the fan is very loud", ["noise"]),
        ("battery levels", []),
        ("the login screen", ["screen"]),
        ("the heating", ["temperature"]),
        ("the heat map lies", []),
    ],
)
def test_a_neighbour_can_make_a_word_mean_something_else(text: str, names: list[str]) -> None:
    """A cable is no battery, a builder of apps no app, a guarantee no support."""
    assert [aspect.name for aspect in aspects_in(text)] == names
