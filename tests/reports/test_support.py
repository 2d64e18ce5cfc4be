"""The support check: what no passage carries leaves the report, and a failed check says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from api.core.display_names import reason_in_words
from api.core.domain import Question, Usage
from api.core.model_batches import UnusableAnswer
from api.core.ports import PER_CALL, Claim, Support
from api.errors import ModelError
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.exhibits import Dossier
from api.reports.report import Finding, Passage, Quote, SupportCheck
from api.reports.support_check import supported
from tests.services.kit import MUG, assessed, post, said

BODY = "We had it for a year. The lid leaks every single morning. I would not buy it again, sorry."


@dataclass
class FakeChecker:
    """Supports the claims whose passage holds none of these words."""

    against: Sequence[str] = ()
    fails: ModelError | None = None
    claims: list[Claim] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    name: str = "fake-1"

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        self.claims += claims
        self.calls.append(len(claims))
        if self.fails is not None:
            raise self.fails
        flags = tuple(not any(word in claim.passage for word in self.against) for claim in claims)
        return Support(flags, self.name, Usage(100, 10, 0.5))


def dossier() -> Dossier:
    """Two posts, one with a comment."""
    shown = Dossier()
    shown.show(
        [
            assessed(post(0, body=BODY, comments=(said("mine still leaks", "c1"),))),
            assessed(post(1, title="On warmth", body="It keeps my tea warm for hours.")),
        ]
    )
    return shown


LEAKS = Passage("reddit:0", "The lid leaks every single morning")
COMMENT = Passage("reddit:0", "mine still leaks", "c1")
WARM = Passage("reddit:1", "keeps my tea warm")
FINDINGS = (
    Finding.resting("The lid leaks.", "complaint", (LEAKS, COMMENT), "unverified"),
    Finding.resting("Tea stays warm.", "praise", (WARM,), "unverified"),
)


def draft(*findings: Finding, summary: str = "") -> DraftText:
    """A draft as the clearing leaves it."""
    return DraftText("The mug", summary, findings, (), (), DraftFlaws())


async def test_what_its_passages_carry_stays_and_is_marked() -> None:
    """
    Every pair is asked for in its item's words; nothing goes, the bill and the rate are told.
    """
    checker = FakeChecker()

    checked = await supported(draft(*FINDINGS), dossier(), MUG, checker)

    assert [(finding.text, finding.support) for finding in checked.draft.findings] == [
        ("The lid leaks.", "checked"), ("Tea stays warm.", "checked"),
    ]  # fmt: skip
    assert checked.check == SupportCheck(status="ok", model="fake-1", pairs=3, supported=3)
    assert (checked.check.rate, checked.usage.usd, checked.notes) == (1.0, 0.5, ())
    assert [(claim.sentence, claim.passage) for claim in checker.claims] == [
        ("The lid leaks.", LEAKS.passage),
        ("The lid leaks.", COMMENT.passage),
        ("Tea stays warm.", WARM.passage),
    ]
    assert [claim.context for claim in checker.claims] == [
        f"opinion aaaaaaaaa on the mug | {BODY}",
        "opinion aaaaaaaaa on the mug | mine still leaks",
        "On warmth | It keeps my tea warm for hours.",
    ]


async def test_a_pair_that_does_not_hold_goes_and_a_finding_without_any() -> None:
    """
    The rest of a finding stays, on the items that are left; the reader is told what went.
    """
    checker = FakeChecker(("still", "warm"))

    checked = await supported(draft(*FINDINGS), dossier(), MUG, checker)

    assert checked.draft.findings == (
        Finding("The lid leaks.", "complaint", ("reddit:0",), (LEAKS,), "checked", {"reddit": 1}),
    )
    assert (checked.check.pairs, checked.check.supported) == (3, 1)
    assert checked.notes == (
        "support check: removed 2 of 3 passages, which say something else than their sentence",
        "support check: 1 finding that no passage carries, removed",
    )


async def test_what_went_is_not_quoted_either() -> None:
    """
    A quote of the same words goes with them; the others stay.
    """
    quotes = (
        Quote("tea warm", WARM.key, "https://www.example.org/1"),
        Quote(LEAKS.passage, LEAKS.key, "https://www.example.org/0"),
        Quote("tea warm", LEAKS.key, "https://www.example.org/0"),
    )
    written = replace(draft(*FINDINGS), quotes=quotes)

    checked = await supported(written, dossier(), MUG, FakeChecker(("still", "warm")))

    assert checked.draft.quotes == quotes[1:]


async def test_sentences_of_the_summary_rest_on_the_passages_of_their_findings() -> None:
    """
    One pair a sentence, with the findings that share its words, or all of them.
    """
    checker = FakeChecker(("warm",))
    summary = "Lids leak, people say: the lid is weak. Tea pleases."

    checked = await supported(draft(*FINDINGS, summary=summary), dossier(), MUG, checker)

    assert [claim.passage for claim in checker.claims[3:]] == [LEAKS.passage, WARM.passage]
    assert checked.draft.summary == "Lids leak, people say: the lid is weak."
    assert checked.notes[-1].startswith("support check: 1 sentence of the summary")


async def test_a_sentence_that_shares_no_word_is_shown_them_all() -> None:
    """
    It may sum up everything.
    """
    checker = FakeChecker()

    await supported(draft(*FINDINGS, summary="Views differ."), dossier(), MUG, checker)

    assert checker.claims[-1].passage == f"{LEAKS.passage} … {WARM.passage}"


async def test_a_report_without_support_has_no_summary() -> None:
    """
    Words over nothing are not left standing.
    """
    checked = await supported(draft(FINDINGS[1], summary="It is liked."), dossier(), MUG, FakeChecker(("warm",)))

    assert (checked.draft.summary, checked.draft.findings) == ("", ())


@pytest.mark.parametrize("reason", ["timeout", "malformed"])
async def test_a_failed_check_leaves_everything_unverified(reason: str) -> None:
    """
    It fails open, and status, reason and a note say so.
    """
    checker = FakeChecker(fails=UnusableAnswer(reason, "", Usage(5, 1, 0.1)))

    checked = await supported(draft(*FINDINGS, summary="So."), dossier(), MUG, checker)

    assert checked.usage == Usage(5, 1, 0.1)

    assert checked.draft == draft(*FINDINGS, summary="So.")
    assert checked.check == SupportCheck(status="degraded", reason=reason, model="fake-1")
    assert checked.check.rate is None
    assert checked.notes == (
        f"the support check did not work ({reason_in_words(reason)}): the findings are unverified",
    )


async def test_nobody_is_asked_without_a_checker_or_a_finding() -> None:
    """
    The status says that there was no check.
    """
    checker = FakeChecker()

    unasked = await supported(draft(summary="So."), dossier(), MUG, checker)
    off = await supported(draft(*FINDINGS), dossier(), MUG, None)

    assert checker.claims == []
    assert unasked.check.status == off.check.status == "skipped"
    assert off.draft.findings == FINDINGS


async def test_fifty_pairs_are_one_call() -> None:
    """
    More are more calls at once, and their bills are summed.
    """
    many = tuple(
        Finding.resting(f"Leak {letter}.", "other", (LEAKS, COMMENT), "unverified")
        for letter in "abcdefghijklmnopqrstuvwxyzabcdefghijklmn"
    )
    checker = FakeChecker()

    checked = await supported(draft(*many, summary="Leaks."), dossier(), MUG, checker)

    assert checker.calls == [PER_CALL, 31]
    assert (checked.check.pairs, checked.usage.usd) == (80, 1.0)


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("2 of 3 posts say so.", False),
        ("Two posts say so.", False),
        ("Three posts say so.", True),
        ("Posts say so.", True),
    ],
)
async def test_a_sentence_that_counts_goes_with_any_of_its_passages(text: str, stays: bool) -> None:
    """
    What is left would be fewer than it says.
    """
    counting = Finding.resting(text, "other", (LEAKS, COMMENT, WARM), "unverified")

    checked = await supported(draft(counting), dossier(), MUG, FakeChecker(("warm",)))

    assert bool(checked.draft.findings) is stays


async def test_words_that_stand_nowhere_have_the_title_for_context() -> None:
    """
    An item of a person's own may hold anything where its text should be.
    """
    lost = Finding.resting("It leaks.", "other", (Passage("reddit:0", "gone", "c9"),), "unverified")
    checker = FakeChecker()

    await supported(draft(lost), dossier(), MUG, checker)

    assert checker.claims[0].context == "opinion aaaaaaaaa on the mug"


@dataclass
class Lenient:
    """Refuses one finding's pairs, and calls every headline and summary supported."""

    against: str
    name: str = "lenient-1"

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        return Support(
            tuple(not claim.context or self.against not in claim.passage for claim in claims),
            self.name,
        )


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("The mug is a leaker: lids are weak, the lid leaks.", False),
        ("The Ember mug has a weak lid.", False),
        ("Tea stays warm though the lid leaks.", False),
        ("Tea stays warm.", True),
        ("Tea stays warm, lids vary.", True),
        ("Views differ.", True),
    ],
)
async def test_headline_and_summary_go_with_the_finding_they_lean_on(text: str, stays: bool) -> None:
    """
    Whatever a lenient model says of them: words of a finding that went have nothing to rest on.
    """
    lenient = Lenient("leak")

    checked = await supported(replace(draft(*FINDINGS, summary=text), topic=text), dossier(), MUG, lenient)

    assert [finding.text for finding in checked.draft.findings] == ["Tea stays warm."]
    assert (checked.draft.topic, checked.draft.summary) == ((text, text) if stays else ("ember mug", ""))


