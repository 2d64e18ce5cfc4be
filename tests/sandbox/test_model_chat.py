"""The sandbox's model in a conversation: what it looks up and what it answers from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from api.core.text import Fence
from api.sandbox.model_answers import QuotedPrompt
from api.sandbox.model_chat import chat, last_question, looks

FENCE = Fence("00c0ffee")
LAMP = {
    "E1": "Glow Lamp after a month | The battery is great. The base wobbles.",
    "E2": "Glow Lamp at my desk | The battery died after a week.",
    "E3": "Glow Lamp review | It is too dim and overpriced.",
}


def prompt(*said: str, exhibits: dict[str, str] | None = None, after: str = "") -> QuotedPrompt:
    """A conversation: the person's words, and exhibits in the system's."""
    quoted = "\n".join(f"{at}: reddit\n{FENCE.quote(text, at)}" for at, text in (exhibits or {}).items())
    messages = [("system", quoted), *(("user", text) for text in said)]
    return QuotedPrompt((*messages, ("tool", after)) if after else tuple(messages))


def tool(name: str, *fields: str) -> dict[str, Any]:
    """A function as a request offers it."""
    return {"name": name, "parameters": {"properties": {key: {} for key in fields or ("query",)}}}


TOOLS = [tool("fetch_reddit"), tool("fetch_youtube"), tool("analyze_product"), tool("now", "zone")]


@pytest.mark.parametrize(
    ("said", "query"),
    [
        (["What do people say about the Glow Lamp?"], "Glow Lamp"),
        (["Is the battery of the Glow Lamp good?"], "Glow Lamp battery"),
        (["How is the support of the Glow Lamp?"], "Glow Lamp support"),
        (["How is the lid of the Glow Lamp?"], "Glow Lamp lid"),
        (["What about the Glow Lamp?", "and the battery?"], "Glow Lamp battery"),
        (["Glow Lamp", "is it waterproof?"], "Glow Lamp waterproof"),
        (["Glow Lamp", "and the battery?", "why?"], "Glow Lamp"),
        (["Glow Lamp", "What do people say about the Oura Ring?"], "Oura Ring"),
        (["Glow Lamp", "is the Glow Lamp worth it?"], "Glow Lamp"),
        (["what about the battery?"], "battery"),
        (["What about the Glow Lamp on YouTube?"], "Glow Lamp"),
        (["What annoys people about Glow Lamp?"], "Glow Lamp"),
        (["What is the complaint about the Glow Lamp?"], "Glow Lamp"),
        (["Glow Lamp", "Why do they leave it?"], "Glow Lamp"),
        (["Does the Glow Lamp keep its temperature?"], "Glow Lamp temperature"),
        (["Glow Lamp", "How many posts complain about the battery?"], "Glow Lamp battery"),
        (["one two three four five six seven"], "one two three four five six seven"),
    ],
)
def test_a_question_stands_on_its_own_feet(said: list[str], query: str) -> None:
    """A follow-up is about what was named before, until something else is named."""
    assert last_question(prompt(*said)).query.casefold() == query.casefold()


def test_what_is_known_is_not_looked_up() -> None:
    """A look-up is made when no exhibit names the product (by its name), or holds the words."""

    def queries(*texts: str) -> set[str]:
        made = looks(TOOLS, prompt(*texts, exhibits=LAMP), None)
        return {json.loads(arguments)["query"] for _, arguments in made}

    assert queries("Glow Lamp", "and the battery?") == set()
    assert queries("Glow Lamp", "and the warranty?") == {"Glow Lamp warranty"}
    assert queries("Oura Ring battery") == {"Oura Ring"}
    assert looks(TOOLS, prompt("Glow Lamp"), "none") == ()
    assert looks(TOOLS, prompt("Glow Lamp", after="nothing"), None) == ()


def test_fetching_goes_before_all_else_and_what_is_named_before_that() -> None:
    """Tools without a query are none to look things up with."""
    query = json.dumps({"query": "Glow Lamp"})
    youtube = looks(TOOLS, prompt("Glow Lamp on YouTube"), None)

    assert looks(TOOLS, prompt("Glow Lamp"), None) == (
        ("fetch_reddit", query), ("fetch_youtube", query),
    )  # fmt: skip
    assert [name for name, _ in youtube] == ["fetch_youtube"]
    assert looks([tool("search")], prompt("Glow Lamp"), None) == (("search", query),)


def test_a_follow_up_is_answered_with_what_holds_its_words() -> None:
    """Only exhibits about the battery are cited, and it speaks of nothing else."""
    told = chat(prompt("Glow Lamp", "and the battery?", exhibits=LAMP))

    assert "E1" in told
    assert "E2" in told
    assert "E3" not in told
    assert "battery" in told


def test_who_said_so_is_answered_from_what_was_cited() -> None:
    """Nothing is looked up then; a title that is the passage stands once."""
    said = prompt("Glow Lamp", "who said that?", exhibits=LAMP)
    answer = "- Battery: “The battery died after a week.” [E2] “Glow Lamp review” [E3]"
    asked = QuotedPrompt((*said.messages[:2], ("assistant", answer), said.messages[2]))

    assert looks(TOOLS, asked, None) == ()
    assert chat(asked).splitlines()[2:] == [
        "- Glow Lamp at my desk: “The battery died after a week.” [E2]",
        "- “Glow Lamp review” [E3]",
    ]


def test_without_fitting_exhibits_it_says_so() -> None:
    """Another product, a word nobody used, a look-up that found nothing, and no question yet."""
    other = chat(prompt("Oura Ring", exhibits=LAMP))
    silent = chat(prompt("Glow Lamp", "and the warranty?", exhibits=LAMP))

    assert other == "I could not find posts about Oura Ring."
    opening, besides, lines = silent.split("\n\n")
    assert opening == "No post that was found mentions warranty."
    assert besides == "What they say besides:"
    assert lines.startswith("- Voices, one each: “The battery is great.” [E1]")
    assert chat(prompt("Glow Lamp", after="none")) == ("I could not find posts about Glow Lamp.")
    assert "Name the product" in chat(prompt("hello"))


def test_a_comparison_looks_up_what_nobody_names_and_tells_each_side() -> None:
    """What `it` points at comes first; a side without posts says so."""
    said = ("Glow Lamp", "compare it with the Sun Dial")
    looked = looks(TOOLS, prompt(*said, exhibits=LAMP), None)
    first, *_, last = chat(prompt(*said, exhibits=LAMP)).split("\n\n")

    assert {json.loads(arguments)["query"] for _, arguments in looked} == {"Sun Dial"}
    assert first == "Glow Lamp:"
    assert last == "I could not find posts about Sun Dial."


DIAL = {"E4": "Sun Dial in my garden | The base is solid.", "E5": "Sun Dial | Its base rusts."}


def test_what_follows_a_comparison_is_about_both() -> None:
    """Each is looked up by its own name; naming one, or a third, is about that."""
    both = LAMP | DIAL

    def queries(*texts: str) -> list[str]:
        made = looks(TOOLS[:1], prompt("Glow Lamp vs Sun Dial", *texts, exhibits=both), None)
        return [json.loads(arguments)["query"] for _, arguments in made]

    assert queries("and the battery?") == ["Sun Dial battery"]
    assert queries("and the base?") == []
    assert queries("compare it with the Oura Ring") == ["Oura Ring"]
    assert queries("and the base of the Sun Dial?") == []
    assert queries("what about the Oura Ring?") == ["Oura Ring"]

    said = ("Glow Lamp vs Sun Dial", "and the base?")
    silent = chat(prompt(*said[:1], "and the warranty?", exhibits=both))
    alone = chat(prompt(*said, "and the base of the Sun Dial?", exhibits=both))

    assert chat(prompt(*said, exhibits=both)).splitlines()[:2] == [
        "Base:", "- Glow Lamp: “The base wobbles.” [E1]",
    ]  # fmt: skip
    assert silent == "No sentence of the posts says plainly anything about warranty."
    assert "Glow Lamp" not in alone
    assert "E4" in alone
