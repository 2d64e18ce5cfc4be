"""What a whole item is about (the product, others too, another thing), and where it stands."""

from __future__ import annotations

import regex

from api.services.question.guard import stem
from api.services.question.query import stop_words
from api.services.reporting.subjects import AGAINST, Subject
from api.services.schemas import Item
from api.services.text import fold

# a title that weighs several products or tells of leaving one
_WEIGHING = regex.compile(
    r"\b(?:vs\.?|versus|alternatives?|compared|comparison|or|oder|instead of"
    r"|switch\w* (?:to|from)|coming from|moved|wechsel|replac\w+)\b",
    regex.I,
)
# a thing that goes with a product, in a shop or in the news: `Lid for`, `a pocket charging case`
_BESIDE = regex.compile(
    r"\b(?:stickers?|decals?|(?<!\b(?:in|any|use) )cases?|cover|sleeves?|lids?|straps?|bands?"
    r"|replacement|chargers?|cables?|holders?|stand|protectors?|planner|poster|kit|mount|skins?"
    r"|modules?|dock|adapt[eo]rs?|refills?)\b",
    regex.I,
)
# a book, in a shop
_PRINTED = regex.compile(
    r"\b(?:(?:hand|work|play|guide|text)?books?|(?:hand|praxis|fach)?buch|guides?|paperback"
    r"|hardcover|taschenbuch)\b",
    regex.I,
)
# a title up to where its features begin: `Lid| for Ember`, `Plaud Note Recorder|, with Case`
_HEAD = regex.compile(r"^.*?(?=,|\||\(| - | with | mit | avec | con |$)", regex.I)
_PLACED = regex.compile(r"^r/")
# how a subreddit of the product itself may end: `r/NotionHQ`, `r/PlaudUK`
_COMMUNITY = frozenset("ai app co com dev eu de fr hq io uk us".split())
_PLURAL = frozenset(("s", "es"))
_WORD = regex.compile(r"[\p{L}\p{N}]{2,}")
_FRONT = 300
"""Characters of a text in which what it is about is named."""
_BEFORE = 2
"""Words of a shop's title before the name that make it another thing's: `Smart Dead Bolt Lock`."""
_ENDING = 3
"""Letters that make a place another's, where nobody knows them: `r/BoltEV`, `r/emberjs`."""


def thread_of(item: Item) -> str:
    """The key of the thread that an item stands in; its own unless it is a comment."""
    return item.thread or item.key


def is_topic(item: Item, subject: Subject) -> bool:
    """Whether an item, with what is said under it, is about the product alone.

    Its title names it and weighs it against nothing; or it is named early on, and no rival. Not
    under news of an accessory (`Oura launches a case`), or of what carries the name on (`Notion
    Mail is out`).
    """
    match = subject.pattern.search(item.title)
    if item.source == "amazon":
        words = item.title[: match.start()].split() if match else ()
        # `Smart Ring, Better Than OuraRing` is a rival's page
        sightings = subject.pattern.finditer(item.title)
        if any(AGAINST.search(item.title[: at.start()]) for at in sightings):
            return False
        return match is not None and len(words) < _BEFORE and not is_elsewhere(item, subject)
    if _WEIGHING.search(item.title) or subject.names_rival(item.title):
        return False
    if _goes_with(item.title, subject):
        return False
    if match is not None and subject.is_numbered(item.title):
        weighed = AGAINST.search(item.title[: match.start()])
        return not weighed and not subject.is_carried_on(item.title)
    front = f"{item.title}. {item.body[:_FRONT]} {item.place or ''}"
    named = subject.is_named(front) and subject.is_numbered(front)
    return named and not subject.names_rival(f"{front} {item.body}")


def is_elsewhere(item: Item, subject: Subject) -> bool:
    """Whether nothing in an item counts, since it is about something else of the same name.

    Its title names a namesake; its place is one of another's (`r/BoltEV`); or it is a shop's page
    of a thing that goes with the product.
    """
    if subject.is_namesake(item.title):
        return True
    if item.source == "amazon":
        return _PRINTED.search(item.title) is not None or _goes_with(item.title, subject)
    return _is_anothers_place(item.place or "", subject)


def _goes_with(title: str, subject: Subject) -> bool:
    """Whether a title is of an accessory or a part, which nobody asked for."""
    head = _HEAD.search(title)
    things = _BESIDE.finditer(head[0] if head else title)
    return any(not {fold(at[0]), stem(fold(at[0]))} & subject.stated for at in things)


def _is_anothers_place(place: str, subject: Subject) -> bool:
    """Whether a place's name is the product's with two or three letters more: `r/emberjs`.

    Of several words the first alone tells, since the others mostly say of what kind the product is:
    `Ember mug` in `r/mugs`, `Bolt app` in `r/apple`.
    """
    first = _WORD.search(fold(subject.name))
    if first is None:
        return False
    name = fold(_PLACED.sub("", place))
    ending = name.removeprefix(first[0])
    if ending == name or len(ending) > _ENDING or not ending.isalpha():
        return False
    return ending not in subject.stated | _COMMUNITY | _PLURAL


def is_told_apart(item: Item, subject: Subject) -> bool:
    """Whether an item says which thing of that name is meant: `Journey, the game`, `r/journey`.

    It holds the whole of a name of several words, or a word of the description, and the number of
    a name that has one; or its place bears the name. Nobody can tell without a description, or in
    a script that the name is not written in.
    """
    telling = set(map(stem, subject.described - subject.name_words - stop_words("en")))
    if not telling or not subject.name.isascii():
        return True
    text = fold(" ".join((item.title, item.body, *(comment.body for comment in item.comments))))
    if not subject.is_numbered(text):
        return False
    words = set(map(stem, regex.findall(r"[\p{L}\p{N}]+", text)))
    place = fold(_PLACED.sub("", item.place or ""))
    return (
        (len(subject.name_words) > 1 and set(map(stem, subject.name_words)) <= words)
        or not telling.isdisjoint(words)
        or any(place.startswith(word) for word in subject.name_words)
    )
