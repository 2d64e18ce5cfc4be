"""What a model's draft may say: cite only exhibits, link to nothing, count only what they say.

A draft is cleared sentence by sentence, as a whole or in the pieces of a stream: citations of known
exhibits stay, links become citations or words, and a sentence with a number that nobody gave goes.
The rest is text: in markdown every sign that could begin a link, an image, code or HTML is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Annotated, Any

import regex
from pydantic import BaseModel, Field

from api.core.domain import Question
from api.core.items import Item
from api.core.text import clean, cut, one_line, quantity
from api.reports.exhibits import Dossier, Exhibit
from api.reports.insufficient_data import count_words
from api.reports.markdown_text import formatted, quotation
from api.reports.quotes import ADDRESS, ADDRESSES, LABEL, NAME, CitableText, bare, citable_text, numbers, verbatim
from api.reports.report import LONGEST_PASSAGE, Finding, FindingKind, Passage, Quote, people_by_source

LONGEST_SENTENCE = 600
"""Longest finding or sentence that a support check reads, in characters; longer ones are removed."""


def _at_most(length: int) -> dict[str, Any]:
    """Length limit for text in the model's schema; longer text is still accepted."""
    return {"maxLength": length}


class DraftPassage(BaseModel):
    """Words of one exhibit that say what the finding says."""

    cite: str = Field(description="Exhibit name such as E1", json_schema_extra=_at_most(40))
    passage: str = Field(
        description=f"Copied word for word, at most {LONGEST_PASSAGE} characters",
        json_schema_extra=_at_most(LONGEST_SENTENCE),
    )


class DraftFinding(BaseModel):
    """A finding as a writer drafts it, before its passages are checked."""

    text: str = Field(min_length=1, max_length=LONGEST_SENTENCE)
    kind: FindingKind
    evidence: list[DraftPassage]


class DraftQuote(BaseModel):
    """A quotation in a draft: the words, and the label of their exhibit."""

    text: str = Field(json_schema_extra=_at_most(LONGEST_SENTENCE))
    cite: str = Field(json_schema_extra=_at_most(40))


class Draft(BaseModel):
    """A report as the model wrote it, before any check."""

    topic: str = Field(json_schema_extra=_at_most(200))
    summary: str = Field(json_schema_extra=_at_most(1500))
    findings: list[DraftFinding]
    quotes: list[DraftQuote] = Field(default_factory=list)
    suggestions: list[Annotated[str, Field(json_schema_extra=_at_most(200))]] = Field(
        default_factory=list, description="Next questions"
    )


# `[E1]`, `(E1; E2)`: a citation after a full stop still belongs to the sentence
_CITED_AFTER = r"(?:[ \t]*[\[(（【][Ee]\d[^\n\[\]()（）【】]{0,60}[\])）】]){0,4}"
# What cannot begin such a citation: of a stream, `[E` and `[` alone may still become one.
_GOES_ON = r"(?:[^\s\[(（【]|[\[(（【](?:[^Ee]|[Ee]\D))"
# A sentence ends after a line break, after `It is warm.|`, `“Warm.”|` or `It is warm. [E1]|` before
# a space and other text, and after `。|` before anything.
_END = regex.compile(
    rf"(?<=\n)|(?<=[.!?…][\"'”’»)\]]?{_CITED_AFTER})(?=[ \t]{{1,20}}{_GOES_ON})"
    rf"|(?<=[。！？][」』”’）]?{_CITED_AFTER})(?![」』”’）])(?=[ \t]{{0,20}}{_GOES_ON})"
)
# Characters before a new piece that are searched again, since it may complete a sentence there.
_RESCANNED = 24
# `1.`, `2)` of a list: a number that nobody has to give
_MARKER = regex.compile(r"^\s*\d{1,2}[.)](?=\s|$)")
_JOINED = r"\s*+(?:[,;&、，；/–-]|and\b)\s*+"
_TOKEN = regex.compile(
    # `[words](target)`, the target with one pair of brackets within and perhaps a title
    r"(?P<image>!?)\[(?P<words>[^\[\]]*+)\]\((?P<target>(?:[^()]|\([^()]*+\))*+)\)"
    # `[E1]`, `(E1; E2)`, `【E1、E2】`
    rf"|(?P<group>[\[(（【]\s*+{NAME}(?:{_JOINED}{NAME})*+\s*+[\])）】])"
    rf"|(?P<address>{ADDRESS})"
    rf"|(?P<label>{LABEL.pattern})"
)
# Their words, quoted, with what looks like a citation of ours: `“warm [E2] mug”`
_FORGED = regex.compile(r"(?P<open>[“\"„«])(?P<words>[^“”\"„«»]{0,400}?\[\s*+[Ee]\d[^“”\"„«»]{0,400}+)(?P<end>[”\"»])")
# Nothing but names: `E1`, `E1, E2`.
_NAMES = regex.compile(rf"{NAME}(?:{_JOINED}{NAME})*+")
# Marks of what was removed and of citations: `clean` leaves no control character in any text.
_GONE = "\0"
_CITED = regex.compile("\x01([^\x02]*)\x02")
# What a removal leaves: `](`, `( )`, `< >`, and the space before a full stop or another space.
_AROUND = regex.compile(r"\]?(?:\(\s*+\0\s*+\)|\[\s*+\0\s*+\]|<\s*+\0\s*+>)")
_BLANKS = regex.compile(r"(?<![ \t])[ \t]*+\0++(?=[\s.,;:!?…。，！？]|$)|\0++")
_ANGLED = regex.compile("<(\x01[^\x02]*\x02)>")
# would turn a citation of ours into a link: `[E1](…)`, `[E1]: …`
_AFTER_CITED = regex.compile(r"^[(:{]")

