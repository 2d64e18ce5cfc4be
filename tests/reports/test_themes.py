"""Themes: counted, named, and shown in whole sentences."""

from __future__ import annotations

from typing import Any

import pytest

from api.core.domain import Question, Verdict
from api.core.items import Assessed, Item
from api.reports.exhibits import Dossier, Exhibit
from api.reports.keyless.theme_sentences import COUNTED, SUMMARY, read_leans, recount_summary, recount_theme
from api.reports.keyless.themes import DOUBTED, UNNAMED, find_themes, is_spoken_of
from api.reports.quotes import READ
from tests.reports.unsupported import exhibits_of
from tests.services.kit import post, said

LAMP = Question("Glow Lamp", "a desk light")


def exhibits(*bodies: str, **fields: Any) -> tuple[Exhibit, ...]:
    """Posts about the lamp with these bodies."""
    items = [
        post(number, title=f"Glow Lamp {'abcdef'[number]}", body=body, **fields) for number, body in enumerate(bodies)
    ]
    return exhibits_of(*items)


def test_a_theme_is_counted_and_shown_in_whole_sentences() -> None:
    """Who leans which way is said where it is sure; the two sides are both shown."""
    themed = find_themes(
        LAMP,
        exhibits(
            "I bought it. The battery is excellent. Blue.",
            "The battery is awful, every day.",
            f"The battery {'and so on ' * 30} ends.",
            "The battery lasts a week. The battery holds.",
            "Battery: eight hours.",
        ),
    )
    (finding,) = themed.findings

    assert themed.topic == "What people say about Glow Lamp"
    assert themed.summary == "Themes of 5 kept posts, each count a minimum: battery (4)."
    assert finding.text == (
        "Battery: at least 4 of 5 kept posts speak of it; at least one leans positive, one negative."
    )
    assert finding.kind == "other"
    assert sorted(passage.label for passage in finding.passages) == ["E1", "E2", "E4", "E5"]
    assert [passage.text for passage in finding.passages][:2] == [
        "The battery is excellent.", "The battery is awful, every day.",
    ]  # fmt: skip
    assert themed.suggestions == (
        "What annoys people about Glow Lamp?", "What do people like about Glow Lamp?",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bodies", "text", "kind"),
    [
        (
            ["The battery is excellent."],
            "one post speaks of it; one leans positive",
            "other",
        ),
        (["The battery is excellent."] * 2, "two posts speak of it; two lean positive", "praise"),
        (["The battery is awful."] * 2, "two posts speak of it; two lean negative", "complaint"),
        (["Please add a battery."] * 2, "two posts speak of it", "request"),
        (["The battery is excellent. The battery is awful."], "one post speaks of it", "other"),
    ],
)
def test_the_kind_is_what_all_sure_leans_agree_on(bodies: list[str], text: str, kind: str) -> None:
    """Two at least; wishes make a request."""
    (finding,) = find_themes(LAMP, exhibits(*bodies), focus=["battery"]).findings

    assert (finding.text, finding.kind) == (f"Battery: {text}.", kind)


def test_comments_of_one_thread_are_counted_and_said_to_be_of_one() -> None:
    """Each is a voice of its own, but a reader learns how many threads they come from."""
    many = [
        post(n, title="Glow Lamp", body="The battery is awful.").edited(thread=f"forum:{thread}")
        for n, thread in enumerate("aaabb")
    ]
    some = [post(n, title="Warm?", body="Glow Lamp glows.").edited(thread="forum:a") for n in range(2)]
    alone = post(7, title="Glow Lamp", body="The battery is awful.").edited(key="forum:a")

    def texts(*items: Item) -> list[str]:
        return [finding.text for finding in find_themes(LAMP, exhibits_of(*items)).findings]

    within = "kept posts speak of it, in"
    assert texts(*many) == [f"Battery: 5 of 5 {within} two threads; five lean negative."]
    assert texts(*many[:3]) == [f"Battery: 3 of 3 {within} one thread; three lean negative."]
    assert texts(*many[1:4:2], alone) == [f"Battery: 3 of 3 {within} two threads; three lean negative."]
    assert texts(*some) == [f"{UNNAMED}: two posts are about it, in one thread."]


