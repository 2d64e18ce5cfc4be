"""What many people say of a product: subjects they share, and within a subject the statements that say alike.

A subject is a term that people share: a noun, a pair of words or a verb of experience (`nausea`, `side effects`,
`lost`), with its inflections and synonyms. No list decides what is one; lists say what is none (`thing`, `week`).
Statements say alike when they lean the same way on one subject, or share most of their content words; the one that
most others say alike with, in few words, is the claim. Precision goes first: in doubt two statements are not alike.

Which words are quoted: `quotable.py`. How good it is: docs/keyless.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import regex

from api.core.text import fold
from api.core.words import stop_words
from api.pipeline.gate.name_matches import zipf
from api.pipeline.question.product_name import KINDS
from api.reports.keyless import product_mentions
from api.reports.keyless.aspects import aspects, aspects_in, aspects_named
from api.reports.keyless.polarity import ASKING, DENIAL, WISHING, count_feelings, feeling_words, is_english, lean_of
from api.reports.keyless.product_mentions import Subject
from api.reports.keyless.quotable import informativeness, is_mixed, leans_to, says_something, weighs
from api.reports.keyless.sentence_index import (
    MONEY,
    PHRASES,
    PRICE,
    TITLES,
    VERBS,
    WITHOUT_BLANKS,
    WORD,
    Sentence,
    SentenceIndex,
    term_of,
)
from api.reports.keyless.sentence_topic import STATING, is_about_theme, is_led_by

# Terms that are looked at closely, sentences of one person on one of them, and statements of a subject that are
# compared with each other: what the cost is bounded by.
_MOST_TERMS, _MOST_OF_PERSON, _MOST_COMPARED = 30, 2, 120
# Share of a term's uses that stand as a noun or a verb of experience does, where many other words are as common.
_SLOT, _COMMON = 0.3, 4.6
# Letters in which the stems of one word agree at least.
_KINDRED = 7
# Frequency below which a word with a capital is somebody's name.
_NAME = 2.5
# Share of a pair's words' people who use the pair, from which its words alone are no term.
_PAIRED = 0.6
# Share of the uses of a term behind `this`, and of the people who use it, by which it is what they call the product.
_POINTED, _CALLED = 0.2, 0.2
# Share of all people who buy, own or return a thing that is the product.
_OWNED = 0.1
# Share of the claim's content words that a statement must hold to say alike.
_COVERED = 0.75
INFORMATIVE = 0.25
"""Probability that a reader finds a sentence informative from which one person's words are shown."""
# Part of a sentence's informativeness where its subject stands late in it.
_NOT_LED = 0.4
_LONGEST_PLAIN = 60
# Share of a subject's sentences and people from which those of another subject make it a part of that.
_SAME_TEXTS, _SAME_PEOPLE = 0.45, 0.8
# People from which a subject heads one person's words however general it is.
_MANY_SPEAK = 6
_LONGEST_CLAIM, _SHORTEST_CLAIM, _FEWEST_WORDS = 170, 12, 3
# Characters from which two people do not write the same sentence: one of them copies.
_SHORTEST_COPY = 40