# Flaws of one kind that are named to the model, and characters of each: a draft may hold thousands.
_NAMED, _NAMED_LENGTH = 10, 120


@dataclass(frozen=True, slots=True)
class DraftFlaws:
    """Flaws of a text, each listed once; falsy when there are none."""

    citations: tuple[str, ...] = ()  # labels of no exhibit
    links: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()  # numbers that neither exhibits nor question say
    uncited: int = 0  # findings without a valid passage
    passages: tuple[str, ...] = ()  # label and words that its exhibit does not hold
    general: tuple[str, ...] = ()  # findings about people in general that too few people hold

    def __bool__(self) -> bool:
        return self != DraftFlaws()

    def __add__(self, other: DraftFlaws) -> DraftFlaws:
        return DraftFlaws(
            tuple(dict.fromkeys((*self.citations, *other.citations))),
            tuple(dict.fromkeys((*self.links, *other.links))),
            tuple(dict.fromkeys((*self.numbers, *other.numbers))),
            self.uncited + other.uncited,
            tuple(dict.fromkeys((*self.passages, *other.passages))),
            tuple(dict.fromkeys((*self.general, *other.general))),
        )

    @property
    def advice(self) -> str:
        """The instruction with which a draft goes back to the model."""
        parts = []
        if self.citations:
            parts.append(f"these are no exhibits: {_first_of(self.citations)}")
        if self.links:
            parts.append("links are not allowed")
        if self.numbers:
            parts.append(f"no exhibit says these numbers: {_first_of(self.numbers)}")
        if self.uncited:
            parts.append("every finding needs a passage of at least one exhibit that exists")
        if self.passages:
            shown = _first_of(self.passages, "; ")
            parts.append(f"these passages do not stand word for word in their exhibit: {shown}")
        if self.general:
            parts.append(
                "these findings speak of people in general, but their passages are of fewer than "
                f"{GENERAL} people; write “one owner” or leave people out: {_first_of(self.general, '; ')}"
            )
        return f"Correct the report: {'; '.join(parts)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What was removed, counted, for the reader."""
        counted = (
            (len(self.citations), "unknown citation", "removed"),
            (len(self.links), "link", "that no exhibit holds removed"),
            (len(self.numbers), "number", "that no exhibit holds, with their sentences, removed"),
            (len(self.passages), "passage", "that no exhibit holds removed"),
            (self.uncited, "finding", "without a passage that stands removed"),
            (len(self.general), "finding", f"on people in general that fewer than {GENERAL} hold: a quote instead"),
        )
        return tuple(f"{quantity(count, noun)} {what}" for count, noun, what in counted if count)


def _first_of(flaws: Sequence[str], separator: str = ", ") -> str:
    shown = separator.join(cut(words, _NAMED_LENGTH) for words in flaws[:_NAMED])
    more = len(flaws) - _NAMED
    return f"{shown}{separator}and {more} more" if more > 0 else shown


