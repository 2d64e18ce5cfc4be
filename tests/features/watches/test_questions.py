"""What counts as a question that people ask, and which are new."""

from __future__ import annotations

from typing import Any

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.features.watches.new_questions import MOST, new_questions, questions_of
from api.reports.keyless.product_mentions import Subject
from api.reports.report import KeptItem
from tests.features.watches.made import about, heard

EMBER = Question("Ember mug")
ASKING = (
    "Does it keep the tea warm without the coaster?",
    "How long does the battery last on one charge?",
    "Can I put the lid in the dishwasher?",
    "Got mine today. Which app settings drain it the least?",
    "Is there a way to set it to 57 degrees without the app?",
    "Anyone know how to descale the inside",
    "Has anybody replaced the battery themselves?",
    "Is the Ember mug worth 150 dollars?",
    "What is the difference between the first and the second generation?",
    "I love the colour, but how loud is the beep?",
    "Where can I buy a spare coaster in Canada?",
    "Any idea why the light blinks red three times?",
    "Is it safe for oat milk",
    "Why does the temperature jump by ten degrees after an update?",
    "Will the firmware update reset my presets?",
    "Does anyone else hear a hum while it charges?",
    "How do I pair it with a second phone",
    "Can you use it with Home Assistant?",
    "Wie lange hält der Akku im Winter?",
    "Weiß jemand, ob der Deckel in die Spülmaschine darf",
    "Kann man den Akku selbst tauschen?",
    "Gibt es eine Version mit Henkel aus Metall?",
    "¿Se puede lavar en el lavavajillas?",
    "¿Cuánto dura la batería con café hirviendo?",
    "Est-ce que le couvercle passe au lave-vaisselle ?",
    "Combien de temps garde-t-elle la chaleur ?",
    "保温できる時間はどのくらいですか？",
    "这个杯子可以放进洗碗机吗？",
    "Можно ли мыть кружку в посудомоечной машине?",
    "A tampa pode ir na máquina de lavar louça?",
)
"""Each asks once."""
SILENT = (
    "It keeps the tea warm for hours, right?",
    "150 dollars for a mug, who cares?",
    "It leaks again. Great, isn't it?",
    "Who needs a battery in a mug?",
    "Why would anyone pay 150 dollars for this?",
    "What could possibly go wrong?",
    "Is it worth it? Yes, every cent of it.",
    "Does it leak? No.",
    "How hard can it be to build a lid that closes?",
    "Are you kidding me with this price?",
    "Am I the only one who loves the beep?",
    "What the hell is wrong with the app?",
    "Seriously?",
    "Thoughts?",
    "Ember mug?",
    "Ember Mug 2 14 oz?",
    "New firmware?",
    "Any thoughts on this?",
    "Can anyone help me please?",
    "Tired of cold coffee on your desk?",
    "Did you know that it also keeps soup warm?",
    "Ready to upgrade your mornings?",
    "> Does it keep the tea warm without the coaster?",
    "Thanks, that worked.\n\nOn Mon, 2 Nov 2026, Ann wrote:\nDoes the lid fit the old mug?",
    "Danke.\n\nAm 2. November 2026 schrieb Ann:\nPasst der Deckel auf den alten Becher?",
    "Q: What sizes does the mug come in?\nA: Three.",
    "“Does it come in blue?” she asked me at the desk.",
    "How it keeps the tea warm is a mystery to me.",
    "What I like most is the lid.",
    "When it beeps, the tea is ready.",
    "```\nwhile (mug.isWarm() ? sip() : wait())?\n```",
    "Das Ding hält keine Stunde, oder?",
    "Wer braucht so etwas?",
    "Was soll das?",
    "Es una estafa, ¿verdad?",
    "¿A quién le importa una taza?",
    "C'est cher pour une tasse, non ?",
    "Guess what?",
    "The app asks for my location. What's the point?",
    "So what?",
)
"""Nobody is asked anything, or nobody can tell what."""


def post(body: str, **more: Any) -> Item:
    """In a thread about the mug."""
    return Item(**{"key": "reddit:1", "id": "1", "source": "reddit", "title": "My Ember mug",
                   "body": body} | more)  # fmt: skip


def questions(item: Item) -> list[str]:
    """Of one post."""
    return list(questions_of(item, Subject.of(EMBER, item.texts)))


def test_labelled_lines() -> None:
    """Seventy of them; docs/watches.md says how often it is right."""
    right = sum(len(questions(post(line))) == 1 for line in ASKING)
    wrong = [line for line in SILENT if questions(post(line))]
    assert (len(ASKING), len(SILENT)) == (30, 40)
    assert (right, wrong) == (30, [])


@pytest.mark.parametrize(
    "more",
    [
        {"source": "youtube", "key": "youtube:1"},
        {"source": "amazon", "key": "amazon:1"},
        {"title": "My cat named Ember mug"},
        {"body": "My old Fitbit died. Does the Garmin last longer?"},
        {"body": "x" * 190 + " does it keep warm?"},
    ],
)
def test_post_that_asks_nothing_about_it(more: dict[str, Any]) -> None:
    """A shop's or channel's words, a namesake, another product, more than can be quoted."""
    assert questions(post(**{"body": "Does it keep the tea warm?"} | more)) == []


def test_title_that_asks() -> None:
    """Not that of a page which somebody links to, nor a headline's."""
    title = "Does the Ember mug survive a dishwasher?"
    assert questions(post("", title=title)) == [title]
    assert questions(post("", title=title, link="https://news.example/1")) == []
    assert questions(post("", title="Ember mug review: does it survive a dishwasher?")) == []
    assert questions(post("", title="Does The Ember Mug Survive A Dishwasher?")) == []


def kept(*texts: str, **more: Any) -> list[KeptItem]:
    """Posts with these words."""
    return list(about("Ember", heard(*texts, **more)).items)


def test_question_of_an_earlier_run_is_not_new() -> None:
    """In other words, too; what nobody asked is."""
    new = kept("Does it fit the dishwasher?", "Can I descale it with vinegar?")
    earlier = [post("I wonder: is the mug dishwasher safe? I have one.")]
    (question,) = new_questions(Question("Ember"), new, earlier)
    assert question.text == "Can I descale it with vinegar?"
    assert question.cites == ("reddit:Ember1",)


def test_question_that_several_ask_comes_first() -> None:
    """Once, with all that ask; one post counts once."""
    new = kept(
        "Is there a handle made of metal?",
        "Can I descale it with vinegar?",
        "Can I use vinegar to descale it? So can I descale it with vinegar at all?",
    )
    first, second = new_questions(Question("Ember"), new, [])
    assert first.cites == ("reddit:Ember1", "reddit:Ember2")
    assert second.text == "Is there a handle made of metal?"


def test_a_handful_at_most() -> None:
    """And nothing where nobody asks."""
    new = kept(
        "Can I descale it with vinegar?",
        "Does sunlight bleach the paint?",
        "How loud is the beep?",
        "Is there a handle made of metal?",
        "Will honey clog the lid?",
        "Where is the serial number?",
        "Does altitude change the boiling point?",
    )
    assert len(new_questions(Question("Ember"), new, [])) == MOST
    assert new_questions(Question("Ember"), kept("I like it."), []) == ()
    assert new_questions(Question("Ember"), kept("Why is that so?"), []) == ()