async def test_a_sentence_that_a_finding_still_says_stays() -> None:
    """
    One finding of two with the same words went: the other one carries the summary.
    """
    again = Finding.resting("The lid leaks.", "complaint", (WARM,), "unverified")

    checked = await supported(draft(FINDINGS[0], again, summary="The lid leaks."), dossier(), MUG, Lenient("warm"))

    assert checked.draft.summary == "The lid leaks."
    assert [finding.evidence for finding in checked.draft.findings] == [(LEAKS, COMMENT)]


@pytest.mark.parametrize(("count", "stays"), [("Two", False), ("Some", True)])
async def test_a_summary_that_counts_goes_when_its_finding_has_fewer(count: str, stays: bool) -> None:
    """
    The finding lost one of two posts.
    """
    both = Finding.resting("The lid leaks.", "complaint", (LEAKS, WARM), "unverified")

    checked = await supported(
        draft(both, summary=f"{count} owners say the lid leaks."), dossier(), MUG, Lenient("warm")
    )

    assert bool(checked.draft.summary) is stays
    assert len(checked.draft.findings) == 1


@pytest.mark.parametrize(("topic", "asked"), [("The Ember mug", False), ("Nobody needs the Ember mug", True)])
async def test_a_headline_that_says_more_than_the_question_is_asked_about(topic: str, asked: bool) -> None:
    """
    A name alone claims nothing.
    """
    checker = FakeChecker()

    await supported(replace(draft(*FINDINGS), topic=topic), dossier(), MUG, checker)

    assert (topic in [claim.sentence for claim in checker.claims]) is asked


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ([True] * 3, "count_mismatch"),
        ([True] * 5, "count_mismatch"),
        ([], "count_mismatch"),
        (["false"] * 4, "malformed"),
        ([None, True, True, True], "malformed"),
    ],
)
async def test_an_answer_without_a_boolean_for_each_claim_is_none(flags: list[bool], reason: str) -> None:
    """
    Whoever the checker is: what is not one boolean per claim leaves all findings unverified.
    """

    class OddChecker(FakeChecker):
        async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
            return Support(tuple(flags), self.name)

    checked = await supported(draft(*FINDINGS, summary="So."), dossier(), MUG, OddChecker())

    assert checked.draft == draft(*FINDINGS, summary="So.")
    assert checked.check == SupportCheck(status="degraded", reason=reason, model="fake-1")