class DraftCleaner:
    """Takes a text in pieces and returns what may stand of its finished sentences.

    With `markdown` a citation is `[E1, E3]`, and lists and emphasis stay. Without it the result is
    plain text for a reader who knows no labels: citations go, and a label within a sentence becomes
    the name of its source.
    """

    def __init__(self, citable: Callable[[str], CitableText], *, markdown: bool) -> None:
        """`citable` returns what a given sentence may cite; it is called for each sentence."""
        self._citable, self._markdown = citable, markdown
        self._pending = ""
        self._cited: dict[str, None] = {}
        self._after_citation = False
        self.flaws = DraftFlaws()

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in the order of first mention."""
        return tuple(self._cited)

    def feed(self, piece: str) -> str:
        """The cleared sentences that this piece completes."""
        start, text = max(0, len(self._pending) - _RESCANNED), self._pending + piece
        ends = [0, *(match.end() for match in _END.finditer(text, start))]
        self._pending = text[ends[-1] :]
        return "".join(self._clear(text[begin:end]) for begin, end in pairwise(ends))

    def close(self) -> str:
        """The last sentence, cleared, when no piece follows."""
        last, self._pending = self._pending, ""
        return self._clear(last)

    def whole(self, text: str) -> str:
        """A whole text without what may not stand in it."""
        return self.feed(text) + self.close()

    def _clear(self, sentence: str) -> str:
        text = clean(sentence)
        before = sentence[: len(sentence) - len(sentence.lstrip())].replace("\r", "")
        after = "\n" if sentence.endswith("\n") and text else ""
        parsed = _Sentence(self._citable(text), self._markdown)
        marked = parsed.marked(text)
        words = _CITED.sub("", marked).replace(_GONE, "")
        invented = [n for n in numbers(_MARKER.sub("", words)) if not parsed.citable.holds(n)]
        self.flaws += DraftFlaws(tuple(parsed.unknown), tuple(parsed.links), tuple(invented))
        off_subject = not parsed.cited and parsed.citable.elsewhere.intersection(parsed.unknown)
        if invented or parsed.names_unknown or off_subject:
            return after
        self._cited |= dict.fromkeys(parsed.cited)
        tidied = _ANGLED.sub(r"\1", _BLANKS.sub("", _AROUND.sub(_GONE, marked)))
        if not self._markdown:
            return before + tidied + after
        parts = [before]
        for index, part in enumerate(_CITED.split(tidied)):
            if index % 2:
                parts.append(f"[{part}]")
            elif part:
                follows = self._after_citation if index == 0 and not before else index > 0
                guard = "\\" if follows and _AFTER_CITED.match(part) else ""
                parts.append(guard + formatted(part))
        shown = "".join(parts) + after
        self._after_citation = shown.endswith("]") if shown else self._after_citation
        return shown


class _Sentence:
    """One sentence compared with what it may cite: its citations and its unknown parts."""

    def __init__(self, citable: CitableText, markdown: bool) -> None:
        self.citable, self._markdown = citable, markdown
        self.cited: list[str] = []
        self.unknown: list[str] = []
        self.links: list[str] = []
        self.names_unknown = False
        """A label outside brackets is of no exhibit, so the sentence means nothing without it."""

    def marked(self, text: str) -> str:
        """The text with citations between marks, and a mark for each thing that was removed."""
        parts, at = [], 0
        for match in _FORGED.finditer(text):
            if self._is_quoted(match["words"]):
                parts.append(_TOKEN.sub(self._replaced, text[at : match.start()]))
                parts.append(match["open"] + quotation(match["words"]) + match["end"])
                at = match.end()
        return "".join((*parts, _TOKEN.sub(self._replaced, text[at:])))

    def _is_quoted(self, words: str) -> bool:
        """Whether an exhibit holds these words: then what looks like a citation is theirs."""
        exhibits = self.citable.exhibits.values()
        return not ADDRESSES.search(words) and any(verbatim(words, exhibit.item) is not None for exhibit in exhibits)

    def _replaced(self, match: regex.Match[str]) -> str:
        if match["words"] is not None:
            return self._link(match["words"], match["target"], bool(match["image"]))
        if match["group"] is not None:
            labels = LABEL.findall(match["group"].upper())
            theirs = self.citable.lookalikes.issuperset(labels)
            known = any(label in self.citable.exhibits for label in labels)
            return str(match[0]) if theirs and not known else self._citation(labels)
        if match["address"] is not None:
            return self._address(match["address"])
        return self._label(match["label"])

    def _link(self, words: str, target: str, image: bool) -> str:
        """A link as its words, and as a citation where it leads to an exhibit; never as a link."""
        if _NAMES.fullmatch(words.strip()):
            return self._citation(LABEL.findall(words.upper()))
        url = next(iter(target.split()), "").strip("<>")
        if url and (image or url not in self.citable.addresses):
            self.links.append(url)
        shown = self.marked(words) or _GONE
        label = "" if image else self.citable.addresses.get(url, "")
        return f"{shown} {self._citation([label])}" if label and self._markdown else shown

    def _address(self, written: str) -> str:
        address = bare(written)
        label = self.citable.addresses.get(address)
        if label is None:
            self.links.append(address)
            return _GONE + written[len(address) :]
        if label and self._markdown:
            return self._citation([label]) + written[len(address) :]
        return written

    def _citation(self, labels: Iterable[str]) -> str:
        """The known labels between marks; plain text does not show them."""
        known = [label for label in dict.fromkeys(labels) if label in self.citable.exhibits]
        self.unknown += [label for label in labels if label not in known]
        self.cited += known
        return f"\x01{', '.join(known)}\x02" if known and self._markdown else _GONE

    def _label(self, label: str) -> str:
        """A label without brackets; a citation unless a quoted text contains the same word."""
        if label in self.citable.lookalikes:
            return label
        if label not in self.citable.exhibits:
            self.unknown.append(label)
            self.names_unknown = True
            return label
        self.cited.append(label)
        return label if self._markdown else self.citable.exhibits[label].where


@dataclass(frozen=True, slots=True)
class DraftText:
    """A draft without what may not stand, and what that was."""

    topic: str
    summary: str
    findings: tuple[Finding, ...]
    quotes: tuple[Quote, ...]
    suggestions: tuple[str, ...]
    flaws: DraftFlaws


def check(draft: Draft, dossier: Dossier, question: Question, kept: int = 0) -> DraftText:
    """Keep what may stand of a draft.

    A finding stands on passages that its exhibits hold word for word; without any it goes; one about people in
    general is only its first passage unless `GENERAL` people hold it. A number
    stands when an exhibit (for a finding: one that it cites) or the question says it, or when it is
    the number of exhibits of the finding, of all exhibits, or of all `kept` items. Quotes that are
    not verbatim, and what may not stand of a suggestion, go without a note: they claim nothing.
    """
    exhibits, wording = dossier.by_label(), (question.text, question.about)
    items = {exhibit.item.key: exhibit.item for exhibit in exhibits.values()}
    everything = citable_text(exhibits, wording)
    flaws, sound, quotes = DraftFlaws(), list[Finding](), dict[Quote, None]()
    totals = (str(len(exhibits)), str(max(kept, len(exhibits))))
    for finding in draft.findings:
        carried: dict[str, list[Passage]] = {}
        for entry in finding.evidence:
            known, unknown = _labels(entry.cite, exhibits)
            flaws += DraftFlaws(unknown)
            for label in known:
                if (passage := _passage(entry.passage, exhibits[label].item)) is not None:
                    carried.setdefault(label, []).append(passage)
                else:
                    words = cut(one_line(clean(entry.passage)), 60)
                    flaws += DraftFlaws(passages=(f"{label} “{words}”",))
        counts = (str(len(carried)), *totals)
        text, faults = _cleared(finding.text, citable_text(exhibits, wording, counts, cited=list(carried)))
        flaws += faults + DraftFlaws(uncited=not carried)
        passages = tuple(dict.fromkeys(chain.from_iterable(carried.values())))
        if text and passages:
            people = people_by_source(passages, items)
            if (held := held_by(text, passages, people)) != text:
                flaws += DraftFlaws(general=(text,))
            sound.append(Finding.resting(held, finding.kind, passages, "unverified", items))
    for quote in draft.quotes:
        known, unknown = _labels(quote.cite, exhibits)
        flaws += DraftFlaws(unknown)
        verified = (verbatim(quote.text, exhibits[label].item) for label in known)
        if (first := next(filter(None, verified), None)) is not None:
            quotes[first] = None
    topic, in_topic = _cleared(draft.topic, everything)
    given = [*(str(len(finding.cites)) for finding in sound), *totals]
    summary, in_summary = _cleared(draft.summary, citable_text(exhibits, wording, given))
    suggestions = (_cleared(text, everything)[0] for text in draft.suggestions)
    return DraftText(
        topic or plain_topic(question), summary, tuple(sound), tuple(quotes),
        tuple(filter(None, suggestions)), flaws + in_topic + in_summary,
    )  # fmt: skip


GENERAL = 3
"""Independent people whose words a claim about people in general needs at least."""
# `owners`, `two users`: by hand, the plural nouns for who owns, uses or buys something, in the languages in which
# questions are most often asked; with the number before them, which may say how many they are
_PEOPLE = (
    "owners users people customers buyers purchasers consumers reviewers commenters posters players patients drivers"
    " besitzer nutzer benutzer anwender kunden käufer leute usuarios clientes compradores dueños gente personas"
    " utilisateurs clients acheteurs propriétaires gens usuários utilizadores donos pessoas utenti clienti acquirenti"
    " proprietari persone"
).split()
# `many complain`, not `too many clicks`; `most of them`; `everyone`
_SAYING = "who say find complain report like love hate feel think want ask agree mention praise are have had"
_GENERAL = regex.compile(
    rf"(?<number>\b(?:one|two|1|2)\s+(?:\p{{L}}+\s+)?)?\b(?:{'|'.join(_PEOPLE)})\b"
    rf"|\b(?:most|many|all)\s+(?:of (?:them|us)|{'|'.join(_SAYING.split())})\b"
    r"|\b(?:everyone|everybody|nobody|the majority|widely|commonly|generally)\b"
    r"|ユーザー|みんな|多くの人|用户|大家|很多人|大多数",
    regex.I,
)


_QUOTED = regex.compile(r"“[^”]*”")


def held_by(text: str, passages: Sequence[Passage], people: Mapping[str, int]) -> str:
    """The sentence, or a quotation of its first passage when it generalises about fewer than `GENERAL` people."""
    total, own = sum(people.values()), _QUOTED.sub("", text)
    if total >= GENERAL or not any(match["number"] is None for match in _GENERAL.finditer(own)):
        return text
    return f"“{quotation(passages[0].passage)}”"


def plain_topic(question: Question) -> str:
    """The question's text on one line, as a headline that claims nothing."""
    return one_line(clean(question.text))


