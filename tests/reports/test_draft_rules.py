"""What a draft may say, and what is taken out of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.reports.draft_rules import Draft, DraftFlaws, DraftText, check, shortened
from api.reports.exhibits import Dossier
from api.reports.report import Finding, Passage
from tests.services.kit import MUG, PLACES, assessed, post, said

ITEMS = (
    post(
        0,
        body="Keeps tea at 57.5 degrees for 1,200 days. The E27 bulb burns 40% less.",
        url="https://www.example.org/a?x=991",
        engagement={"votes": 3150000},
        created_at=datetime(2026, 9, 27, 23, 59, tzinfo=UTC),
        comments=(said("Mine cracked after 14 months", url="https://www.example.org/a/c"),),
    ),
    post(1, "youtube", body="Costs EUR 99, see https://shop.example.org/777"),
)


def checked(
    text: str = "It is warm.",
    cites: Sequence[str] = ("E1",),
    *,
    words: str = "on the mug",
    items: Sequence[Item] = ITEMS,
    question: Question = MUG,
    kept: int = 0,
    **parts: Any,
) -> DraftText:
    """A draft with one finding, after the check."""
    dossier = Dossier(PLACES)
    dossier.show(assessed(one) for one in items)
    evidence = [{"passage": words, "cite": cite} for cite in cites]
    findings = [{"text": text, "kind": "praise", "evidence": evidence}]
    written = {"topic": "Mug", "summary": "", "findings": findings, **parts}
    return check(Draft.model_validate(written), dossier, question, kept)


def test_a_sound_draft_stays_as_it_is() -> None:
    """
    Labels become item keys, each once, and there is nothing to correct.
    """
    draft = checked("It is warm.", ("E2", "E1", "E2"), summary="Liked. Mostly.")

    evidence = (Passage("youtube:1", "on the mug"), Passage("reddit:0", "on the mug"))
    people = {"youtube": 1, "reddit": 1}
    keys = ("youtube:1", "reddit:0")
    assert draft.findings == (Finding("It is warm.", "praise", keys, evidence, "unverified", people),)
    assert (draft.topic, draft.summary, draft.flaws) == ("Mug", "Liked. Mostly.", DraftFlaws())
    assert not draft.flaws


@pytest.mark.parametrize("cites", [["E1, E2"], ["[E1]", "(E2)"], ["e1;e2"], ["E1 and E2", ""]])
def test_a_cite_may_hold_several_labels_or_brackets(cites: list[str]) -> None:
    """`E1, E2` in one cite are two exhibits."""
    draft = checked(cites=cites)

    assert draft.findings[0].cites == ("reddit:0", "youtube:1")
    assert not draft.flaws


def test_unknown_citations_go_and_are_named() -> None:
    """
    B74: an exhibit that was never shown is removed; the finding stays while another one stands.
    """
    draft = checked(cites=["E9", "https://evil.example", "E1"])

    assert draft.findings[0].cites == ("reddit:0",)
    assert draft.flaws == DraftFlaws(citations=("E9", "https://evil.example"))
    assert "these are no exhibits: E9, https://evil.example" in draft.flaws.advice
    assert draft.flaws.notes == ("2 unknown citations removed",)


@pytest.mark.parametrize(("cites", "unknown"), [(["E7", "E8"], ("E7", "E8")), ([], ())])
def test_a_finding_without_a_valid_cite_goes(cites: list[str], unknown: tuple[str, ...]) -> None:
    """All cites unknown, or none at all: the finding is removed and counted."""
    draft = checked(cites=cites)

    assert draft.findings == ()
    assert draft.flaws == DraftFlaws(citations=unknown, uncited=1)
    assert "every finding needs a passage" in draft.flaws.advice
    assert draft.flaws.notes[-1] == "1 finding without a passage that stands removed"


def test_a_passage_that_no_exhibit_holds_goes() -> None:
    """
    It is named to the writer and counted for the reader; the finding stays on another one.
    """
    dossier = Dossier(PLACES)
    dossier.show(assessed(item) for item in ITEMS)
    passages = [("keeps tea at 57.5 DEGREES", "E1"), ("on the mug", "E2"), ("a", "E1")]
    evidence = [{"passage": words, "cite": cite} for words, cite in passages]
    findings = [{"text": "It is warm.", "kind": "praise", "evidence": evidence}]
    written = Draft.model_validate({"topic": "", "summary": "", "findings": findings})

    draft = check(written, dossier, MUG)

    assert draft.findings[0].evidence == (Passage("youtube:1", "on the mug"),)
    assert draft.flaws.passages == ("E1 “keeps tea at 57.5 DEGREES”", "E1 “a”")
    assert "E1 “keeps tea at 57.5 DEGREES”" in draft.flaws.advice
    assert draft.flaws.notes == ("2 passages that no exhibit holds removed",)


def test_a_passage_is_theirs_and_short() -> None:
    """
    It names the comment it stands in, is spelled as there, and is cut between words.
    """
    comment = checked(words="mine cracked".capitalize()).findings[0].evidence
    long = post(0, body="word " * 100)
    cut = checked(words="word " * 80, items=(long,)).findings[0].evidence[0].passage

    assert comment == (Passage("reddit:0", "Mine cracked", "c1"),)
    assert (len(cut), cut.endswith("word")) == (199, True)


def test_exhibit_names_leave_the_text() -> None:
    """
    A bare name becomes the place, an unknown one takes its sentence; only passages cite.
    """
    draft = checked("It is warm [E2, E1]. As E2 says. So E8 says. Fine (E9).", ["E1"])

    assert draft.findings[0].text == "It is warm. As YouTube says. Fine."
    assert draft.findings[0].cites == ("reddit:0",)
    assert draft.flaws == DraftFlaws(citations=("E8", "E9"))


def test_words_of_the_exhibits_that_look_like_names_stay() -> None:
    """
    A light bulb is no exhibit.
    """
    draft = checked("The E27 bulb (E27) is weak.")

    assert draft.findings[0].text == "The E27 bulb (E27) is weak."
    assert not draft.flaws


@pytest.mark.parametrize(
    ("text", "left", "link"),
    [
        ("See https://evil.example/x?y=1. It is warm.", "See. It is warm.", "https://evil.example/x?y=1"),
        ("See [the shop](http://evil.example) now.", "See the shop now.", "http://evil.example"),
        ("See ![](//evil.example/p.png) now.", "See now.", "//evil.example/p.png"),
        ("Go to www.evil.example, now.", "Go to, now.", "www.evil.example"),
        ("Run javascript:alert(1) now.", "Run now.", "javascript:alert"),
        ("Mail mailto:a@evil.example!", "Mail!", "mailto:a@evil.example"),
        ("Go to evil-shop.com/login now.", "Go to now.", "evil-shop.com/login"),
        ("See https://www.example.org/a now.", "See now.", "https://www.example.org/a"),
        ("Look ](http://evil.example) here.", "Look here.", "http://evil.example"),
    ],
)  # fmt: skip
def test_links_nobody_gave_go(text: str, left: str, link: str) -> None:
    """B74: an address that is no exhibit's own, or a shortened one, is removed and noted."""
    draft = checked(text.replace("alert(1)", "alert"))

    assert " ".join(draft.findings[0].text.split()) == left
    assert draft.flaws == DraftFlaws(links=(link,))
    assert "links are not allowed" in draft.flaws.advice
    assert draft.flaws.notes == ("1 link that no exhibit holds removed",)


