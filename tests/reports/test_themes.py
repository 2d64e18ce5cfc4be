"""Claims of a report without a model: quoted, counted by people, most held first."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from api.core.domain import Question, Verdict
from api.core.items import Assessed
from api.reports.exhibits import Dossier, Exhibit
from api.reports.keyless.sentence_index import DOUBTED
from api.reports.keyless.theme_sentences import (
    COUNTED,
    SUMMARY,
    VOICE,
    claim_sentence,
    recount_summary,
    recount_theme,
    side_sentence,
    subject_sentence,
    theme_summary,
)
from api.reports.keyless.themes import find_themes, is_spoken_of
from tests.reports.lamp import LAMP, exhibits
from tests.reports.unsupported import exhibits_of
from tests.services.kit import post, said


def texts(shown: tuple[Exhibit, ...], question: Question = LAMP, **options: Any) -> list[str]:
    """The sentences of the findings."""
    return [finding.text for finding in find_themes(question, shown, **options).findings]


def test_a_claim_is_quoted_and_counted_by_people() -> None:
    """The most central sentence stands for those that say alike."""
    shown = exhibits_of(
        post(0, title="Glow Lamp", body="I bought it. The battery is awful. Blue."),
        post(1, title="Glow Lamp", body="Its battery is terrible."),
        post(2, "youtube", title="Glow Lamp", body="The battery is useless."),
        post(3, "youtube", title="Glow Lamp", body="The battery is excellent."),
    )
    themed = find_themes(LAMP, shown)
    finding = themed.findings[0]

    assert themed.topic == "What people say about Glow Lamp"
    assert finding.text.startswith("Battery: “")
    assert finding.text.endswith("”: three of the four people who speak of it say alike.")
    assert (finding.kind, finding.alike, finding.speaking) == ("complaint", 3, 4)
    assert sorted(passage.label for passage in finding.passages) == ["E1", "E2", "E3"]
    assert finding.passages[0].text.rstrip(".") == finding.claim
    assert themed.summary == f"Most said: “{finding.claim}” (three people). Most spoken of: battery (four people)."
    assert themed.bare_summary == f"Said: “{finding.claim}”. Most spoken of: battery."
    assert themed.suggestions[0] == "What annoys people about Glow Lamp?"


def test_a_summary_of_subjects_has_a_form_without_counts() -> None:
    """A model's draft that held them would go back: no exhibit says how many people there are."""
    themed = find_themes(LAMP, exhibits("The battery and the sea.", "My battery.", "A battery from Ulm."))
    assert themed.spoken == (("battery", 3),)
    assert themed.summary == "Most spoken of: battery (three people)."
    assert themed.bare_summary.endswith("Most spoken of: battery.")


def test_one_author_is_one_person() -> None:
    """Whatever they wrote; and a quotation of another's words is nobody's second voice."""
    shown = exhibits(*["The battery is awful."] * 6, author="ann")
    quoting = exhibits("The battery is awful.", "> The battery is awful.\n\nNot in my experience.", "&gt; It is awful.")

    assert texts(shown)[0] == "One voice: “The battery is awful”."
    assert texts(quoting)[0] == "One voice: “The battery is awful”."


def test_a_copied_sentence_is_no_second_voice() -> None:
    """Short words may be those of several people; a long sentence that stands twice was copied."""
    long = "The battery is awful since the second week of July."
    (copied, *_) = find_themes(LAMP, exhibits(*[long] * 4, "The battery is red.")).findings
    (short, *_) = find_themes(LAMP, exhibits(*["The battery is awful."] * 4)).findings

    assert (copied.alike, short.alike) == (1, 4)


def test_a_phrase_counts_in_each_of_its_forms() -> None:
    """`side effects` is `side effect`, `back ordered` is the availability."""
    bodies = ("The side effects are terrible.", "A side effect was a headache.", "Side effects: none.")
    (finding, *_) = find_themes(LAMP, exhibits(*bodies)).findings
    stocked = (
        "My lamp has never arrived and was back ordered for three whole months.",
        "Sold out.",
        "A shortage of lamps.",
        "Out of stock.",
    )
    (ordered, *_) = find_themes(LAMP, exhibits(*stocked)).findings

    assert finding.text == "Side effect: “The side effects are terrible”: one of the three people who speak of it."
    assert (ordered.name, ordered.claim) == (
        "Availability",
        "My lamp has never arrived and was back ordered for three whole months",
    )


