"""The keyless writer: what the items speak of, counted, and whole sentences of theirs that show it.

It claims nothing but that a theme is spoken of, by how many, and which way they lean where that is
sure. A theme is a known aspect of products or a telling word that three items share.

A theme as it is shown, and what of it answers a question about one side of a product.

Telling words: nouns that several posts share, whatever the product is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import regex

from api.core.domain import Comment, Question
from api.core.text import fold, one_line
from api.core.words import stop_words
from api.pipeline.question.product_name import search_words
from api.pipeline.question.query_guard import compared_names
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspect_words, aspects, aspects_in, aspects_named
from api.reports.keyless.polarity import ASKING, WISHING, lean_of, lean_wanted
from api.reports.keyless.sentence_topic import KIND, speaks_of, speaks_plainly
from api.reports.keyless.subjects import (
    OTHER_NAMES,
    Subject,
    is_elsewhere,
    is_told_apart,
    is_topic,
    thread_of,
)
from api.reports.keyless.theme_sentences import SHARED, count_of, leaning_of, summary_of
from api.reports.quotes import beginning, sentences
from api.reports.report import LONGEST_PASSAGE, FindingKind

PASSAGES = 4
"""Passages of one theme worth showing, at most."""
SIDES = {1: "praise", -1: "a complaint"}
"""What a sentence is that leans one way."""
VERBS = {None: "say", 1: "like", -1: "dislike"}
"""What people do, in the headline of a question about neither side or one."""


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

    def leans(self, lean: int | None) -> bool:
        """Whether something of it surely leans as was asked for; nothing does so for None."""
        return lean is not None and any(passage.lean == lean for passage in self.passages)


def one_side(passages: Iterable[ThemePassage], lean: int | None) -> tuple[ThemePassage, ...]:
    """What surely leans as was asked for first, and nothing that leans the other way."""
    if lean is None:
        return tuple(passages)
    kept = [passage for passage in passages if passage.lean != -lean]
    return tuple(sorted(kept, key=lambda passage: passage.lean != lean))


def shown_once(findings: Iterable[ThemeFinding]) -> list[ThemeFinding]:
    """The same findings; a sentence shown under one comes last under those after it."""
    shown: set[str] = set()
    ordered = []
    for finding in findings:
        passages = sorted(finding.passages, key=lambda passage: passage.text in shown)
        ordered.append(replace(finding, passages=tuple(passages)))
        shown |= {passage.text for passage in ordered[-1].shown}
    return ordered


def unsure_side(findings: Iterable[ThemeFinding], lean: int | None) -> str:
    """What is asked for that nothing surely is: `a complaint`; "" where something is."""
    if lean is None or any(finding.leans(lean) for finding in findings):
        return ""
    return SIDES[lean]


# a noun for all that its neighbour tells: `the lanyard`, `my lanyard`, `der Clip`, `no clip`
_NOUN = regex.compile(
    r"\b(?:the|a|an|my|its|your|their|no|this|that|der|die|das|den|dem|ein|eine|mein|kein|el|la"
    r"|los|las|un"
    r"|una|le|les|une|o|os|as|um|uma)\s+(\p{L}[\p{L}-]{3,})\b",
    regex.I,
)
_WORD = regex.compile(r"\p{L}[\p{L}-]{3,}")
# Nouns that name no theme.
_VAGUE = frozenset(
    "thing things people person month months year years week weeks weekend hour hours minute "
    "minutes night morning evening time times money dollar dollars euro euros thread post "
    "video review comment channel link product products device gadget company maker brand "
    "model version unit issue issues problem problems feature features question questions "
    "answer reason point bit lot rest half part side kind sort place world life story idea "
    "fact case cases whole same other first second third last next best worst right wrong "
    "good great real only new old full free big small whole single entire current latest "
    "normal desk office home house work room team boss office partner wife husband kids "
    "mother father friend friends user users owner owners guys anyone everyone box list table "
    "page book chapter truth verdict result end code".split()
)


def telling_words(
    sentences: Iterable[tuple[str, str]], subject: Subject, question: Question, shared: int
) -> list[str]:
    """Words that stand as nouns in sentences of `shared` exhibits, the most shared first.

    A sentence comes with the label of its exhibit. No aspect, no word of the question, no name.
    """
    question_words = _WORD.findall(fold(f"{question.text} {question.about}"))
    idle = stop_words("en") | _VAGUE | aspect_words() | OTHER_NAMES | frozenset(question_words)
    nouns: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    labels: dict[str, set[str]] = {}
    for label, sentence in sentences:
        text = fold(sentence)
        nouns.update(_singular(match[1]) for match in _NOUN.finditer(text))
        for match in _WORD.finditer(text):
            word = _singular(match[0])
            uses[word] += 1
            labels.setdefault(word, set()).add(label)
    telling = [
        word
        for word, holding in labels.items()
        if len(holding) >= shared
        and 2 * nouns[word] >= uses[word]
        and idle.isdisjoint((word, f"{word}s"))
        and not subject.is_named(word)
    ]
    return sorted(telling, key=lambda word: (-len(labels[word]), word))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


THEMES, TELLING, NEXT = 7, 3, 3
"""Themes of a report, themes named by a telling word, and suggestions, at most."""
FEW = 3
"""Themes below which those of two posts are shown, too."""
DOUBTED = 0.55
"""Below this probability a kept item's passages come last."""
# what takes back the sentence before it: `But I dropped it`
_TURNING = regex.compile(r"(?:But|However|Aber|Pero|Mais)\b")
UNNAMED = "No shared theme"
"""What a finding is called when the posts share none."""
_KINDS: dict[int, FindingKind] = {1: "praise", -1: "complaint"}