# begins a sentence that does not stand by itself: `And then`, `Which is`, `That said`
_LEANING_ON = regex.compile(
    r"(?i)^\W*(?:and|but|or|so|because|which|that(?:'s)?|then|also|plus|however|though|although|yes|yeah|no,|nope|if|"
    r"they|he|she|same|what|who|how|why|where|@|\d+[.):])"
)
# a plan or a condition, which is no experience: `I want to lose weight`
_INTENDING = regex.compile(
    r"(?i)\b(?:want(?:ed|s)? to|going to|plan(?:ning)? to|try(?:ing)? to|hop(?:e|ing) to|need to|if|goal|so i can)\b"
)
_DENYING = regex.compile(
    rf"{DENIAL.pattern}|(?i:\b(?:stop(?:s|ped|ping)?|den(?:y|ies|ied)|refus\w+|lacks?|lacking|missing|without)\b)"
)
_NUMBER = regex.compile(r"\d+(?:[.,]\d+)*")
# words that are no claim to show first where another one says the same
_RUDE = regex.compile(r"(?i)\b(?:fuck|shit|damn|wtf|bitch|cunt|ass(?:hole)?)\w*")
_VERB = regex.compile(
    r"\p{L}\s+\p{Ll}{2,}(?:ed|[^s]s)\b|\b(?i:gonna|gotta|got|went|lost|took|broke|died|fell|kept|felt|made|gave|sent|bought"
    r"|paid|left|came|cut|love|hate)\b"
)
# the end of a sentence inside one, behind an abbreviation: `at 1.9 V. New ones`
_INNER_END = regex.compile(r"[.!?]\s+\S")
_UNFINISHED = regex.compile(r"(?:[,:;–—-]|\b(?:and|but|or|the|a|of|to|with|for|because|is|are|was|were))$", regex.I)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that speaks of a subject, as it is compared with others."""

    sentence: Sentence
    lean: int | None
    wish: bool
    plan: bool
    """Whether it is a plan or a condition, which is no experience."""
    asks: bool
    denied: bool
    foreign: bool
    """Whether it names something else and not the product: `I was on Mounjaro and lost 35lbs`."""
    content: frozenset[str]
    """Content words, those of the subject among them, without the product's name and words of feeling."""
    plain: bool
    """Whether nothing but the subject and a feeling is said: `The battery is terrible`."""

    numbers: frozenset[str] = frozenset()
    """Numbers in figures: `35` of `I have lost 35 pounds`."""
    leads: bool = True
    """Whether the subject begins it or a clause of it: not `it wants an account before it shows the battery level`."""
    anchored: bool = True
    """Whether it names the product or an aspect, or its subject leads it or is known; True of languages but English."""

    @property
    def worth(self) -> float:
        """By what it is chosen among the statements on its subject."""
        return self.informativeness() * (1 if self.leads else _NOT_LED)

    @property
    def tells(self) -> bool:
        """Whether it stands by itself and says something of the product."""
        text = self.sentence.text
        fitting = self.lean is not None or self.anchored or weighs(text)
        return fitting and stands_alone(self) and says_something(text, self.sentence.follows)

    @property
    def polite(self) -> bool:
        """Whether it may be shown first where another one says the same."""
        return _RUDE.search(self.sentence.text) is None

    @property
    def weak(self) -> bool:
        """Whether it takes no sure side, and neither judges nor measures or does so of something else, it seems."""
        return self.lean is None and not (self.anchored and weighs(self.sentence.text))

    def answers(self, lean: int | None) -> bool:
        """Whether it may be shown to who asks for one side: it surely leans so, or its words are of that side alone."""
        text = self.sentence.text
        return lean is None or (leans_to(text, lean) if self.lean is None else self.lean == lean and not is_mixed(text))

    def informativeness(self, *, shared: bool = True) -> float:
        """Probability that a reader finds it worth showing by itself; with `shared`, others speak of its subject."""
        return informativeness(self.sentence.text, shared, self.lean is not None)


@dataclass(frozen=True, slots=True)
class SharedSubject:
    """A subject, its sentences, and the people who speak of it."""

    name: str
    terms: frozenset[str]
    mentions: Mapping[str, Sentence]
    """Person -> a sentence that speaks of it, about the product where there is one."""
    statements: tuple[Statement, ...]
    """Sentences on it that are about the product, in order."""

    def heads(self, claim: Statement) -> bool:
        """Whether its name may stand above one person's words.

        A known aspect, a pair of words, a rare word, what the words begin with, or what many speak of may.
        """
        known = not self.terms.isdisjoint(_known())
        return claim.leads or known or self.is_common or " " in self.name or zipf(self.name) < _COMMON

    def is_within(self, other: SharedSubject) -> bool:
        """Whether nearly all who speak of it speak of another subject, mostly in the same sentences."""
        texts = self._texts()
        within = len(texts & other._texts()) >= _SAME_TEXTS * len(texts)
        return within and len(self.mentions.keys() & other.mentions) >= _SAME_PEOPLE * len(self.mentions)

    def _texts(self) -> set[str]:
        return {sentence.text for sentence in (*self.mentions.values(), *(each.sentence for each in self.statements))}

    @property
    def is_common(self) -> bool:
        """Whether many people speak of it."""
        return len(self.mentions) >= _MANY_SPEAK


@cache
def _known() -> frozenset[str]:
    """Names of aspects and of terms with synonyms."""
    return frozenset({*TITLES, *(aspect.name for aspect in aspects())})


