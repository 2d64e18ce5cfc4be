"""What a chat says without a model's words: the posts' own, or that there are none.

One chat answer while it is written: held back until it rests on something, and how it ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import regex

from api.core.display_names import reason_in_words
from api.core.domain import Question
from api.core.text import fold, one_line
from api.core.words import is_not_english
from api.features.chat.chat_citations import cited, passage_for, plain
from api.features.chat.chat_turn import AnswerPiece, Turn
from api.features.chat.lookups import ChatLookups
from api.features.chat.session import item_words, question_words
from api.pipeline.question.query_guard import (
    compared_names,
    joined_spellings,
    naming_words,
    refers_back,
    singular,
)
from api.reports.citable import LABEL, CitableText, citable_text
from api.reports.draft_rules import DraftCleaner
from api.reports.exhibits import Exhibit, gate_lines
from api.reports.keyless.aspects import aspects_named
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.themes import (
    PASSAGES,
    UNNAMED,
    ThemeFinding,
    ThemePassage,
    find_themes,
    unsure_side,
)
from api.reports.markdown_text import formatted, quotation
from api.reports.quotes import sentences
from api.reports.report import LONGEST_PASSAGE

FOREIGN = (
    "a question in another language than English may be misread: write the product's name alone, "
    "or with what is asked about in English"
)
THEMES = 5
"""Themes of one answer at most."""
# Of each product in a comparison: themes looked for in all, and passages under one, at most.
_COMPARED, _QUOTED = 3, 2
SILENT = "no sentence says plainly anything about it"
# Words that a question asks about at most; more are no list of subjects.
_MOST_WORDS = 3
# a word inside a question that by its form belongs to a name: `Ember`, `rtx4090`
_NAME_LIKE = regex.compile(r"(?<=\S\s)[\p{L}\p{N}]*[\p{Lu}\p{N}][\p{L}\p{N}.]*")
# `who said that?`, `which posts say so?`, `where is this from?`
_WHO = regex.compile(
    r"(?i)^\W*(?:and )?(?:(?:who|which (?:post|review|user|buyer|owner)s?)"
    r" (?:said|says?|wrote|writes?)|where (?:is|are|does|did|do))"
    r" (?:that|this|it|so|these|those)(?: (?:come )?from)?\W*$"
)


async def look_around(desk: ChatLookups) -> None:
    """Ask every source the question itself, when nothing known holds its words.

    Not when it asks who said what was answered before. Of a comparison each product that nothing is
    known of is looked up by name, and after it each of which no post holds what is asked about; a
    question that points back, or asks about a part, is asked with the name of what it points at.
    """
    names, telling = compared_names(desk.question), question_words(desk.question)
    if _behind(desk)[1]:
        queries: list[str] = []
    elif names:
        desk.recall()
        queries = [name for name in names if not desk.knows(name)]
    elif len(desk.subjects) > 1:
        desk.recall()
        words = _topics(desk.question, desk.subjects)
        queries = [
            " ".join((name, *words))
            for name in desk.subjects
            if words and not _mentioning(words, desk.session.exhibits_for([name]).values())
        ]
    elif any(telling & item_words(exhibit.item) for exhibit in desk.citable.values()):
        queries = []
    elif desk.before and (refers_back(desk.question) or _asks_of_it(desk)):
        queries = [" ".join((*desk.before, *naming_words(desk.question)))]
    else:
        queries = [desk.question]
    await asyncio.gather(
        *(desk.look(name, query, "quick") for query in queries for name in desk.product.askable)
    )


def _asks_of_it(desk: ChatLookups) -> bool:
    """Whether a question names no product, but a part of the one before: `and the lid?`."""
    return bool(desk.unnamed) and "the" in desk.question.casefold().split()


def themes_of(desk: ChatLookups) -> tuple[str, list[Exhibit]]:
    """What the turn's exhibits speak of, as a list with citations, and which are cited.

    Of several products each by itself, under its name: in a comparison and in what follows it.
    Asked who said so, the posts that the answer before cites.
    """
    text, labels = _behind(desk)
    if labels:
        return text, [desk.session.exhibits[label] for label in labels]
    if len(desk.subjects) > 1 or compared_names(desk.question):
        return _compared(desk)
    return _answer(desk, list(desk.citable.values()))


def _behind(desk: ChatLookups) -> tuple[str, list[str]]:
    answers = [exchange.answer for exchange in desk.session.exchanges]
    return behind(desk.question, answers, desk.session.exhibits, plain)


def behind(
    question: str,
    answers: Sequence[str],
    exhibits: Mapping[str, Exhibit],
    escape: Callable[[str], str] = str,
) -> tuple[str, list[str]]:
    """Asked who said so: the posts that the last answer cites, each with its words, and labels.

    Nothing where something else is asked, or nothing was cited.
    """
    last = answers[-1] if answers and _WHO.match(question) else ""
    labels = [label for label in dict.fromkeys(LABEL.findall(last)) if label in exhibits]
    lines = []
    for label in labels:
        passage = passage_for(last, exhibits[label], ())
        title = one_line(exhibits[label].item.title)
        above = "" if title == passage else f"{escape(quotation(title))}: "
        lines.append(f"- {above}“{escape(quotation(passage))}” [{label}]")
    return "\n".join(("The answer before rests on these posts:\n", *lines)) if lines else "", labels


def _compared(desk: ChatLookups) -> tuple[str, list[Exhibit]]:
    """The turn's products side by side, on what is asked about them."""
    sides = {name: list(desk.session.exhibits_for([name]).values()) for name in desk.subjects}
    held = {name: exhibits for name, exhibits in sides.items() if exhibits}
    lean = lean_wanted(desk.question)
    words = _topics(desk.question, desk.subjects) if desk.goes_on else []
    text, labels = side_by_side(held, plain, words, lean)
    if words and not labels:
        rest, labels = side_by_side(held, plain, lean=lean)
        text = f"{silent(words)} What they say besides:\n\n{rest}"
    return text, [desk.session.exhibits[label] for label in labels]