def test_what_is_said_alike_needs_no_feeling() -> None:
    """Most of the claim's words are enough, in other forms; a denial, a plan, a question say something else.

    So does another number.
    """
    shown = exhibits(
        "I have lost some pounds.", "Lost lbs on it.", "We have lost 50 pounds.", "I have not lost a pound.",
        "I want to lose pounds.", "Has anybody lost pounds?",
    )  # fmt: skip
    (finding, *_) = find_themes(LAMP, shown).findings
    numbered = exhibits("I have lost 35 pounds.", "I have lost 20 pounds.", "We have lost 50 pounds.")
    (subject, *_) = find_themes(LAMP, numbered).findings

    assert finding.text.endswith("three of the six people who speak of it say alike.")
    assert sorted(passage.label for passage in finding.passages) == ["E1", "E2", "E3"]
    assert "say alike" not in subject.text


def test_a_subject_of_many_has_the_words_of_one_of_them() -> None:
    """Where few say alike, one person's words stand for nobody else; how many speak of it is said."""
    shown = exhibits(
        "The battery charges over night.", "The battery is excellent.", "Battery: eight hours.",
        "Battery, finally.", "How big is the battery?",
    )  # fmt: skip
    (finding, *_) = find_themes(LAMP, shown).findings

    assert finding.text == "Battery: “The battery is excellent”: one of the five people who speak of it."
    assert finding.bare == "Battery: “The battery is excellent”"
    assert [passage.label for passage in finding.passages] == ["E2"]


def test_what_says_nothing_is_not_quoted() -> None:
    """Not a wish, a plan, a question, doubt, code, what needs its thread, or what somebody only has."""
    shown = exhibits(
        "The battery lasted three trips and never died.", "I wish the battery was red.", "How old is the battery?",
        "I put `battery=1` in the battery settings.", "I want to buy a better battery.", "Maybe the battery is bad.",
        "That battery is as good as this.", "I have a battery in my bag.",
    )  # fmt: skip
    (finding,) = find_themes(LAMP, shown).findings

    assert (finding.claim, finding.alike, finding.speaking) == ("The battery lasted three trips and never died", 1, 8)


def test_a_level_of_the_battery_on_a_screen_is_no_word_of_the_battery() -> None:
    """So what wants an account is quoted for the account, though more people speak of the battery."""
    wanted = "I like it, but the Glow Lamp wants an account before it even shows me the battery level"
    shown = exhibits(
        "The battery, two nights.", "Battery of an evening.", "Some battery, a long one.", "Battery!",
        "The battery, once more.", "An account, again.", "The account locked me out twice.", wanted,
    )  # fmt: skip
    findings = find_themes(LAMP, shown).findings

    assert [finding.name for finding in findings if wanted in finding.text] == ["Account"]


def test_no_two_claims_say_the_same() -> None:
    """Not of two subjects that one sentence names, nor with another number or more beside it."""
    counts = ("two", "four", "five", "six", "nine")
    both = exhibits(*(f"The battery and the screen lasted {count} trips." for count in counts))
    (finding,) = find_themes(LAMP, both).findings

    assert finding.name in ("Battery", "Screen")


def test_an_aspect_asked_about_is_answered_in_plain_words() -> None:
    """Where nobody judges it, in place of `people speak of it`."""
    question = Question("the battery of the Glow Lamp", "a desk light")
    shown = exhibits("Battery lasted the trip.", "Battery: red.", "How is the battery?", "A battery, and a cord.")
    (finding, *_) = find_themes(question, shown).findings

    assert finding.claim == "Battery lasted the trip"


def test_a_subject_within_another_is_none() -> None:
    """`strap` of those who speak of its clasp; one that others speak of, too, is a subject."""
    both = ("The clasp of the strap broke.", "My strap has a loose clasp.", "Strap: a clasp of tin.", "The clasp tore.")
    own = ("The strap is wool.", "My strap faded.")

    assert find_themes(LAMP, exhibits(*both)).spoken == (("clasp", 4),)
    assert find_themes(LAMP, exhibits(*both, *own)).spoken == (("strap", 5), ("clasp", 4))


