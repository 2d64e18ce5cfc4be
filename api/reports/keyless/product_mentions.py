"""Whether a sentence, or a whole item, is about the product asked for or about something else.

Clause by clause, without grammar: the product's name, a thread that is about it, or a pronoun right
after a sentence that names it make it the subject; another product's name, `my old ...`, the video
or the seller in front make it something else. In doubt a sentence is not about the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import regex

from api.core.domain import Question
from api.core.items import Item
from api.core.text import fold
from api.core.words import stop_words
from api.pipeline.question.product_name import product_in, without_web_ending
from api.pipeline.question.query_guard import singular
from api.reports.keyless.aspects import aspect_words, data

# another thing of the writer's, who shows it, who delivers it: `my old Fitbit`, `great video`
OTHER_THING = regex.compile(
    r"(?i)\b(?:my (?:old|last|previous|former|other|phone|wife|husband|boss|dad|mom|wi-?fi"
    r"|neighbou?r)\w*|(?:a|an|any) (?:free|different|normal|regular|cheap) \w+"
    r"|neighbou?r'?s|the other|other(?:s| ones?)|knock-?offs?|every other|subscribed|seller"
    r"|courier|restaurant|(?:this|your|great|good|nice|awesome|amazing|best|helpful|thanks for the)"
    r" (?:\w+ )?(?:video|review|channel|explanation|post|write-?up|comment|tutorial|point|question"
    r"|article|effort|test)|(?:this|the) (?:book|guide|chapter|author)|^thanks for|thank you"
    r"|(?:the )?(?:guy|person|people) in|cases? (?:i|for)"
    r"|your (?:dog|voice|channel|video))\b|(?<!\bno) thanks\W*$"
)
# who left for something else speaks of that: `we moved ours to Make`, `I switched to Vivaldi`
_SWITCHED = regex.compile(
    r"(?i)\b(?:moved|switched|went|migrated|changed|left|swapped)\b(?: \w+){0,3}? (?:to|for)\b"
    r"(?:\s+(?:the|a|an|my)\b)?\s*"
)
# right before a name that is only compared with: `better than`, `unlike`, `Colour is Oslo's`
_COMPARED_WITH = regex.compile(
    r"(?i)(?:\bis \w+['’]s (?:\w+ )?|\b(?:than|unlike|from|over|vs\.?|versus|compared (?:to|with)"
    r"|instead of|like|alternative to|replace[sd]?|left|ditched|for my|for the|for)\s+"
    r"(?:(?:the|my|an?|your)\s+)?|\bthe likes of\b[^.;:]*)$"
)
# a sentence that goes on about what was just named: `It holds`, `Has never failed`
_PRONOUN = regex.compile(
    r"(?i)^\W*(?:it|its|it's|they|their|this|mine|ours|also|and|but|still|has|had|is|was|does|works"
    r"|never|not|no|the (?:\w+ )?(?:is|was|are|were|has)|er|es|sie|es|il|elle)\b"
)
# a word with a capital, its genitive included: `Oslo` and `Garmin's`, not `@Garmin`
_CAPITAL = regex.compile(r"(?<![\p{L}\p{N}@#])\p{Lu}[\p{L}\p{N}]*(?:['’]s)?")
# a word in small letters that is no hashtag, handle or part of an address: not `#chevy`
_SMALL = regex.compile(r"(?<![\w#@/.])\p{Ll}\p{L}+")
# a proper word right before a name, no verb: `Intel Arc`, `PreSonus Notion`, not `Leaving Notion`
_MAKER = regex.compile(r"(?<![\p{L}\p{N}@#])(\p{Lu}[\p{L}\p{N}]+(?<!ing)) $")
# right before a name that somebody else bears: `a cat named Notion`, `我家猫名叫 小米`
_NAMED = regex.compile(r"(?:\bnamed|\bnamens|名叫|取名)\W*$", regex.I)
# the word behind a name: `support` of `Garmin support`
_NEXT = regex.compile(r" (\p{L}+)")
# right after a name, what makes it another one: `Mail` of `Notion Mail`, `XM5` of `WH-1000XM5`
_CONTINUATION = regex.compile(r"[ \-]?((?:\p{Lu}|\d)[\p{L}\p{N}]*)")
# a version, a model or an edition: `r1`, `1000XM4`, `IV`
_NUMBER = regex.compile(r"(?<!\p{L})\p{L}*+\d[\p{L}\d]*|[IVX]+")
# every word, of any script: `cup`, `r1`, `杯`
_WORDS = regex.compile(r"[\p{L}\p{N}]+")
# a web ending right after a name: `bolt.new`, `Ember.js`
_WEB_ENDING = regex.compile(r"\.\p{Ll}{2,}\b")
# Lower-case words that must have been read before one that is not among them counts as rare.
_ENOUGH_WORDS = 300
# nothing, or the end of a sentence or the start of a quotation, before a word
_OPENING = regex.compile(r"^[^\p{L}\p{N}]*$|[.:!?\"“(]\s*$")
# right after a name that the sentence is about: `Garmin support is`, `Zen wins`, `Uber charged`
_ACTS = regex.compile(
    r"^(?:['’]s)?(?:\s+\p{L}+){0,2}?\s+(?:is|are|was|were|has|had|does|did|can|will|just|wins?"
    r"|beats?|owners?|users?|\p{Ll}{2,}(?:ed|es)\b)"
)
_PLAIN_CAPITALS = frozenset(data("names")["plain"].split())
_RIVALS = frozenset(data("names")["rivals"].split())

OTHER_NAMES = _RIVALS | _PLAIN_CAPITALS  # names that are no theme


# such a name before another word: the maker in `Samsung Galaxy`
_RIVAL_BEFORE = regex.compile(rf"\b({'|'.join(sorted(_RIVALS))})\s+", regex.I)


@dataclass(frozen=True)
class Subject:
    """The product that a question asks about, and how it is written; words are folded."""

    name: str  # as the question has it; empty when it names none
    pattern: regex.Pattern[str]
    name_words: frozenset[str]
    numbers: frozenset[str]
    """Words of name and description that tell a version or model: `r1`, `iv`."""
    lowercase: frozenset[str]
    """Words that the texts write in small letters somewhere, so that their capital says nothing."""
    known: frozenset[str]
    """Words of question and description, plurals as singulars too; web endings with their dot."""
    described: frozenset[str]  # words of the description alone
    head: frozenset[str] = frozenset()
    """What the description says that the product is, and the question's words: `mug` of `the mug that ...`."""
    kin: frozenset[str] = frozenset()
    """Well-known names that texts write right before the product's: its maker, `samsung` of a `Samsung Galaxy`."""

    @classmethod
    def of(cls, question: Question, texts: Iterable[str] = ()) -> Subject:
        """The subject of a question that is looked for in these texts."""
        texts, subject = tuple(texts), _subject_in_itself(question.text, question.about)
        makers = Counter(name for text in texts for name in _makers_in(text, subject.pattern))
        kin = frozenset(maker for maker, count in makers.items() if count > 1) - subject.name_words
        small = frozenset(word for text in texts for word in _SMALL.findall(text))
        return replace(subject, lowercase=small, kin=kin)

    def is_named(self, text: str) -> bool:
        """Whether a text holds the name or a part of it."""
        return self.pattern.search(text) is not None

    def names_rival(self, text: str) -> bool:
        """Whether a text names a well-known product that is not this one."""
        words = (fold(match[0]) for match in _CAPITAL.finditer(text) if not self.is_named(match[0]))
        return any(word in _RIVALS and word not in self.kin for word in words)

    def is_namesake(self, text: str) -> bool:
        """Whether a text names only another thing of the same name: `Chevy Bolt`, `bolt.new`.

        Each mention has an unknown proper word right before it or an unknown web ending right after
        it, or a part of the name goes on otherwise (`Echo Show` is no `Echo Dot`), or somebody is
        named so. The name with its kind is the thing itself: `Old Ember mug`.
        """
        mentions = self._mentions(text)
        for start, end in mentions if self.numbers else ():
            match = _CONTINUATION.match(text, end)
            # another number stands where the product's own would: `WH-1000XM5`
            if match and _NUMBER.fullmatch(match[1]) and not self.has_number(text[start : match.end()]):
                return not any(self.has_number(text[start:end]) for start, end in mentions)
        return bool(mentions) and all(self._is_other(text, *span) for span in mentions)

    def has_number(self, text: str) -> bool:
        """Whether a text has the product's own number, if that has one: `1000XM4`, `r1`, `IV`."""
        return not self.numbers or not self.numbers.isdisjoint(_WORDS.findall(fold(text)))

    def is_part_of_longer_name(self, text: str) -> bool:
        """Whether every mention goes on to another name: `Notion Mail is out`."""
        mentions = self._mentions(text)
        return bool(mentions) and all(self._continues(text, end) for _, end in mentions)

    def is_known(self, word: str) -> bool:
        """Whether question or description hold a word, or it is a platform, month or the like."""
        form = fold(word)
        return form in self.known or singular(form) in self.known or form in _plain_words()

    def names_unknown(self, text: str) -> bool:
        """Whether a word inside a sentence is a name by its capital, of nothing that is known."""
        matches = (match for match in _CAPITAL.finditer(text) if not _OPENING.search(text[: match.start()]))
        words = (match[0].removesuffix("'s").removesuffix("’s") for match in matches)
        return any(
            len(w) > 2 and not w.isupper() and not self.is_known(w) and fold(w) not in self.lowercase for w in words
        )

    def is_rare(self, word: str) -> bool:
        """Whether many texts never write a word small, so that its capital is a name's."""
        enough = len(self.lowercase) >= _ENOUGH_WORDS
        return enough and len(word) > 2 and word not in self.lowercase

    def is_subject(self, sentence: str, *, topic: bool, follows: bool) -> bool:
        """Whether a sentence speaks of the product.

        `topic`: its thread is about it. `follows`: the sentence before it speaks of it by name.
        """
        text = sentence.replace("’", "'")
        switched = _SWITCHED.search(text)
        # `I switched to it` speaks of it, `I switched from it to Vivaldi` does not
        if OTHER_THING.search(text) or self.is_namesake(text):
            return False
        if switched is not None and not self.pattern.match(text, switched.end()):
            return False
        matches = list(self.pattern.finditer(text))
        if matches and all(_COMPARED_WITH.search(text[: match.start()]) for match in matches):
            return False
        if names_another(text, self):
            return False
        return bool(matches) or topic or (follows and _PRONOUN.search(text) is not None)

    def _mentions(self, text: str) -> list[tuple[int, int]]:
        """Where the name stands; words of it side by side are one mention."""
        spans: list[tuple[int, int]] = []
        for match in self.pattern.finditer(text):
            start, end = match.span()
            if spans and text[spans[-1][1] : start] in ("", " ", "-"):
                start = spans.pop()[0]
            spans.append((start, end))
        return spans

    def _continues(self, text: str, end: int) -> bool:
        """Whether an unknown capital follows a name, in a text that does not write all so."""
        match = _CONTINUATION.match(text, end)
        if match is None or match[1][0].isdigit() or self.is_known(match[1]):
            return False
        words = regex.findall(r"\p{L}+", text[: match.start()] + text[match.end() :])
        return bool(2 * sum(word[0].islower() for word in words) > len(words))

    def _is_other(self, text: str, start: int, end: int) -> bool:
        # `Echo` of `Echo Dot`, where it goes on as `Echo Show`
        part = set(_WORDS.findall(fold(text[start:end]))) < self.name_words
        if (part and self._continues(text, end)) or _NAMED.search(text[:start]):
            return True
        if " " in text[start:end]:
            return False
        ending = _WEB_ENDING.match(text, end)
        if ending is not None:
            return not self.is_known(ending[0])
        maker, kind = _MAKER.search(text[:start]), _NEXT.match(text, end)
        if maker is None or (kind is not None and fold(kind[1]) in self.known):
            return False
        return self.is_rare(fold(maker[1])) and not self.is_known(maker[1])


