"""Chats with the sandbox's model: what it looks up, and what it answers from exhibits.

It knows only the prompt. A follow-up ("and the battery?") is about the product named before, and is
looked up only if no exhibit holds its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.core.domain import Question
from api.core.words import is_not_english
from api.features.chat.keyless_chat import FOREIGN, nothing_plain, on_topics, side_by_side, who_said
from api.pipeline.question.product_name import ASKING_WORDS
from api.pipeline.question.query_guard import compared_names, refers_back
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_named
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.product_mentions import Subject
from api.sandbox.model_answers import QuotedPrompt

# pronouns and the like, by which a follow-up refers to the product before
_REFERRING = re.compile(r"(?<!\w)(?:it|its|it's|they|their|them|the|this|that|one)(?!\w)", re.I)
_OUTER = "?!,;:.\"“”'()"
# words of conversation that are no part of a name, beside `ASKING_WORDS`
_ASIDE = frozenset(
    "annoy annoying anyone bother bothers bought dislikes else everybody everyone happen keep "
    "last leave long many mentions more much posts prefer somebody someone something talk "
    "wrong".split()
)
_LONGEST = 4  # most words of a product's name


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """One question of a conversation, with what it takes from the earlier ones."""

    subject: str  # the product; empty: none was named
    words: tuple[str, ...]  # what is asked about it
    text: str  # as it was written
    sides: tuple[str, ...] = ()  # the products that it, or the question before it, compares

    @property
    def query(self) -> str:
        """Product and words, else the text."""
        return " ".join(filter(None, (self.subject, *self.words))) or self.text


def last_question(prompt: QuotedPrompt) -> ChatQuestion:
    """The last question, with the subject of an earlier one if it names none."""
    question = ChatQuestion("", (), prompt.question)
    for role, text in prompt.messages:
        if role == "user":
            question = _after(question, text.strip())
    return question


def _naming(name: str, prompt: QuotedPrompt, *, titles: bool = False) -> list[Exhibit]:
    """The exhibits that name a product in any spelling, in `titles` alone or anywhere."""
    subject = Subject.of(Question(name), ())
    bodies = ((exhibit, "" if titles else exhibit.item.body) for exhibit in prompt.shown)
    return [exhibit for exhibit, body in bodies if subject.is_named(f"{exhibit.item.title} {body}")]


def _after(before: ChatQuestion, text: str) -> ChatQuestion:
    """The next question: about what the one before was about, unless it names something else."""
    if compares := compared_names(text):
        earlier = (before.sides or (before.subject,)) if refers_back(text) else ()
        sides = tuple(dict.fromkeys(filter(None, (*earlier, *compares))))
        return ChatQuestion(sides[0], (), text, sides)
    words = [word.strip(_OUTER).removesuffix("'s").removesuffix("’s") for word in text.split()]
    idle = ASKING_WORDS | _ASIDE
    content = [word for word in words if word and word.casefold() not in idle]
    names = [word for word in content if not aspects_named(word)]
    _, _, owner = text.rpartition(" of ")  # `how is the lid of the Ember mug?`
    names = [word for word in names if word in owner] or names
    lower = {name.casefold() for name in names}
    of_one = [side for side in before.sides if lower and lower <= set(side.casefold().split())]
    subject, sides = (of_one[0], ()) if of_one else (before.subject, before.sides)
    refers = len(names) < 2 and _REFERRING.search(text) is not None
    if subject and (of_one or not names or refers or len(names) > _LONGEST):
        known = " ".join((subject, *sides)).casefold().split()
        topics = tuple(word for word in content if word.casefold() not in known)
        return ChatQuestion(subject, topics, text, sides)
    if not names or len(names) > _LONGEST:
        return ChatQuestion("", () if names else tuple(content), text)
    return ChatQuestion(" ".join(names), tuple(word for word in content if word not in names), text)


def looks(functions: Sequence[Mapping[str, Any]], prompt: QuotedPrompt, choice: object) -> tuple[tuple[str, str], ...]:
    """Calls of tools that take a query, if the exhibits do not hold the question's words.

    An unknown product is looked up by its name alone. Tools named in the question come first, then
    those that fetch.
    """
    last = next((role for role, _ in reversed(prompt.messages) if role != "system"), "")
    question = last_question(prompt)
    queries = [query for side in question.sides if (query := _lacking(side, question, prompt))]
    if not question.sides:
        known = _about(prompt, question)
        if not known or not _held(question.words, [e.text for e in prompt.exhibits]):
            queries = [question.query if known or not question.subject else question.subject]
    if last == "tool" or choice == "none" or not queries or _behind(prompt):
        return ()
    tools = [str(f["name"]) for f in functions if "query" in f.get("parameters", {}).get("properties", {})]
    text = question.text.casefold()
    wanted = [
        tool for tool in tools
        if any(part in text for part in tool.split("_") if len(part) > 5 and part != "product")
    ]  # fmt: skip
    fetching = [tool for tool in tools if tool.startswith("fetch")]
    return tuple(
        (tool, json.dumps({"query": query}, ensure_ascii=False))
        for query in queries
        for tool in wanted or fetching or tools
    )


def _behind(prompt: QuotedPrompt) -> str:
    answers = [text for role, text in prompt.messages if role == "assistant" and text]
    return who_said(prompt.question, answers, {e.label: e for e in prompt.shown})[0]


def _lacking(side: str, question: ChatQuestion, prompt: QuotedPrompt) -> str:
    """Query to look up for one side: its name, and the words that none of its exhibits has."""
    if not _naming(side, prompt, titles=True):
        return side
    texts = [" ".join(exhibit.item.texts) for exhibit in _naming(side, prompt)]
    return "" if _held(question.words, texts) else " ".join((side, *question.words))


def _held(words: Iterable[str], texts: Sequence[str]) -> bool:
    """Whether each word, or what it means, is in some text."""
    return all(
        any(word.casefold() in text.casefold() or any(a.is_in(text) for a in aspects_named(word)) for text in texts)
        for word in words
    )


def _about(prompt: QuotedPrompt, question: ChatQuestion) -> bool:
    names = question.subject.casefold().split()
    texts = (exhibit.text.casefold() for exhibit in prompt.exhibits)
    return any(all(name in text for name in names) for text in texts)


def chat(prompt: QuotedPrompt) -> str:
    """A short answer: what the exhibits say, or that there are none."""
    question = last_question(prompt)
    if not prompt.exhibits:
        if any(role == "tool" for role, _ in prompt.messages):
            return _missing(question)
        return (
            "I can tell you what people say about a product on sites such as Reddit and YouTube. "
            "Name the product and I will look."
        )
    if text := _behind(prompt):
        return text
    lean = lean_wanted(question.text)
    if question.sides:
        named = {name: _naming(name, prompt) for name in question.sides}
        held = {name: shown for name, shown in named.items() if shown}
        text, _ = side_by_side(held, topics=question.words, lean=lean)
        missing = (f"I could not find posts about {name}." for name in named if name not in held)
        text = text or (nothing_plain(question.words) if held else "")
        return "\n\n".join(filter(None, (text, *missing)))
    if not _about(prompt, question):
        return _missing(question)
    name = question.subject or question.text
    text, _ = on_topics(name, prompt.shown, question.words, lean)
    return text or nothing_plain(question.words)


def _missing(question: ChatQuestion) -> str:
    why = f" {FOREIGN[0].upper()}{FOREIGN[1:]}." if is_not_english(question.text) else ""
    return f"I could not find posts about {question.query}.{why}"