async def test_a_sentence_that_nobody_can_see_whole_is_not_carried() -> None:
    """
    What a checker says about the beginning of an endless sentence says nothing about its end.
    """
    summary = f"The lid leaks. The lid leaks{' and it leaks' * 60}, so it was recalled."

    checked = await supported(draft(*FINDINGS, summary=summary), dossier(), MUG, FakeChecker())

    assert checked.draft.summary == "The lid leaks."
    assert checked.notes == ("support check: 1 sentence of the summary that no passage carries, removed",)


async def test_what_a_second_check_doubts_is_unverified_and_in_no_headline() -> None:
    """
    The sentence stays where people see that nobody vouches for it; what is checked is as ever.
    """
    doubted = ("warm",)
    findings = draft(*FINDINGS, summary="The lid leaks. Tea stays warm.")

    class Second(FakeChecker):
        async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
            support = await super().check(question, claims)
            return replace(support, doubted=tuple(any(word in c.passage for word in doubted) for c in claims))

    checked = await supported(replace(findings, topic="Tea stays warm"), dossier(), MUG, Second())

    assert [(finding.text, finding.support) for finding in checked.draft.findings] == [
        ("The lid leaks.", "checked"), ("Tea stays warm.", "unverified"),
    ]  # fmt: skip
    assert (checked.draft.topic, checked.draft.summary) == ("ember mug", "The lid leaks.")
    assert (checked.check.supported, checked.check.disputed) == (3, 1)
    assert "support check: 1 finding of whose words the passages hold none, marked unverified" in checked.notes