@pytest.mark.parametrize(("body", "kept"), [("My Glow recorder came on Monday.", False), ("It came on Monday.", True)])
def test_what_the_product_is_called_is_no_subject(body: str, kept: bool) -> None:
    """A word for its kind that stands right behind its name, though only few people use it."""
    few = [f"I {verb} with the recorder every morning." for verb in ("talk", "walk", "run", "teach")]
    others = (f"The strap has {count} holes." for count in range(20, 60))
    names = {name for name, _ in find_themes(Question("Glow"), exhibits(body, *few, *others)).spoken}

    assert ("recorder" in names) is kept


def test_those_who_take_one_side_are_counted() -> None:
    """In words of their own, beside those of the other side."""
    bodies = (
        "The battery of mine makes coffee trips awful.", "Awful how the battery swells near a window.",
        "My aunt finds the battery terrible in a cold kitchen.",
        "The battery in the kitchen lamp of my aunt is excellent.", "Battery: eight.", "A battery, at last.",
    )  # fmt: skip
    (first, *_) = texts(exhibits(*bodies))

    assert first.startswith("Battery: “")
    assert first.endswith("”: at least three of the six people who speak of it complain.")


def test_what_is_asked_about_goes_first() -> None:
    """However few speak of it, and the summary says how few; the headline names it."""
    body = "The battery lasts. The app opens."
    question = Question("What do people say about the price of the Glow Lamp?")
    themed = find_themes(question, exhibits(body, body, body + " The price is fair."))
    none = find_themes(question, exhibits(body, body, body))

    assert themed.topic == "What people say about the price of Glow Lamp"
    assert themed.findings[0].text == "Price: “The price is fair”."
    assert themed.summary.startswith("One person speaks of the price. Most said: ")
    assert none.summary.startswith("No people speak of the price. Most said: ")
    lid = find_themes(Question("What do people say about the lid of the Glow Lamp?"), exhibits(body, body, body))
    assert lid.topic == "What people say about the lid of Glow Lamp"


def test_a_question_about_one_side_is_answered_by_what_surely_leans_so() -> None:
    """What leans otherwise is left out; where nothing surely does, the summary says so in one line."""
    bodies = (
        "The battery is excellent. The app is awful.", "The battery lasts. The app is awful.",
        "The battery is excellent. The battery is awful.", "The battery is awful.",
    )  # fmt: skip
    asked = find_themes(Question("What annoys people about the Glow Lamp?"), exhibits(*bodies))
    none = find_themes(Question("What do people like about the Glow Lamp?"), exhibits("The screen is there."))

    assert asked.topic == "What people dislike about Glow Lamp"
    assert [finding.kind for finding in asked.findings] == ["complaint", "complaint"]
    assert all(passage.lean != 1 for finding in asked.findings for passage in finding.passages)
    assert asked.suggestions[0] == "What do people like about Glow Lamp?"
    assert none.summary.startswith("No sentence was recognised as praise; some may still be.")


def test_words_that_are_asked_about_are_looked_for_alone() -> None:
    """An aspect by any of its words, else the word itself; nothing when nobody says it."""
    bodies = ("The akku is small. The dimmer hums.", "The price is fair.")
    asked = find_themes(LAMP, exhibits(*bodies), focus=["batteries", "dimmer"])

    assert [finding.name for finding in asked.findings] == ["Battery", "Dimmer"]
    assert find_themes(LAMP, exhibits(*bodies), focus=["warranty"]).findings == ()


