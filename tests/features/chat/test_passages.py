"""The sentence of an exhibit that is shown under a citation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api.features.chat.chat_citations import MOST_PASSAGES, citations_of, is_quoted, passages_for, plain_text
from api.features.chat.keyless_chat import theme_list
from api.reports.exhibits import Exhibit
from api.reports.keyless.theme_finding import ThemeFinding, ThemePassage
from api.reports.markdown_text import md, quotation
from tests.reports.unsupported import SUPPORTED, UNSUPPORTED, Pair
from tests.services.kit import assessed, post, said

LONG = "The battery " + "really " * 30 + "died."
POST = post(
    1,
    title="Plaud.ai after a month of transcripts",
    body=f"I love my plaud.ai. Its battery lasts 4.5 days. {LONG} Fine!",
    comments=(said("The price is a robbery"), said("电池很好。价格太高。", "c2")),
)
EXHIBIT = Exhibit("E1", assessed(POST))
# the passage corrects its sentence where a reader sees it
PARTLY_HELD = {"a sale as the price"}


def words(text: str, exhibit: Exhibit, *names: str) -> list[str]:
    """The passages of a citation."""
    return [passage.text for passage in passages_for(text, exhibit, names)]


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        ("The battery of Plaud.ai lasts [E1].", ["Its battery lasts 4.5 days."]),
        ("It is loved. [E2] The battery lasts. [E1] The price hurts [E2].", ["Its battery lasts 4.5 days."]),
        ("Battery [E2].\n- A robbery, they say [E2, E1]", ["The price is a robbery"]),
        ("The battery lasts [E1]. The price is a robbery [E1].",
         ["Its battery lasts 4.5 days.", "The price is a robbery"]),
        ("The battery lasts [E1], and the price is a robbery [E2].", ["Its battery lasts 4.5 days."]),
        ("The screen is dim [E2], but the price is a robbery [E1].", ["The price is a robbery"]),
        ("People like Plaud.ai [E1].", ["I love my plaud.ai."]),
        ("Several owners love it [E1, E2].", ["I love my plaud.ai."]),
        ("A month of transcripts [E1].", ["Plaud.ai after a month of transcripts"]),
        ("价格高。[E1]", ["价格太高。"]),
        ("E1 says that the battery lasts.", ["Its battery lasts 4.5 days."]),
        ("- Battery: “Plaud.ai after a month of transcripts” [E1] lasts.", ["Plaud.ai after a month of transcripts"]),
        ("- Battery: “Its battery lasts 4.5 days.” [E1] “The price is a robbery” [E1]",
         ["Its battery lasts 4.5 days.", "The price is a robbery"]),
        ("One says “lasts 4.5 days” [E1].", ["Its battery lasts 4.5 days."]),
        ("They love it and its battery lasts 4.5 days [E1].", ["I love my plaud.ai. Its battery lasts 4.5 days."]),
    ],
)  # fmt: skip
def test_the_words_that_carry_what_cites_them_are_shown(text: str, passages: list[str]) -> None:
    """What is quoted, else a sentence or two by the rules of the support check; the title last."""
    assert words(text, EXHIBIT, "plaud") == passages


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The screen is dim [E1].",
        "The battery lasts [E11].",
        "The battery lasts 6 days [E1].",
        "The battery is awful [E1].",
        "The price is great [E1].",
        "Der Bildschirm ist dunkel [E1].",
    ],
)
def test_what_nothing_carries_has_no_passage(text: str) -> None:
    """Not the beginning of the post, and not a sentence on the same aspect that says something else."""
    assert words(text, EXHIBIT, "plaud") == []


@pytest.mark.parametrize("pair", UNSUPPORTED, ids=lambda pair: pair.kind)
def test_a_passage_that_says_something_else_is_never_shown(pair: Pair) -> None:
    """Each kind of plausible sentence that the local support check refuses, bar one that corrects it."""
    exhibit = Exhibit("E1", assessed(post(4, title=pair.item, body=pair.passage)))
    shown = words(f"{pair.sentence} [E1]", exhibit, "ember mug")

    assert shown == [] or pair.kind in PARTLY_HELD


@pytest.mark.parametrize("pair", [pair for pair in SUPPORTED if pair.kind != "summary"], ids=lambda pair: pair.kind)
def test_a_passage_that_says_it_is_found_among_others(pair: Pair) -> None:
    """The post begins and ends with sentences on other things."""
    body = f"I bought it in May. {pair.passage} My sister has one in green."
    exhibit = Exhibit("E1", assessed(post(4, title=pair.item, body=body)))

    assert any(pair.passage in passage for passage in words(f"{pair.sentence} [E1]", exhibit, "ember mug"))


LONG_SENTENCE = (
    "I took it along on every trip this year, which was a lot of trains and hotels, and the screen never cracked, "
    "but the battery died within six hours on most days, so that I had to carry the charger, which weighs more than "
    "the thing itself."
)


@pytest.mark.parametrize(
    ("body", "claim", "passage"),
    [
        (LONG_SENTENCE, "The screen never cracked", "the screen never cracked"),
        (LONG_SENTENCE, "The battery died within six hours", "the battery died within six hours on most days"),
        (LONG_SENTENCE, "The battery died within six minutes", ""),
        ("It lost 28lbs of weight.", "It lost 28 lbs of weight", "It lost 28lbs of weight."),
        ("Battery life is better than on the Fold 5.", "Battery life is better than on the Fold 5", "better than"),
        ("Battery life is better than on the Fold 5.", "Battery life is worse than on the Fold 5", ""),
    ],
)
def test_long_sentences_amounts_and_directions(body: str, claim: str, passage: str) -> None:
    """Clauses of a long sentence, numbers with their units, another thing that the claim names, and no opposite."""
    shown = words(f"{claim} [E1].", Exhibit("E1", assessed(post(8, title="A year", body=body))), "mug")

    assert bool(shown) == bool(passage)
    assert all(passage in each and each in body and len(each) <= 200 for each in shown)


def test_quoted_lines_of_others_are_no_passage() -> None:
    """A reply's own words carry what it is cited for, or nothing does."""
    reply = post(5, title="Reply", body="> The battery is terrible\n\nNot in my experience.", thread="reddit:t")

    assert words("The battery is terrible [E1].", Exhibit("E1", assessed(reply)), "plaud") == []