@lru_cache(maxsize=32)  # every sentence of a report is looked at by itself
def _subject_in_itself(text: str, about: str) -> Subject:
    """The subject of a question and its description before any text was read."""
    name = product_in(text, aspect_words())
    core = without_web_ending(name or text)
    pieces = regex.split(r"[\s.\-]+", core)
    # `Ember mugs` are the thing `Ember mug`; `Embers` are not `Ember`
    plural = "(?:e?s)?" if len(pieces) > 1 else ""
    spelled = r"[ .\-]?".join(map(regex.escape, pieces)) + plural
    parts = [word for word in _WORDS.findall(core) if len(word) > 1]
    proper = [match[0] for match in _CAPITAL.finditer(about)]
    idle = _PLAIN_CAPITALS | stop_words("en")  # `The` of `The Browser Company` names nothing
    names = {word for word in (*parts, *proper) if fold(word) not in idle}
    words = "|".join([spelled, *(regex.escape(word) for word in sorted(names, key=len)[::-1])])
    bounded = rf"(?<![\p{{Latin}}\p{{N}}])(?:{words})(?!\p{{Latin}}|(?<=\p{{N}})\p{{N}})"
    stated = regex.findall(r"\.?[\p{L}\p{N}]+", fold(f"{text} {about}"))
    written = (*_WORDS.findall(core), *proper)
    return Subject(
        name,
        regex.compile(bounded, regex.I),
        frozenset(map(fold, parts)),
        frozenset(fold(word) for word in written if _NUMBER.fullmatch(word)),
        frozenset(),
        frozenset(form for word in (*stated, *parts, *proper) for form in (word, singular(word))),
        frozenset(_WORDS.findall(fold(about))),
        frozenset((*_head_of(about), *_WORDS.findall(fold(name or text)))),
    )


