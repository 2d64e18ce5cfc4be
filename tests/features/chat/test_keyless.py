"""What a chat shows without a model's words, and which way it leans."""

from __future__ import annotations

import pytest

from api.features.chat.keyless_chat import on_topics, side_by_side, theme_list
from api.reports.exhibits import Dossier, Exhibit
from api.reports.keyless.theme_finding import ThemeFinding, ThemePassage, one_side
from tests.services.kit import assessed, post


def finding(name: str, **leans: int | None) -> ThemeFinding:
    """A finding with one passage for each label."""
    passages = (ThemePassage(label, None, label.lower(), lean) for label, lean in leans.items())
    return ThemeFinding(name, f"{name}.", "other", tuple(passages))


@pytest.mark.parametrize(("lean", "labels"), [(None, ["E4", "E5", "E6"]), (1, ["E6", "E4"]), (-1, ["E5", "E4"])])
def test_what_leans_as_was_asked_for_goes_first(lean: int | None, labels: list[str]) -> None:
    """And what surely leans the other way is no answer."""
    battery = finding("Battery", E4=None, E5=-1, E6=1)

    assert [passage.label for passage in one_side(battery.passages, lean)] == labels


@pytest.mark.parametrize(("lean", "kind"), [(1, "praise"), (-1, "a complaint")])
def test_where_nothing_surely_leans_so_it_says_so(lean: int, kind: str) -> None:
    """What is said follows; names and words are escaped as the caller wishes."""
    text = theme_list([finding("Lid", E1=None)], lean, str.upper)
    assert text == f"Nothing here was recognised as {kind}; some may still be. What is said:\n\n- LID: “E1” [E1]"


def exhibits(*bodies: str) -> list[Exhibit]:
    """Posts with these bodies."""
    return list(Dossier().show([assessed(post(n, body=body)) for n, body in enumerate(bodies)]))


def test_a_comparison_goes_theme_by_theme() -> None:
    """What both speak of first; of whom nobody speaks under a theme, that; two sentences each."""
    lamp = "The battery is great. The base is solid. The price is fair."
    dial = "The battery died. The app crashes."
    shown = exhibits(*[f"My Glow Lamp. {lamp}"] * 3, *[f"My Sun Dial. {dial}"] * 3)
    text, cited = side_by_side({"Glow Lamp": shown[:3], "Sun Dial": shown[3:]})

    first, *others = text.split("\n\n")
    assert first == (
        "Battery:\n"
        "- Glow Lamp: “The battery is great.” [E1]\n- Glow Lamp: “The battery is great.” [E2]\n"
        "- Sun Dial: “The battery died.” [E4]\n- Sun Dial: “The battery died.” [E5]"
    )
    assert "Price:\n" in text
    assert "- Sun Dial: no sentence says plainly anything about it" in text
    assert len(others) >= 1
    assert cited == ["E1", "E2", "E4", "E5"]


def test_one_product_alone_is_told_under_its_name() -> None:
    """As is each where they share no theme at all."""
    (alone,) = exhibits("My Glow Lamp glows.")
    text, cited = side_by_side({"Glow Lamp": [alone]}, str.upper)

    assert text.startswith("GLOW LAMP:\n\n- VOICES, ONE EACH: ")
    assert cited == ["E1"]


def test_a_word_in_a_sentence_too_long_to_show_is_mentioned_all_the_same() -> None:
    """It is not said that no post holds it."""
    long = f"My Glow Lamp {'very ' * 60} by its lid"
    text, _ = on_topics("Glow Lamp", exhibits(long, "My Glow Lamp glows."), ["lid"])

    assert text.startswith("No sentence of the posts says plainly anything about lid.\n\nWhat they say besides:")


def test_what_does_not_surely_lean_as_was_asked_for_stands_last() -> None:
    """Behind a line that says so; a theme of a comparison is marked."""
    shown = exhibits(*["My Glow Lamp. The app is awful. The base is here."] * 3)
    text, _ = on_topics("Glow Lamp", shown, lean=-1)
    sides, _ = side_by_side({"Glow Lamp": shown, "Sun Dial": exhibits("Sun Dial.")}, lean=-1)

    assert text.startswith("- App: “The app is awful.”")
    assert "recognised" not in sides
