"""Whether a passage carries a sentence, without a model: by words, numbers, denial and leaning.

Conservative: what is not plainly there is not supported. It knows no synonyms beyond the aspects of
products, so a sound paraphrase may be refused; see docs/keyless.md for what it gets right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import regex

from api.core.domain import Question
from api.core.ports import Claim, Support, SupportChecker
from api.core.text import fold
from api.core.words import content_words, is_not_english
from api.reports.keyless.aspects import aspects, aspects_in
from api.reports.keyless.polarity import ASKING, DENIAL, HEARSAY, IRONY, WISHING, count_feelings, lean_of
from api.reports.keyless.product_mentions import Subject
from api.reports.keyless.theme_sentences import COUNTED, SUMMARY
from api.reports.keyless.themes import is_spoken_of
from api.reports.quotes import numbers

VERSION = "local-support-1"

# what a report says of those who speak, which no post says of itself: `owners complain that`
_REPORTING = frozenset(
    "owner owners user users buyer buyers people person reviewer reviewers customer customers"
    " viewer"
    " viewers post posts say says said find finds found call calls called describe describes"
    " described"
    " report reports reported praise praises praised complain complains complained complaint"
    " complaints"
    " criticise criticises criticised criticize like likes love loves hate hates dislike think"
    " thinks"
    " feel feels ask asks asked want wants wanted wish wishes wished request requests request"
    " mention"
    " mentions note notes product device opinion opinions".split()
)
# a sentence that says people praise: `owners love the lid`
_PRAISES = regex.compile(r"\b(?:prais\w+|love[sd]?|likes?|enjoy\w*|pleased|happy with|recommend\w*)\b", regex.I)
# a sentence that says people complain: `buyers are unhappy with the app`
_COMPLAINS = regex.compile(
    r"\b(?:complain\w*|criti[cs]\w+|hate[sd]?|dislike[sd]?|unhappy|annoy\w+|frustrat\w+|regret\w*)\b",
    regex.I,
)
# a sentence that says somebody asks: `people wonder whether it leaks`
_ASKS = regex.compile(r"\b(?:ask\w*|wonder\w*|question\w*|unsure|want to know)\b", regex.I)
# a sentence that says somebody wishes: `users would like a larger lid`
_WISHES = regex.compile(r"\b(?:wish\w*|want\w*|ask\w* for|request\w*|hop(?:e|es|ing)|would like|call for)\b", regex.I)
# more people, certainty or extent than one passage holds: `everyone`, `always`, `many owners`
_MORE = regex.compile(
    r"\b(?:every(?:one|body|where|thing)?|all|most|majority|nobody|no one|none|always|never"
    r"|many|several"
    r"|numerous|countless|widely|consistently|constantly|definitely|certainly|clearly|proven"
    r"|guaranteed"
    r"|only|entirely|completely|best|worst|any)\b",
    regex.I,
)
# a sentence that gives a cause, which its passage must give, too: `broke because of the hinge`
_CAUSES = regex.compile(r"\b(?:because|due to|thanks to|caused? by|as a result|leads? to|since|so that)\b", regex.I)
# a comparison, whose sides must stand as in the passage: `warmer than the Yeti`
_THAN = regex.compile(r"\bthan\b", regex.I)
# comparatives of opposite directions
_OPPOSITES = tuple(
    tuple(frozenset(side.split()) for side in pair.split("|"))
    for pair in (
        "better best|worse worst", "more|less fewer", "bigger larger|smaller", "faster quicker|slower",
        "longer|shorter", "higher|lower", "louder|quieter", "heavier|lighter", "cheaper|dearer pricier",
        "easier|harder",
    )
)  # fmt: skip
# one word, of any script: `cup`, `r1`, `杯`
_WORD = regex.compile(r"[\p{L}\p{N}]+")
# Letters in which two words of one family agree at least.
_STEM = 4


@dataclass(frozen=True, slots=True)
class LocalSupport:
    """Answers without network or key; implements `SupportChecker`."""

    name: str = VERSION

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order; costs nothing, under 1 ms a claim."""
        return Support(tuple(carries(claim, question) for claim in claims), self.name)


# Share of a sentence's content words in the passage, at which and below which nothing of it is there.
_FEW_WORDS = 0.25
# two letters in a row of another script: `电池`, `батарея`
_FOREIGN = regex.compile(r"[\p{L}--[\p{Latin}]]{2}", regex.V1)


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """A model's support check with the local one beside it; implements `SupportChecker`."""

    inner: SupportChecker

    @property
    def name(self) -> str:
        """Name of the model that checks first, as results and traces show it."""
        return self.inner.name

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """The model's answer; `doubted` are those that it supports and the passage says nothing of."""
        support = await self.inner.check(question, claims)
        pairs = zip(support.supported, claims, strict=False)
        return replace(support, doubted=tuple(holds is True and doubts(claim, question) for holds, claim in pairs))


def doubts(claim: Claim, question: Question) -> bool:
    """Whether the local check refuses a claim of whose content words next to none are in the passage.

    Of texts in other languages, and of translations, it knows nothing.
    """
    texts = (claim.sentence, claim.passage)
    if any(is_not_english(text) or _FOREIGN.search(text) for text in texts) or carries(claim, question):
        return False
    question_words = {fold(word) for word in content_words(f"{question.text} {question.about}")}
    held = [fold(word) for word in _WORD.findall(claim.passage)]
    bare = ("".join(_WORD.findall(fold(word))) for word in content_words(claim.sentence))
    words = [word for word in bare if word and word not in question_words and word not in _REPORTING]
    present = sum(any(_akin(word, other) for other in held) for word in words)
    return present <= _FEW_WORDS * len(words)


