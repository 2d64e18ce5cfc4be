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
from api.features.chat.keyless_chat import FOREIGN, behind, on_words, side_by_side, silent
from api.pipeline.question.product_name import ASKING_WORDS
from api.pipeline.question.query_guard import compared_names, refers_back
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_named
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.subjects import Subject
from api.sandbox.model_answers import QuotedPrompt

_POINTING = re.compile(r"(?<!\w)(?:it|its|it's|they|their|them|the|this|that|one)(?!\w)", re.I)
_OUTER = "?!,;:.\"“”'()"
# More words of talking, which are no part of a name either.
_ASIDE = frozenset(
    "annoy annoying anyone bother bothers bought dislikes else everybody everyone happen keep "
    "last leave long many mentions more much posts prefer somebody someone something talk "
    "wrong".split()
)
# Words of a product's name at most.
_LONGEST = 4


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """One question of a conversation, on its own feet."""

    subject: str  # the product, or nothing when none was named
    words: tuple[str, ...]  # what about it is asked
    text: str  # the question as it was written
    sides: tuple[str, ...] = ()
    """The products that it compares, or the one before it did; what it points at comes first."""

    @property
    def query(self) -> str:
        """What to look up once the product is known; before that, the product alone."""
        return " ".join(filter(None, (self.subject, *self.words))) or self.text


def last_question(prompt: QuotedPrompt) -> ChatQuestion:
    """The last question, with the subject of an earlier one when it names none."""
    question = ChatQuestion("", (), prompt.question)
    for role, text in prompt.messages:
        if role == "user":
            question = _after(question, text.strip())
    return question


def _naming(name: str, prompt: QuotedPrompt, *, titles: bool = False) -> list[Exhibit]:
    """The exhibits that name a product in any spelling, or those whose titles do."""
    subject = Subject.of(Question(name), ())
    bodies = ((exhibit, "" if titles else exhibit.item.body) for exhibit in prompt.shown)
    return [exhibit for exhibit, body in bodies if subject.is_named(f"{exhibit.item.title} {body}")]


def _after(before: ChatQuestion, text: str) -> ChatQuestion:
    """A question after another: about what that was about, unless it names something else."""
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
    of_one = [side for side in before.sides if names and _is_within(names, side)]
    subject, sides = (of_one[0], ()) if of_one else (before.subject, before.sides)
    pointing = len(names) < 2 and _POINTING.search(text) is not None
    if subject and (of_one or not names or pointing or len(names) > _LONGEST):
        known = " ".join((subject, *sides)).casefold().split()
        topics = tuple(word for word in content if word.casefold() not in known)
        return ChatQuestion(subject, topics, text, sides)
    if not names or len(names) > _LONGEST:
        return ChatQuestion("", () if names else tuple(content), text)
    return ChatQuestion(" ".join(names), tuple(word for word in content if word not in names), text)


def _is_within(names: Iterable[str], side: str) -> bool:
    return set(side.casefold().split()).issuperset(name.casefold() for name in names)


def looks(
    functions: Sequence[Mapping[str, Any]], prompt: QuotedPrompt, choice: object
) -> tuple[tuple[str, str], ...]:
    """Calls of tools that take a query, if the exhibits do not hold the question's words.

    An unknown product is looked up by its name alone. Tools named in the question come first, then
    those that fetch.
    """
    last = next((role for role, _ in reversed(prompt.messages) if role != "system"), "")
    question = last_question(prompt)
    queries = [query for side in question.sides if (query := _lacking(side, question, prompt))]
    if not question.sides and not _known(question, prompt):
        known = _about(prompt, question)
        queries = [question.query if known or not question.subject else question.subject]
    if last == "tool" or choice == "none" or not queries or _behind(prompt):
        return ()
    named = [
        str(f["name"])
        for f in functions
        if "query" in f.get("parameters", {}).get("properties", {})
    ]
    text = question.text.casefold()
    wanted = [name for name in named if _is_named(name, text)]
    fetching = [name for name in named if name.startswith("fetch")]
    return tuple(
        (name, json.dumps({"query": query}, ensure_ascii=False))
        for query in queries
        for name in wanted or fetching or named
    )


def _behind(prompt: QuotedPrompt) -> str:
    answers = [text for role, text in prompt.messages if role == "assistant" and text]
    return behind(prompt.question, answers, {e.label: e for e in prompt.shown})[0]


def _lacking(side: str, question: ChatQuestion, prompt: QuotedPrompt) -> str:
    """What to look up of one side: its name, with the words that no exhibit of it holds."""
    if not _naming(side, prompt, titles=True):
        return side
    texts = [" ".join(exhibit.item.texts) for exhibit in _naming(side, prompt)]
    if all(any(_holds(text, word) for text in texts) for word in question.words):
        return ""
    return " ".join((side, *question.words))


def _is_named(tool: str, text: str) -> bool:
    return any(part in text for part in tool.split("_") if len(part) > 5 and part != "product")


def _known(question: ChatQuestion, prompt: QuotedPrompt) -> bool:
    texts = [exhibit.text for exhibit in prompt.exhibits]
    held = all(any(_holds(text, word) for text in texts) for word in question.words)
    return _about(prompt, question) and held


def _about(prompt: QuotedPrompt, question: ChatQuestion) -> bool:
    names = question.subject.casefold().split()
    texts = (exhibit.text.casefold() for exhibit in prompt.exhibits)
    return any(all(name in text for name in names) for text in texts)


def _holds(text: str, word: str) -> bool:
    meant = aspects_named(word)
    return any(aspect.is_in(text) for aspect in meant) or word.casefold() in text.casefold()


def chat(prompt: QuotedPrompt) -> str:
    """A short answer in words: what the exhibits say, or that there are none."""
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
        text, _ = side_by_side(held, focus=question.words, lean=lean)
        missing = (f"I could not find posts about {name}." for name in named if name not in held)
        text = text or (silent(question.words) if held else "")
        return "\n\n".join(filter(None, (text, *missing)))
    if not _about(prompt, question):
        return _missing(question)
    name = question.subject or question.text
    text, _ = on_words(name, prompt.shown, question.words, lean)
    return text or silent(question.words)


def _missing(question: ChatQuestion) -> str:
    missing = f"I could not find posts about {question.query}."
    return (
        f"{missing} {FOREIGN[0].upper()}{FOREIGN[1:]}."
        if is_not_english(question.text)
        else missing
    )