def find_topics(index: SentenceIndex, known: Iterable[str] = (), shared: int = 2) -> list[SharedSubject]:
    """The subjects that `shared` people speak of, most people first; `known` words are none."""
    terms = _shared_terms(index, frozenset(known), shared)[:_MOST_TERMS]
    topics = (_topic(term, index) for term in terms)
    return sorted((topic for topic in topics if len(topic.mentions) >= shared), key=lambda topic: -len(topic.mentions))


def _shared_terms(index: SentenceIndex, known: frozenset[str], shared: int) -> list[str]:
    """Terms that may be subjects, those of most people first."""
    subject, people = index.subject, index.people
    kinds = own_kinds(index)
    idle = {term_of(word) for word in (*known, *subject.name_words, *subject.kin)} | kinds
    synonyms = {aspect.name for aspect in aspects()}
    names = _names(index)
    chosen = []
    paired: set[str] = set()
    for term in sorted(people, key=lambda term: (-len(people[term]), term)):
        if len(people[term]) < shared:
            break
        parts = term.split(" ")
        if not idle.isdisjoint(parts) or not names.isdisjoint(parts):
            continue
        if len(parts) > 1 and term not in synonyms:
            if len(people[term]) >= max(shared, 2) and not _is_clause(parts, index, term):
                paired |= {
                    part for part in parts if len(people[term]) >= _PAIRED * len(people[part]) and part not in synonyms
                }
                chosen.append(term)
            continue
        if term in synonyms or _is_subject_like(term, index):
            chosen.append(term)
    chosen = [term for at, term in enumerate(chosen) if not any(_is_kindred(term, other) for other in chosen[:at])]
    single = [term for term in chosen if " " not in term]
    return [
        term
        for term in chosen
        if term not in paired
        and not (" " in term and term not in synonyms and _is_covered(term, single, paired, index))
    ]


def _is_clause(parts: Sequence[str], index: SentenceIndex, pair: str) -> bool:
    """Whether two neighbours are a thing and what it does: `clip fell`, `lost pounds`."""
    verbs = {term_of(word) for word in VERBS.values()}
    surface = index.surfaces[pair].most_common(1)[0][0]
    return not verbs.isdisjoint(parts) or surface.endswith("ed") or surface.split(" ")[0].endswith("ed")


def _is_subject_like(term: str, index: SentenceIndex) -> bool:
    """Whether a word names a thing or an experience: rare enough, or used as a noun or such a verb is."""
    surfaces = index.surfaces[term]
    surface = surfaces.most_common(1)[0][0]
    if any(count_feelings(surface)) or _RUDE.match(surface) or not surface.replace("'", "").isalpha():
        return False  # `PS5` is another product
    if surface.endswith(("ly", "est", "ier")) or all(form.endswith("ed") for form in surfaces):
        return False
    rarity = zipf(surface)
    if rarity < _NAME and 2 * index.capitals[term] > index.uses[term]:
        return False  # another product
    if surface.endswith("ing") and index.modified[term] >= _SLOT * index.uses[term]:
        return True  # a gerund with what tells its kind
    return index.slots[term] >= _SLOT * index.uses[term] or rarity < _COMMON


def _is_kindred(term: str, other: str) -> bool:
    """Whether two stems are forms of one word: `prescrib`, `prescript`."""
    return term[:_KINDRED] == other[:_KINDRED] and min(len(term), len(other)) >= _KINDRED and " " not in term + other


def _is_covered(pair: str, single: Sequence[str], paired: set[str], index: SentenceIndex) -> bool:
    """Whether one word of a pair is a term that more people use: `battery` of `battery life`."""
    return any(part in single and part not in paired for part in pair.split(" "))


def own_kinds(index: SentenceIndex) -> set[str]:
    """What people call the product: a word of its description, `this X`, or the kind of most of them."""
    subject, people = index.subject, index.people
    everybody = len({sentence.person for sentence in index.sentences})
    described = {term_of(word) for word in subject.name_words | subject.head if word in KINDS}
    called = max(KINDS, key=lambda kind: (len(people.get(term_of(kind), ())), kind))
    kinds = {term_of(word) for word in (*subject.name_words, *subject.head) if word not in stop_words("en")}
    if not described and len(people.get(term_of(called), ())) >= max(3, _CALLED * everybody):
        kinds.add(term_of(called))
    pointed = (t for t, count in index.pointed.items() if count > 1 and count >= _POINTED * index.uses[t])
    # `Note` of `Plaud Note`, and what people buy and return
    lengthened = {
        term for term, count in index.named.items() if count > 1 and 2 * index.capitals[term] > index.uses[term]
    }
    synonyms = {aspect.name for aspect in aspects()}
    owned = {term for term, who in index.owned.items() if len(who) >= max(2, _OWNED * everybody)}
    return kinds | described | set(pointed) | lengthened | ((owned if described else owned | index.kinds) - synonyms)


