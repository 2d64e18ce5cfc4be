"""What people ask for the first time: questions of new posts that no earlier post asked.

A sentence counts only where it surely asks for something about the product: a question too few is
better than a rhetorical one. The patterns stand in `new_questions.toml`; with a question mark any
language counts, without one English, German, Spanish and French. How often it is right:
docs/watches.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from tomllib import loads

import regex

from api.core.domain import Question
from api.core.items import Item
from api.core.text import fold, one_line
from api.core.words import index_tokens, stem, stop_words
from api.features.watches.watch_run import NewQuestion
from api.reports.keyless.polarity import ASKING, is_english
from api.reports.keyless.product_mentions import Subject, is_excluded, is_topic
from api.reports.quotes import beginning, sentences
from api.reports.report import LONGEST_PASSAGE, KeptItem

MOST = 5  # questions of a run
# Words of a question at least; in scripts without spaces pairs of letters.
_FEWEST_WORDS = 3
# A headline begins this share of its words with a capital, not counting words of few letters.
_CAPITALS, _SMALL_WORD = 0.8, 3
# From this share of the shorter one's keywords on, two questions ask the same.
_ALIKE = 0.5
# Letters by which keywords are compared: `charging`, `charges`.
_ROOT = 5
# Sources where a shop or a channel speaks: its questions are bait.
_BROADCAST = frozenset({"amazon", "youtube"})
# `?` at the end, also of Chinese and Arabic, and before a bracket: `(does it work?)`
_MARK = regex.compile(r"[?？؟][!?？]*[\"'”’»)」』]?$")
# begins with somebody else's words: `“Does it work?” she said`
_QUOTATION = regex.compile(r"^[\"“”„«‘'「『]")
# before a quoted e-mail: `On Mon, Ann wrote:`, `Am 3. Mai schrieb Ann:`, `---Original Message---`
_REPLIED = regex.compile(
    r"^[^\w\n]*+(?:on .{4,80} wrote|am .{4,80} schrieb.{0,60}|le .{4,80} a écrit"
    r"|el .{4,80} escribió) ?:"
    r"|^-{2,} ?(?:original message|ursprüngliche nachricht|message d'origine|mensaje original)"
    r"|^(?:from|von|de|sent|gesendet) ?: .*@.*$",
    regex.I | regex.M,
)
# quoted lines (`> does it?`), blocks of code, and lists of answers (`Q: what is it?`)
_ASIDE = regex.compile(r"^[ \t]*[>|].*$|```[^`]*(?:```|\Z)|^[^\w\n]*(?:q|f|p) ?\d*[:.)] .*$", regex.M | regex.I)


# what may stand before the patterns of these names, which hold at the beginning alone
_BEFORE = {
    # `Hi, anyone know`
    "unmarked": r"\W*(?:(?:hi|hey|hello|ok|so|also|and|but|question|quick question)\W+)*+",
    "answered": r"\W*",
}


@cache
def _texts() -> dict[str, str]:
    return loads(files("api.features.watches").joinpath("new_questions.toml").read_text("utf-8"))


@cache
def _pattern(name: str) -> regex.Pattern[str]:
    lines = (line for line in _texts()[name].split("\n") if line and not line.startswith("#"))
    either = "|".join(f"(?:{line})" for line in lines)
    return regex.compile(f"{_BEFORE[name]}(?:{either})" if name in _BEFORE else either, regex.I)


@cache
def _idle_words() -> frozenset[str]:
    """Words that say nothing of what is asked for, in four languages."""
    generic = _texts()["generic"].split()
    words = frozenset(generic).union(*map(stop_words, ("en", "de", "es", "fr")))
    return words.union(map(stem, words))


def new_questions(question: Question, new: Sequence[KeptItem], earlier: Iterable[Item]) -> tuple[NewQuestion, ...]:
    """Questions that `new` posts ask and no `earlier` post did; those that most posts ask come first."""
    subject = Subject.of(question, [beginning(text) for item in new for text in item.texts])
    candidates = [
        (_keywords(sentence, subject), sentence, item.key) for item in new for sentence in questions_of(item, subject)
    ]
    if not candidates:
        return ()
    # as they stand in any form of their word: `fl` of `fly` in `flies`
    roots = {root.removesuffix("y") for keywords, _, _ in candidates for root in keywords}
    known = [_keywords(sentence, subject) for item in earlier for sentence in _possible_questions(item, roots)]
    groups: list[tuple[frozenset[str], str, list[str]]] = []
    for keywords, sentence, key in candidates:
        if any(_are_alike(keywords, other) for other in known):
            continue
        same = next((keys for other, _, keys in groups if _are_alike(keywords, other)), None)
        if same is None:
            groups.append((keywords, sentence, [key]))
        elif key not in same:
            same.append(key)
    groups.sort(key=lambda group: -len(group[2]))
    return tuple(NewQuestion(text=text, cites=tuple(keys)) for _, text, keys in groups[:MOST])


def questions_of(item: Item, subject: Subject) -> Iterator[str]:
    """The sentences of a post that surely ask something about the product, verbatim."""
    if item.source in _BROADCAST or is_excluded(item, subject):
        return
    topic = is_topic(item, subject)
    # a link post bears the headline of its page
    titles = () if item.thread or item.link or _is_headline(item.title) else (item.title,)
    reply = _REPLIED.search(item.body)
    body = _ASIDE.sub("", item.body[: reply.start()] if reply else item.body)
    for text in (*titles, body):
        follows = False
        parts = sentences(beginning(text))
        for sentence, following in zip_longest(parts, parts[1:], fillvalue=""):
            about = subject.is_subject(sentence, topic=topic, follows=follows)
            follows = subject.is_named(sentence) or (follows and about)
            if about and is_question(sentence, following) and _keywords(sentence, subject):
                yield sentence


def is_question(sentence: str, following: str = "") -> bool:
    """Whether a sentence asks for something, not for effect, and the next one is no answer."""
    text = one_line(sentence).replace("’", "'")
    words = max(len(text.split()), len(index_tokens(text)))
    if words < _FEWEST_WORDS or len(text) > LONGEST_PASSAGE or _QUOTATION.search(text):
        return False
    if _pattern("rhetorical").search(text) or _pattern("answered").match(following):
        return False
    if not _MARK.search(text):
        return _pattern("unmarked").match(text) is not None and not text.endswith(":")
    return not is_english(text) or _pattern("english").search(text) is not None


def _is_headline(title: str) -> bool:
    """Whether a title is made to be clicked, not to be answered: `Is This Stock A Buy?`."""
    long = [word for word in title.split() if len(word) > _SMALL_WORD]
    capitals = sum(word[0].isupper() for word in long)
    capitalised = len(long) >= _FEWEST_WORDS and capitals >= _CAPITALS * len(long)
    return capitalised or _pattern("headline").search(title) is not None


def _possible_questions(item: Item, roots: Collection[str]) -> Iterator[str]:
    """Sentences with one of these roots that may be questions; the slow test comes last."""

    def holds(text: str) -> bool:
        folded = fold(text)
        return any(root in folded for root in roots)

    for text in filter(holds, (item.title, item.body)):
        for sentence in filter(holds, sentences(beginning(text))):
            if ASKING.search(sentence):
                yield sentence


def _keywords(sentence: str, subject: Subject) -> frozenset[str]:
    """The roots of the words that say what is asked for, without the product's name."""
    words = set(index_tokens(subject.pattern.sub(" ", sentence)))
    return frozenset(word[:_ROOT] for word in words - _idle_words() - subject.name_words)


def _are_alike(keywords: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two ask the same, in doubt yes."""
    shorter = min(len(keywords), len(other))
    return shorter > 0 and len(keywords & other) >= _ALIKE * shorter
