"""The keyless writer: what the items speak of, counted, and whole sentences of theirs that show it.

It claims nothing but that a theme is spoken of, by how many, and which way they lean where that is
sure. A theme is a known aspect of products or a telling word that three items share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from api.services.question.comparing import compared
from api.services.question.naming import sought
from api.services.reporting.aspects import aspects, aspects_in
from api.services.reporting.counting import COUNTED, SMALL
from api.services.reporting.dossier import Exhibit
from api.services.reporting.findings import LONGEST_PASSAGE, FindingKind
from api.services.reporting.polarity import ASKING, WISHING, lean_of
from api.services.reporting.sentences import beginning, sentences
from api.services.reporting.speaking import speaks_of, speaks_plainly
from api.services.reporting.subjects import Subject
from api.services.reporting.telling import telling_words
from api.services.reporting.threads import is_elsewhere, is_told_apart, is_topic
from api.services.schemas import Comment, Question
from api.services.text import one_line

THEMES, PASSAGES, TELLING = 7, 4, 3
"""Themes of a report, passages worth showing, and themes named by a telling word, at most."""
SHARED, FEW = 3, 3
"""Items that make a theme, and themes below which those of two posts are shown, too."""
DOUBTED = 0.55
"""Below this probability a kept item's passages come last."""
KIND = "app"
"""A theme that says nothing when it is the kind of thing that is asked for (`Bolt app`)."""
# what takes back the sentence before it: `But I dropped it`
_TURNING = regex.compile(r"(?:But|However|Aber|Pero|Mais)\b")
UNNAMED = "No shared theme"
"""What a finding is called when the posts share none."""


@dataclass(frozen=True, slots=True)
class ThemePassage:
    """A whole sentence of an exhibit, word for word."""

    label: str
    """The exhibit's name."""
    comment_id: str | None
    """The comment it stands in; None for title and body."""
    text: str
    lean: int | None = None
    """Which way it leans about the theme it is shown for, where that is sure."""


@dataclass(frozen=True, slots=True)
class ThemeFinding:
    """One theme: how many speak of it, and passages that show it."""

    name: str
    text: str
    kind: FindingKind
    passages: tuple[ThemePassage, ...]
    """One of each exhibit that was counted, the most telling first."""

    @property
    def shown(self) -> tuple[ThemePassage, ...]:
        """Those worth showing to a person."""
        return self.passages[:PASSAGES]


@dataclass(frozen=True, slots=True)
class Themed:
    """What the keyless writer has to say."""

    topic: str
    summary: str
    """Counts and names of themes."""
    findings: tuple[ThemeFinding, ...]
    suggestions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Speech:
    """A sentence about the product, and how it is meant."""

    passage: ThemePassage
    named: bool
    wish: bool
    question: bool
    doubted: bool
    """The judge was hardly sure that its item is about the product."""
    lean: int | None = None
    """Where the theme it is held under is what it leans about."""
    turn: str = ""
    """The next sentence, where that one turns it round."""

    def under(self, theme: regex.Pattern[str]) -> _Speech:
        """The same sentence with its lean about a theme."""
        if not self.turn:
            return replace(self, lean=lean_of(self.passage.text, theme))
        whole = f"{self.passage.text} {self.turn}"
        shown = whole if len(whole) <= LONGEST_PASSAGE else self.passage.text
        return replace(self, passage=replace(self.passage, text=shown))

    def holds(self, theme: regex.Pattern[str], subject: Subject) -> bool:
        """Whether it speaks of a theme."""
        return speaks_of(self.passage.text, theme, subject)