def _names(index: SentenceIndex) -> set[str]:
    """Terms that are names of others: well-known products, and handles."""
    return {term_of(name) for name in product_mentions.OTHER_NAMES} - {aspect.name for aspect in aspects()}


def _topic(term: str, index: SentenceIndex) -> SharedSubject:
    """The subject of a term, named as most people write it."""
    named = next((aspect for aspect in aspects() if aspect.name == term), None)
    surfaces = index.surfaces[term]
    forms = {*surfaces, *(form for form, word in PHRASES.items() if word == term)}
    words: list[str] = []
    if named:  # its pattern decides of the words that it knows: `the battery level` is no word of the battery
        words = [named.pattern.pattern]
        forms = {form for form in forms if not named.pattern.fullmatch(form)}
    if forms:
        spelled = "|".join(regex.escape(form).replace(r"\ ", r"\W+") for form in sorted(forms, key=len, reverse=True))
        words.append(rf"(?<![\p{{L}}\p{{N}}])(?:{spelled})(?![\p{{L}}\p{{N}}])")
    if term == PRICE:
        words.append(MONEY.pattern)
    pattern = regex.compile("|".join(words), regex.I)
    name = term if named else TITLES.get(term) or surfaces.most_common(1)[0][0]
    terms = frozenset(term.split(" ")) if not named else frozenset([term])
    return _spoken(name, terms, pattern, index.holding[term], index)


def named_topic(name: str, index: SentenceIndex) -> SharedSubject:
    """The subject that a word of a question names, spoken of or not."""
    known = aspects_named(name)
    terms = frozenset([aspect.name for aspect in known] or [term_of(fold(name))])
    pattern = known[0].pattern if known else word_pattern(name)
    numbers = index.holding.get(known[0].name, []) if known else []
    if not known:
        numbers = [number for number, entry in enumerate(index.sentences) if pattern.search(entry.text)]
    title = known[0].name if known else name
    return _spoken(title, terms, pattern, numbers, index)


def _spoken(
    name: str, terms: frozenset[str], pattern: regex.Pattern[str], numbers: Sequence[int], index: SentenceIndex
) -> SharedSubject:
    """A subject with who speaks of it in these sentences."""
    statements = tuple(_statements(numbers, terms, pattern, index))
    mentions: dict[str, Sentence] = {}
    for statement in statements:
        mentions.setdefault(statement.sentence.person, statement.sentence)
    for number in numbers:
        sentence = index.sentences[number]
        if sentence.near and sentence.person not in mentions and not index.subject.is_namesake(sentence.text):
            mentions[sentence.person] = sentence
    return SharedSubject(name, terms, mentions, statements)


def word_pattern(word: str) -> regex.Pattern[str]:
    """A pattern that matches the word at the beginning of a word, whatever follows."""
    return regex.compile(rf"(?<!\w){regex.escape(word)}", regex.I)


def _statements(
    numbers: Iterable[int], terms: frozenset[str], pattern: regex.Pattern[str], index: SentenceIndex
) -> Iterator[Statement]:
    """The sentences about product and subject, as they are compared; of one person not more than a few, no copies."""
    counts = Counter[str]()
    copied: set[str] = set()
    for number in numbers:
        if counts.total() >= 2 * _MOST_COMPARED:
            return
        sentence = index.sentences[number]
        if counts[sentence.person] >= _MOST_OF_PERSON or not index.is_about(number):
            continue
        if not is_about_theme(sentence.text, pattern, index.subject):
            continue
        counts[sentence.person] += 1
        if len(sentence.text) >= _SHORTEST_COPY:
            words = fold(sentence.text)
            if words in copied:
                continue
            copied.add(words)
        yield statement_of(sentence, index.subject, terms, pattern)