def test_what_one_post_alone_says_is_a_theme_only_when_it_is_asked_for() -> None:
    """
    A report shows the posts without a theme instead.
    """
    one = exhibits("The battery is excellent.", "It glows.")

    assert [finding.name for finding in find_themes(LAMP, one).findings] == [UNNAMED]
    (asked,) = find_themes(LAMP, one, focus=["battery"]).findings
    assert asked.text == "Battery: at least one post speaks of it; one leans positive."


def test_a_word_that_three_share_as_a_noun_is_a_theme() -> None:
    """Plural or not; no vague, asked or other word."""
    bodies = (
        "The dimmer buzzes. It was a nice thing to glow.",
        "My dimmer hums. It was a thing.",
        "Two dimmers hum, the thing and no dimmer at all.",
        "Quickly done. Quickly. Quickly.",
    )
    themed = find_themes(LAMP, exhibits(*bodies))

    (finding,) = themed.findings
    labels = [passage.label for passage in finding.passages]
    assert (finding.name, labels) == ("Dimmer", ["E3", "E1", "E2"])


def test_what_is_asked_about_goes_first_and_small_themes_only_fill_up() -> None:
    """A theme of one post is left out when three whole ones stand."""
    body = "The battery lasts. The price is fair. The app opens."
    bodies = [body, body, body + " Support replied.", "The app opens."]
    plain = find_themes(LAMP, exhibits(*bodies))
    wanted = find_themes(Question("price of the Glow Lamp"), exhibits(*bodies))

    assert [finding.name for finding in plain.findings] == ["App", "Battery", "Price"]
    assert [finding.name for finding in wanted.findings] == ["Price", "App", "Battery"]
    assert len(find_themes(LAMP, exhibits(*bodies), most=1).findings) == 1


SIDED = (
    "The battery is excellent. The screen is here. The app is awful.",
    "The battery lasts. The screen is there. The app is awful.",
    "The battery is excellent. The battery is awful. The screen is small.",
    "The battery is awful.",
)


def test_a_question_about_one_side_is_answered_by_what_surely_leans_so() -> None:
    """Its themes first, without what leans the other way; the sentence counts what is shown."""
    asked = find_themes(Question("What annoys people about the Glow Lamp?"), exhibits(*SIDED))
    shown = [(finding.text, finding.kind) for finding in asked.findings]
    battery = next(finding for finding in asked.findings if finding.name == "Battery")

    assert asked.topic == "What people dislike about Glow Lamp"
    assert shown == [
        (
            "Battery: at least 3 of 4 kept posts speak of it; at least one leans negative.",
            "other",
        ),
        ("App: at least two posts speak of it; two lean negative.", "complaint"),
        ("Screen: at least 3 of 4 kept posts speak of it; none is surely a complaint.", "other"),
    ]
    assert [passage.text for passage in battery.passages] == [
        "The battery is awful.", "The battery is awful.", "The battery lasts.",
    ]  # fmt: skip
    assert asked.suggestions == ("What do people like about Glow Lamp?",)


def test_of_a_side_that_nothing_surely_takes_the_summary_says_so() -> None:
    """Praise that is left out makes no theme of praise of what is left."""
    bodies = ["The screen is there."] * 3
    screen = find_themes(Question("What do people like about the Glow Lamp?"), exhibits(*bodies))
    none = find_themes(Question("What do people like about the Glow Lamp?"), exhibits("Blue."))
    praised = ["The battery is excellent."] * 2 + ["The battery holds."]
    (rest,) = find_themes(Question("What annoys people about the Glow Lamp?"), exhibits(*praised)).findings

    assert screen.topic == "What people like about Glow Lamp"
    assert screen.summary == ("Themes of 3 kept posts, none surely praise, each count a minimum: screen (3).")
    assert none.summary.endswith(", and none that is surely praise.")
    text = "Battery: at least one post speaks of it; none is surely a complaint."
    assert (rest.text, rest.kind, read_leans(text)) == (text, "other", (0, 0))