def _answer(desk: ChatLookups, exhibits: Sequence[Exhibit]) -> tuple[str, list[Exhibit]]:
    """What is said of the words that the question adds to its subject.

    Where nothing is said plainly: that, and what else is said, after sentences with the words.
    """
    name, lean = next(iter(desk.subjects), "") or desk.question, lean_wanted(desk.question)
    # a question that was looked up as it stands is its own subject, and holds what it asks about
    words = _topics(desk.question, () if name not in desk.before else (name,), exhibits)
    if words and name not in desk.before:
        name = " ".join(word for word in naming_words(name) if word not in words) or name
    text, labels = on_words(name, exhibits, words, lean, plain)
    by_label = {exhibit.label: exhibit for exhibit in exhibits}
    return text, [by_label[label] for label in labels]


def on_words(
    name: str,
    exhibits: Sequence[Exhibit],
    words: Sequence[str] = (),
    lean: int | None = None,
    escape: Callable[[str], str] = str,
) -> tuple[str, list[str]]:
    """What is said of a product, or of words that are asked about it, and the labels cited.

    Where no sentence speaks plainly of the words: that, the sentences that mention them, and what
    else is said. Nothing, where nothing can be shown.

    Args:
        name: of the product.
        exhibits: its posts.
        words: what is asked about it.
        lean: the side of it that is asked for.
        escape: how strangers' words are written.
    """
    findings = find_themes(Question(name), exhibits, focus=words, lean=lean).findings[:THEMES]
    opening, mentions = "", []
    if words and not findings:
        mentions = list(_mentions(words, exhibits))
        findings = find_themes(Question(name), exhibits, lean=lean).findings[:THEMES]
        opening = silent(words) if _mentioning(words, exhibits) else _unmentioned(words)
    lines = "\n".join(f"- {_quoted([mention], escape)}" for mention in mentions)
    parts = (
        f"{opening} It is mentioned here:\n\n{lines}" if mentions else opening,
        "What they say besides:" if words and opening and findings else "",
        shown_lines(findings, lean, escape),
    )
    shown = (*mentions, *(passage for finding in findings for passage in finding.shown))
    labels = list(dict.fromkeys(passage.label for passage in shown))
    return ("\n\n".join(filter(None, parts)), labels) if labels else ("", [])


