"""The report without a model: themes that items share, counted and shown in their sentences.

A theme is a known aspect of products, or a noun that `SHARED` items use, whatever the product is.
The report claims only that a theme is spoken of, by how many, and how they lean where that is sure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import regex

from api.core.domain import Question
from api.core.items import Comment
from api.core.text import fold, one_line
from api.core.words import stop_words
from api.pipeline.question.product_name import search_words
from api.pipeline.question.query_guard import compared_names
from api.reports.exhibits import Exhibit
from api.reports.keyless import subjects
from api.reports.keyless.aspects import aspect_words, aspects, aspects_in, aspects_named, data
from api.reports.keyless.polarity import ASKING, WISHING, lean_of, lean_wanted
from api.reports.keyless.sentence_topic import KIND, is_about_theme, is_plainly_about_theme
from api.reports.keyless.subjects import Subject
from api.reports.keyless.theme_sentences import SHARED, count_phrase, lean_phrase, theme_summary
from api.reports.quotes import beginning, sentences
from api.reports.report import LONGEST_PASSAGE, FindingKind

PASSAGES = 4  # most passages that are shown of one theme
MOST_THEMES = 7  # themes of a report at most
# Themes that are named by a shared noun, and suggested questions, at most.
_MOST_NOUNS, _MOST_SUGGESTIONS = 3, 3
# Below so many themes, those of two posts are shown too.
_FEW_THEMES = 3
DOUBTED = 0.55  # probability of the judge below which a kept item's passages come last
UNNAMED = "No shared theme"  # name of the finding when the posts share no theme
SIDES = {1: "praise", -1: "a complaint"}  # by lean, what a sentence is
VERBS = {None: "say", 1: "like", -1: "dislike"}
"""By the lean that is asked for, what people do in the headline."""
_KINDS: dict[int, FindingKind] = {1: "praise", -1: "complaint"}


@dataclass(frozen=True, slots=True)
class ThemePassage:
    """A whole sentence of an exhibit, word for word."""

    label: str
    comment_id: str | None  # the comment it stands in; None for title and body
    text: str
    lean: int | None = None  # its lean about the theme it is shown for, where that is sure


@dataclass(frozen=True, slots=True)
class ThemeFinding:
    """One theme: how many posts speak of it, and passages that show it."""

    name: str
    text: str
    kind: FindingKind
    passages: tuple[ThemePassage, ...]
    """One of each exhibit that was counted, the most telling first."""

    @property
    def shown(self) -> tuple[ThemePassage, ...]:
        """The passages to show to a person."""
        return self.passages[:PASSAGES]

    def leans(self, lean: int | None) -> bool:
        """Whether a passage surely leans as was asked for; False where no side was."""
        return lean is not None and any(passage.lean == lean for passage in self.passages)


@dataclass(frozen=True, slots=True)
class ThemeReport:
    """What the writer without a model says."""

    topic: str
    summary: str
    findings: tuple[ThemeFinding, ...]
    suggestions: tuple[str, ...]


def one_side(passages: Iterable[ThemePassage], lean: int | None) -> tuple[ThemePassage, ...]:
    """The passages that surely lean as was asked for first, those that lean otherwise left out."""
    if lean is None:
        return tuple(passages)
    kept = [passage for passage in passages if passage.lean != -lean]
    return tuple(sorted(kept, key=lambda passage: passage.lean != lean))


def unsure_side(findings: Iterable[ThemeFinding], lean: int | None) -> str:
    """The side that was asked for, `a complaint`, when no passage surely is; empty otherwise."""
    if lean is None or any(finding.leans(lean) for finding in findings):
        return ""
    return SIDES[lean]


# a noun, by the word before it: `the lanyard`, `my lanyard`, `der Clip`, `no clip`
_NOUN = regex.compile(
    r"(?i)\b(?:the|a|an|my|its|your|their|no|this|that|der|die|das|den|dem|ein|eine|mein|kein|el|la"
    r"|los|las|un|una|le|les|une|o|os|as|um|uma)\s+(\p{L}[\p{L}-]{3,})\b"
)
# a word long enough to name a theme
_WORD = regex.compile(r"\p{L}[\p{L}-]{3,}")
_VAGUE = frozenset(data("names")["vague"].split())


# begins a sentence that takes back the one before it: `But I dropped it`
_REVERSAL = regex.compile(r"(?:But|However|Aber|Pero|Mais)\b")


def shared_nouns(sentences: Iterable[tuple[str, str]], subject: Subject, question: Question, shared: int) -> list[str]:
    """Nouns that labelled sentences of `shared` exhibits have in common, the most common first."""
    question_words = _WORD.findall(fold(f"{question.text} {question.about}"))
    idle = stop_words("en") | _VAGUE | aspect_words() | subjects.OTHER_NAMES | frozenset(question_words)
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
    chosen = [
        word
        for word, holding in labels.items()
        if len(holding) >= shared
        and 2 * nouns[word] >= uses[word]
        and idle.isdisjoint((word, f"{word}s"))
        and not subject.is_named(word)
    ]
    return sorted(chosen, key=lambda word: (-len(labels[word]), word))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


@dataclass(frozen=True, slots=True)
class _Statement:
    passage: ThemePassage
    thread: str  # key of its thread
    named: bool
    wish: bool
    question: bool
    doubted: bool  # the judge was hardly sure that its item is about the product
    lean: int | None = None  # its lean about the theme under which it is counted
    reversal: str = ""  # the next sentence, where that one takes this one back

    def under(self, theme: regex.Pattern[str], subject: Subject) -> _Statement:
        """The same sentence with its lean about a theme."""
        if not self.reversal:
            return replace(self, lean=lean_of(self.passage.text, theme, subject))
        whole = f"{self.passage.text} {self.reversal}"
        shown = whole if len(whole) <= LONGEST_PASSAGE else self.passage.text
        return replace(self, passage=replace(self.passage, text=shown))


def find_themes(
    question: Question,
    exhibits: Sequence[Exhibit],
    *,
    most: int = MOST_THEMES,
    focus: Sequence[str] = (),
    lean: int | None = None,
    kept: int = 0,
) -> ThemeReport:
    """The themes of the exhibits, those that the question names first, then by number of posts.

    With `focus`, the words that are asked about, only what is said of those, by a single post too.
    With a `lean`, given or asked for, what surely leans so goes first and what leans otherwise is
    left out. `kept` is the number of kept posts, where the exhibits are only the best of them.
    """
    total = max(kept, len(exhibits))
    lean = lean_wanted(question.text) if lean is None else lean
    texts = [beginning(text) for exhibit in exhibits for text in exhibit.item.texts]
    subject = Subject.of(question, texts)
    statements = [entry for exhibit in exhibits for entry in _statements(exhibit, subject)]
    stated = " ".join((question.text, question.about, *(e.item.title for e in exhibits)))
    themes = {aspect.name: aspect.pattern for aspect in aspects() if aspect.fits(stated)}
    if focus:
        named = [[aspect.name for aspect in aspects_named(word)] or [word] for word in focus]
        themes = {n: themes.get(n, _pattern(n)) for names in named for n in names}
    else:
        themes.pop(KIND if KIND in question.text.lower().split() else "", None)
        labelled = ((entry.passage.label, entry.passage.text) for entry in statements)
        nouns = shared_nouns(labelled, subject, question, SHARED)[:_MOST_NOUNS]
        themes |= {noun: _pattern(noun) for noun in nouns}
    wanted = {aspect.name for aspect in aspects_in(subject.pattern.sub(" ", question.text))}
    by_theme = {
        name: entries for name, pattern in themes.items() if (entries := _on_theme(statements, pattern, subject))
    }
    # posts that speak of a theme, those too that lean the other way than is asked for
    sizes = {_title(name): len(_labels(entries)) for name, entries in by_theme.items()}
    each = (_finding(name, entries, total, lean) for name, entries in by_theme.items())
    findings = sorted(
        (finding for finding in each if finding.passages),
        key=lambda f: (f.name.lower() not in wanted, not f.leans(lean), -len(f.passages)),
    )
    chosen = findings
    if not focus:
        chosen = [f for f in findings if sizes[f.name] >= SHARED or f.name.lower() in wanted]
        if len(chosen) < _FEW_THEMES:
            chosen = [f for f in findings if sizes[f.name] > 1 or f.leans(lean)][:_FEW_THEMES]
    chosen = _shown_once(chosen[:most])
    counted = [(finding.name, len(finding.passages)) for finding in chosen]
    if not (chosen or focus):
        chosen = list(_without_theme(exhibits, statements, subject, total))
    several = bool(compared_names(question.text))
    return ThemeReport(
        f"What people {VERBS[lean]} about {_topic(question, subject, wanted, lean)}",
        theme_summary(counted, total, unsure_side(chosen if counted else (), lean)),
        tuple(chosen),
        () if several else _suggestions(subject.name or "it", counted, findings, lean),
    )


def _topic(question: Question, subject: Subject, wanted: Iterable[str], lean: int | None) -> str:
    """What the headline is about: aspects asked about, the product, or the words searched for."""
    aspects_asked = " and ".join(sorted(wanted))
    if aspects_asked and subject.name:
        return f"the {aspects_asked} of {subject.name}"
    return (subject.name if lean else "") or one_line(search_words(question.text))


def _suggestions(
    name: str,
    counted: Iterable[tuple[str, int]],
    findings: Sequence[ThemeFinding],
    lean: int | None,
) -> tuple[str, ...]:
    """Questions that show more: the sides of the product, then themes that were not shown."""
    questions = []
    for side, words in ((-1, "What annoys people about"), (1, "What do people like about")):
        # where one side is asked for, sentences of the other were left out, so it is worth asking
        known = lean is None and any(finding.leans(side) for finding in findings)
        if known or lean == -side:
            questions.append(f"{words} {name}?")
    shown = dict(counted)
    questions += [
        f"What do people say about the {finding.name.lower()} of {name}?"
        for finding in findings
        if finding.name not in shown
    ]
    return tuple(questions[:_MOST_SUGGESTIONS])


def is_spoken_of(name: str, text: str) -> bool:
    """Whether a text speaks of the theme with that name."""
    named = (aspect for aspect in aspects() if aspect.name == name.lower())
    pattern = next((aspect.pattern for aspect in named), _pattern(name))
    return name == UNNAMED or pattern.search(text) is not None


def _statements(exhibit: Exhibit, subject: Subject) -> Iterator[_Statement]:
    """The sentences about the product; what a shop says of its own goods is no opinion."""
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
    for text, comment in texts:
        follows = False
        parts = sentences(beginning(text))
        for sentence, following in zip(parts, (*parts[1:], ""), strict=False):
            on = topic and (headed or comment is None)
            about = len(sentence) <= LONGEST_PASSAGE and subject.is_subject(sentence, topic=on, follows=follows)
            named = subject.is_named(sentence)
            follows = named or (follows and about)
            if about:
                passage = ThemePassage(exhibit.label, comment.id if comment else None, sentence)
                asks = ASKING.search(sentence) is not None
                wish = not asks and WISHING.search(sentence) is not None
                reversal = following if _REVERSAL.match(following) else ""
                reversal = reversal if f"{sentence} {reversal}" in text else ""
                yield _Statement(passage, subjects.thread_of(item), named, wish, asks, doubted, reversal=reversal)


def _pattern(word: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<!\w){regex.escape(word)}", regex.I)  # with any ending


def _title(name: str) -> str:
    return name[0].upper() + name[1:]


def _labels(statements: Iterable[_Statement]) -> set[str]:
    return {statement.passage.label for statement in statements}


def _on_theme(statements: Iterable[_Statement], theme: regex.Pattern[str], subject: Subject) -> list[_Statement]:
    """What speaks of a theme; of few posts nothing doubted, of one only what does so plainly."""
    on_theme = [
        statement.under(theme, subject)
        for statement in statements
        if is_about_theme(statement.passage.text, theme, subject)
    ]
    if len(_labels(on_theme)) >= SHARED:
        return on_theme
    sure = [statement for statement in on_theme if not statement.doubted]
    if len(_labels(sure)) > 1:
        return sure
    return [entry for entry in sure if is_plainly_about_theme(entry.passage.text, theme, subject)]


def _finding(name: str, statements: Sequence[_Statement], total: int, lean: int | None) -> ThemeFinding:
    """The theme with the passages of the side asked for, maybe none; all posts decide its kind."""
    by_label: dict[str, list[_Statement]] = {}
    for statement in statements:
        by_label.setdefault(statement.passage.label, []).append(statement)
    leans, wishes = Counter[int](), 0
    for entries in by_label.values():
        sure = {entry.lean for entry in entries if entry.lean is not None}
        leans.update(sure if len(sure) == 1 else ())  # an exhibit leans as all its sentences agree
        wishes += any(entry.wish for entry in entries)
    kind: FindingKind = "other"
    if len(leans) == 1 and leans.total() >= max(2, len(by_label) / 2):
        kind = _KINDS[next(iter(leans))]
    elif not leans and 2 * wishes >= len(by_label):
        kind = "request"
    chosen = _most_telling(by_label, lean)
    passages = one_side((replace(entry.passage, lean=entry.lean) for entry in chosen), lean)
    if lean is not None:
        leans = Counter({lean: leans[lean]})
        kind = "other" if kind == _KINDS[-lean] else kind
    leaning, left = lean_phrase(leans, len(passages)), {passage.label for passage in passages}
    threads = {entry.thread for entry in statements if entry.passage.label in left}
    if lean is not None and not leaning:
        leaning = f"; none is surely {SIDES[lean]}"
    count = count_phrase(len(passages), total, threads=len(threads))
    return ThemeFinding(_title(name), f"{_title(name)}: {count}{leaning}.", kind, passages)


def _most_telling(by_label: dict[str, list[_Statement]], lean: int | None) -> list[_Statement]:
    """The most telling sentence of each exhibit; one of each side first, doubted ones last."""

    # a sure lean counts most, the wanted one above all; then a length that reads well as a quote;
    # questions, and sentences on several aspects at once, show a theme badly
    def weight(entry: _Statement) -> float:
        length, sides = len(entry.passage.text), len(aspects_in(entry.passage.text))
        fits = (30 <= length <= 160) + 0.5 * (entry.wish + entry.named) - 1.5 * entry.question
        wanted = lean is not None and entry.lean == lean
        return 2 * bool(entry.lean) + 4 * wanted + fits - 0.4 * sides

    best = [max(entries, key=weight) for entries in by_label.values()]
    best.sort(key=weight, reverse=True)
    sides = [next((entry for entry in best if entry.lean == side), None) for side in (1, -1)]
    first = [entry for entry in sides if entry is not None]
    order = [*first, *(entry for entry in best if entry not in first)]
    return sorted(order, key=lambda entry: entry.doubted)


def _shown_once(findings: Iterable[ThemeFinding]) -> list[ThemeFinding]:
    """The same findings; a sentence shown under one comes last under those after it."""
    shown: set[str] = set()
    ordered = []
    for finding in findings:
        passages = sorted(finding.passages, key=lambda passage: passage.text in shown)
        ordered.append(replace(finding, passages=tuple(passages)))
        shown |= {passage.text for passage in ordered[-1].shown}
    return ordered


def _without_theme(
    exhibits: Sequence[Exhibit], statements: Sequence[_Statement], subject: Subject, total: int
) -> Iterator[ThemeFinding]:
    """How many posts name the product, and the first sentence or title of each that does."""
    first = {entry.passage.label: entry.passage for entry in reversed(statements) if entry.named}
    candidates = (
        first.get(exhibit.label) or ThemePassage(exhibit.label, None, one_line(exhibit.item.texts[0]))
        for exhibit in exhibits
        if subjects.is_identified(exhibit.item, subject) and not subjects.is_excluded(exhibit.item, subject)
    )
    passages = tuple(
        passage for passage in candidates if len(passage.text) <= LONGEST_PASSAGE and subject.is_named(passage.text)
    )
    if passages:
        labels = {passage.label for passage in passages}
        threads = len({subjects.thread_of(e.item) for e in exhibits if e.label in labels})
        count = count_phrase(len(passages), total, "is about it", "are about it", threads)
        yield ThemeFinding(UNNAMED, f"{UNNAMED}: {count}.", "other", passages)