def statement_of(
    sentence: Sentence,
    subject: Subject,
    terms: frozenset[str] = frozenset(),
    pattern: regex.Pattern[str] | None = None,
) -> Statement:
    """A sentence as it is compared with others on a subject of these terms."""
    text = sentence.text
    leads = pattern is None or is_led_by(text, pattern)
    asks = ASKING.search(text) is not None
    own = {term_of(word) for word in subject.name_words | subject.kin}
    feelings = {term_of(word) for word in feeling_words(text)}
    content = {term for term in sentence.terms if " " not in term} - own - feelings
    return Statement(
        sentence,
        None if sentence.taken_back else lean_of(text, pattern, subject),
        not asks and WISHING.search(text) is not None,
        _INTENDING.search(text) is not None,
        asks,
        _DENYING.search(text.replace("’", "'")) is not None,
        not subject.is_named(text) and subject.names_unknown(text),
        frozenset(content),
        content <= terms and len(text) <= _LONGEST_PLAIN,
        frozenset(_NUMBER.findall(text)),
        leads,
        bool(terms & _known())
        or (leads and pattern is not None)
        or subject.is_named(text)
        or bool(aspects_in(text))
        or not is_english(text),
    )


def holds_term(text: str, name: str) -> bool:
    """Whether a text holds the words of a name, in any form."""
    held = {term_of(fold(match[0])) for match in WORD.finditer(text)}
    wanted = {term_of(word) for word in fold(name).split()}
    return wanted <= held or word_pattern(name).search(text) is not None


def alike(claim: Statement, other: Statement) -> bool:
    """Whether a statement says what a claim on the same subject says."""
    if other.asks or other.foreign or (claim.wish, claim.plan) != (other.wish, other.plan):
        return False
    if claim.lean is not None and other.lean is not None and claim.lean != other.lean:
        return False
    if not claim.numbers <= other.numbers:
        return False
    if claim.plain and claim.lean is not None and claim.lean == other.lean:
        return True
    shared = claim.content & other.content
    same = (claim.lean, claim.denied) == (other.lean, other.denied)
    return same and len(shared) > 1 and len(shared) >= _COVERED * len(claim.content)


def stands_alone(statement: Statement) -> bool:
    """Whether a sentence can be quoted as a claim: short, whole, no question, title or answer to somebody."""
    text = statement.sentence.text
    return (
        not (statement.asks or statement.foreign)
        and not statement.sentence.heading
        and not statement.sentence.taken_back
        and _SHORTEST_CLAIM <= len(text) <= _LONGEST_CLAIM
        and (len(text.split()) >= _FEWEST_WORDS or WITHOUT_BLANKS.search(text) is not None)
        and (statement.lean is not None or not is_english(text) or is_statement(text))
        and _LEANING_ON.search(text) is None
        and _UNFINISHED.search(text.rstrip(" .!")) is None
        and text.count("(") == text.count(")")
        and _INNER_END.search(text) is None
    )


def is_statement(text: str) -> bool:
    """Whether a text says something rather than naming it: it has somebody, a small verb or one with an ending."""
    return STATING.search(text) is not None or _VERB.search(text) is not None


def groups_of(topic: SharedSubject, lean: int | None = None) -> Iterator[tuple[Statement, tuple[Statement, ...]]]:
    """Each claim on a subject with all that say it, one of each person, the most held first; a person is in one."""
    left = [statement for statement in topic.statements if statement.answers(lean)]
    while left:
        candidates = [statement for statement in left if stands_alone(statement)][:_MOST_COMPARED]
        best: tuple[tuple[float, ...], Statement, list[Statement]] | None = None
        for claim in candidates:
            members = [other for other in left[:_MOST_COMPARED] if other is claim or alike(claim, other)]
            people = len({member.sentence.person for member in members})
            wanted = lean is not None and claim.lean == lean
            fit = not claim.sentence.doubted, not claim.plan
            weight = (wanted, claim.tells, claim.polite, people, *fit, claim.worth)
            if best is None or weight > best[0]:
                best = weight, claim, members
        if best is None:
            return
        _, claim, members = best
        by_person = {claim.sentence.person: claim}
        for member in sorted(members, key=lambda member: (member.sentence.doubted, len(member.sentence.text))):
            by_person.setdefault(member.sentence.person, member)
        yield claim, tuple(by_person.values())
        left = [statement for statement in left if statement.sentence.person not in by_person]
