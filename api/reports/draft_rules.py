"""What a written draft may say: cite only exhibits, link to nothing, count only what they say.

The one clearing of what a model wrote, in pieces or as a whole, sentence by sentence.

Citations stand when their exhibit does; links become what we say they are (a citation, or words);
a sentence with a number that nobody gave goes. Whatever is left is text: in markdown every sign
that could begin a link, an image, code or HTML is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

import regex

from api.core.domain import Item, Question
from api.core.text import clean, cut, one_line
from api.reports.citable import (
    ADDRESS,
    ADDRESSES,
    LABEL,
    NAME,
    CitableText,
    bare,
    ground_of,
    numbers,
)
from api.reports.exhibits import Dossier, Exhibit
from api.reports.markdown_text import formatted, quotation
from api.reports.quotes import verbatim
from api.reports.report import LONGEST_PASSAGE, Finding, FindingKind, Passage, Quote
from api.reports.shortfall import words as counted_words

# `[E1]`, `(E1; E2)`: what may stand behind a full stop and still belongs to the sentence
_CITED_AFTER = r"(?:[ \t]*[\[(（【][Ee]\d[^\n\[\]()（）【】]{0,60}[\])）】]){0,4}"
# What begins no such citation: `[E` and `[` alone may still become one.
_GOES_ON = r"(?:[^\s\[(（【]|[\[(（【](?:[^Ee]|[Ee]\D))"
# Behind a line break, `It is warm.|` or `It is warm. [E1]|` before a blank and something else
# (`“Warm.”|` too), and `。|` before anything.
_END = regex.compile(
    rf"(?<=\n)|(?<=[.!?…][\"'”’»)\]]?{_CITED_AFTER})(?=[ \t]{{1,20}}{_GOES_ON})"
    rf"|(?<=[。！？][」』”’）]?{_CITED_AFTER})(?![」』”’）])(?=[ \t]{{0,20}}{_GOES_ON})"
)
# Characters before a new piece that may turn out to end a sentence.
_LOOK_BACK = 24
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
_FORGED = regex.compile(
    r"(?P<open>[“\"„«])(?P<words>[^“”\"„«»]{0,400}?\[\s*+[Ee]\d[^“”\"„«»]{0,400}+)(?P<end>[”\"»])"
)
# Nothing but names: `E1`, `E1, E2`.
_NAMES = regex.compile(rf"{NAME}(?:{_JOINED}{NAME})*+")
# Where something was taken out: no text holds one, since `clean` lets no control character by.
_GONE = "\0"
_CITED = regex.compile("\x01([^\x02]*)\x02")
# What is left around it: `](`, `( )`, `< >`, and the blank before a full stop or another blank.
_AROUND = regex.compile(r"\]?(?:\(\s*+\0\s*+\)|\[\s*+\0\s*+\]|<\s*+\0\s*+>)")
_BLANKS = regex.compile(r"(?<![ \t])[ \t]*+\0++(?=[\s.,;:!?…。，！？]|$)|\0++")
_ANGLED = regex.compile("<(\x01[^\x02]*\x02)>")
_AFTER_CITED = regex.compile(r"^[(:{]")

# Things of one kind that a model is told of, and characters of each.
_ADVISED, _ADVISED_LENGTH = 10, 120


@dataclass(frozen=True, slots=True)
class DraftFlaws:
    """What is wrong with written words, each thing once; falsy when nothing is."""

    citations: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    uncited: int = 0
    """Findings without a passage that stands."""
    passages: tuple[str, ...] = ()
    """Exhibit name and words that it does not hold."""

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.citations or self.links or self.numbers or self.uncited or self.passages)

    def __add__(self, other: DraftFlaws) -> DraftFlaws:
        """Those of two texts."""
        return DraftFlaws(
            tuple(dict.fromkeys((*self.citations, *other.citations))),
            tuple(dict.fromkeys((*self.links, *other.links))),
            tuple(dict.fromkeys((*self.numbers, *other.numbers))),
            self.uncited + other.uncited,
            tuple(dict.fromkeys((*self.passages, *other.passages))),
        )

    @property
    def advice(self) -> str:
        """What the model is told when its draft comes back: of each kind the first few."""
        parts = []
        if self.citations:
            parts.append(f"these are no exhibits: {_some(self.citations)}")
        if self.links:
            parts.append("links are not allowed")
        if self.numbers:
            parts.append(f"no exhibit says these numbers: {_some(self.numbers)}")
        if self.uncited:
            parts.append("every finding needs a passage of at least one exhibit that exists")
        if self.passages:
            parts.append(
                "these passages do not stand word for word in their exhibit: "
                f"{_some(self.passages, '; ')}"
            )
        return f"Correct the report: {'; '.join(parts)}."

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader is told was removed."""
        counted = (
            (len(self.citations), "unknown citation(s) removed"),
            (len(self.links), "link(s) that no exhibit holds removed"),
            (len(self.numbers), "number(s) that no exhibit holds, with their sentences, removed"),
            (len(self.passages), "passage(s) that no exhibit holds removed"),
            (self.uncited, "finding(s) without a passage that stands removed"),
        )
        return tuple(f"{count} {what}" for count, what in counted if count)