def test_without_anything_shared_single_voices_are_shown_as_such() -> None:
    """Those that name the product and say something; else a title that does; none of what may mean something else."""
    voices = find_themes(LAMP, exhibits("My Glow Lamp has a terrible screen.", "It glows."))
    titles = find_themes(
        LAMP, exhibits_of(post(0, title="My Glow Lamp never works"), post(1, title="Glow Lamp unboxed"))
    )
    empty = find_themes(LAMP, exhibits_of(post(0, title="")))
    compared = find_themes(
        LAMP, exhibits_of(post(0, title="Glow Lamp vs. Ember Light"), post(1, title="Is the Glow Lamp falling behind?"))
    )
    journey = find_themes(
        Question("Journey", "a console game"),
        exhibits_of(post(0, title="A journey to Rome"), post(1, title="Journey, best game", body="Ah.")),
    )

    assert voices.findings[0].text == "One voice: “My Glow Lamp has a terrible screen”."
    assert voices.findings[0].kind == "complaint", "one person surely leans so"
    assert voices.summary == "One person each said: “My Glow Lamp has a terrible screen”."
    assert [finding.text for finding in titles.findings] == ["One voice: “My Glow Lamp never works”."]
    assert (empty.findings, empty.summary) == (
        (), "No two people were found to say alike, and nothing that could be quoted.",
    )  # fmt: skip
    assert compared.findings == ()
    assert [passage.label for finding in journey.findings for passage in finding.passages] == ["E2"]


def test_the_products_own_kind_and_name_are_no_subject() -> None:
    """Nor what people buy and return; a thing it goes with is one."""
    bodies = [
        "I bought the lamp. The clip fell off.", "This lamp is here. My clip fell off.",
        "My clip fell. I sold the lantern.", "I bought a lantern. The light is on.",
        "The lantern is here. The light works.", "A lamp.",
    ]  # fmt: skip
    names = {name for name, _ in find_themes(LAMP, exhibits(*bodies)).spoken}

    assert "clip" in names
    assert names.isdisjoint({"lamp", "light", "lantern", "glow"})


def test_a_comment_under_a_video_about_it_counts_by_itself() -> None:
    """Its video's title stands as its place; nothing of that is its words."""
    videos = [
        post(n, "youtube", title="", body="The battery is awful.", place="Glow Lamp review: honest words")
        for n in range(3)
    ]

    assert texts(exhibits_of(*videos))[0].endswith("all three people who speak of it say alike.")


def test_what_a_shop_says_of_its_goods_is_no_opinion() -> None:
    """Its reviews are, and a passage leads to the review."""
    reviews = tuple(said("The battery is awful.", f"R{n}", url=f"https://www.example.org/R{n}") for n in range(3))
    goods = exhibits_of(post(0, "amazon", title="Glow Lamp", body="Great battery.", comments=reviews))
    (finding,) = find_themes(LAMP, goods).findings

    assert [passage.comment_id for passage in finding.passages] == ["R0", "R1", "R2"]
    assert finding.speaking == 3


def test_an_item_about_a_namesake_shows_nothing() -> None:
    """Not even what stands below its title."""
    items = [post(0, title="Glow.js is out", body="The battery is awful.")]

    assert find_themes(LAMP, exhibits_of(*items)).findings == ()


def test_what_the_judge_was_hardly_sure_of_comes_last() -> None:
    """However telling it is."""
    shown = exhibits("The battery is excellent, every day.", "Battery: eight hours.")
    first, other = (
        Assessed(exhibit.item, Verdict(True, probability=probability))
        for exhibit, probability in zip(shown, (DOUBTED - 0.01, DOUBTED), strict=True)
    )
    (finding,) = find_themes(LAMP, Dossier().show([first, other]), focus=["battery"]).findings

    assert [passage.label for passage in finding.passages][-1] == "E1"


def test_a_run_on_sentence_is_read_clause_by_clause() -> None:
    """Each is a passage, word for word; what has no clauses and is too long is none."""
    long = f"I bought it for {'very ' * 30}long nights, and the battery is awful, but {'very ' * 40}long it glows"
    (finding,) = find_themes(LAMP, exhibits(long, f"The battery {'very ' * 80}"), focus=["battery"]).findings

    assert [passage.text for passage in finding.passages] == ["and the battery is awful,"]