def carries(claim: Claim, question: Question) -> bool:
    """Whether the passage, in its item, says what the sentence says about the same product."""
    return share_carried(claim, question) == 1


def share_carried(claim: Claim, question: Question, *, about_other: bool = False) -> float:
    """Share of the sentence's words with a meaning that the passage holds, 1 where it carries the sentence.

    0 where the passage is about something else, or says it in another manner, to another extent or on another side.
    With `about_other` the sentence speaks of another thing than the product itself, so the passage may, too.
    """
    sentence = claim.sentence.replace("’", "'").strip()
    passage = claim.passage.replace("’", "'").strip()
    subject = Subject.of(question, [claim.context, passage])
    counted = COUNTED.match(sentence)
    # the gate kept the item, so it is about the product where it names no rival; a theme's
    # passages were chosen by the same rules with the whole item in view
    summed = SUMMARY.match(sentence) is not None
    topic = counted is not None or summed or not subject.names_rival(claim.context)
    if not passage or not (about_other or subject.is_subject(passage, topic=topic, follows=False)):
        return 0
    if counted is not None:
        return float(is_spoken_of(counted["name"], passage))
    if summed:
        return 1  # quotes of findings that are checked themselves
    rules = (_same_manner, _same_extent, _same_side, _same_direction)
    return _share_of_words(sentence, passage, subject) if all(r(sentence, passage, subject) for r in rules) else 0


def _same_manner(sentence: str, passage: str, subject: Subject) -> bool:
    """Whether the sentence states no question, wish, hearsay, condition or irony of the passage as a fact."""
    if ASKING.search(passage) and not _ASKS.search(sentence):
        return False
    wishes = _WISHES.search(sentence) is not None
    if WISHING.search(passage) and not wishes:
        return False
    if wishes and not (WISHING.search(passage) or ASKING.search(passage)):
        return False
    distant = HEARSAY.search(passage)
    return wishes or distant is None or fold(distant[0]) in fold(sentence)


def _same_extent(sentence: str, passage: str, subject: Subject) -> bool:
    """Whether the sentence claims no more people, certainty, causes or numbers than the passage."""
    plain = fold(passage)
    more = (regex.escape(fold(match[0])) for match in _MORE.finditer(sentence))
    if not all(regex.search(rf"\b{word}\b", plain) for word in more):
        return False
    if _CAUSES.search(sentence) and not _CAUSES.search(passage):
        return False
    return set(numbers(subject.pattern.sub(" ", sentence))) <= set(numbers(passage))


def _same_side(sentence: str, passage: str, subject: Subject) -> bool:
    """Praise on praise, complaint on complaint, denied as often, weighed the same way round."""
    if ASKING.search(passage):
        return True  # a question told as one leans nowhere
    (praise, blame), (pro, con) = _sides(sentence), _sides(passage)
    if praise != blame:
        mine, other = (pro, con) if praise > blame else (con, pro)
        if not mine or (other and lean_of(passage, subject=subject) is None):
            return False
        if praise > blame and IRONY.search(passage):
            return False
    elif bool(DENIAL.search(sentence)) != bool(DENIAL.search(passage)):
        return False
    if _THAN.search(sentence):
        (_, after), (before, beyond) = _weighed(sentence), _weighed(passage)
        return bool(after & beyond) and not (after - beyond) & before
    return True


def _same_direction(sentence: str, passage: str, subject: Subject) -> bool:
    """Whether the sentence does not reverse a direction, such as `worse` for `better`."""
    words, held = (set(_WORD.findall(fold(text))) for text in (sentence, passage))
    directions = (sides for pair in _OPPOSITES for sides in (pair, pair[::-1]))
    return not any(words & side and held & other and not held & side for side, other in directions)


def _sides(text: str) -> tuple[int, int]:
    """Number of words that praise and that complain, including reporting verbs of either kind."""
    pro, con = count_feelings(text)
    return pro + (_PRAISES.search(text) is not None), con + (_COMPLAINS.search(text) is not None)


def _weighed(text: str) -> tuple[set[str], set[str]]:
    """The words before and after `than`."""
    before, _, after = fold(text).partition(" than ")
    return set(_WORD.findall(before)), set(_WORD.findall(after))


def _share_of_words(sentence: str, passage: str, subject: Subject) -> float:
    """Share of the words that carry meaning whose like, aspect or (of a feeling) side is in the passage."""
    held = {fold(word) for word in _WORD.findall(passage) if content_words(word)}
    spoken = {aspect.name for aspect in aspects_in(passage)}
    present, total = 0, 0
    for word in content_words(subject.pattern.sub(" ", sentence)):
        bare = "".join(_WORD.findall(fold(word)))
        if not bare or bare in _REPORTING or any(count_feelings(word)):
            continue
        meant = {aspect.name for aspect in aspects() if aspect.is_in(word)}
        present += bool(meant & spoken) or any(_akin(bare, other) for other in held)
        total += 1
    return present / total if total else 1


def _akin(word: str, other: str) -> bool:
    """Whether two words are of one family: `crash` and `crashes`, `charging` and `charge`."""
    shorter = min(len(word), len(other))
    return word == other or (shorter >= _STEM and word[: max(_STEM, shorter - 2)] == other[: max(_STEM, shorter - 2)])