def _makers_in(text: str, name: regex.Pattern[str]) -> set[str]:
    """The well-known names that stand right before the name in a text, folded."""
    return {fold(match[1]) for match in _RIVAL_BEFORE.finditer(text) if name.match(text, match.end())}


def names_another(sentence: str, subject: Subject | None = None) -> bool:
    """Whether another name is what the sentence speaks of: `Garmin support is bad`."""
    own = [] if subject is None else [match.span() for match in subject.pattern.finditer(sentence)]
    first = _WORDS.search(sentence)
    if first and not own and fold(first[0]) in _RIVALS and _ACTS.search(sentence[first.end() :]):
        return subject is None or fold(first[0]) not in subject.kin  # also in small letters: `notion AI is decent`
    for match in _CAPITAL.finditer(sentence):
        word = fold(match[0].removesuffix("'s").removesuffix("’s"))
        named = any(start < match.end() and match.start() < end for start, end in own)
        if named or word in _plain_words() or (subject is not None and word in subject.kin):
            continue
        # a capital at the beginning says nothing, unless many texts never write the word small
        opens = _OPENING.search(sentence[: match.start()]) is not None
        if word not in _RIVALS and opens and (subject is None or not subject.is_rare(word)):
            continue
        acts = _ACTS.search(sentence[match.end() :]) or match[0].endswith(("'s", "’s"))
        if word in _RIVALS or acts:
            return True
    return False