def _some(wrong: Sequence[str], between: str = ", ") -> str:
    """The first of them, each cut, and how many more there are: an answer may hold thousands."""
    shown = between.join(cut(words, _ADVISED_LENGTH) for words in wrong[:_ADVISED])
    more = len(wrong) - _ADVISED
    return f"{shown}{between}and {more} more" if more > 0 else shown


class DraftCleaner:
    """Takes words in pieces and gives back what stands of them.

    In `markdown` a citation is `[E1, E3]` and lists and emphasis stay. Without it the result is
    plain text for a reader who knows no exhibit names: citations leave it, and a name within a
    sentence becomes that of the place.
    """

    def __init__(self, ground: Callable[[str], CitableText], *, markdown: bool) -> None:
        """`ground` says what a sentence may rest on; it is asked anew for each."""
        self._ground, self._markdown = ground, markdown
        self._rest = ""
        self._cited: dict[str, None] = {}
        self._after_cited = False
        self.flaws = DraftFlaws()

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in the order of first mention."""
        return tuple(self._cited)

    def feed(self, piece: str) -> str:
        """What is complete and stands."""
        start, text = max(0, len(self._rest) - _LOOK_BACK), self._rest + piece
        ends = [0, *(match.end() for match in _END.finditer(text, start))]
        self._rest = text[ends[-1] :]
        return "".join(self._clear(text[here:there]) for here, there in pairwise(ends))

    def close(self) -> str:
        """What is left over at the end."""
        last, self._rest = self._rest, ""
        return self._clear(last)

    def whole(self, text: str) -> str:
        """What stands of a whole text."""
        return self.feed(text) + self.close()

    def _clear(self, sentence: str) -> str:
        text = clean(sentence)
        before = sentence[: len(sentence) - len(sentence.lstrip())].replace("\r", "")
        after = "\n" if sentence.endswith("\n") and text else ""
        parsed = _Sentence(self._ground(text), self._markdown)
        marked = parsed.marked(text)
        given = _CITED.sub("", marked).replace(_GONE, "")
        unsaid = [n for n in numbers(_MARKER.sub("", given)) if not parsed.ground.holds(n)]
        self.flaws += DraftFlaws(tuple(parsed.unknown), tuple(parsed.links), tuple(unsaid))
        rests_elsewhere = not parsed.cited and parsed.ground.elsewhere.intersection(parsed.unknown)
        if unsaid or parsed.unfounded or rests_elsewhere:
            return after
        self._cited |= dict.fromkeys(parsed.cited)
        tidied = _ANGLED.sub(r"\1", _BLANKS.sub("", _AROUND.sub(_GONE, marked)))
        if not self._markdown:
            return before + tidied + after
        parts = [before]
        for place, part in enumerate(_CITED.split(tidied)):
            if place % 2:
                parts.append(f"[{part}]")
            elif part:
                # `[E1](…)`, `[E1]: …` would make a link of our own citation
                follows = self._after_cited if place == 0 and not before else place > 0
                guard = "\\" if follows and _AFTER_CITED.match(part) else ""
                parts.append(guard + formatted(part))
        shown = "".join(parts) + after
        self._after_cited = shown.endswith("]") if shown else self._after_cited
        return shown


class _Sentence:
    """One sentence against its ground: what it cites, and what of it is not there."""

    def __init__(self, ground: CitableText, markdown: bool) -> None:
        self.ground, self._markdown = ground, markdown
        self.cited: list[str] = []
        self.unknown: list[str] = []
        self.links: list[str] = []
        self.unfounded = False
        """The sentence speaks of an exhibit that does not exist."""

    def marked(self, text: str) -> str:
        """The text with citations between marks, and a mark where something was taken out."""
        parts, at = [], 0
        for match in _FORGED.finditer(text):
            if self._is_quoted(match["words"]):
                parts.append(_TOKEN.sub(self._replaced, text[at : match.start()]))
                parts.append(match["open"] + quotation(match["words"]) + match["end"])
                at = match.end()
        return "".join((*parts, _TOKEN.sub(self._replaced, text[at:])))

    def _is_quoted(self, words: str) -> bool:
        """Whether an exhibit holds the words as they are: then what they cite is no exhibit."""
        exhibits = self.ground.exhibits.values()
        return not ADDRESSES.search(words) and any(
            verbatim(words, exhibit.item) is not None for exhibit in exhibits
        )

    def _replaced(self, match: regex.Match[str]) -> str:
        if match["words"] is not None:
            return self._link(match["words"], match["target"], bool(match["image"]))
        if match["group"] is not None:
            labels = LABEL.findall(match["group"].upper())
            theirs = self.ground.lookalikes.issuperset(labels)
            return str(match[0]) if theirs and not self._known(labels) else self._citation(labels)
        if match["address"] is not None:
            return self._address(match["address"])
        return self._name(match["label"])

    def _link(self, words: str, target: str, image: bool) -> str:
        """A link as its words, and as a citation where it leads to an exhibit; never as a link."""
        labels = LABEL.findall(words.upper())
        if _NAMES.fullmatch(words.strip()):
            return self._citation(labels)
        url = next(iter(target.split()), "").strip("<>")
        if url and (image or url not in self.ground.addresses):
            self.links.append(url)
        shown = self.marked(words) or _GONE
        label = "" if image else self.ground.addresses.get(url, "")
        return f"{shown} {self._citation([label])}" if label and self._markdown else shown

    def _address(self, written: str) -> str:
        address = bare(written)
        label = self.ground.addresses.get(address)
        if label is None:
            self.links.append(address)
            return _GONE + written[len(address) :]
        if label and self._markdown:
            return self._citation([label]) + written[len(address) :]
        return written

    def _citation(self, labels: Iterable[str]) -> str:
        """Those of the labels that exist, which plain text does not show."""
        known = self._known(labels)
        self.unknown += [label for label in labels if label not in known]
        self.cited += known
        return f"\x01{', '.join(known)}\x02" if known and self._markdown else _GONE

    def _name(self, label: str) -> str:
        """A name outside brackets: a citation too, unless it is a word of theirs."""
        if label in self.ground.lookalikes:
            return label
        if label not in self.ground.exhibits:
            self.unknown.append(label)
            self.unfounded = True
            return label
        self.cited.append(label)
        return label if self._markdown else self.ground.exhibits[label].where

    def _known(self, labels: Iterable[str]) -> list[str]:
        return [label for label in dict.fromkeys(labels) if label in self.ground.exhibits]


# Two words (`on time`), or one run of six letters, which an unspaced script has (`音质很好而且`).
_TELLING = regex.compile(r"\S\s+\S|\p{L}{6}")


@dataclass(frozen=True, slots=True)
class DraftText:
    """A draft with everything unsound taken out, and what that was."""

    topic: str
    summary: str
    findings: tuple[Finding, ...]
    quotes: tuple[Quote, ...]
    suggestions: tuple[str, ...]
    flaws: DraftFlaws


def check(
    topic: str,
    summary: str,
    findings: Sequence[tuple[str, FindingKind, Sequence[tuple[str, str]]]],
    quotes: Sequence[tuple[str, str]],
    suggestions: Sequence[str],
    dossier: Dossier,
    question: Question,
    kept: int = 0,
) -> DraftText:
    """Keep what stands; findings are (text, kind, evidence), evidence and quotes (words, label).

    A finding stands on passages that its exhibits hold word for word; one without any goes. A
    sentence with a number stands when an exhibit (for a finding: one it rests on) or the question
    says that number, or when so many exhibits carry the finding, were shown, or are the best of so
    many `kept` items. Quotes that are not verbatim are left out without a note: nothing is claimed
    by them. Nor by a next question: what does not stand of it goes quietly.
    """
    exhibits, wording = dossier.by_label(), (question.text, question.about)
    everything = ground_of(exhibits, wording)
    flaws, sound, quoted = DraftFlaws(), [], []
    totals = (str(len(exhibits)), str(max(kept, len(exhibits))))
    for text, kind, evidence in findings:
        carried: dict[str, list[Passage]] = {}
        for words, cite in evidence:
            known, unknown = _sorted([cite], everything)
            flaws += DraftFlaws(unknown)
            for label in known:
                passage = _passage(words, exhibits[label].item)
                if passage is None:
                    flaws += DraftFlaws(passages=(f"{label} “{cut(one_line(clean(words)), 60)}”",))
                else:
                    carried.setdefault(label, []).append(passage)
        counts = (str(len(carried)), *totals)
        left, _, faults = _cleared(text, ground_of(exhibits, wording, counts, cited=list(carried)))
        flaws += faults + DraftFlaws(uncited=not carried)
        passages = dict.fromkeys(chain.from_iterable(carried.values()))
        if left and passages:
            sound.append(Finding.resting(left, kind, tuple(passages), "unverified"))
    for words, cite in quotes:
        known, unknown = _sorted([cite], everything)
        flaws += DraftFlaws(unknown)
        verified = (verbatim(words, exhibits[label].item) for label in known)
        quoted += [quote for quote in verified if quote is not None][:1]
    title, _, in_title = _cleared(topic, everything)
    given = [*(str(len(finding.cites)) for finding in sound), *totals]
    abstract, _, in_abstract = _cleared(summary, ground_of(exhibits, wording, given))
    questions = (_cleared(text, everything)[0] for text in suggestions)
    return DraftText(
        title or plain_topic(question), abstract, tuple(sound),
        tuple(dict.fromkeys(quoted)), tuple(filter(None, questions)),
        flaws + in_title + in_abstract,
    )  # fmt: skip


def plain_topic(question: Question) -> str:
    """The headline that claims nothing."""
    return one_line(clean(question.text))


def _passage(words: str, item: Item) -> Passage | None:
    """The words as the item holds them, at most `LONGEST_PASSAGE`; a single short word is none."""
    quote = verbatim(words, item)
    if quote is None or not _TELLING.search(quote.text):
        return None
    text = quote.text
    if len(text) > LONGEST_PASSAGE:
        text = cut(text, LONGEST_PASSAGE).rpartition(" ")[0] or cut(text, LONGEST_PASSAGE)
    return Passage(quote.key, text, quote.comment_id)


def quotes_of(findings: Iterable[Finding], exhibits: Iterable[Exhibit]) -> tuple[Quote, ...]:
    """The first passage of each finding, with the address it stands at."""
    items = {exhibit.item.key: exhibit.item for exhibit in exhibits}
    quotes: dict[Quote, None] = {}
    for finding in findings:
        for passage in finding.evidence[:1]:
            item = items[passage.key]
            urls = {comment.id: comment.url for comment in item.comments}
            url = urls.get(passage.comment_id or "") or item.url
            quotes[Quote(passage.passage, item.key, url, passage.comment_id)] = None
    return tuple(quotes)


def shortened(drafted: DraftText, words: int) -> DraftText:
    """The leading findings that fit, the summary counted; the first one always stays."""
    left = words - counted_words(drafted.summary)
    kept = list(drafted.findings[:1])
    left -= sum(counted_words(finding.text) for finding in kept)
    for finding in drafted.findings[1:]:
        left -= counted_words(finding.text)
        if left < 0:
            break
        kept.append(finding)
    return replace(drafted, findings=tuple(kept))


def _cleared(text: str, ground: CitableText) -> tuple[str, tuple[str, ...], DraftFlaws]:
    """What stands of a text, on one line, the labels it cites, and what did not stand."""
    clearing = DraftCleaner(lambda _: ground, markdown=False)
    kept = one_line(clearing.whole(text))
    return kept, clearing.cited, clearing.flaws


def _sorted(cites: Sequence[str], ground: CitableText) -> tuple[list[str], tuple[str, ...]]:
    """Exhibit names in what a model wrote as cites, known and unknown ones.

    A cite may hold several (`E1, E2`) or brackets; what holds none is one unknown name.
    """
    plain = [one_line(clean(cite)) for cite in cites]
    named = [LABEL.findall(cite.upper()) or [cite[:40]] for cite in plain if cite]
    labels = dict.fromkeys(label for group in named for label in group)
    known = [label for label in labels if label in ground.exhibits]
    return known, tuple(label for label in labels if label not in ground.exhibits)
