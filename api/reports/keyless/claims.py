"""What many people say of a product: subjects they share, and within a subject the statements that say alike.

A subject is a term that people share: a noun, a pair of words or a verb of experience (`nausea`, `side effects`,
`lost`), with its inflections and synonyms. No list decides what is one; lists say what is none (`thing`, `week`).
Statements say alike when they lean the same way on one subject, or share most of their content words; the one that
most others say alike with, in few words, is the claim. Precision goes first: in doubt two statements are not alike.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import pairwise

import regex
import snowballstemmer

from api.core.items import Comment
from api.core.own_words import own_words
from api.core.text import fold
from api.core.words import UNSPACED, stop_words
from api.pipeline.gate.name_matches import KINDS, zipf
from api.reports.exhibits import Exhibit
from api.reports.keyless import subjects
from api.reports.keyless.aspects import Aspect, aspects, aspects_named, data
from api.reports.keyless.polarity import ASKING, DENIAL, WISHING, count_feelings, feeling_words, is_english, lean_of
from api.reports.keyless.sentence_topic import STATING, is_about_theme
from api.reports.keyless.subjects import Subject
from api.reports.people import person_of
from api.reports.quotes import ADDRESSES, beginning, sentences
from api.reports.report import LONGEST_PASSAGE

READ_IN_ALL = 240_000
"""Characters of all exhibits together that are read; of each its share from the beginning, `LEAST_READ` at least."""
LEAST_READ = 600
DOUBTED = 0.55
"""Probability of the judge below which what a kept item says comes last and makes no theme of few."""
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
_LONGEST_CLAIM, _SHORTEST_CLAIM, _FEWEST_WORDS = 140, 12, 3

_WORD = regex.compile(r"\p{L}[\p{L}\p{M}\p{N}]*+(?:['’]\p{L}+)?")
# an amount of money, which speaks of the price: `$190`, `800 bucks`, `40€`
_MONEY = regex.compile(
    r"[$€£¥]\s?\d|\b\d[\d.,]*\s?(?:[$€£¥]|(?:dollars?|bucks|euros?|usd|eur|pounds sterling)\b)", regex.I
)
_PRICE = "price"
_OPENING = 3  # letters of a word by which patterns are chosen that may match it
_UNSPACED = regex.compile(rf"[{UNSPACED}]")
# the words of a noun and of a verb of experience stand behind these
_SLOTS = frozenset(
    "the a an my its your their our no this that any some more less of with for about has have had i've i it they we"
    " been was got keep keeps kept der die das ein eine kein keine mein meine el la los las un una le les une o os as"
    " um uma".split()
)
_OWNING = frozenset("buy bought buying own owned return returned returning sell sold selling".split())
_VERBS, _SYNONYMS = (
    {
        form.replace("_", " "): word.replace("_", " ")
        for word, *forms in (line.split() for line in data("names")[name].split("\n") if line)
        for form in forms
    }
    for name in ("verbs", "forms")
)
_FORMS = _VERBS | _SYNONYMS
_PHRASES = {form: word for form, word in _FORMS.items() if " " in form}
_VAGUE = frozenset(data("names")["vague"].split())
_IDLE = stop_words("en") | _VAGUE | stop_words("de") | stop_words("es") | stop_words("fr") | stop_words("pt")
# a clause's end in a sentence that is too long for a passage
_CLAUSE = regex.compile(r"(?<=[,;:])\s+|\s+(?=(?:and|but|because|so|und|aber|y|pero|et|mais)\s)|\s+[-–—]\s+", regex.I)
# begins a sentence that takes back the one before it: `But I dropped it`
_REVERSAL = regex.compile(r"(?:But|However|Aber|Pero|Mais)\b")
# begins a sentence that does not stand by itself: `And then`, `Which is`, `That said`
_LEANING_ON = regex.compile(
    r"(?i)^\W*(?:and|but|or|so|because|which|that(?:'s)?|then|also|plus|however|though|although|yes|yeah|no,|nope|if|when|"
    r"they|he|she|same|what|who|how|why|where|@|\d+[.):])"
)
# a plan or a condition, which is no experience: `I want to lose weight`
_INTENDING = regex.compile(
    r"(?i)\b(?:want(?:ed|s)? to|going to|plan(?:ning)? to|try(?:ing)? to|hop(?:e|ing) to|need to|if|goal|so i can)\b"
)
_DENYING = regex.compile(
    rf"{DENIAL.pattern}|(?i:\b(?:stop(?:s|ped|ping)?|den(?:y|ies|ied)|refus\w+|lacks?|lacking|missing|without)\b)"
)
# words that are no claim to show first where another one says the same
_RUDE = regex.compile(r"(?i)\b(?:fuck|shit|damn|wtf|bitch|cunt|ass(?:hole)?)\w*")
_VERB = regex.compile(
    r"\p{L}\s+\p{Ll}{2,}(?:ed|[^s]s)\b|\b(?i:gonna|gotta|got|went|lost|took|broke|died|fell|kept|felt|made|gave|sent|bought"
    r"|paid|left|came|cut|love|hate)\b"
)
_UNFINISHED = regex.compile(r"(?:[,:;–—-]|\b(?:and|but|or|the|a|of|to|with|for|because))$", regex.I)


_TITLES = {name: name for name in _SYNONYMS.values()}  # how terms with synonyms are called


@lru_cache(maxsize=50_000)
def term_of(word: str) -> str:
    """What a folded word is counted as: a synonym's name (`battery` for `akku`), else its stem."""
    word = _FORMS.get(word, word)
    if word in _TITLES:
        return word
    for aspect in aspects():
        if aspect.is_in(word):
            return aspect.name
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")


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


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject that people share."""

    name: str
    terms: frozenset[str]
    mentions: Mapping[str, Sentence]
    """Person -> a sentence that speaks of it, about the product where there is one."""
    statements: tuple[Statement, ...]
    """Sentences on it that are about the product, in order."""


@dataclass(slots=True)
class Reading:
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
    _about: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, exhibits: Sequence[Exhibit], subject: Subject) -> Reading:
        """Reads the own words of all exhibits, as far as `READ_IN_ALL` goes."""
        reading = cls(subject)
        share = max(LEAST_READ, READ_IN_ALL // max(1, len(exhibits)))
        for exhibit in exhibits:
            for sentence in _sentences(exhibit, subject, share):
                reading._add(sentence)
        return reading

    def is_about(self, number: int) -> bool:
        """Whether a sentence is about the product."""
        if number not in self._about:
            entry = self.sentences[number]
            self._about[number] = self.subject.is_subject(entry.text, topic=entry.topic, follows=entry.follows)
        return self._about[number]

    def _add(self, sentence: Sentence) -> None:
        number = len(self.sentences)
        terms: list[str] = []
        written = [match[0] for match in _WORD.finditer(ADDRESSES.sub(" ", sentence.text))]
        words = [fold(word).replace("’", "'").removesuffix("'s") for word in written]
        kept = ["" if len(word) < 3 or word in _IDLE else term_of(word) for word in words]
        for at, (word, term) in enumerate(zip(words, kept, strict=True)):
            if term:
                before = words[at - 1] if at else ""
                self.slots[term] += before in _SLOTS
                self.modified[term] += bool(at and kept[at - 1])
                self.pointed[term] += before == "this"
                self.named[term] += before in self.subject.name_words
                if not _OWNING.isdisjoint(words[max(0, at - 3) : at]):
                    self.owned[term].add(sentence.person)
                self.capitals[term] += written[at][0].isupper() and not written[at].isupper()
                terms.append(term)
                self._count(term, word)
        for (first, second), pair in zip(pairwise(kept), pairwise(words), strict=True):
            if phrase := _PHRASES.get(" ".join(pair)):
                terms.append(term_of(phrase))
                self._count(terms[-1], phrase)
            elif first and second and first != second:
                terms.append(f"{first} {second}")
                self._count(terms[-1], " ".join(pair))
        if _PRICE not in terms and _MONEY.search(sentence.text):
            terms.append(_PRICE)
            self._count(_PRICE, _PRICE)
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
    if _UNSPACED.search(text):
        return aspects()
    openings = _openings()
    return {aspect.name: aspect for word in words for aspect in openings.get(word[:_OPENING], ())}.values()


def _sentences(exhibit: Exhibit, subject: Subject, share: int) -> Iterator[Sentence]:
    """The sentences of an exhibit; what a shop says of its own goods is no opinion."""
    item = exhibit.item
    if subjects.is_excluded(item, subject):
        return
    probability = exhibit.assessed.verdict.probability
    doubted = probability is not None and probability < DOUBTED
    topic = subjects.is_topic(item, subject)
    # comments under a post that names the product only somewhere in its text may be about the rest
    headed = subject.is_named(f"{item.title} {item.place or ''}")
    texts: list[tuple[str, Comment | None]] = [(item.title, None), (item.body, None)]
    texts = [] if item.source == "amazon" else texts[bool(item.thread) :]
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
        person, thread = person_of(item, comment_id), subjects.thread_of(item)
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


def find_topics(reading: Reading, known: Iterable[str] = (), shared: int = 2) -> list[Topic]:
    """The subjects that `shared` people speak of, most people first; `known` words are none."""
    terms = _shared_terms(reading, frozenset(known), shared)[:_MOST_TERMS]
    topics = (_topic(term, reading) for term in terms)
    return sorted((topic for topic in topics if len(topic.mentions) >= shared), key=lambda topic: -len(topic.mentions))


def _shared_terms(reading: Reading, known: frozenset[str], shared: int) -> list[str]:
    """Terms that may be subjects, those of most people first."""
    subject, people = reading.subject, reading.people
    kinds = own_kinds(reading)
    idle = {term_of(word) for word in (*known, *subject.name_words, *subject.kin)} | kinds
    synonyms = {aspect.name for aspect in aspects()}
    names = _names(reading)
    chosen = []
    paired: set[str] = set()
    for term in sorted(people, key=lambda term: (-len(people[term]), term)):
        if len(people[term]) < shared:
            break
        parts = term.split(" ")
        if not idle.isdisjoint(parts) or not names.isdisjoint(parts):
            continue
        if len(parts) > 1 and term not in synonyms:
            if len(people[term]) >= max(shared, 2) and not _is_clause(parts, reading, term):
                paired |= {
                    part for part in parts if len(people[term]) >= _PAIRED * len(people[part]) and part not in synonyms
                }
                chosen.append(term)
            continue
        if term in synonyms or _is_subject_like(term, reading):
            chosen.append(term)
    chosen = [term for at, term in enumerate(chosen) if not any(_is_kindred(term, other) for other in chosen[:at])]
    single = [term for term in chosen if " " not in term]
    return [
        term
        for term in chosen
        if term not in paired
        and not (" " in term and term not in synonyms and _is_covered(term, single, paired, reading))
    ]


def _is_clause(parts: Sequence[str], reading: Reading, pair: str) -> bool:
    """Whether two neighbours are a thing and what it does: `clip fell`, `lost pounds`."""
    verbs = {term_of(word) for word in _VERBS.values()}
    surface = reading.surfaces[pair].most_common(1)[0][0]
    return not verbs.isdisjoint(parts) or surface.endswith("ed") or surface.split(" ")[0].endswith("ed")


def _is_subject_like(term: str, reading: Reading) -> bool:
    """Whether a word names a thing or an experience: rare enough, or used as a noun or such a verb is."""
    surfaces = reading.surfaces[term]
    surface = surfaces.most_common(1)[0][0]
    if any(count_feelings(surface)) or _RUDE.match(surface) or not surface.replace("'", "").isalpha():
        return False  # `PS5` is another product
    if surface.endswith(("ly", "est", "ier")) or all(form.endswith("ed") for form in surfaces):
        return False
    rarity = zipf(surface)
    if rarity < _NAME and 2 * reading.capitals[term] > reading.uses[term]:
        return False  # another product
    if surface.endswith("ing") and reading.modified[term] >= _SLOT * reading.uses[term]:
        return True  # a gerund with what tells its kind
    return reading.slots[term] >= _SLOT * reading.uses[term] or rarity < _COMMON


def _is_kindred(term: str, other: str) -> bool:
    """Whether two stems are forms of one word: `prescrib`, `prescript`."""
    return term[:_KINDRED] == other[:_KINDRED] and min(len(term), len(other)) >= _KINDRED and " " not in term + other


def _is_covered(pair: str, single: Sequence[str], paired: set[str], reading: Reading) -> bool:
    """Whether one word of a pair is a term that more people use: `battery` of `battery life`."""
    return any(part in single and part not in paired for part in pair.split(" "))


def own_kinds(reading: Reading) -> set[str]:
    """What people call the product: a word of its description, `this X`, or the kind of most of them."""
    subject, people = reading.subject, reading.people
    everybody = len({sentence.person for sentence in reading.sentences})
    described = {term_of(word) for word in subject.name_words | subject.head if word in KINDS}
    called = max(KINDS, key=lambda kind: (len(people.get(term_of(kind), ())), kind))
    kinds = {term_of(word) for word in (*subject.name_words, *subject.head) if word not in stop_words("en")}
    if not described and len(people.get(term_of(called), ())) >= max(3, _CALLED * everybody):
        kinds.add(term_of(called))
    pointed = (t for t, count in reading.pointed.items() if count > 1 and count >= _POINTED * reading.uses[t])
    # `Note` of `Plaud Note`, and what people buy and return
    lengthened = {
        term for term, count in reading.named.items() if count > 1 and 2 * reading.capitals[term] > reading.uses[term]
    }
    synonyms = {aspect.name for aspect in aspects()}
    owned = {term for term, who in reading.owned.items() if len(who) >= max(2, _OWNED * everybody)} - synonyms
    return kinds | described | set(pointed) | lengthened | owned


def _names(reading: Reading) -> set[str]:
    """Terms that are names of others: well-known products, and handles."""
    return {term_of(name) for name in subjects.OTHER_NAMES} - {aspect.name for aspect in aspects()}


def _topic(term: str, reading: Reading) -> Topic:
    """The subject of a term, named as most people write it."""
    named = next((aspect for aspect in aspects() if aspect.name == term), None)
    surfaces = reading.surfaces[term]
    words = "|".join(
        regex.escape(surface).replace(r"\ ", r"\W+") for surface in sorted(surfaces, key=len, reverse=True)
    )
    spelled = rf"(?<![\p{{L}}\p{{N}}])(?:{words})(?![\p{{L}}\p{{N}}])"
    spelled += f"|{_MONEY.pattern}" if term == _PRICE else ""
    pattern = regex.compile(f"{named.pattern.pattern}|{spelled}" if named else spelled, regex.I)
    name = term if named else _TITLES.get(term) or surfaces.most_common(1)[0][0]
    terms = frozenset(term.split(" ")) if not named else frozenset([term])
    return _spoken(name, terms, pattern, reading.holding[term], reading)


def named_topic(name: str, reading: Reading) -> Topic:
    """The subject that a word of a question names, spoken of or not."""
    known = aspects_named(name)
    terms = frozenset([aspect.name for aspect in known] or [term_of(fold(name))])
    pattern = known[0].pattern if known else word_pattern(name)
    numbers = reading.holding.get(known[0].name, []) if known else []
    if not known:
        numbers = [number for number, entry in enumerate(reading.sentences) if pattern.search(entry.text)]
    title = known[0].name if known else name
    return _spoken(title, terms, pattern, numbers, reading)


def _spoken(
    name: str, terms: frozenset[str], pattern: regex.Pattern[str], numbers: Sequence[int], reading: Reading
) -> Topic:
    """A subject with who speaks of it in these sentences."""
    statements = tuple(_statements(numbers, terms, pattern, reading))
    mentions: dict[str, Sentence] = {}
    for statement in statements:
        mentions.setdefault(statement.sentence.person, statement.sentence)
    for number in numbers:
        sentence = reading.sentences[number]
        if sentence.near and sentence.person not in mentions and not reading.subject.is_namesake(sentence.text):
            mentions[sentence.person] = sentence
    return Topic(name, terms, mentions, statements)


def word_pattern(word: str) -> regex.Pattern[str]:
    """A word with any ending."""
    return regex.compile(rf"(?<!\w){regex.escape(word)}", regex.I)


def _statements(
    numbers: Iterable[int], terms: frozenset[str], pattern: regex.Pattern[str], reading: Reading
) -> Iterator[Statement]:
    """The sentences about product and subject, as they are compared; of one person not more than a few."""
    counts = Counter[str]()
    for number in numbers:
        if counts.total() >= 2 * _MOST_COMPARED:
            return
        sentence = reading.sentences[number]
        if counts[sentence.person] >= _MOST_OF_PERSON or not reading.is_about(number):
            continue
        if not is_about_theme(sentence.text, pattern, reading.subject):
            continue
        counts[sentence.person] += 1
        yield statement_of(sentence, reading.subject, terms, pattern)


def statement_of(
    sentence: Sentence,
    subject: Subject,
    terms: frozenset[str] = frozenset(),
    pattern: regex.Pattern[str] | None = None,
) -> Statement:
    """A sentence as it is compared with others on a subject of these terms."""
    text = sentence.text
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
        len(content - terms) < 2,
    )


def holds_term(text: str, name: str) -> bool:
    """Whether a text holds the words of a name, in any form."""
    held = {term_of(fold(match[0])) for match in _WORD.finditer(text)}
    wanted = {term_of(word) for word in fold(name).split()}
    return wanted <= held or word_pattern(name).search(text) is not None


def alike(claim: Statement, other: Statement) -> bool:
    """Whether a statement says what a claim on the same subject says."""
    if other.asks or other.foreign or (claim.wish, claim.plan) != (other.wish, other.plan):
        return False
    if claim.lean is not None and other.lean is not None and claim.lean != other.lean:
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
        and (len(text.split()) >= _FEWEST_WORDS or _UNSPACED.search(text) is not None)
        and (statement.lean is not None or not is_english(text) or is_statement(text))
        and _LEANING_ON.search(text) is None
        and _UNFINISHED.search(text.rstrip(" .!")) is None
        and text.count("(") == text.count(")")
    )


def is_statement(text: str) -> bool:
    """Whether a text says something rather than naming it: it has somebody, a small verb or one with an ending."""
    return STATING.search(text) is not None or _VERB.search(text) is not None


def groups_of(topic: Topic, lean: int | None = None) -> Iterator[tuple[Statement, tuple[Statement, ...]]]:
    """Each claim on a subject with all that say it, one of each person, the most held first; a person is in one."""
    left = [statement for statement in topic.statements if lean is None or statement.lean != -lean]
    while left:
        candidates = [statement for statement in left if stands_alone(statement)][:_MOST_COMPARED]
        best: tuple[tuple[float, ...], Statement, list[Statement]] | None = None
        for claim in candidates:
            members = [other for other in left[:_MOST_COMPARED] if other is claim or alike(claim, other)]
            people = len({member.sentence.person for member in members})
            wanted = lean is not None and claim.lean == lean
            text = claim.sentence.text
            tells = _RUDE.search(text) is None, claim.lean is not None, is_statement(text), -len(claim.content)
            weight = (wanted, people, not claim.sentence.doubted, *tells, -abs(len(claim.sentence.text) - 60))
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