def test_its_own_sentences_are_known() -> None:
    """The support check reads the name out of them, and leaves the summary to the findings."""
    claim = claim_sentence("Battery", "It dies", 2, 2)
    side = side_sentence("Battery", "complain", "It dies", 4, 6)
    every = side_sentence("Battery", "complain", "It dies", 3, 3)
    one = side_sentence("Battery", "complain", "It dies", 1, 3)
    subject = subject_sentence("Battery", 15, 0, 2)

    assert claim == "Battery: “It dies”: both people who speak of it say alike."
    assert side == "Battery: “It dies”: at least four of the six people who speak of it complain."
    assert every == "Battery: “It dies”: all three people who speak of it complain."
    assert one == "Battery: “It dies”: one of the three people who speak of it."
    assert claim_sentence("Battery", "It dies", 1, 1) == "Battery: “It dies”."
    assert subject == "Battery: 15 people speak of it; at least two complain."
    assert COUNTED.match("Price: people complain that it rose.") is None
    bare = ("Battery: people complain, for example “It dies”.", "Battery, for example: “It dies”.")
    for sentence in (claim, side, every, one, subject, *bare):
        match = COUNTED.match(sentence)
        assert match is not None
        assert match["name"] == "Battery"
    # what one person says of a subject is no claim that a summary could name
    assert recount_summary("Most said: “It dies” (six people).", [bare[1]]) == ""
    assert SUMMARY.match(theme_summary([("It dies", 3)], [("app", 4)], "No people speak of the price."))
    assert SUMMARY.match(theme_summary([], [("app", 4)]))
    assert COUNTED.match("Three owners say the lid leaks.") is None


def test_a_theme_says_whether_a_text_speaks_of_it() -> None:
    """By its words in any form, or as an aspect."""
    assert is_spoken_of("Battery", "charge it over night, the akku is small")
    assert is_spoken_of("Dimmer", "two dimmers")
    assert is_spoken_of(VOICE, "anything")
    assert not is_spoken_of("Battery", "the dimmer")


def test_what_is_counted_cannot_lose_a_passage() -> None:
    """A claim that counts nobody stays as it is; the summary names the claims that are left."""
    assert recount_theme("Battery: “It dies”") == "Battery: “It dies”"
    assert recount_theme("Battery: “It dies”: all three people who speak of it say alike.") is None
    bare = "Battery: people complain, for example “It dies”."
    assert recount_theme(bare) == bare
    assert recount_theme("Battery: people speak of it.") == "Battery: people speak of it."
    assert recount_theme("Battery: 15 people speak of it, for example “It dies”.") is None
    assert recount_theme("Three owners say the lid leaks.") is None
    assert recount_summary("Most said: “It dies”, “It leaks”.", ["Battery: “It dies”"]) == "Said: “It dies”."
    assert recount_summary("Most said: “It dies”.", []) == ""
    assert recount_summary("Owners love it.", ["Battery: “It dies”"]) is None


def test_a_summary_names_three_claims_at_most() -> None:
    """Then what most people speak of, where few claims are held by several."""
    held = [(f"Claim {n}", 9 - n) for n in range(5)]

    said = "Most said: “Claim 0” (nine people), “Claim 1” (eight), “Claim 2” (seven)."
    assert theme_summary(held) == said
    assert theme_summary(held, [("app", 4)]) == f"{said} Most spoken of: app (four people)."


def test_two_products_have_no_battery_in_common() -> None:
    """A suggestion would ask about a product of both names; which two to ask is said elsewhere."""
    shown = exhibits(*[f"The battery is awful, take {n}." for n in range(4)])

    assert find_themes(Question("Glow Lamp"), shown).suggestions
    assert not find_themes(Question("Glow Lamp vs Sun Dial"), shown).suggestions


@pytest.mark.parametrize(("number", "size"), [(400, 2_000), (20, 40_000)])
def test_many_and_long_posts_take_little_time(number: int, size: int) -> None:
    """Linear in what is read, which is bounded."""
    parts = [
        f"The battery of my Glow Lamp is awful on day {n}, but the clip {n % 7} holds and the screen glows. "
        for n in range(500)
    ]
    bodies = [("".join(parts[(n * 13 + k) % 500] for k in range(size // 80)))[:size] for n in range(number)]
    shown = exhibits(*bodies)
    find_themes(LAMP, shown[:1])  # word lists are read once
    begun = process_time()
    find_themes(LAMP, shown)

    assert process_time() - begun < 5  # 1 s on an idle core