def test_a_citation_says_where_and_when_its_words_were_written() -> None:
    """A comment's own address, day, measures and author; the beginning of a long post alone is read."""
    comment = said("The price is a robbery").edited(
        url="https://example.org/c", engagement={"votes": 9, "replies": None}, credit="Ada (https://example.org/ada)"
    )
    item = post(6, title="After a month", body="I love it. " * 50_000, comments=(comment,)).edited(place="r/plaud")
    short = Exhibit("E1", assessed(item.edited(body="I love it.")))
    (cited,) = citations_of("The price is a robbery [E1].", [short], ["plaud"])

    assert (cited.source, cited.place, cited.passage) == (item.source, "r/plaud", "The price is a robbery")
    assert (cited.engagement, cited.credit) == ({"votes": 9}, "Ada (https://example.org/ada)")
    assert [(p.comment_id, p.url) for p in cited.passages] == [(comment.id, "https://example.org/c")]
    assert words("The price is a robbery [E1].", Exhibit("E1", assessed(item)), "plaud") == []
    (bare,) = citations_of("The screen is dim [E1].", [short], ["plaud"])
    assert (bare.title, bare.passage, bare.passages, bare.json()["source"]) == (
        "After a month", "", (), item.source,
    )  # fmt: skip


def test_no_more_passages_than_a_reader_takes_in() -> None:
    """Of many sentences that cite one post those that its words carry best."""
    parts = ("lid", "base", "handle", "box")
    item = post(7, title="All of it", body=" ".join(f"The {part} cracked." for part in parts))
    text = " ".join(f"The {part} cracked [E1]." for part in parts)

    assert words(text, Exhibit("E1", assessed(item)), "mug") == ["The lid cracked.", "The base cracked."]
    assert MOST_PASSAGES == 2


def test_words_that_the_answer_quotes_are_known_as_shown() -> None:
    """With escapes and inner quotation marks, but not half of them."""
    passage = 'It said "[Bug] battery" twice.'

    assert is_quoted(passage, f"- Battery: “{plain_text(quotation(passage))}” [E1]")
    assert not is_quoted(passage, "One says “battery” twice [E1].")


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
    assert words(text, exhibit, "ember mug") == [title]


def test_an_address_leaves_an_ellipsis_and_the_passage_behind_it() -> None:
    """Nothing vanishes inside quotation marks, and the passage is word for word."""
    title = "Ember mug battery: see https://evil.example or a@evil.example"
    exhibit = Exhibit("E1", assessed(post(1, title=title, body="")))
    finding = ThemeFinding("Battery", "Battery.", "other", (ThemePassage("E1", None, title, None),))

    text = theme_list([finding], None, plain_text)

    assert text.startswith("- Battery: “Ember mug battery: see … or a")
    assert words(text, exhibit, "ember mug battery") == [title]