# Two words (`on time`), or a run of six letters as a script without spaces has (`音质很好而且`): a
# single short word says nothing by itself.
_MEANINGFUL = regex.compile(r"\S\s+\S|\p{L}{6}")


def _passage(words: str, item: Item) -> Passage | None:
    """The words as the item holds them, cut to `LONGEST_PASSAGE` between words."""
    quote = verbatim(words, item)
    if quote is None or not _MEANINGFUL.search(quote.text):
        return None
    text = quote.text
    if len(text) > LONGEST_PASSAGE:
        text = cut(text, LONGEST_PASSAGE).rpartition(" ")[0] or cut(text, LONGEST_PASSAGE)
    return Passage(quote.key, text, quote.comment_id)


def quotes_of(findings: Iterable[Finding], exhibits: Iterable[Exhibit]) -> tuple[Quote, ...]:
    """The first passage of each finding, with its address."""
    items = {exhibit.item.key: exhibit.item for exhibit in exhibits}
    quotes: dict[Quote, None] = {}
    for finding in findings:
        for passage in finding.evidence[:1]:
            item = items[passage.key]
            urls = {comment.id: comment.url for comment in item.comments}
            url = urls.get(passage.comment_id or "") or item.url
            quotes[Quote(passage.passage, item.key, url, passage.comment_id)] = None
    return tuple(quotes)


def shortened(draft: DraftText, words: int) -> DraftText:
    """The draft with the first findings that fit into `words` together with the summary; at least one finding stays."""
    left = words - count_words(draft.summary)
    kept: list[Finding] = []
    for finding in draft.findings:
        left -= count_words(finding.text)
        if left < 0 and kept:
            break
        kept.append(finding)
    return replace(draft, findings=tuple(kept))


def _cleared(text: str, citable: CitableText) -> tuple[str, DraftFlaws]:
    cleaner = DraftCleaner(lambda _: citable, markdown=False)
    return one_line(cleaner.whole(text)), cleaner.flaws


def _labels(cite: str, exhibits: Mapping[str, Exhibit]) -> tuple[list[str], tuple[str, ...]]:
    """Known and unknown labels in a cite: `E1, E2`, `[E1]`; without any label it is unknown."""
    plain = one_line(clean(cite))
    labels = dict.fromkeys(LABEL.findall(plain.upper()) or ([plain[:40]] if plain else []))
    known = [label for label in labels if label in exhibits]
    return known, tuple(label for label in labels if label not in exhibits)