@dataclass(frozen=True, slots=True)
class ThemeReport:
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
    thread: str
    """The key of the one it stands in."""
    named: bool
    wish: bool
    question: bool
    doubted: bool
    """The judge was hardly sure that its item is about the product."""
    lean: int | None = None
    """Where the theme it is held under is what it leans about."""
    turn: str = ""
    """The next sentence, where that one turns it round."""

    def under(self, theme: regex.Pattern[str], subject: Subject) -> _Speech:
        """The same sentence with its lean about a theme."""
        if not self.turn:
            return replace(self, lean=lean_of(self.passage.text, theme, subject))
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
    lean: int | None = None,
    kept: int = 0,
) -> ThemeReport:
    """The themes of the exhibits, those that the question names first, then by how many speak.

    Args:
        question: it names the product, and may ask for one side of it.
        exhibits: what is read.
        most: themes at most.
        focus: words that are asked about; only what is said of those, by one post too.
        lean: the side that is asked for where the question does not say it, as `lean_of` has it.
            What surely leans so goes first, what leans the other way is left out.
        kept: how many posts were kept, where the exhibits are the best of them: counts are of all.
    """
    total = max(kept, len(exhibits))
    lean = lean_wanted(question.text) if lean is None else lean
    texts = [beginning(text) for exhibit in exhibits for text in exhibit.item.texts]
    subject = Subject.of(question, texts)
    speeches = [speech for exhibit in exhibits for speech in _speeches(exhibit, subject)]
    stated = " ".join((question.text, question.about, *(e.item.title for e in exhibits)))
    themes = {aspect.name: aspect.pattern for aspect in aspects() if aspect.fits(stated)}
    if focus:
        themes = _focused(themes, focus)
    else:
        themes.pop(KIND if KIND in question.text.lower().split() else "", None)
        labelled = ((speech.passage.label, speech.passage.text) for speech in speeches)
        telling = telling_words(labelled, subject, question, SHARED)[:TELLING]
        themes |= {word: _pattern(word) for word in telling}
    wanted = {aspect.name for aspect in aspects_in(subject.pattern.sub(" ", question.text))}
    spoken = {
        name: held
        for name, pattern in themes.items()
        if (held := _speaking(speeches, pattern, subject))
    }
    # how many posts speak of a theme, those included that lean the other way than is asked for
    sizes = {_title(name): len({s.passage.label for s in held}) for name, held in spoken.items()}
    each = (_finding(name, held, total, lean) for name, held in spoken.items())
    findings = sorted(
        (finding for finding in each if finding.passages),
        key=lambda finding: (
            finding.name.lower() not in wanted, not finding.leans(lean), -len(finding.passages),
        ),
    )  # fmt: skip
    chosen = findings if focus else _shared(findings, sizes, wanted, lean)
    chosen = shown_once(chosen[:most])
    counted = [(finding.name, len(finding.passages)) for finding in chosen]
    shown = {name for name, _ in counted}
    unshown = [finding for finding in findings if finding.name not in shown]
    return ThemeReport(
        f"What people {VERBS[lean]} about {_topic(question, subject, wanted, lean)}",
        summary_of(counted, total, unsure_side(chosen, lean)),
        tuple(chosen) or tuple(() if focus else _bare(exhibits, speeches, subject, total)),
        ()
        if compared_names(question.text)
        else _next(subject.name or "it", unshown, findings, lean),
    )