# behind the word that says what a product is: `the game console |by Microsoft`
_HEAD_END = regex.compile(r"[,;:(]|\b(?:that|which|by|with|for|of|from|in|on|to|who|whose|where|is)\b", regex.I)


def _head_of(about: str) -> list[str]:
    """The last word of what a description calls the product, in both numbers."""
    words = _WORDS.findall(fold(_HEAD_END.split(about, maxsplit=1)[0]))
    return [form for word in words[-1:] for form in (word, singular(word))]


@cache
def _plain_words() -> frozenset[str]:
    """Words that name nothing else, although they have a capital."""
    return _PLAIN_CAPITALS | aspect_words() | stop_words("en") | stop_words("de")


# a title that compares several products or tells of leaving one
_COMPARING = regex.compile(
    r"(?i)\b(?:vs\.?|versus|alternatives?|compared|comparison|or|oder|instead of"
    r"|switch\w* (?:to|from)|coming from|moved|wechsel|replac\w+)\b"
)
# an accessory, in a shop or in the news: `Lid for`, `a pocket charging case`
_ACCESSORY = regex.compile(
    r"(?i)\b(?:stickers?|decals?|(?<!\b(?:in|any|use) )cases?|cover|sleeves?|lids?|straps?|bands?"
    r"|replacement|chargers?|cables?|holders?|stand|protectors?|planner|poster|kit|mount|skins?"
    r"|modules?|dock|adapt[eo]rs?|refills?)\b"
)
# a book, in a shop
_PRINTED = regex.compile(
    r"(?i)\b(?:(?:hand|work|play|guide|text)?books?|(?:hand|praxis|fach)?buch|guides?|paperback"
    r"|hardcover|taschenbuch)\b"
)
# a title up to where its features begin: `Lid| for Ember`, `Plaud Note Recorder|, with Case`
_HEAD = regex.compile(r"^.*?(?=,|\||\(| - | with | mit | avec | con |$)", regex.I)
_PLACED = regex.compile(r"^r/")
# how a subreddit of the product itself may end: `r/NotionHQ`, `r/PlaudUK`
_COMMUNITY = frozenset("ai app co com dev eu de fr hq io uk us".split())
_PLURAL = frozenset(("s", "es"))
# a word of at least two signs: one letter of a name tells nothing
_WORD = regex.compile(r"[\p{L}\p{N}]{2,}")
# Characters at the beginning of a text in which what it is about is named.
_FRONT = 300
# Words of a shop's title before the name from which it is another thing's: `Smart Dead Bolt Lock`.
_WORDS_BEFORE = 2
# Letters after the name that make a place another thing's: `r/BoltEV`, `r/emberjs`.
_LONGEST_ENDING = 3


