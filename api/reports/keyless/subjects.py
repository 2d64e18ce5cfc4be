"""Whether a sentence is about the product asked for, or about something beside it.

Clause by clause, without grammar: the product's name, a thread that is about it, or a pronoun right
after a sentence that names it make it the subject; a rival's name, `my old ...`, the video or the
seller in front make it something else. In doubt a sentence is not about the product.

What a whole item is about (the product, others too, another thing), and where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import regex

from api.core.domain import Item, Question
from api.core.text import fold
from api.core.words import stop_words
from api.pipeline.question.product_name import product_in, without_web_ending
from api.pipeline.question.query_guard import singular
from api.reports.keyless.aspects import aspect_words

ELSEWHERE = regex.compile(
    # another thing of the writer's, the messenger, the way it came: `my old Fitbit`, `great video`
    r"\b(?:my (?:old|last|previous|former|other|phone|wife|husband|boss|dad|mom|wi-?fi"
    r"|neighbou?r)\w*|(?:a|an|any) (?:free|different|normal|regular|cheap) \w+"
    r"|neighbou?r'?s|the other|other(?:s| ones?)|knock-?offs?|every other|subscribed|seller"
    r"|courier|restaurant"
    r"|(?:this|your|great|good|nice|awesome|amazing|best|helpful|thanks for the) (?:\w+ )?"
    r"(?:video|review|channel|explanation|post|write-?up|comment|tutorial|point|question|article"
    r"|effort|test)|(?:this|the) (?:book|guide|chapter|author)|^thanks for|thank you"
    r"|(?:the )?(?:guy|person|people) in|cases? (?:i|for)"
    r"|your (?:dog|voice|channel|video))\b|(?<!\bno) thanks\W*$",
    regex.I,
)
"""What a sentence is about instead: `my old Fitbit`, `great video`, `the seller`."""
# who left for something else speaks of that: `we moved ours to Make`, `I switched to Vivaldi`
_LEFT = regex.compile(
    r"\b(?:moved|switched|went|migrated|changed|left|swapped)\b(?: \w+){0,3}? (?:to|for)\b", regex.I
)
AGAINST = regex.compile(
    r"(?:\bis \w+['’]s (?:\w+ )?|\b(?:than|unlike|from|over|vs\.?|versus|compared (?:to|with)"
    r"|instead of|like|alternative to|replace[sd]?"
    r"|left|ditched|for my|for the|for)\s+(?:(?:the|my|an?|your)\s+)?)$",
    regex.I,
)
"""Before a name that is only weighed against: `better than`, `unlike`, `Colour is Oslo's`."""
_PRONOUN = regex.compile(
    # a sentence that goes on about what was just named: `It holds`, `Has never failed`
    r"^\W*(?:it|its|it's|they|their|this|mine|ours|also|and|but|still|has|had|is|was|does|works"
    r"|never|not|no"
    r"|the (?:\w+ )?(?:is|was|are|were|has)|er|es|sie|es|il|elle)\b",
    regex.I,
)
# a word with a capital, its genitive included: `Oslo` and `Garmin's`, not `@Garmin`
_CAPITAL = regex.compile(r"(?<![\p{L}\p{N}@#])\p{Lu}[\p{L}\p{N}]*(?:['’]s)?")
# a word in small letters that is no hashtag, handle or part of an address: not `#chevy`
_SMALL = regex.compile(r"(?<![\w#@/.])\p{Ll}\p{L}+")
# a proper word right before a name, no verb: `Intel Arc`, `PreSonus Notion`, not `Leaving Notion`
_MAKER = regex.compile(r"(?<![\p{L}\p{N}@#])(\p{Lu}[\p{L}\p{N}]+(?<!ing)) $")
# what says that somebody else bears a name: `a cat named Notion`, `我家猫名叫 小米`
_NAMED = regex.compile(r"(?:\bnamed|\bnamens|名叫|取名)\W*$", regex.I)
# the word behind a name: `support` of `Garmin support`
_NEXT = regex.compile(r" (\p{L}+)")
# what follows a name that it is part of: `Mail` of `Notion Mail`, `XM5` of `WH-1000XM5`
_GOES_ON = regex.compile(r"[ \-]?((?:\p{Lu}|\d)[\p{L}\p{N}]*)")
# a version, a model or an edition: `r1`, `1000XM4`, `IV`
_NUMBER = regex.compile(r"(?<!\p{L})\p{L}*+\d[\p{L}\d]*|[IVX]+")
# every word, of any script: `cup`, `r1`, `杯`
_WORDS = regex.compile(r"[\p{L}\p{N}]+")
# a web ending right behind a name: `bolt.new`, `Ember.js`
_ENDING = regex.compile(r"\.\p{Ll}{2,}\b")
# Words that must have been read before one is called rare.
_MANY = 300
# nothing, or the end of a sentence or the start of a quotation, before a word
_OPENING = regex.compile(r"^[^\p{L}\p{N}]*$|[.:!?\"“(]\s*$")
# what makes a name in front the one that is spoken of: `Garmin support is`, `Zen wins`, `Uber
# charged`
_ACTS = regex.compile(
    r"^(?:['’]s)?(?:\s+\p{L}+){0,2}?\s+(?:is|are|was|were|has|had|does|did|can|will|just|wins?"
    r"|beats?|owners?|users?|\p{Ll}{2,}(?:ed|es)\b)"
)
_PLAIN_CAPITALS = frozenset(
    "i ai api usb led pdf csv gps hrv ram cpu gpu ui ux os pc tv hd ui sd hdmi nfc ip ok cmd url"
    " sla dpi crm io"
    " english german french spanish bluetooth wifi wi internet monday tuesday wednesday thursday"
    " friday saturday"
    " sunday january february march april may june july august september october november"
    " december christmas"
    " android ios iphone ipad mac macos windows linux reddit youtube amazon europe german us uk"
    " eu usd eur".split()
)
_RIVALS = frozenset(
    "garmin fitbit uber lyft chrome safari firefox excel trello asana clickup notion evernote"
    " obsidian samsung sony"
    " bose apple airpods airtag galaxy pixel kobo kindle roomba dyson otter zendesk jira slack"
    " teams lenovo thinkpad"
    " macbook dell zen vivaldi brave edge whoop oura huawei nextmug yeti stanley remarkable boox"
    " humane siri alexa"
    " chatgpt gemini google microsoft tesla honda".split()
)

OTHER_NAMES = _RIVALS | _PLAIN_CAPITALS
"""Names that are no theme: well-known products and platforms, days, months."""


@dataclass(frozen=True)
class Subject:
    """The product that a question asks about, and how it is written."""

    name: str
    """As the question has it; "" when it names none."""
    pattern: regex.Pattern[str]
    name_words: frozenset[str]
    """Its words, folded."""
    numbers: frozenset[str]
    """Words of name and description that tell a version or model, folded: `r1`, `iv`."""
    common: frozenset[str]
    """Words that stand in small letters somewhere in the texts, so that a capital says nothing."""
    stated: frozenset[str]
    """Words of question and description, folded, plurals as singulars, too; web endings with their
    dot."""
    described: frozenset[str]
    """Words of the description alone, folded."""

    @classmethod
    def of(cls, question: Question, texts: Iterable[str] = ()) -> Subject:
        """The subject of a question; `texts` are those it is looked for in."""
        name = product_in(question.text, aspect_words())
        core = without_web_ending(name or question.text)
        pieces = regex.split(r"[\s.\-]+", core)
        # several of a thing whose name has several words are the thing: `Ember mugs`; not `Embers`
        plural = "(?:e?s)?" if len(pieces) > 1 else ""
        spelled = r"[ .\-]?".join(map(regex.escape, pieces)) + plural
        parts = [word for word in regex.findall(r"[\p{L}\p{N}]+", core) if len(word) > 1]
        proper = [match[0] for match in _CAPITAL.finditer(question.about)]
        idle = _PLAIN_CAPITALS | stop_words("en")  # `The` of `The Browser Company` names nothing
        names = {word for word in (*parts, *proper) if fold(word) not in idle}
        words = "|".join([spelled, *(regex.escape(word) for word in sorted(names, key=len)[::-1])])
        bounded = rf"(?<![\p{{Latin}}\p{{N}}])(?:{words})(?!\p{{Latin}}|(?<=\p{{N}})\p{{N}})"
        small = {word for text in texts for word in _SMALL.findall(text)}
        stated = regex.findall(r"\.?[\p{L}\p{N}]+", fold(f"{question.text} {question.about}"))
        pattern = regex.compile(bounded, regex.I)
        named = frozenset(map(fold, parts))
        written = (*_WORDS.findall(core), *proper)
        numbers = frozenset(fold(word) for word in written if _NUMBER.fullmatch(word))
        known = frozenset(
            form for word in (*stated, *parts, *proper) for form in (word, singular(word))
        )
        described = frozenset(_WORDS.findall(fold(question.about)))
        return cls(name, pattern, named, numbers, frozenset(small), known, described)

    def is_named(self, text: str) -> bool:
        """Whether a text holds the name or a part of it."""
        return self.pattern.search(text) is not None

    def names_rival(self, text: str) -> bool:
        """Whether a text names a well-known product that is not this one."""
        words = (match[0] for match in _CAPITAL.finditer(text) if not self.is_named(match[0]))
        return any(fold(word) in _RIVALS for word in words)

    def is_namesake(self, text: str) -> bool:
        """Whether a text names only another thing of the same name: `Chevy Bolt`, `bolt.new`.

        A proper word stands right before each sighting, or a web ending right behind, that neither
        question nor description has; or a part of the name goes on otherwise (`Echo Show` is no
        `Echo Dot`), or somebody is named so. The name with its kind is the thing itself: `Old Ember
        mug`.
        """
        sightings = self._sightings(text)
        if self.numbers and any(self._is_renumbered(text, *span) for span in sightings):
            return not any(self.is_numbered(text[start:end]) for start, end in sightings)
        return bool(sightings) and all(self._is_anothers(text, *span) for span in sightings)

    def is_numbered(self, text: str) -> bool:
        """Whether a text has the product's own number, if that has one: `1000XM4`, `r1`, `IV`."""
        return not self.numbers or not self.numbers.isdisjoint(_WORDS.findall(fold(text)))

    def _is_renumbered(self, text: str, start: int, end: int) -> bool:
        """Whether another number goes on where the product's own would: `WH-1000XM5`."""
        on = _GOES_ON.match(text, end)
        if on is None or not _NUMBER.fullmatch(on[1]):
            return False
        return not self.is_numbered(text[start : on.end()])

    def is_carried_on(self, text: str) -> bool:
        """Whether all that a text names is what carries the name on: `Notion Mail is out`."""
        sightings = self._sightings(text)
        return bool(sightings) and all(self._carried_on(text, end) for _, end in sightings)

    def _sightings(self, text: str) -> list[tuple[int, int]]:
        """Where the name stands; words of it side by side are one sighting."""
        spans: list[tuple[int, int]] = []
        for match in self.pattern.finditer(text):
            start, end = match.span()
            if spans and text[spans[-1][1] : start] in ("", " ", "-"):
                start = spans.pop()[0]
            spans.append((start, end))
        return spans

    def _carried_on(self, text: str, end: int) -> bool:
        """Whether a capital goes on behind a name, in a text that does not set all of them."""
        match = _GOES_ON.match(text, end)
        if match is None or match[1][0].isdigit() or self.is_known(match[1]):
            return False
        words = regex.findall(r"\p{L}+", text[: match.start()] + text[match.end() :])
        small = [word for word in words if word[0].islower()]
        return 2 * len(small) > len(words)

    def _is_anothers(self, text: str, start: int, end: int) -> bool:
        # `Echo` of `Echo Dot`, where it goes on as `Echo Show`
        part = set(_WORDS.findall(fold(text[start:end]))) < self.name_words
        if part and self._carried_on(text, end):
            return True
        if _NAMED.search(text[:start]):
            return True
        if " " in text[start:end]:
            return False
        ending = _ENDING.match(text, end)
        if ending is not None:
            return not self.is_known(ending[0])
        maker, kind = _MAKER.search(text[:start]), _NEXT.match(text, end)
        if maker is None or (kind is not None and fold(kind[1]) in self.stated):
            return False
        return self.is_rare(fold(maker[1])) and not self.is_known(maker[1])

    def is_known(self, word: str) -> bool:
        """Whether question or description hold a word, or it is a platform, month or the like."""
        form = fold(word)
        return form in self.stated or singular(form) in self.stated or form in _plain_words()

    def is_rare(self, word: str) -> bool:
        """Whether many texts never write a word small, so that its capital is a name's."""
        return len(self.common) >= _MANY and len(word) > 2 and word not in self.common

    def is_subject(self, sentence: str, *, topic: bool, follows: bool) -> bool:
        """Whether a sentence speaks of the product.

        Args:
            sentence: whole.
            topic: the thread is about the product.
            follows: the sentence before it in the same text speaks of the product by name.
        """
        text = sentence.replace("’", "'")
        if ELSEWHERE.search(text) or _LEFT.search(text):
            return False
        sightings = list(self.pattern.finditer(text))
        if self.is_namesake(text):
            return False
        if sightings and all(AGAINST.search(text[: at.start()]) for at in sightings):
            return False
        if names_another(text, self):
            return False
        return bool(sightings) or topic or (follows and _PRONOUN.search(text) is not None)