def _focused(
    themes: Mapping[str, regex.Pattern[str]], focus: Iterable[str]
) -> dict[str, regex.Pattern[str]]:
    """The themes that these words mean, else the words themselves."""
    named = [[aspect.name for aspect in aspects_named(word)] or [word] for word in focus]
    return {name: themes.get(name, _pattern(name)) for names in named for name in names}


def _shared(
    findings: Sequence[ThemeFinding],
    sizes: Mapping[str, int],
    wanted: Collection[str],
    lean: int | None,
) -> list[ThemeFinding]:
    """Themes of enough posts, and those asked about; where those are few, smaller ones."""
    whole = [f for f in findings if sizes[f.name] >= SHARED or f.name.lower() in wanted]
    few = [f for f in findings if sizes[f.name] > 1 or f.leans(lean)]
    return whole if len(whole) >= FEW else few[:FEW]


def _topic(question: Question, subject: Subject, wanted: Iterable[str], lean: int | None) -> str:
    """What the headline is about: aspects that are asked about, the product, or what is sought."""
    aspects_asked = " and ".join(sorted(wanted))
    if aspects_asked and subject.name:
        return f"the {aspects_asked} of {subject.name}"
    return (subject.name if lean else "") or one_line(search_words(question.text))


def _next(
    name: str, unshown: Iterable[ThemeFinding], findings: Sequence[ThemeFinding], lean: int | None
) -> tuple[str, ...]:
    """Questions that show more than was shown: the sides of the product, then smaller themes."""
    questions = []
    for side, words in ((-1, "What annoys people about"), (1, "What do people like about")):
        # of a question about one side the other's sentences are left out, so nobody knows
        known = lean is None and any(finding.leans(side) for finding in findings)
        if known or lean == -side:
            questions.append(f"{words} {name}?")
    questions += [
        f"What do people say about the {finding.name.lower()} of {name}?" for finding in unshown
    ]
    return tuple(questions[:NEXT])


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
    # what answers a post that names the product only somewhere in its text may speak of the rest
    headed = subject.is_named(f"{item.title} {item.place or ''}")
    places: list[tuple[str, Comment | None]] = [(item.title, None), (item.body, None)]
    places = [] if item.source == "amazon" else places[bool(item.thread) :]
    places += [(comment.body, comment) for comment in item.comments]
    for text, comment in places:
        named = False
        spoken = sentences(beginning(text))
        for sentence, following in zip(spoken, (*spoken[1:], ""), strict=False):
            short = len(sentence) <= LONGEST_PASSAGE
            on = topic and (headed or comment is None)
            about = short and subject.is_subject(sentence, topic=on, follows=named)
            named = subject.is_named(sentence) or (named and about)
            if about:
                passage = ThemePassage(exhibit.label, comment.id if comment else None, sentence)
                asks = ASKING.search(sentence) is not None
                wish = not asks and WISHING.search(sentence) is not None
                turn = following if _TURNING.match(following) else ""
                turn = turn if f"{sentence} {turn}" in text else ""
                name = subject.is_named(sentence)
                yield _Speech(passage, thread_of(item), name, wish, asks, doubted, turn=turn)


def _pattern(word: str) -> regex.Pattern[str]:
    """A word with its endings."""
    return regex.compile(rf"(?<!\w){regex.escape(word)}", regex.I)


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


