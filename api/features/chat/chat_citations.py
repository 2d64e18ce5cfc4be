"""The words behind a citation, and the products that a text is about.

A subject is a product of the conversation, written as the keywords that first named it:
`ember mug`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from api.core.domain import Question
from api.core.own_words import own_words
from api.core.ports import Claim
from api.core.text import clean, display_title, fold, one_line, web_url
from api.core.words import UNSPACED, content_words, is_not_english, languages_of, snowball_stem
from api.features.chat.chat_turn import Citation, CitedPassage
from api.pipeline.question import query_guard
from api.pipeline.question.product_name import question_parts
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_in, aspects_named
from api.reports.local_support import share_carried
from api.reports.markdown_text import md, quotation, unformatted
from api.reports.quotes import ADDRESSES, LABEL, READ, beginning, sentences, verbatim, without_stop
from api.reports.report import LONGEST_PASSAGE

WEB_ENDING = regex.compile(r"(?i)(?<=\w)\.(?:ai|app|co|com|dev|io|net|org|so)\b")
"""Ending that a name may have or lack, such as `.ai` of `plaud.ai`."""
# a word that is a name by its form: `Yeti`, `rtx4090`, `3m`, `cal.com`, but not `60`
_MARKED = regex.compile(r"\p{Lu}|\p{L}\d|\d\p{L}|\p{L}\.\p{L}")
# an aspect and whose it is: `the support of Oura`
_PART = regex.compile(r"(?i)\bthe (?P<part>\p{L}++) of (?P<owner>.*\S)")
# a comparison, so that the sentence may speak of several products
_COMPARING = regex.compile(r"(?i)\b(?:than|unlike|compared|versus|vs|both|either|neither|while|whereas|instead)\b")


def products_in(query: str) -> tuple[str, ...]:
    """The products that a query is about: those it compares, else one."""
    part, parts = _PART.search(query), question_parts(query)
    whose = part["owner"] if part and aspects_named(part["part"]) else query
    asks = parts.subject and not part
    taken = parts.products if asks or parts.kind == "comparison" else ()
    names = (WEB_ENDING.sub("", name) for name in query_guard.compared_names(query) or taken or (whose,))
    spelled = (" ".join(query_guard.naming_words(name)) or one_line(fold(name)) for name in names)
    return tuple(dict.fromkeys(spelled))


def is_variant(name: str, of: str) -> bool:
    """Whether `ember mug lid` is a topic of `ember mug`; with a number it is another product."""
    words, shorter = ([query_guard.singular(word) for word in text.split()] for text in (name, of))
    added = words[len(shorter) :]
    return words[: len(shorter)] == shorter and not any(map(str.isdigit, "".join(added)))


def subjects_named(text: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """The subjects whose words a text holds; not `ember mug` where it holds `ember mug 2`."""
    known, folded = query_guard.joined_spellings(text), fold(text)

    def holds(word: str) -> bool:
        # in scripts that set no words apart, and languages that change their endings
        return word in known or (not word.isascii() and word in folded)

    stems = {subject: [query_guard.singular(word) for word in subject.split()] for subject in subjects}
    named = {
        subject: set(words) for subject, words in stems.items() if "".join(words) in known or all(map(holds, words))
    }
    return tuple(subject for subject, words in named.items() if not any(words < other for other in named.values()))


def subjects_meant(question: str, subjects: Iterable[str]) -> tuple[str, ...]:
    """The subjects that a question names, else the one of which it says the first word alone.

    `back to plaud` means `plaud note`, unless `plaud pin` is known, too.
    """
    known = tuple(subjects)
    if named := subjects_named(question, known):
        return named
    words = set(map(query_guard.singular, query_guard.naming_words(WEB_ENDING.sub("", question))))
    short = [name for name in known if len(first := query_guard.singular(name.split()[0])) > 2 and first in words]
    return tuple(short) if len(short) == 1 else ()


def names_product(question: str) -> bool:
    """Whether a question by its form names a product: `ember mug`, `the Yeti`, `a8x`, `cal.com`.

    Not when it points back, and not `the weight`: one plain word may be what is asked about. False
    in other languages than English, where the form does not tell.
    """
    if query_guard.refers_back(question) or "en" not in languages_of(question):
        return False
    words = question.split()
    naming = [bool(query_guard.naming_words(word)) for word in words]
    return any(map(all, pairwise(naming))) or any(
        _MARKED.search(word) for word, tells in list(zip(words, naming, strict=True))[1:] if tells
    )


def is_comparing(sentence: str) -> bool:
    """Whether a sentence holds a word of comparing, such as `than` or `versus`."""
    return _COMPARING.search(sentence) is not None


# between sentences; a citation after a full stop belongs to the one before it: `Warm. [E1]| It`
_BETWEEN = regex.compile(r"\n+|(?<=[.!?…。！？][\"'”’»)」』]?(?:\s*\[E[E\d, ]+\])?)(?!\s*\[E\d)(?:\s+|(?<=[。！？]))")
# citations that stand side by side: `[E1]`, `[E1, E3] [E4]`
_LABELS = regex.compile(r"((?:\s*\[E\d+(?:, ?E\d+)*\])+)")
# words between our marks, and what cites them: `“It died” [E1]`, `“It died”. [E1, E4]`
_QUOTED = regex.compile(rf"“(?P<words>[^“”\n]{{1,600}})”[.,;:]?(?P<labels>{_LABELS.pattern})")
# how many people say so, which a single passage cannot say: `several of the owners`, `three buyers`
_HOW_MANY = regex.compile(
    r"\b(?:all|most|many|several|some|both|few|a (?:few|couple)|two|three|four|five|six|seven|eight|nine|ten|\d+)"
    r" (?:of )?(?:the |these |those )?(?=(?:\w+ )?(?:people|owners|users|buyers|customers|reviewers|posters|posts)\b)",
    regex.I,
)
_MARKS = regex.compile(r"^\s*(?:[-*+]|\d+[.)])\s+|[*_`#]+")
# a number and its unit: `two days`, `21 pounds`; between the two: `28|lbs`
_AMOUNT = regex.compile(
    r"(?<![\w.,])(\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twelve|half)[ -](\p{L}{2,})"
)
# ends a clause of a sentence that is too long for a passage: `It is fine,| but`
_CLAUSE = regex.compile(
    r"[,;:]\s+|(?<!\s)\s+(?:(?=(?:and|but|because|so|und|aber|y|pero|et|mais)\s)|[-–—]\s+)", regex.IGNORECASE
)
# a name inside a sentence: `Ultra`, `Fold 5`
_NAME_INSIDE = regex.compile(r"(?<=\w[\s,(]{1,2})\p{Lu}[\p{L}\p{N}]++(?:\s\d+)?")
_JOINED = regex.compile(r"(?<=\d)(?=\p{L}{2})")
_RUN = regex.compile(rf"[{UNSPACED}]")
_FOREIGN = regex.compile(r"[\p{L}--[\p{Latin}]]{2}", regex.V1)
MOST_PASSAGES, _MOST_QUOTED = 2, 8
"""Passages of one citation: of the sentences that cite it those that its words carry best; quotations of it."""
_TRIED = 8  # sentences of an item that share most words with the citing one, to which the rules are put
# Share of the citing sentence's words that a passage holds at least; in languages whose rules are not known.
_LEAST_SHARE, _LEAST_FOREIGN = 0.6, 0.5


def citations_of(text: str, exhibits: Iterable[Exhibit], names: Iterable[str]) -> tuple[Citation, ...]:
    """A citation of each exhibit, with the words of it that carry what cites it in `text`; see `passages_for`.

    Runs in a thread where others wait: 40 to 80 ms for each sentence that cites a long post in other words.
    """
    citations, names = [], tuple(names)
    for exhibit in exhibits:
        item = exhibit.item
        passages = passages_for(text, exhibit, names)
        comment_id = passages[0].comment_id if passages else None
        place = next((comment for comment in item.comments if comment.id == comment_id), item)
        citations.append(
            Citation(
                label=exhibit.label,
                key=item.key,
                title=display_title(one_line(item.title), item.thread),
                url=web_url(item.url),
                passage=passages[0].text if passages else "",
                credit=passages[0].credit if passages else item.credit,
                source=item.source,
                place=item.place,
                created_at=place.created_at,
                engagement={name: value for name, value in place.engagement.items() if value is not None},
                passages=passages,
            )
        )
    return tuple(citations)


def plain_text(words: str) -> str:
    """Quoted words without markup; each address is replaced by an ellipsis."""
    return md(ADDRESSES.sub("…", words))


def is_quoted(passage: str, text: str) -> bool:
    """Whether an answer shows these words of a post between quotation marks, with or without their full stop."""
    quoted = {without_stop(_shown(unformatted(words))) for words in _QUOTATION.findall(text)}
    return without_stop(_shown(passage)) in quoted


_QUOTATION = regex.compile(r"“([^“”\n]{1,600})”")


def _shown(words: str) -> str:
    """Words of a post as an answer quotes them, without escapes."""
    return one_line(clean(ADDRESSES.sub("…", quotation(words))))


def passages_for(text: str, exhibit: Exhibit, names: Iterable[str]) -> tuple[CitedPassage, ...]:
    """The words of an exhibit that `text` quotes, else the sentences that carry what cites it, verbatim.

    At most `MOST_PASSAGES`, in this order: quotations; one sentence, or two that follow each other, of the author's own
    words that pass the local support check; sentences by words in common; the title when nothing else carries. Empty
    when nothing carries what cites it. Reads at most `READ` characters of the exhibit's own words.
    """
    reading = _ReadExhibit(exhibit, tuple(names))
    quotations = (m["words"] for m in _QUOTED.finditer(text) if exhibit.label in LABEL.findall(m["labels"]))
    quoted = dict.fromkeys(filter(None, map(reading.quoted, map(unformatted, quotations))))
    best: dict[_Part, float] = {}
    for claims in _citing(text, exhibit.label) if not quoted else ():
        if carried := next(filter(None, map(reading.carrying, claims)), None):
            share, part = carried
            best[part] = max(share, best.get(part, 0))
    carrying = sorted(best, key=lambda part: -best[part])[:MOST_PASSAGES]
    return tuple(map(reading.passage, [*quoted][:_MOST_QUOTED] or carrying))


def _citing(text: str, label: str) -> Iterator[tuple[str, ...]]:
    """What cites an exhibit in each place: the words before its label back to other labels, then the whole sentence."""
    for sentence in _BETWEEN.split(text):
        if label not in LABEL.findall(sentence):
            continue
        whole = _bare(sentence)
        before = [
            _bare(words)
            for words, labels in pairwise(_LABELS.split(sentence))
            if _LABELS.fullmatch(labels) and label in LABEL.findall(labels)
        ]
        yield tuple(dict.fromkeys(claim for claim in (*before, whole) if claim))


def _bare(claim: str) -> str:
    """A sentence of an answer without labels, marks of lists and emphasis, and how many people say so."""
    return one_line(_HOW_MANY.sub("", _MARKS.sub("", unformatted(LABEL.sub("", _LABELS.sub("", claim)))))).strip(" ,;")


class _Part(NamedTuple):
    """A sentence of an exhibit, or two that follow each other."""

    text: str
    comment_id: str | None = None
    is_title: bool = False


@dataclass
class _ReadExhibit:
    """The sentences of an exhibit that may be shown, read once for all that cites it."""

    exhibit: Exhibit
    names: Sequence[str]

    @cached_property
    def parts(self) -> list[_Part]:
        """Whole sentences of the authors' own words, in order, two that follow each other, and the title last."""
        item, left, parts = self.exhibit.item, READ, list[_Part]()
        for body, comment_id in ((item.body, None), *((comment.body, comment.id) for comment in item.comments)):
            written = own_words(beginning(body)[:left])
            left -= len(written)
            single = sentences(written)
            parts += [_Part(one_line(part), comment_id) for each in single for part in _windows(each)]
            end = 0
            for first, second in pairwise(single):
                start = written.find(first, end)
                end = start + len(first)
                after = written.find(second, end)
                if start >= 0 and not written[end:after].strip() and after + len(second) - start <= LONGEST_PASSAGE:
                    parts.append(_Part(one_line(written[start : after + len(second)]), comment_id))
        title = [] if item.thread else [_Part(one_line(item.title), None, is_title=True)]
        return [part for part in parts if len(part.text) <= LONGEST_PASSAGE] + title

    @cached_property
    def keywords(self) -> list[frozenset[str]]:
        """The stems and aspects in each part, in the order of `parts`."""
        return [_keywords(part.text) for part in self.parts]

    @cached_property
    def question(self) -> Question:
        """The product that the exhibit is about, with its web ending where the exhibit writes it."""
        text = " ".join(self.exhibit.item.texts)[:READ]
        name = next(iter((*subjects_named(text, self.names), *self.names)), "")
        if not name:
            return Question(one_line(self.exhibit.item.title)[:LONGEST_PASSAGE])
        spelled = regex.search(rf"(?i)\b{regex.escape(name)}(?={WEB_ENDING.pattern})\.\w+", text)
        return Question(spelled[0] if spelled else name)

    def quoted(self, words: str) -> _Part | None:
        """The sentence that contains a quotation, else the quotation itself."""
        for part in self.parts:
            if _shown(words) == _shown(part.text):
                return part
        quote = verbatim(words, self.exhibit.item)
        if quote is None:
            return None
        holding = (part for part in self.parts if part.comment_id == quote.comment_id and quote.text in part.text)
        return next(holding, _Part(one_line(quote.text), quote.comment_id))

    def carrying(self, claim: str) -> tuple[float, _Part] | None:
        """The part that supports a claim best, and the share of the claim's words in it; None when none does."""
        words = _keywords(claim)
        named = {_stem(word) for name in self.names for word in name.split()}
        shared = [len((words - named) & own) for own in self.keywords]
        if not any(shared):
            shared = [len(words & own) for own in self.keywords]
        order = sorted(
            range(len(self.parts)), key=lambda at: (self.parts[at].is_title, -shared[at], len(self.parts[at].text))
        )
        titles = [at for at in order if self.parts[at].is_title]
        best: tuple[tuple[bool, float, int, int], _Part] | None = None
        for at in dict.fromkeys((*order[:_TRIED], *titles)):
            part = self.parts[at]
            share = self._share(claim, part)
            rank = (not part.is_title, share, shared[at], -len(part.text))
            if share and (best is None or rank > best[0]):
                best = rank, part
        return (best[0][1], best[1]) if best else None

    def _share(self, claim: str, part: _Part) -> float:
        """Share of the claim that the part supports, by the local check or by common words; 0 when too small.

        The local check reads English only.
        """
        if _is_foreign(claim) or _FOREIGN.search(part.text):
            words = _written(claim)
            share = len(words & _written(part.text)) / max(1, len(words))
            return share if share >= _LEAST_FOREIGN else 0
        # the check takes `ai` of `plaud.ai` for a word of its own, and `28lbs` for one word
        bare, passage = (_JOINED.sub(" ", text) for text in (WEB_ENDING.sub("", claim), part.text))
        if not _amounts(bare) <= _amounts(passage):
            return 0
        said_of_other = bool(_other_names(bare, self.names) & _other_names(passage, self.names))
        checked = Claim(bare, passage, one_line(self.exhibit.item.title))
        share = share_carried(checked, self.question, about_other=said_of_other)
        return share if share >= _LEAST_SHARE else 0

    def passage(self, part: _Part) -> CitedPassage:
        """The passage of a part, with its comment, address and author."""
        item = self.exhibit.item
        comment = next((comment for comment in item.comments if comment.id == part.comment_id), None)
        place = comment or item
        return CitedPassage(part.text, part.comment_id, web_url(place.url or item.url), place.credit)