def names_another(sentence: str, subject: Subject | None = None) -> bool:
    """Whether another name is what the sentence speaks of: `Garmin support is bad`."""
    own = [] if subject is None else [at.span() for at in subject.pattern.finditer(sentence)]
    for match in _CAPITAL.finditer(sentence):
        word = fold(match[0].removesuffix("'s").removesuffix("’s"))
        named = any(start < match.end() and match.start() < end for start, end in own)
        if named or word in _plain_words():
            continue
        before = sentence[: match.start()]
        # a capital at the beginning says nothing, unless many texts never write the word small
        opens = _OPENING.search(before) is not None
        if word not in _RIVALS and opens and (subject is None or not subject.is_rare(word)):
            continue
        acts = _ACTS.search(sentence[match.end() :]) or match[0].endswith(("'s", "’s"))
        if word in _RIVALS or acts:
            return True
    return False


@cache
def _plain_words() -> frozenset[str]:
    """Words with a capital that name nothing else."""
    return _PLAIN_CAPITALS | aspect_words() | stop_words("en") | stop_words("de")


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
# Characters of a text in which what it is about is named.
_FRONT = 300
# Words of a shop's title before the name that make it another thing's: `Smart Dead Bolt Lock`.
_BEFORE = 2
# Letters that make a place another's, where nobody knows them: `r/BoltEV`, `r/emberjs`.
_LONGEST_ENDING = 3


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
    return any(not {fold(at[0]), singular(fold(at[0]))} & subject.stated for at in things)


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
    if ending == name or len(ending) > _LONGEST_ENDING or not ending.isalpha():
        return False
    return ending not in subject.stated | _COMMUNITY | _PLURAL


def is_told_apart(item: Item, subject: Subject) -> bool:
    """Whether an item says which thing of that name is meant: `Journey, the game`, `r/journey`.

    It holds the whole of a name of several words, or a word of the description, and the number of
    a name that has one; or its place bears the name. Nobody can tell without a description, or in
    a script that the name is not written in.
    """
    telling = set(map(singular, subject.described - subject.name_words - stop_words("en")))
    if not telling or not subject.name.isascii():
        return True
    text = fold(" ".join((item.title, item.body, *(comment.body for comment in item.comments))))
    if not subject.is_numbered(text):
        return False
    words = set(map(singular, regex.findall(r"[\p{L}\p{N}]+", text)))
    place = fold(_PLACED.sub("", item.place or ""))
    return (
        (len(subject.name_words) > 1 and set(map(singular, subject.name_words)) <= words)
        or not telling.isdisjoint(words)
        or any(place.startswith(word) for word in subject.name_words)
    )