def test_a_suggestion_is_of_what_was_not_shown() -> None:
    """A smaller theme, and a side; never a theme that stands above it."""
    body = "The battery lasts. The price is fair. The app opens."
    bodies = [body, body, body + " The support is excellent."]

    assert find_themes(LAMP, exhibits(*bodies)).suggestions == (
        "What do people like about Glow Lamp?",
        "What do people say about the support of Glow Lamp?",
    )


def test_what_is_asked_about_is_shown_however_few_speak_of_it() -> None:
    """Beside three whole themes; the headline names it, without words of asking."""
    body = "The battery lasts. The screen is bright. The app opens."
    question = Question("What do people say about the price of the Glow Lamp?")
    themed = find_themes(question, exhibits(body, body, body + " The price is fair."))

    assert themed.topic == "What people say about the price of Glow Lamp"
    assert themed.findings[0].text.startswith("Price: at least one post speaks of it")
    assert len(themed.findings) == 4


def test_words_that_are_asked_about_are_looked_for_alone() -> None:
    """An aspect by any of its words, else the word itself; nothing when nobody says it."""
    bodies = ("The akku is small. The dimmer hums.", "The price is fair.")
    asked = find_themes(LAMP, exhibits(*bodies), focus=["batteries", "dimmer"])

    assert [finding.name for finding in asked.findings] == ["Battery", "Dimmer"]
    assert find_themes(LAMP, exhibits(*bodies), focus=["warranty"]).findings == ()


def test_without_a_theme_the_posts_stand_alone() -> None:
    """A sentence or title of each that names the product; none of what may mean something else."""
    (few,) = find_themes(LAMP, exhibits("It glows.", "It is blue.", "")).findings
    items = [post(0, title="Hm"), post(1, title="Hm", body="Well. My Glow Lamp glows.")]
    (lone,) = find_themes(LAMP, exhibits_of(*items)).findings
    (sold,) = find_themes(LAMP, exhibits_of(post(0, "amazon", title="Glow Lamp, 2-Pack"))).findings

    assert few.text == "No shared theme: 3 of 3 kept posts are about it."
    assert [passage.text for passage in few.passages] == [
        "Glow Lamp a", "Glow Lamp b", "Glow Lamp c",
    ]  # fmt: skip
    assert lone.text == "No shared theme: at least one post is about it."
    assert [passage.text for passage in lone.passages] == ["My Glow Lamp glows."]
    assert [passage.text for passage in sold.passages] == ["Glow Lamp, 2-Pack"]
    empty = find_themes(LAMP, exhibits_of(post(0, title="")))
    assert (empty.findings, empty.summary) == (
        (), "The posts share no theme that could be counted.",
    )  # fmt: skip
    journey = Question("Journey", "a console game")
    (game,) = find_themes(
        journey,
        exhibits_of(post(0, title="A journey to Rome"), post(1, title="Journey, best game", body="Ah.")),
    ).findings
    assert [passage.label for passage in game.passages] == ["E2"]


def test_what_a_shop_says_of_its_goods_is_no_opinion() -> None:
    """Its reviews are, and a passage leads to the review."""
    review = said("The battery died.", "R1", url="https://www.example.org/R1")
    goods = exhibits_of(
        post(0, "amazon", title="Glow Lamp", body="Great battery.", comments=(review,)),
        post(1, title="Glow Lamp", comments=(said("The battery is fine.", "c1"),)),
    )
    (finding,) = find_themes(LAMP, goods).findings

    assert [(passage.text, passage.comment_id) for passage in finding.passages] == [
        ("The battery died.", "R1"), ("The battery is fine.", "c1"),
    ]  # fmt: skip


def test_more_than_twelve_are_counted_in_digits() -> None:
    """Small numbers are words, so that a lean is never taken for a measure."""
    items = [post(n, title=f"Glow Lamp {n}", body="The battery is awful.") for n in range(13)]
    (finding,) = find_themes(LAMP, exhibits_of(*items)).findings

    assert finding.text == "Battery: 13 of 13 kept posts speak of it; 13 lean negative."
    assert (len(finding.passages), len(finding.shown)) == (13, 4)