def _windows(sentence: str) -> list[str]:
    """The sentence, or of one that is too long for a passage runs of its clauses, each as long as fits."""
    if len(sentence) <= LONGEST_PASSAGE:
        return [sentence]
    cuts = [0, *(match.end() for match in _CLAUSE.finditer(sentence)), len(sentence)]
    windows: dict[int, str] = {}  # by where it ends: what begins later and ends there is a part of it
    for number, start in enumerate(cuts[:-1]):
        fitting = [cut for cut in cuts[number + 1 : number + 1 + LONGEST_PASSAGE] if cut - start <= LONGEST_PASSAGE]
        if fitting:
            windows.setdefault(fitting[-1], sentence[start : fitting[-1]].strip(" ,;:-–—"))
    return list(windows.values())


def _other_names(text: str, names: Iterable[str]) -> set[str]:
    """Words with a capital inside a text, or with a number behind one, that are no product of `names`."""
    own = {word for name in names for word in fold(name).split()}
    return {fold(word) for word in _NAME_INSIDE.findall(text)} - own


def _amounts(text: str) -> set[tuple[str, str]]:
    """Numbers with the word behind them: `two days` is (`two`, `day`)."""
    amounts = (match for match in _AMOUNT.finditer(fold(text)) if content_words(match[2]))
    return {(match[1], _stem(match[2])) for match in amounts}


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    return snowball_stem(word)


@lru_cache(maxsize=2_000)
def _is_foreign(text: str) -> bool:
    """Whether a text is not in English, of which alone the support check has rules."""
    return _FOREIGN.search(text) is not None or is_not_english(text)


@lru_cache(maxsize=5_000)
def _keywords(text: str) -> frozenset[str]:
    """What tells which sentences may carry another: its words, and aspects of products under any name."""
    return frozenset(_written(text) | {aspect.name for aspect in aspects_in(text)})


def _written(text: str) -> set[str]:
    """Stems of naming words, and pairs of letters in scripts without spaces."""
    naming = query_guard.naming_words(WEB_ENDING.sub("", text))
    return {*(_stem(word) for word in naming if not _RUN.match(word)), *query_guard.letter_pairs(text)}
