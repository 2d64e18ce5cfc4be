"""The sentences of all exhibits in their authors' own words, and the terms that stand in them.

A term is what a word is counted as: its stem, or the name of its synonyms; neighbours make a pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise

import regex

from api.core.items import Comment, person_of
from api.core.own_words import own_words
from api.core.text import fold
from api.core.words import UNSPACED, snowball_stem, stop_words
from api.pipeline.question.product_name import KINDS
from api.reports.exhibits import Exhibit
from api.reports.keyless import product_mentions
from api.reports.keyless.aspects import Aspect, aspects, data
from api.reports.keyless.product_mentions import Subject
from api.reports.quotes import ADDRESSES, beginning, sentences
from api.reports.report import LONGEST_PASSAGE

READ_IN_ALL = 240_000
"""Characters of all exhibits together that are read; of each its share from the beginning, `LEAST_READ` at least."""
LEAST_READ = 600
DOUBTED = 0.55
"""Probability of the judge below which what a kept item says comes last and makes no theme of few."""

WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}]*+(?:['’]\p{L}+)?")
# an amount of money, which speaks of the price: `$190`, `800 bucks`, `40€`
MONEY = regex.compile(
    r"[$€£¥]\s?\d|\b\d[\d.,]{0,14}\s?(?:[$€£¥]|(?:dollars?|bucks|euros?|usd|eur|pounds sterling)\b)", regex.I
)
PRICE = "price"
_OPENING = 3  # letters of a word by which patterns are chosen that may match it
WITHOUT_BLANKS = regex.compile(rf"[{UNSPACED}]")
# the words of a noun and of a verb of experience stand behind these
_SLOTS = frozenset(
    "the a an my its your their our no this that any some more less of with for about has have had i've i it they we"
    " been was got keep keeps kept der die das ein eine kein keine mein meine el la los las un una le les une o os as"
    " um uma".split()
)
_OWNING = frozenset("buy bought buying own owned return returned returning sell sold selling".split())
VERBS, _SYNONYMS = (
    {
        form.replace("_", " "): word.replace("_", " ")
        for word, *forms in (line.split() for line in data("names")[name].split("\n") if line)
        for form in forms
    }
    for name in ("verbs", "forms")
)
_FORMS = VERBS | _SYNONYMS
PHRASES = {form: word for form, word in _FORMS.items() if " " in form}
"""A phrase of two words, and what is counted as it: `back ordered` as `availability`."""
_VAGUE = frozenset(data("names")["vague"].split())
_IDLE = stop_words("en") | _VAGUE | stop_words("de") | stop_words("es") | stop_words("fr") | stop_words("pt")
# a clause's end in a sentence that is too long for a passage
_CLAUSE = regex.compile(
    r"(?<=[,;:])\s+|(?<!\s)\s+(?:(?=(?:and|but|because|so|und|aber|y|pero|et|mais)\s)|[-–—]\s+)", regex.I
)
# begins a sentence that takes back the one before it: `But I dropped it`
_REVERSAL = regex.compile(r"(?:But|However|Aber|Pero|Mais)\b")
TITLES = {name: name for name in _SYNONYMS.values()}  # how terms with synonyms are called


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    """What a folded word is counted as: a synonym's name (`battery` for `akku`), else its stem."""
    word = _FORMS.get(word, word)
    if word in TITLES:
        return word
    for aspect in aspects():
        if aspect.is_in(word):
            return aspect.name
    return snowball_stem(word)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of somebody's own words, and what was said before it."""

    label: str
    comment_id: str | None
    text: str
    person: str
    source: str
    thread: str
    topic: bool
    """Whether its thread is about the product."""
    near: bool
    """Whether it is a kept item's own, its thread is about the product, or what it stands in names that."""
    follows: bool
    """Whether the sentence before it names the product."""
    doubted: bool
    heading: bool
    """Whether it is a post's title."""
    taken_back: bool
    """Whether the next sentence takes it back."""
    terms: tuple[str, ...] = ()
    """Its content words as they are counted, in order, and pairs of neighbours."""