def find_themes(
    question: Question,
    exhibits: Sequence[Exhibit],
    *,
    most: int = THEMES,
    focus: Sequence[str] = (),
) -> Themed:
    """The themes of the exhibits, those that the question names first, then by how many speak.

    With a `focus`, words that the question is about, only what is said of those, by one post too.
    """
    texts = [beginning(text) for exhibit in exhibits for text in exhibit.item.texts]
    subject = Subject.of(question, texts)
    speeches = [speech for exhibit in exhibits for speech in _speeches(exhibit, subject)]
    stated = " ".join((question.text, question.about, *(e.item.title for e in exhibits)))
    themes = {aspect.name: aspect.pattern for aspect in aspects() if aspect.fits(stated)}
    if focus:
        named = [[aspect.name for aspect in aspects_in(word)] or [word] for word in focus]
        themes = {name: themes.get(name, _pattern(name)) for names in named for name in names}
    else:
        themes.pop(KIND if KIND in question.text.lower().split() else "", None)
        labelled = ((speech.passage.label, speech.passage.text) for speech in speeches)
        telling = telling_words(labelled, subject, question, SHARED)[:TELLING]
        themes |= {word: _pattern(word) for word in telling}
    wanted = {aspect.name for aspect in aspects_in(subject.pattern.sub(" ", question.text))}
    findings = sorted(
        (
            _finding(name, held, len(exhibits))
            for name, pattern in themes.items()
            if (held := _speaking(speeches, pattern, subject))
        ),
        key=lambda finding: (finding.name.lower() not in wanted, -len(finding.passages)),
    )
    whole = [
        finding
        for finding in findings
        if len(finding.passages) >= SHARED or finding.name.lower() in wanted
    ]
    few = [finding for finding in findings if len(finding.passages) > 1][:FEW]
    chosen = findings if focus else whole if len(whole) >= FEW else few
    chosen = _shown_once(chosen[:most])
    name = subject.name or "it"
    topic = f"the {' and '.join(sorted(wanted))} of {name}" if wanted and subject.name else ""
    return Themed(
        f"What people say about {topic or one_line(sought(question.text))}",
        _summary(chosen, len(exhibits)),
        tuple(chosen) or tuple(() if focus else _bare(exhibits, speeches, subject)),
        tuple(
            f"What do people say about the {finding.name.lower()} of {name}?"
            for finding in (() if compared(question.text) else chosen[:3])
        ),
    )


def recounted(sentence: str, count: int) -> str | None:
    """The sentence of a theme with another count of posts; None for any other sentence.

    Leans go: nobody knows whose are left.
    """
    match = COUNTED.match(sentence)
    if match is None or not match["total"]:
        return None
    return f"{match['name']}: {_count(count, int(match['total']))}."


def is_spoken_of(name: str, text: str) -> bool:
    """Whether a text speaks of the theme with that name."""
    named = (aspect for aspect in aspects() if aspect.name == name.lower())
    pattern = next((aspect.pattern for aspect in named), _pattern(name))
    return name == UNNAMED or pattern.search(text) is not None


def _speeches(exhibit: Exhibit, subject: Subject) -> Iterator[_Speech]:
    """The sentences about the product; what a shop says of its own goods is no opinion."""
    item = exhibit.item
    if is_elsewhere(item, subject):
        return
    probability = exhibit.assessed.verdict.probability
    doubted = probability is not None and probability < DOUBTED
    topic = is_topic(item, subject)
    places: list[tuple[str, Comment | None]] = [(item.title, None), (item.body, None)]
    places = [] if item.source == "amazon" else places
    places += [(comment.body, comment) for comment in item.comments]
    for text, comment in places:
        named = False
        spoken = sentences(beginning(text))
        for sentence, following in zip(spoken, (*spoken[1:], ""), strict=False):
            short = len(sentence) <= LONGEST_PASSAGE
            about = short and subject.is_subject(sentence, topic=topic, follows=named)
            named = subject.is_named(sentence) or (named and about)
            if about:
                passage = ThemePassage(exhibit.label, comment.id if comment else None, sentence)
                asks = ASKING.search(sentence) is not None
                wish = not asks and WISHING.search(sentence) is not None
                turn = following if _TURNING.match(following) else ""
                turn = turn if f"{sentence} {turn}" in text else ""
                name = subject.is_named(sentence)
                yield _Speech(passage, name, wish, asks, doubted, turn=turn)


def _pattern(word: str) -> regex.Pattern[str]:
    """A word with its endings."""
    return regex.compile(rf"(?<!\w){regex.escape(word)}", regex.I)


def _finding(name: str, held: Sequence[_Speech], total: int) -> ThemeFinding:
    by_label: dict[str, list[_Speech]] = {}
    for speech in held:
        by_label.setdefault(speech.passage.label, []).append(speech)
    leans = Counter(lean for spoken in by_label.values() if (lean := _lean(spoken)))
    wishes = sum(any(speech.wish for speech in spoken) for spoken in by_label.values())
    title = name[0].upper() + name[1:]
    return ThemeFinding(
        title,
        f"{title}: {_count(len(by_label), total)}{_leaning(leans, len(by_label))}.",
        _kind(leans, wishes, len(by_label)),
        tuple(replace(speech.passage, lean=speech.lean) for speech in _telling_first(by_label)),
    )