def test_an_item_about_a_namesake_shows_nothing() -> None:
    """Not even what stands below its title."""
    items = [post(0, title="Glow.js is out", body="The battery is awful.")]

    assert find_themes(LAMP, exhibits_of(*items)).findings == ()


def test_what_answers_a_post_under_another_title_names_the_product() -> None:
    """The post itself is about it; below it people speak of the law, too."""
    comments = (said("Define battery.", "c1"), said("The Glow battery is fine.", "c2"))
    law = post(0, title="A law passes", body="The Glow Lamp is named in it.", comments=comments)
    lamp = post(1, title="Glow Lamp", comments=(said("No battery at all.", "c3"),))
    (finding,) = find_themes(LAMP, exhibits_of(law, lamp)).findings

    assert {passage.comment_id for passage in finding.passages} == {"c2", "c3"}


def test_counts_are_of_all_that_were_kept_where_the_best_are_read() -> None:
    """What was not read may speak of it, too: at least."""
    themed = find_themes(LAMP, exhibits(*("The battery is awful.",) * 3), kept=5)
    bare = find_themes(LAMP, exhibits("Blue."), kept=5)

    assert themed.summary == "Themes of 5 kept posts, each count a minimum: battery (3)."
    assert [finding.text for finding in (*themed.findings, *bare.findings)] == [
        "Battery: at least 3 of 5 kept posts speak of it; three lean negative.",
        "No shared theme: at least one post is about it.",
    ]


def test_what_the_judge_was_hardly_sure_of_comes_last() -> None:
    """However telling it is; and it makes no theme that few speak of."""
    first, *others = (
        Assessed(exhibit.item, Verdict(True, probability=probability))
        for exhibit, probability in zip(
            exhibits("The battery is excellent, every day.", "Battery: eight hours.", "A battery."),
            (DOUBTED - 0.01, DOUBTED, DOUBTED),
            strict=True,
        )
    )
    (many,) = find_themes(LAMP, Dossier().show([first, *others])).findings
    pair = Dossier().show([first, others[0]])
    (few,) = find_themes(LAMP, pair, focus=["battery"]).findings

    assert [passage.label for passage in many.shown] == ["E2", "E3", "E1"]
    assert [passage.label for passage in few.shown] == ["E2"]


def test_its_own_sentences_are_known() -> None:
    """The support check reads the name out of them."""
    themed = find_themes(LAMP, exhibits("The battery lasts.", "The battery holds."))
    counted, summed = COUNTED.match(themed.findings[0].text), SUMMARY.match(themed.summary)

    assert counted is not None
    assert counted["name"] == "Battery"
    assert summed is not None
    assert summed["names"] == "battery (2)."
    assert is_spoken_of("Battery", "charge it")
    assert is_spoken_of("Dimmer", "two dimmers")
    assert not is_spoken_of("Battery", "the dimmer")