def is_listing(item: Item) -> bool:
    """Whether an item is a shop's page of its goods, and no review by itself, as people export them."""
    rated = "stars" in item.engagement and "ratings" not in item.engagement
    review = rated or item.author is not None or "review" in (item.place or "").casefold()
    return item.source == "amazon" and not review


def thread_of(item: Item) -> str:
    """The key of the thread that an item stands in; its own unless it is a comment."""
    return item.thread or item.key


def is_topic(item: Item, subject: Subject) -> bool:
    """Whether an item, with what is said under it, is about the product alone.

    Its title names it and compares it with nothing, or it is named early and no rival is. Not under
    news of an accessory (`Oura launches a case`) or of a longer name (`Notion Mail is out`).
    """
    # a comment that was found by itself has its video's title for a place
    title = item.title or (item.place or "") * (" " in (item.place or ""))
    match = subject.pattern.search(title)
    if is_listing(item):
        # `Smart Ring, Better Than OuraRing` is a rival's page
        mentions = subject.pattern.finditer(title)
        if any(_COMPARED_WITH.search(title[: mention.start()]) for mention in mentions):
            return False
        early = match is not None and len(title[: match.start()].split()) < _WORDS_BEFORE
        return early and not is_excluded(item, subject)
    if _COMPARING.search(title) or subject.names_rival(title) or _is_accessory(title, subject):
        return False
    if match is not None and subject.has_number(title):
        compared = _COMPARED_WITH.search(title[: match.start()])
        return not compared and not subject.is_part_of_longer_name(title)
    front = f"{title}. {item.body[:_FRONT]} {item.place or ''}"
    named = subject.is_named(front) and subject.has_number(front)
    return named and not subject.names_rival(f"{front} {item.body}")


def is_excluded(item: Item, subject: Subject) -> bool:
    """Whether nothing in an item counts, since it is about something else of the same name.

    Its title names a namesake, its place is a namesake's, or it is a shop's page of an accessory or
    a book. A place is a namesake's when its name is the product's with up to three letters more:
    `r/BoltEV`, `r/emberjs`. Of a name of several words only the first counts, since the others
    mostly say the kind: `Ember mug` in `r/mugs`, `Bolt app` in `r/apple`.
    """
    if subject.is_namesake(item.title):
        return True
    if is_listing(item):
        return _PRINTED.search(item.title) is not None or _is_accessory(item.title, subject)
    first = _WORD.search(fold(subject.name))
    if first is None:
        return False
    name = fold(_PLACED.sub("", item.place or ""))
    ending = name.removeprefix(first[0])
    if ending == name or len(ending) > _LONGEST_ENDING or not ending.isalpha():
        return False
    return ending not in subject.known | _COMMUNITY | _PLURAL


def _is_accessory(title: str, subject: Subject) -> bool:
    """Whether a title is of an accessory or a part that the question does not name."""
    head = _HEAD.search(title)
    things = (fold(match[0]) for match in _ACCESSORY.finditer(head[0] if head else title))
    return any(not {thing, singular(thing)} & subject.known for thing in things)


def is_identified(item: Item, subject: Subject) -> bool:
    """Whether an item says which thing of that name is meant: `Journey, the game`, `r/journey`.

    It holds all words of a longer name, or a word of the description, and the number of a name that
    has one; or its place bears the name. True where nobody can tell: without a description, or with
    a name in another script.
    """
    telling = set(map(singular, subject.described - subject.name_words - stop_words("en")))
    if not telling or not subject.name.isascii():
        return True
    text = fold(" ".join((item.title, item.body, *(comment.body for comment in item.comments))))
    if not subject.has_number(text):
        return False
    words = set(map(singular, _WORDS.findall(text)))
    place = fold(_PLACED.sub("", item.place or ""))
    return (
        (len(subject.name_words) > 1 and set(map(singular, subject.name_words)) <= words)
        or not telling.isdisjoint(words)
        or any(place.startswith(word) for word in subject.name_words)
    )
