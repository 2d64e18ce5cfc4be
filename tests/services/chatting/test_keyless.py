"""What a chat shows without a model's words, and which way it leans."""

from __future__ import annotations

import pytest

from api.services.chatting.keyless import leaning, shown_lines
from api.services.reporting.themes import ThemeFinding, ThemePassage


def finding(name: str, **leans: int | None) -> ThemeFinding:
    """A finding with one passage for each label."""
    passages = (ThemePassage(label, None, label.lower(), lean) for label, lean in leans.items())
    return ThemeFinding(name, f"{name}.", "other", tuple(passages))


FINDINGS = (
    finding("Lid", E1=1, E2=None),
    finding("Light", E3=1),
    finding("Battery", E4=None, E5=-1, E6=1),
)


@pytest.mark.parametrize(
    ("lean", "lines"),
    [
        (None, ["Lid: “e1” [E1] “e2” [E2]", "Light: “e3” [E3]",
                "Battery: “e4” [E4] “e5” [E5] “e6” [E6]"]),
        (1, ["Lid: “e1” [E1] “e2” [E2]", "Light: “e3” [E3]", "Battery: “e6” [E6] “e4” [E4]"]),
        (-1, ["Battery: “e5” [E5] “e4” [E4]", "Lid: “e2” [E2]"]),
    ],
)  # fmt: skip
def test_what_leans_as_was_asked_for_goes_first(lean: int | None, lines: list[str]) -> None:
    """And what surely leans the other way is no answer; a theme of nothing else is left out."""
    text = shown_lines(leaning(FINDINGS, lean), lean)
    assert text == "\n".join(f"- {line}" for line in lines)


@pytest.mark.parametrize(("lean", "kind"), [(1, "praise"), (-1, "a complaint")])
def test_where_nothing_surely_leans_so_it_says_so(lean: int, kind: str) -> None:
    """What is said follows; names and words are escaped as the caller wishes."""
    text = shown_lines(leaning([finding("Lid", E1=None)], lean), lean, str.upper)
    assert text == f"None of these is surely {kind}:\n\n- LID: “E1” [E1]"