@dataclass(slots=True)
class SentenceIndex:
    """The sentences of all exhibits, and which terms stand in them."""

    subject: Subject
    sentences: list[Sentence] = field(default_factory=list)
    holding: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Term -> numbers of the sentences that hold it."""
    people: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    surfaces: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    uses: Counter[str] = field(default_factory=Counter)
    slots: Counter[str] = field(default_factory=Counter)
    modified: Counter[str] = field(default_factory=Counter)
    """Uses of a term behind another content word: `wireless charging`."""
    pointed: Counter[str] = field(default_factory=Counter)
    capitals: Counter[str] = field(default_factory=Counter)
    """Uses of a term with a capital, as a name has it."""
    owned: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Term -> people who buy, own or return it: what they call the product."""
    named: Counter[str] = field(default_factory=Counter)
    """Uses of a term right behind the product's name."""
    kinds: set[str] = field(default_factory=set)
    """Terms of words for a kind of thing that stand right behind the product's name: `the Plaud recorder`."""
    _about: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, exhibits: Sequence[Exhibit], subject: Subject) -> SentenceIndex:
        """Reads the own words of all exhibits, as far as `READ_IN_ALL` goes."""
        index = cls(subject)
        share = max(LEAST_READ, READ_IN_ALL // max(1, len(exhibits)))
        for exhibit in exhibits:
            for sentence in _sentences(exhibit, subject, share):
                index._add(sentence)
        return index

    def is_about(self, number: int) -> bool:
        """Whether a sentence is about the product."""
        if number not in self._about:
            entry = self.sentences[number]
            self._about[number] = self.subject.is_subject(entry.text, topic=entry.topic, follows=entry.follows)
        return self._about[number]

    def _add(self, sentence: Sentence) -> None:
        number = len(self.sentences)
        terms: list[str] = []
        text = ADDRESSES.sub(" ", sentence.text)
        matches = list(WORD.finditer(text))
        written = [match[0] for match in matches]
        # the rest of a word behind its hyphen is no word: `gen` of `next-gen`
        joined = [text[max(0, match.start() - 1)] == "-" for match in matches]
        words = [fold(word).replace("’", "'").removesuffix("'s") for word in written]
        idle = [len(word) < 3 or word in _IDLE or rest for word, rest in zip(words, joined, strict=True)]
        kept = ["" if none else term_of(word) for word, none in zip(words, idle, strict=True)]
        for at, (word, term) in enumerate(zip(words, kept, strict=True)):
            if term:
                before = words[at - 1] if at else ""
                self.slots[term] += before in _SLOTS
                self.modified[term] += bool(at and kept[at - 1])
                self.pointed[term] += before == "this"
                if before in self.subject.name_words:
                    self.named[term] += 1
                    self.kinds.update({term} if word in KINDS else ())
                if not _OWNING.isdisjoint(words[max(0, at - 3) : at]):
                    self.owned[term].add(sentence.person)
                self.capitals[term] += written[at][0].isupper() and not written[at].isupper()
                terms.append(term)
                self._count(term, word)
        for (first, second), pair in zip(pairwise(kept), pairwise(words), strict=True):
            if phrase := PHRASES.get(" ".join(pair)):
                terms.append(term_of(phrase))
                self._count(terms[-1], phrase)
            elif first and second and first != second:
                terms.append(f"{first} {second}")
                self._count(terms[-1], " ".join(pair))
        if PRICE not in terms and MONEY.search(sentence.text):
            terms.append(PRICE)
            self._count(PRICE, PRICE)
        for aspect in _aspects_near(words, sentence.text):
            if aspect.name not in terms and aspect.is_in(sentence.text):
                terms.append(aspect.name)
                self._count(aspect.name, aspect.name)
        terms = list(dict.fromkeys(terms))
        for term in terms:
            self.holding[term].append(number)
            self.people[term].add(sentence.person)
        self.sentences.append(replace(sentence, terms=tuple(terms)))

    def _count(self, term: str, surface: str) -> None:
        self.uses[term] += 1
        self.surfaces[term][surface] += 1


@cache
def _openings() -> dict[str, list[Aspect]]:
    """Aspects by the first letters of words in their patterns, so that few patterns are tried on a sentence."""
    by_opening: dict[str, list[Aspect]] = defaultdict(list)
    for aspect in aspects():
        for opening in {fold(word[:_OPENING]) for word in regex.findall(r"(?<!\\)\p{L}{3,}", aspect.pattern.pattern)}:
            by_opening[opening].append(aspect)
    return by_opening


def _aspects_near(words: Iterable[str], text: str) -> Iterable[Aspect]:
    """The aspects that a sentence may speak of; all of them in a script without blanks."""
    if WITHOUT_BLANKS.search(text):
        return aspects()
    openings = _openings()
    return {aspect.name: aspect for word in words for aspect in openings.get(word[:_OPENING], ())}.values()


def _sentences(exhibit: Exhibit, subject: Subject, share: int) -> Iterator[Sentence]:
    """The sentences of an exhibit; what a shop says of its own goods is no opinion."""
    item = exhibit.item
    if product_mentions.is_excluded(item, subject):
        return
    probability = exhibit.assessed.verdict.probability
    doubted = probability is not None and probability < DOUBTED
    topic = product_mentions.is_topic(item, subject)
    # comments under a post that names the product only somewhere in its text may be about the rest
    headed = subject.is_named(f"{item.title} {item.place or ''}")
    texts: list[tuple[str, Comment | None]] = [(item.title, None), (item.body, None)]
    texts = [] if product_mentions.is_listing(item) else texts[bool(item.thread) :]
    texts += [(comment.body, comment) for comment in item.comments]
    left = share
    for text, comment in texts:
        if left <= 0:
            return
        follows = False
        own = own_words(beginning(text)[:left])
        near = comment is None or topic or subject.is_named(own)  # the judge kept the item for its own text
        left -= len(own)
        comment_id = comment.id if comment else None
        person, thread = person_of(item, comment_id), product_mentions.thread_of(item)
        parts = [piece for part in sentences(own) for piece in _pieces(part)]
        for part, following in zip(parts, (*parts[1:], ""), strict=False):
            yield Sentence(
                exhibit.label, comment_id, part, person, item.source, thread, topic and (headed or comment is None),
                near, follows, doubted, comment is None and text is item.title, _REVERSAL.match(following) is not None,
            )  # fmt: skip
            follows = subject.is_named(part)


def _pieces(sentence: str) -> list[str]:
    """The sentence, or its clauses where it is too long for a passage."""
    if len(sentence) <= LONGEST_PASSAGE:
        return [sentence]
    ends = [(0, 0), *(match.span() for match in _CLAUSE.finditer(sentence)), (len(sentence), len(sentence))]
    pieces, start = [], 0
    for (_, after), (end, _) in pairwise(ends):
        if end - start > LONGEST_PASSAGE and after > start:
            pieces.append(sentence[start:after].strip())
            start = after
    pieces.append(sentence[start:].strip())
    return [piece for piece in pieces if 0 < len(piece) <= LONGEST_PASSAGE]
