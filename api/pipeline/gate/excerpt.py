"""What a judge sees of an item: its title and 200 characters that name what was asked, if any do.

The local judge and the model see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import regex

from api.core.domain import Question
from api.core.items import Item
from api.core.text import clean, cut, one_line
from api.core.words import split_words
from api.pipeline.gate.name_matches import PART, Name, Sighting, best, is_community_of, name_of, sightings

TITLE_LENGTH, PASSAGE_LENGTH = 300, 200
"""Characters of title and body that a judge sees, the marks of a cut included."""
CONTEXT_LENGTH = 1000
"""Characters of a body by which the local judge tells what the name means there."""
COMMENT_PLACE = "comment"
"""`Item.place` of a comment, whose title is that of what it answers; shown so of other comments, too."""
_CUT = "…"
_BETWEEN, _PLACE, _AUTHOR = " | ", "place: ", "author: "
# longest place or author, in characters
_MAX_LABEL = 80
# characters that the window shows before a mention, for context
_BEFORE = 60
# characters of a body that are searched: longer ones are rare, and cost time
_SEARCHED = 20_000
# texts are analysed once: two judges see an item, and the items of a page often share a place
_CACHED = 256


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An item as a judge sees it."""

    title: str
    passage: str = ""
    place: str = ""
    author: str = ""
    """Empty unless it is the name of the brand."""
    comment: bool = False
    """Whether the title is that of the commented post or video."""
    context: str = field(default="", compare=False)
    """The `CONTEXT_LENGTH` characters around the name, which are not part of `line`."""

    @property
    def line(self) -> str:
        """All of it in one line, for a prompt; `parse_excerpt` reads it back."""
        place = _PLACE + self.place if self.place else ""
        author = _AUTHOR + self.author if self.author else ""
        return _BETWEEN.join(filter(None, (self.title, self.passage, place, author)))


def excerpt_of(question: Question, item: Item) -> Excerpt:
    """The parts of an item that a judge sees, up to `TITLE_LENGTH` and `PASSAGE_LENGTH` characters.

    The passage is the beginning of the body, unless later words name what was asked better than
    title and beginning do: then it is a window around them, marked `…` where it is cut.
    """
    name = name_of(question.text, question.about)
    title, body = cut(clean(item.title), TITLE_LENGTH), clean(item.body)
    place = cut(one_line(clean(item.place)), _MAX_LABEL)
    author = cut(one_line(clean(item.author)), _MAX_LABEL)
    comment = place.casefold() == COMMENT_PLACE or bool(item.thread)
    if comment and not is_community_of(name, place):
        place = COMMENT_PLACE
    if not title and " " in place and contains_name(name, place):
        # a comment whose place is the title that it stands under, or a review on a product's page
        title, place, comment = place, COMMENT_PLACE, True
    passage = cut(body, PASSAGE_LENGTH)
    if len(passage) < len(body):
        passage = _passage(name, "" if comment else title, body[:_SEARCHED])
    author = author if is_community_of(name, author) else ""
    return Excerpt(title, passage, place, author, comment, _context(name, body[:_SEARCHED]))


def parse_excerpt(line: str, source: str) -> Item:
    """The item of an `Excerpt.line`, with the fields that the line holds."""
    title, *rest = regex.split(r" \| |\n", line)
    labels = {_PLACE: "", _AUTHOR: ""}
    while rest and (label := next((label for label in labels if rest[-1].startswith(label)), "")):
        labels[label] = rest.pop().removeprefix(label)
    return Item(
        key="", id="", source=source, title=title, body=_BETWEEN.join(rest),
        place=labels[_PLACE], author=labels[_AUTHOR],
    )  # fmt: skip


@lru_cache(maxsize=_CACHED)
def contains_name(name: Name, text: str) -> bool:
    """Whether a short text, such as a title, holds the name."""
    return best(_mentions(name, text)).strength >= PART


@lru_cache(maxsize=_CACHED)
def _mentions(name: Name, text: str) -> Sequence[Sighting]:
    return sightings(name, split_words(text), text)


@lru_cache(maxsize=_CACHED)
def _passage(name: Name, title: str, body: str) -> str:
    mentions = _mentions(name, body)
    begun = [sighting for sighting in mentions if sighting.start < PASSAGE_LENGTH - _BEFORE // 2]
    mention = best(mentions)
    if mention.strength <= best([*_mentions(name, title), *begun]).strength:
        return cut(body, PASSAGE_LENGTH)
    start = max(0, mention.start - _BEFORE)
    start = body.find(" ", start, mention.start) + 1 or start
    window = cut(body[start:], PASSAGE_LENGTH - 2 * len(_CUT))
    return f"{_CUT}{window}{_CUT if start + len(window) < len(body) else ''}"


def _context(name: Name, body: str) -> str:
    if len(body) <= CONTEXT_LENGTH:
        return body
    mention = best(_mentions(name, body))
    start = 0 if mention.start < CONTEXT_LENGTH else mention.start - CONTEXT_LENGTH // 2
    return body[start : start + CONTEXT_LENGTH]