def _mentions(words: Iterable[str], exhibits: Iterable[Exhibit]) -> Iterator[ThemePassage]:
    """The first sentence of each exhibit that holds one of the words, for the first exhibits."""
    stems = {singular(word) for word in words}
    for exhibit in _mentioning(words, exhibits)[:PASSAGES]:
        spoken = (part for text in exhibit.item.texts for part in sentences(text))
        for part in spoken:
            if len(part) <= LONGEST_PASSAGE and stems & joined_spellings(part):
                yield ThemePassage(exhibit.label, None, part)
                break


def _topics(question: str, names: Iterable[str], exhibits: Sequence[Exhibit] = ()) -> list[str]:
    """What a question asks about its products; nothing where those are too many words for that.

    Args:
        question: as it was written.
        names: of the products, whose words are left out.
        exhibits: where the names are not known apart from what is asked, posts that were found for
            both: what asks is an aspect of products, or stands in few of them.
    """
    known = {singular(word) for name in names for word in naming_words(name)}
    words = [
        word
        for word in naming_words(question)
        if singular(word) not in known and lean_wanted(word) is None
    ]
    if not known:
        proper = {fold(word) for word in _NAME_LIKE.findall(question)}
        words = [
            word
            for word in words
            if aspects_named(word)
            or (word not in proper and 2 * len(_mentioning([word], exhibits)) < len(exhibits))
        ]
    return words if len(words) <= _MOST_WORDS else []