@pytest.mark.parametrize(
    ("passage", "kind"),
    [
        ("Is there support for the Spotify app?", "other"),
        ("It is great. Is there support for the app?", "praise"),
        ("Is it only me or is this app awful?", "praise"),
    ],
)
@pytest.mark.parametrize("checker", [None, FakeChecker()])
async def test_no_praise_rests_on_a_question_alone(passage: str, kind: str, checker: FakeChecker | None) -> None:
    """
    Checked or not: who asks whether something is so has not said that it is.
    """
    shown = Dossier()
    shown.show([assessed(post(0, body=passage))])
    finding = Finding.resting("The app is good.", "praise", (Passage("reddit:0", passage),), "unverified")

    checked = await supported(draft(finding), shown, MUG, checker)

    assert [finding.kind for finding in checked.draft.findings] == [kind]
    assert any("questions alone" in note for note in checked.notes) is (kind == "other")


async def test_words_that_are_quoted_already_are_no_second_finding() -> None:
    """Where two claims on people in general rest on the same words of one person."""
    words = "The app asks for an account."
    shown = Dossier()
    shown.show([assessed(post(0, body=words))])
    passage = (Passage("reddit:0", words),)
    findings = (
        Finding.resting(text, "complaint", passage, "unverified")
        for text in ("Owners resent the app.", "Many complain about the account.")
    )

    checked = await supported(draft(*findings), shown, MUG, FakeChecker())

    assert [finding.text for finding in checked.draft.findings] == [f"“{words}”"]


async def test_a_subject_of_few_people_without_words_of_theirs_goes_where_enough_is_said() -> None:
    """One that was asked about stays, and all do where nothing else is left."""
    mention = Finding.resting("Tea: people speak of it.", "other", (LEAKS, COMMENT, WARM), "unverified")
    others = [replace(FINDINGS[0], text=f"The lid leaks {often}.") for often in ("often", "again", "still")]
    asked = replace(MUG, text="What about the tea in it?")

    kept = [
        [
            finding.text
            for finding in (await supported(draft(*findings), dossier(), question, FakeChecker())).draft.findings
        ]
        for findings, question in (((*others, mention), MUG), ((*others, mention), asked), ((mention,), MUG))
    ]

    assert [mention.text in texts for texts in kept] == [False, True, True]
    assert [len(texts) for texts in kept] == [3, 4, 1]