def _finding(name: str, held: Sequence[_Speech], total: int, lean: int | None) -> ThemeFinding:
    """The theme with what answers a question about one side; maybe no passage is left.

    Then its sentence counts what is left; what it is, praise or complaint, all posts decide.
    """
    by_label: dict[str, list[_Speech]] = {}
    for speech in held:
        by_label.setdefault(speech.passage.label, []).append(speech)
    leans = Counter(agreed for spoken in by_label.values() if (agreed := _lean(spoken)))
    wishes = sum(any(speech.wish for speech in spoken) for spoken in by_label.values())
    title = _title(name)
    telling = _telling_first(by_label, lean)
    passages = one_side((replace(speech.passage, lean=speech.lean) for speech in telling), lean)
    kind = _kind(leans, wishes, len(by_label))
    if lean is not None:
        leans = Counter({lean: leans[lean]})
        kind = "other" if kind == _KINDS[-lean] else kind
    leaning, left = leaning_of(leans, len(passages)), {passage.label for passage in passages}
    threads = {speech.thread for speech in held if speech.passage.label in left}
    if lean is not None and not leaning:
        leaning = f"; none is surely {SIDES[lean]}"
    return ThemeFinding(
        title,
        f"{title}: {count_of(len(passages), total, threads=len(threads))}{leaning}.",
        kind,
        passages,
    )


def _speaking(
    speeches: Iterable[_Speech], theme: regex.Pattern[str], subject: Subject
) -> list[_Speech]:
    """What speaks of a theme; where few posts do, none that is doubted, and one alone plainly."""
    held = [speech.under(theme, subject) for speech in speeches if speech.holds(theme, subject)]
    if len({speech.passage.label for speech in held}) >= SHARED:
        return held
    sure = [speech for speech in held if not speech.doubted]
    if len({speech.passage.label for speech in sure}) > 1:
        return sure
    return [speech for speech in sure if speaks_plainly(speech.passage.text, theme, subject)]


def _lean(spoken: Iterable[_Speech]) -> int | None:
    """An exhibit's lean: what all its sure sentences agree on."""
    leans = {speech.lean for speech in spoken if speech.lean is not None}
    return leans.pop() if len(leans) == 1 else None


def _telling_first(by_label: dict[str, list[_Speech]], lean: int | None) -> list[_Speech]:
    """The most telling sentence of each exhibit; one of each side first, doubted ones last.

    Where one side is asked for, a sentence of that side.
    """

    def weight(speech: _Speech) -> float:
        length, sides = len(speech.passage.text), len(aspects_in(speech.passage.text))
        fits = (30 <= length <= 160) + 0.5 * (speech.wish + speech.named) - 1.5 * speech.question
        fitting = lean is not None and speech.lean == lean
        return 2 * bool(speech.lean) + 4 * fitting + fits - 0.4 * sides

    best = [max(spoken, key=weight) for spoken in by_label.values()]
    best.sort(key=weight, reverse=True)
    sides = [next((speech for speech in best if speech.lean == side), None) for side in (1, -1)]
    first = [speech for speech in sides if speech is not None]
    order = [*first, *(speech for speech in best if speech not in first)]
    return sorted(order, key=lambda speech: speech.doubted)


def _kind(leans: Counter[int], wishes: int, total: int) -> FindingKind:
    if len(leans) == 1 and leans.total() >= max(2, total / 2):
        return _KINDS[next(iter(leans))]
    return "request" if not leans and 2 * wishes >= total else "other"


def _bare(
    exhibits: Sequence[Exhibit], speeches: Sequence[_Speech], subject: Subject, total: int
) -> Iterator[ThemeFinding]:
    """Without a theme: how many name the product, and the first sentence or title that does."""
    first = {speech.passage.label: speech.passage for speech in reversed(speeches) if speech.named}
    passages = (
        first.get(exhibit.label)
        or ThemePassage(exhibit.label, None, one_line(exhibit.item.texts[0]))
        for exhibit in exhibits
        if is_told_apart(exhibit.item, subject) and not is_elsewhere(exhibit.item, subject)
    )
    held = tuple(
        passage
        for passage in passages
        if len(passage.text) <= LONGEST_PASSAGE and subject.is_named(passage.text)
    )
    if held:
        labels = {passage.label for passage in held}
        threads = len({thread_of(e.item) for e in exhibits if e.label in labels})
        count = count_of(len(held), total, "is about it", "are about it", threads)
        yield ThemeFinding(UNNAMED, f"{UNNAMED}: {count}.", "other", held)