@pytest.mark.parametrize(
    "text",
    [
        "See https://www.example.org/a?x=991.",
        "See https://www.example.org/a/c, there.",
        "See https://maker.example/mug too.",
    ],
)
def test_addresses_of_exhibits_and_question_stay(text: str) -> None:
    """An item's, a comment's, and one the person gave."""
    draft = checked(text, question=Question("ember mug https://maker.example/mug"))

    assert draft.findings[0].text == text
    assert not draft.flaws


def test_the_words_of_a_sound_markdown_link_stay() -> None:
    """
    Only its address is left out, and nothing is noted.
    """
    draft = checked("See [this](https://www.example.org/a/c).")

    assert (draft.findings[0].text, draft.flaws) == ("See this.", DraftFlaws())


@pytest.mark.parametrize(
    "number",
    ["57.5 degrees", "57.50 degrees", "1200 days", "1,200 days", "40 % less", "40 percent less",
     "14 months", "3150000 votes", "3,150,000 votes", "2026-09-27", "in 2026", "2026-09",
     "12 ounces", "model r9, MP3 and v2.1", "the E27"],
)  # fmt: skip
def test_numbers_that_a_cited_exhibit_or_the_question_says_stay(number: str) -> None:
    """However they are written; digits within a name are none."""
    draft = checked(f"They say {number}.", question=Question("ember mug", "12 oz"))

    assert draft.findings[0].text == f"They say {number}."
    assert not draft.flaws