def _speaking(
    speeches: Iterable[_Speech], theme: regex.Pattern[str], subject: Subject
) -> list[_Speech]:
    """What speaks of a theme; where few posts do, none that is doubted, and one alone plainly."""
    held = [speech.under(theme) for speech in speeches if speech.holds(theme, subject)]
    if len({speech.passage.label for speech in held}) >= SHARED:
        return held
    sure = [speech for speech in held if not speech.doubted]
    if len({speech.passage.label for speech in sure}) > 1:
        return sure
    return [speech for speech in sure if speaks_plainly(speech.passage.text, theme, subject)]


def _shown_once(findings: Sequence[ThemeFinding]) -> list[ThemeFinding]:
    """The same findings; a sentence shown under one comes last under those after it."""
    shown: set[str] = set()
    ordered = []
    for finding in findings:
        passages = sorted(finding.passages, key=lambda passage: passage.text in shown)
        ordered.append(replace(finding, passages=tuple(passages)))
        shown |= {passage.text for passage in ordered[-1].shown}
    return ordered


def _lean(spoken: Iterable[_Speech]) -> int | None:
    """An exhibit's lean: what all its sure sentences agree on."""
    leans = {speech.lean for speech in spoken if speech.lean is not None}
    return leans.pop() if len(leans) == 1 else None


def _telling_first(by_label: dict[str, list[_Speech]]) -> list[_Speech]:
    """The most telling sentence of each exhibit; one of each side first, doubted ones last."""

    def weight(speech: _Speech) -> float:
        length, sides = len(speech.passage.text), len(aspects_in(speech.passage.text))
        fits = (30 <= length <= 160) + 0.5 * (speech.wish + speech.named) - 1.5 * speech.question
        return 2 * bool(speech.lean) + fits - 0.4 * sides

    best = [max(spoken, key=weight) for spoken in by_label.values()]
    best.sort(key=weight, reverse=True)
    sides = [next((speech for speech in best if speech.lean == side), None) for side in (1, -1)]
    first = [speech for speech in sides if speech is not None]
    order = [*first, *(speech for speech in best if speech not in first)]
    return sorted(order, key=lambda speech: speech.doubted)


def _count(
    number: int, total: int, singular: str = "speaks of it", plural: str = "speak of it"
) -> str:
    least = "at least " if number < total else ""
    if number < SHARED:
        return least + (f"one post {singular}" if number == 1 else f"two posts {plural}")
    return f"{least}{number} of {total} kept posts {plural}"


def _leaning(leans: Counter[int], speaking: int) -> str:
    sides = [(leans[1], "positive"), (leans[-1], "negative")]
    parts = [(_worded(count), side) for count, side in sides if count]
    if not parts:
        return ""
    (count, side), *rest = parts
    verb = "leans" if count == "one" else "lean"
    least = "at least " if leans.total() < speaking else ""  # the others' lean is not sure
    return f"; {least}{count} {verb} {side}" + "".join(f", {more} {other}" for more, other in rest)


def _worded(count: int) -> str:
    return SMALL[count] if count < len(SMALL) else str(count)


def _kind(leans: Counter[int], wishes: int, total: int) -> FindingKind:
    if len(leans) == 1 and leans.total() >= max(2, total / 2):
        return "praise" if leans[1] else "complaint"
    return "request" if not leans and 2 * wishes >= total else "other"


def _summary(findings: Sequence[ThemeFinding], total: int) -> str:
    if not findings:
        return "The posts share no theme that could be counted."
    named = ", ".join(f"{finding.name.lower()} ({len(finding.passages)})" for finding in findings)
    posts = "one kept post" if total == 1 else f"{total} kept posts"
    return f"Themes of {posts}, each count a minimum: {named}."


def _bare(
    exhibits: Sequence[Exhibit], speeches: Sequence[_Speech], subject: Subject
) -> Iterator[ThemeFinding]:
    """Without a theme: how many name the product, and the first sentence or title that does."""
    first = {speech.passage.label: speech.passage for speech in reversed(speeches) if speech.named}
    passages = (
        first.get(exhibit.label) or ThemePassage(exhibit.label, None, one_line(exhibit.item.title))
        for exhibit in exhibits
        if is_told_apart(exhibit.item, subject) and not is_elsewhere(exhibit.item, subject)
    )
    held = tuple(
        passage
        for passage in passages
        if len(passage.text) <= LONGEST_PASSAGE and subject.is_named(passage.text)
    )
    if held:
        count = _count(len(held), len(exhibits), "is about it", "are about it")
        yield ThemeFinding(UNNAMED, f"{UNNAMED}: {count}.", "other", held)