def test_of_an_endless_post_the_beginning_is_read() -> None:
    """No sentence is cut where reading ends, and what follows is not shown."""
    filler = "And so on. " * (READ // 11)
    themed = find_themes(
        LAMP,
        exhibits(
            f"The battery is excellent. {filler}",
            f"{filler}The battery is awful, every day.",
            "The battery lasts." * READ,
        ),
        focus=["battery"],
    )

    (finding,) = themed.findings
    assert [passage.text for passage in finding.passages] == ["The battery is excellent."]


@pytest.mark.parametrize(
    ("sentence", "count", "anew"),
    [
        ("Battery: at least 7 of 15 kept posts speak of it; two lean positive.", 5,
         "Battery: at least 5 of 15 kept posts speak of it."),
        ("Battery: at least 7 of 15 kept posts speak of it, in two threads; two lean positive.", 5,
         "Battery: at least 5 of 15 kept posts speak of it."),
        ("Battery: 4 of 4 kept posts speak of it.", 3,
         "Battery: at least 3 of 4 kept posts speak of it."),
        ("Battery: at least 3 of 9 kept posts speak of it.", 2,
         "Battery: at least two posts speak of it."),
        ("Three owners say the lid leaks.", 2, None),
        ("Battery: two posts speak of it.", 1, None),
    ],
)  # fmt: skip
def test_a_theme_that_loses_posts_is_counted_anew(sentence: str, count: int, anew: str | None) -> None:
    """
    Nobody knows whose leans are left, so they go; what no theme says is not counted.
    """
    assert recount_theme(sentence, count) == anew


def test_two_products_have_no_battery_in_common() -> None:
    """
    A suggestion would ask about a product of both names; which two to ask is said elsewhere.
    """
    shown = exhibits(*[f"The battery is awful, take {n}." for n in range(4)])

    assert find_themes(Question("Glow Lamp"), shown).suggestions
    assert not find_themes(Question("Glow Lamp vs Sun Dial"), shown).suggestions


@pytest.mark.parametrize(
    ("weaker", "telling"),
    [
        ("The battery lasts five hours.", "The battery lasts seven hours."),
        (f"The battery lasts {'so ' * 46}long.", f"The battery lasts {'so ' * 45}longer."),
        ("Does the battery last for seven hours?", "It has a battery."),
        ("The battery lasts for seven hours.", "The battery is excellent."),
        ("The battery and the screen do their work.", "The battery and all do their work."),
    ],
    ids=["29 characters", "161 characters", "a question", "without a lean", "of two aspects"],
)
def test_of_a_post_the_most_telling_sentence_is_shown(weaker: str, telling: str) -> None:
    """30 to 160 characters before others, a statement before a question, a lean before all."""
    (finding, *_) = find_themes(LAMP, exhibits(f"{weaker} {telling}", "Its battery holds."), focus=["battery"]).findings

    assert [passage.text for passage in finding.passages if passage.label == "E1"] == [telling]


@pytest.mark.parametrize(
    ("sentence", "leans"),
    [
        ("Lid: at least 5 of 9 kept posts speak of it; at least two lean positive, one negative.",
         (2, 1)),
        ("Battery: at least two posts speak of it; one leans negative.", (0, 1)),
        ("Battery: at least 40 of 90 kept posts speak of it; 14 lean positive.", (14, 0)),
        ("Battery: at least 5 of 9 kept posts speak of it.", (0, 0)),
        ("Owners like it; two lean positive.", (0, 0)),
    ],
)  # fmt: skip
def test_the_leans_are_those_that_the_sentence_says(sentence: str, leans: tuple[int, int]) -> None:
    """
    One number for a side, read where it is written.
    """
    assert read_leans(sentence) == leans


def test_a_summary_of_themes_is_counted_over_what_is_left() -> None:
    """
    Nothing can remove what we count; a summary in other words is not ours to count.
    """
    summary = "Themes of 9 kept posts, each count a minimum: battery (5), lid (3)."
    left = [("Battery: at least 4 of 9 kept posts speak of it.", 4), ("It is warm.", 1)]

    assert recount_summary(summary, left) == ("Themes of 9 kept posts, each count a minimum: battery (4).")
    assert recount_summary(summary, []) == ""
    assert recount_summary("Owners like it.", left) is None


@pytest.mark.parametrize(
    "title",
    [
        "What the battery cost, how it compares, and why I sold mine",
        "Battery, hinge and whether it is worth it.",
        "Long-term test: battery of the lamp measured",
        "I only used the battery for 30 days - honest review",
        "Heating film, phase change layer, one glued battery.",
    ],
)
def test_titles_contents_and_lists_are_no_statements(title: str) -> None:
    """
    They hold the word of a theme and say nothing about it.
    """
    assert find_themes(LAMP, exhibits(title), focus=["battery"]).findings == ()


def test_praise_that_the_next_sentence_takes_back_is_shown_with_it() -> None:
    """
    Both are shown and lean nowhere; where they are too long together, the first leans nowhere.
    """
    turned = "The battery is excellent. But it died after a week."
    for text, shown in (
        (turned, turned),
        (f"The battery is excellent. But {'it died again and ' * 11}so on.",
         "The battery is excellent."),
    ):  # fmt: skip
        (finding,) = find_themes(LAMP, exhibits(text), focus=["battery"]).findings
        assert [(passage.text, passage.lean) for passage in finding.passages] == [(shown, None)]
        assert "positive" not in finding.text