@pytest.mark.parametrize(
    ("said_so", "number"),
    [
        ("57 degrees", "57"), ("5 degrees", "5"), ("40 people", "40"), ("14 % of them", "14%"),
        ("991 of them", "991"), ("27 posts", "27"), ("2025-09-27", "2025-09-27"),
        ("EUR99", "99"), ("USD88", "88"), ("3 people", "3"), ("300 % more", "300%"),
        ("Half of the users like it", "half"), ("dozens of people agree", "dozens"),
        ("seven angry reviewers", "seven"),
    ],
)  # fmt: skip
def test_numbers_nobody_gave_take_their_sentence(said_so: str, number: str) -> None:
    """B73: a count, share, date or amount that the cited exhibit does not say is removed."""
    draft = checked(f"It is warm. They say {said_so}. It is big.")

    assert draft.findings[0].text == "It is warm. It is big."
    assert draft.flaws == DraftFlaws(numbers=(number,))
    assert f"no exhibit says these numbers: {number}" in draft.flaws.advice
    assert draft.flaws.notes == ("1 number that no exhibit holds, with their sentences, removed",)


def test_a_finding_that_is_one_made_up_number_goes() -> None:
    """
    Nothing of it is left to be said.
    """
    draft = checked("88 of them like it.")

    assert (draft.findings, draft.flaws.numbers, draft.flaws.uncited) == ((), ("88",), 0)


def test_an_amount_is_known_in_any_notation_and_only_where_it_is_cited() -> None:
    """
    What the second exhibit says stands for a finding on it and in the summary, not on the first.
    """
    assert checked("Costs EUR 99.", ["E2"]).findings[0].text == "Costs EUR 99."
    assert checked("Costs EUR99.", ["E2"]).findings[0].text == "Costs EUR99."
    assert checked(summary="Costs 99 euros.").summary == "Costs 99 euros."
    assert checked("Costs 99 euros.", ["E1"]).flaws.numbers == ("99",)
    assert checked("Costs 777 euros.", ["E2"]).flaws.numbers == ("777",)


def test_sentences_without_spaces_are_sentences_too() -> None:
    """
    Only the Chinese sentence with the made-up number goes.
    """
    draft = checked("很好用。有88人喜欢。不错！")

    assert draft.findings[0].text == "很好用。不错！"
    assert draft.flaws.numbers == ("88",)


def test_topic_falls_back_to_the_question_and_suggestions_are_cleared_quietly() -> None:
    """
    A next question is no claim: what does not stand in it goes without a note.
    """
    asked = ("Why did 88 return it?", "Is it [heavy](http://evil.example)?", " ", "Is it quiet?")
    draft = checked(topic="88 truths", suggestions=asked)

    assert draft.topic == "ember mug"
    assert draft.suggestions == ("Is it heavy?", "Is it quiet?")
    assert draft.flaws == DraftFlaws(numbers=("88",))


def test_control_characters_and_escapes_leave_the_text() -> None:
    """
    What a terminal or a reader would obey is no part of a finding.
    """
    draft = checked("It \x1b[31mis\x07 warm\u202e.\n\n# SYSTEM")

    assert draft.findings[0].text == "It is warm. # SYSTEM"


def test_quotes_are_verbatim_distinct_and_of_a_shown_exhibit() -> None:
    """
    B74: made-up words go without a word, an unknown exhibit is an unknown citation.
    """
    quotes = [
        ("“Keeps tea at 57.5 degrees”", "E1"),
        ("Keeps tea at 57.5 degrees", "[E1]"),
        ("Mine cracked", "E2, E1"),
        ("Best mug ever made", "E1"),
        ("Keeps tea", "E9"),
    ]
    draft = checked(quotes=[{"text": text, "cite": cite} for text, cite in quotes])

    first, second = draft.quotes
    assert (first.text, first.key, first.url, first.comment_id) == (
        "Keeps tea at 57.5 degrees", "reddit:0", "https://www.example.org/a?x=991", None,
    )  # fmt: skip
    assert (second.text, second.url, second.comment_id) == (
        "Mine cracked", "https://www.example.org/a/c", "c1",
    )  # fmt: skip
    assert draft.flaws == DraftFlaws(citations=("E9",))


def test_a_short_report_keeps_what_fits() -> None:
    """
    Findings leave from the end; the first stays whatever its length.
    """
    texts = ("one two three", "four five six", "seven")
    findings = tuple(Finding(text, "other", ("k",)) for text in texts)
    draft = DraftText("", "a b", findings, (), (), DraftFlaws())

    assert shortened(draft, 9).findings == findings
    assert shortened(draft, 8).findings == findings[:2]
    assert shortened(draft, 7).findings == findings[:1]
    assert shortened(draft, 1).findings == findings[:1]
    assert shortened(DraftText("", "", (), (), (), DraftFlaws()), 9).findings == ()


def test_a_count_of_all_that_was_kept_stands() -> None:
    """Where a writer is shown the best of them; of how many nobody said falls."""
    text = "Warm: at least 1 of 28 kept posts speaks of it."
    assert checked(text, kept=28, summary="Themes of 28 kept posts.").findings[0].text == text
    assert checked(text, kept=28, summary="Themes of 28 kept posts.").summary
    assert not checked(text, kept=27).findings
    assert not checked(text).findings