def _mentioning(words: Iterable[str], exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits that hold one of the words, in any spelling."""
    stems = {singular(word) for word in words}
    return [
        exhibit for exhibit in exhibits if stems & joined_spellings(" ".join(exhibit.item.texts))
    ]


def silent(words: Iterable[str]) -> str:
    """That nothing was found to show for words that were asked about."""
    named = ", ".join(map(formatted, words))
    return f"No sentence of the posts says plainly anything about {named}."


def _unmentioned(words: Iterable[str]) -> str:
    return f"No post that was found mentions {', '.join(map(formatted, words))}."


def side_by_side(
    sides: Mapping[str, Sequence[Exhibit]],
    escape: Callable[[str], str] = str,
    focus: Sequence[str] = (),
    lean: int | None = None,
) -> tuple[str, list[str]]:
    """Theme by theme what is said of each product, and the labels that are cited, in order.

    A theme of more products goes first; where nobody speaks plainly of one, that. Without a
    theme, or with one product alone, what is said of each under its name.

    Args:
        sides: each product with its posts.
        escape: how strangers' words are written.
        focus: words that are asked about; then nothing, where nobody speaks of them.
        lean: the side of the products that is asked for.
    """
    own = {
        name: find_themes(Question(name), known, most=_COMPARED, focus=focus, lean=lean).findings
        for name, known in sides.items()
    }
    counts = Counter(
        finding.name for findings in own.values() for finding in findings if finding.name != UNNAMED
    )
    if focus and not counts:
        return "", []
    if len(sides) < 2 or not counts:
        parts = [f"{escape(name)}:\n\n{shown_lines(own[name], lean, escape)}" for name in own]
        shown = (passage for findings in own.values() for f in findings for passage in f.shown)
        return "\n\n".join(parts), list(dict.fromkeys(passage.label for passage in shown))
    themes = [theme for theme, _ in counts.most_common(THEMES)]
    named = [theme.lower() for theme in themes]
    of_all = {
        (name, finding.name): replace(finding, passages=finding.passages[:_QUOTED])
        for name, known in sides.items()
        for finding in find_themes(Question(name), known, focus=named, lean=lean).findings
    }
    parts, cited = [], []
    for theme in themes:
        sentences = {
            name: of_all[name, theme].passages if (name, theme) in of_all else () for name in sides
        }
        lines = [
            f"- {escape(name)}: {quote}"
            for name, held in sentences.items()
            for quote in [_quoted([passage], escape) for passage in held] or [SILENT]
        ]
        side = unsure_side((of_all[key] for key in of_all if key[1] == theme), lean)
        unsure = f" (none surely {side})" if side else ""
        parts.append("\n".join((f"{escape(theme)}{unsure}:", *lines)))
        cited += [passage.label for held in sentences.values() for passage in held]
    return "\n\n".join(parts), list(dict.fromkeys(cited))


def _quoted(passages: Iterable[ThemePassage], escape: Callable[[str], str]) -> str:
    return " ".join(
        f"“{escape(quotation(passage.text))}” [{passage.label}]" for passage in passages
    )


def shown_lines(
    findings: Iterable[ThemeFinding],
    lean: int | None = None,
    escape: Callable[[str], str] = str,
) -> str:
    """Findings as a list for a chat: each theme with its passages and where they stand.

    What has nothing that surely leans as was asked for stands last, and is said to have nothing.
    """
    findings = list(findings)
    sure = [finding for finding in findings if lean is None or finding.leans(lean)]
    rest = [finding for finding in findings if finding not in sure]
    parts = [
        "\n".join(f"- {escape(f.name)}: {_quoted(f.shown, escape)}" for f in group)
        for group in (sure, rest)
    ]
    return "\n\n".join(filter(None, (parts[0], _unsure(rest, lean) + parts[1])))


def _unsure(findings: Collection[ThemeFinding], lean: int | None) -> str:
    """That nothing surely leans as was asked for, before what is shown all the same."""
    side = unsure_side(findings, lean) if findings else ""
    return f"None of these is surely {side}:\n\n" if side else ""


def not_searched(question: str, lines: Iterable[str]) -> str:
    """That no source could be asked, and why: nothing is known then, which is not nothing found."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    remedy = "`listenpost doctor` says what to set or to wait for."
    return f"“{formatted(question)}” was not searched for. {outcomes} {remedy}"


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """That there is no answer, and why, without a word about the product."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    if is_not_english(question):
        advice = f"{FOREIGN[0].upper()}{FOREIGN[1:]}."
    else:
        advice = "Another spelling, or a few words on what it is, may help."
    return (
        f"I couldn't find relevant posts about “{formatted(question)}”. "
        f"{outcomes or 'Nothing was looked up.'} {advice}"
    )


ANEW = (
    "what was kept of this conversation cannot be read: it begins anew and knows nothing of before"
)
RECALLED = "this rests on what earlier reports kept; no place was asked anew"
SAMPLE = "sample data: everything here is made up and comes from the offline sandbox"


class AnswerDraft:
    """Takes the model's words, passes on what stands of them, and makes the turn."""

    def __init__(self, desk: ChatLookups) -> None:
        """Nothing is written yet."""
        self._desk = desk
        self._clearing = DraftCleaner(self._ground, markdown=True)
        self._grounds: dict[tuple[int, frozenset[str]], CitableText] = {}
        self._held, self._text = "", ""

    @property
    def text(self) -> str:
        """What was passed on so far."""
        return self._text.strip()

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in it, in the order of first mention."""
        return self._clearing.cited

    def feed(self, piece: str) -> None:
        """Some more words of the model."""
        self._held += self._clearing.feed(piece)
        self._pass_on()

    def pause(self) -> None:
        """The model begins something else: what it wrote so far is complete."""
        self._held += self._clearing.close()
        if (self._text + self._held).strip():
            self._held = self._held.rstrip() + "\n\n"

    def withdraw(self) -> None:
        """Forget words that were held back, since they rest on nothing."""
        self._held = ""
        self._clearing = DraftCleaner(self._ground, markdown=True)

    def finish(self, stopped: str | None, failed: str | None) -> Turn:
        """The turn; `stopped` names the bound that ended it, `failed` why there was no model."""
        if not (stopped or failed):
            self._held += self._clearing.close()
        self._pass_on()
        notes = [*self._notes(stopped, failed)]
        partial = bool(stopped or failed or self._desk.refused)
        if self.text:
            exhibits = [self._desk.session.exhibits[label] for label in self.cited]
            if not exhibits:
                notes.append("this answer cites no post")
            return self._turn(self.text, exhibits, notes, partial)
        text, best = themes_of(self._desk)
        if best and not self._desk.empty_handed:
            whole = f"No model wrote this answer; these are the posts' own words.\n\n{text}"
            self._desk.emit(AnswerPiece(whole))
            return self._turn(whole, best, notes, partial)
        about = next(reversed(self._desk.queries), self._desk.question)
        answers = [gathered.outcome.answered for gathered in self._desk.gathered]
        outcome = "insufficient_data" if any(answers) or not answers else "not_asked"
        why = not_searched if outcome == "not_asked" else nothing_found
        text = why(about, self._desk.lines.values())
        self._desk.emit(AnswerPiece(text))
        return replace(self._turn(text, (), notes, partial), outcome=outcome)

    def _pass_on(self) -> None:
        """Pass on what is held back, unless it still rests on nothing."""
        if self._held and (self._clearing.cited or not self._desk.empty_handed):
            self._desk.emit(AnswerPiece(self._held))
            self._text += self._held
            self._held = ""

    def _turn(
        self, text: str, exhibits: Iterable[Exhibit], notes: Iterable[str], partial: bool
    ) -> Turn:
        session = self._desk.session
        citations = cited(text, exhibits, session.subjects)
        labels = [citation.label for citation in citations]
        sample = self._desk.product.sample or session.is_sample(labels)
        notes = tuple(dict.fromkeys((*((SAMPLE,) if sample else ()), *notes)))
        return Turn(session.id, text, citations, notes, partial, sample=sample)

    def _notes(self, stopped: str | None, failed: str | None) -> Iterator[str]:
        desk = self._desk
        if desk.session.anew:
            desk.session.anew = False
            yield ANEW
        if failed and is_not_english(desk.question):
            yield FOREIGN
        if failed:
            yield f"the chat model could not be used ({reason_in_words(failed)})"
        if stopped:
            yield f"cut short: {stopped}; this rests on what was found by then"
        if desk.recalled and not desk.gathered:
            yield RECALLED
        if desk.refused:
            most = desk.most
            yield f"{desk.refused} look-up(s) refused: one turn may ask {most} sources"
        yield from gate_lines(
            gathered for gathered in desk.gathered if not gathered.outcome.answered
        )
        if len(desk.subjects) > 1:
            unknown = (subject for subject in desk.subjects if not desk.knows(subject))
            yield from (f"no relevant post was found on “{subject}”" for subject in unknown)
        yield from self._clearing.flaws.notes

    def _ground(self, sentence: str) -> CitableText:
        """What a sentence may rest on now; kept until a look-up adds to it."""
        desk, session = self._desk, self._desk.session
        citable = desk.citable_in(sentence)
        state = (len(desk.replies), frozenset(citable))
        if state not in self._grounds:
            given = [*desk.replies, *(exchange.answer for exchange in session.exchanges)]
            questions = (session.questions_text, desk.question)
            elsewhere = session.exhibits.keys() - citable.keys()
            self._grounds[state] = citable_text(citable, questions, given, elsewhere=elsewhere)
        return self._grounds[state]
