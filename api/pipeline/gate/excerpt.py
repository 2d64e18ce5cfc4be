"""What a judge sees of an item: its title and 200 characters that name what was asked, if any do.

The judge without a key and the paid one see the same, for the same budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import regex

from api.core.domain import Item, Question
from api.core.text import clean, cut, one_line
from api.core.words import joined_pieces, split_words
from api.pipeline.gate.name_matches import best, sightings
from api.pipeline.gate.name_spellings import PART, WHOLE, Name, name_of

TITLE_LENGTH, PASSAGE_LENGTH = 300, 200
"""Characters of title and body that a judge sees, marks of a cut included."""
COMMENT_PLACE = "comment"
"""`Item.place` of a comment: its title is that of what it answers."""
_CUT = "…"
_BETWEEN, _PLACE, _AUTHOR = " | ", "place: ", "author: "
# Characters of a place or an author.
_LABEL = 80
# Characters before a mention that the window shows.
_BEFORE = 60
# Characters of a body that are searched.
_FAR = 20_000
# Texts that are not taken apart again: two judges see an item, and a page has one place.
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An item as a judge sees it."""

    title: str
    passage: str = ""
    place: str = ""
    author: str = ""
    """Only when it is the brand's own name."""
    comment: bool = False
    """The title is another's: that of the post or video it stands under."""

    @property
    def line(self) -> str:
        """All of it in one line, for a prompt; `parse_excerpt` reads it back."""
        tail = [f"{label}{text}" for label, text in ((_PLACE, self.place), (_AUTHOR, self.author))]
        parts = (
            self.title,
            self.passage,
            *(part for part in tail if part not in (_PLACE, _AUTHOR)),
        )
        return _BETWEEN.join(part for part in parts if part)


def excerpt_of(question: Question, item: Item) -> Excerpt:
    """The parts of an item that a judge sees, up to `TITLE_LENGTH` and `PASSAGE_LENGTH` characters.

    The passage is the beginning of the body when title or beginning name what was asked as well as
    any later words do; else it is a window around the best mention, marked `…` where it is cut.
    """
    name = name_of(question.text, question.about)
    title, body = cut(clean(item.title), TITLE_LENGTH), clean(item.body)
    place = cut(one_line(clean(item.place)), _LABEL)
    author = cut(one_line(clean(item.author)), _LABEL)
    comment = place.casefold() == COMMENT_PLACE
    passage = cut(body, PASSAGE_LENGTH)
    if len(passage) < len(body):
        passage = _passage(name, "" if comment else title, body[:_FAR])
    return Excerpt(title, passage, place, author if contains_name(name, author) else "", comment)


def parse_excerpt(line: str, source: str) -> Item:
    """The item behind a line of a prompt (`Excerpt.line`), as far as the line tells."""
    title, *rest = regex.split(r" \| |\n", line)
    labels = {_PLACE: "", _AUTHOR: ""}
    while rest and (label := next((label for label in labels if rest[-1].startswith(label)), "")):
        labels[label] = rest.pop().removeprefix(label)
    return Item(
        key="", id="", source=source, title=title, body=_BETWEEN.join(rest),
        place=labels[_PLACE], author=labels[_AUTHOR],
    )  # fmt: skip


@lru_cache(maxsize=_REMEMBERED)
def contains_name(name: Name, text: str) -> bool:
    """Whether a short text, such as a place, names the thing or begins with its whole name."""
    strong = best(sightings(name, split_words(text), text)).strength >= PART
    running = joined_pieces(text.removeprefix("r/"))
    return strong or any(
        len(form) > 2 and running.startswith(form) for form, worth in name.forms if worth == WHOLE
    )


@lru_cache(maxsize=_REMEMBERED)
def _passage(name: Name, title: str, body: str) -> str:
    mentions = sightings(name, split_words(body), body)
    begun = [sighting for sighting in mentions if sighting.start < PASSAGE_LENGTH - _BEFORE // 2]
    mention = best(mentions)
    if mention.strength <= best([*sightings(name, split_words(title), title), *begun]).strength:
        return cut(body, PASSAGE_LENGTH)
    start = max(0, mention.start - _BEFORE)
    start = body.find(" ", start, mention.start) + 1 or start
    window = cut(body[start:], PASSAGE_LENGTH - 2 * len(_CUT))
    return f"{_CUT}{window}{_CUT if start + len(window) < len(body) else ''}"
