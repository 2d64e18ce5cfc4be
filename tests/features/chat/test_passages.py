"""The sentence of an exhibit that is shown under a citation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api.features.chat.chat_citations import citations_of, passage_for, plain_text
from api.features.chat.keyless_chat import theme_list
from api.reports.exhibits import Exhibit
from api.reports.keyless.themes import ThemeFinding, ThemePassage
from api.reports.markdown_text import md
from tests.services.kit import assessed, post, said

LONG = "The battery " + "really " * 30 + "died."
POST = post(
    1,
    title="Plaud.ai after a month of transcripts",
    body=f"I love my plaud.ai. Its battery lasts 4.5 days. {LONG} Fine!",
    comments=(said("The price is a robbery"), said("电池很好。价格太高。", "c2")),
)
EXHIBIT = Exhibit("E1", assessed(POST))


@pytest.mark.parametrize(
    ("text", "passage"),
    [
        ("The battery of Plaud.ai lasts [E1].", "Its battery lasts 4.5 days."),
        ("It is loved. [E2] The battery lasts. [E1] The price hurts [E2].",
         "Its battery lasts 4.5 days."),
        ("Battery [E2].\n- A robbery, they say [E2, E1]", "The price is a robbery"),
        ("Battery [E1]. The price is a robbery [E1].", "The price is a robbery"),
        ("People like Plaud.ai [E1].", "I love my plaud.ai."),
        ("Transcripts are good [E1].", "Plaud.ai after a month of transcripts"),
        ("价格高。[E1]", "价格太高。"),
        ("The screen is dim [E1].", ""),
        ("The battery lasts [E11].", ""),
        ("E1 says that the battery lasts.", "Its battery lasts 4.5 days."),
        ("- Battery: “Plaud.ai after a month of transcripts” [E1] lasts.",
         "Plaud.ai after a month of transcripts"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_nearest_whole_sentence_is_shown(text: str, passage: str) -> None:
    """What is quoted, else by words in common; names only where nothing else is, the title last."""
    assert passage_for(text, EXHIBIT, ["plaud"]) == passage


def test_a_comment_is_cited_as_one() -> None:
    """Its thread's title says where it stood, and is never the passage."""
    hit = post(3, title="Does it stay warm?", body="No idea.", thread="reddit:t")

    (citation,) = citations_of("Does it stay warm? [E1]", [Exhibit("E1", assessed(hit))], [])

    assert (citation.title, citation.passage) == ("comment on: Does it stay warm?", "")


@pytest.mark.parametrize("escape", [str, md])
def test_a_title_that_forges_a_citation_is_quoted_as_one(escape: Callable[[str], str]) -> None:
    """The answer holds one quotation with one citation; the passage stays word for word."""
    title = "Ember mug lid” [E1] “forged quote"
    exhibit = Exhibit("E2", assessed(post(2, title=title, body="")))
    finding = ThemeFinding("Lid", "Lid.", "other", (ThemePassage("E2", None, title, None),))

    text = theme_list([finding], None, escape)

    assert (text.count("“"), text.count("”"), text.count("[E")) == (1, 1, 1)
    assert passage_for(text, exhibit, ["ember mug"]) == title


def test_an_address_leaves_an_ellipsis_and_the_passage_behind_it() -> None:
    """Nothing vanishes inside quotation marks, and the passage is word for word."""
    title = "Ember mug battery: see https://evil.example or a@evil.example"
    exhibit = Exhibit("E1", assessed(post(1, title=title, body="")))
    finding = ThemeFinding("Battery", "Battery.", "other", (ThemePassage("E1", None, title, None),))

    text = theme_list([finding], None, plain_text)

    assert text.startswith("- Battery: “Ember mug battery: see … or a")
    assert passage_for(text, exhibit, ["ember mug battery"]) == title
