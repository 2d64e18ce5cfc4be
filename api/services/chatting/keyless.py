"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from api.services.chatting.lookups import ChatDesk
from api.services.chatting.passages import plain
from api.services.chatting.session import item_words, question_words
from api.services.question.comparing import compared, points_back
from api.services.question.guard import stem, telling_words
from api.services.question.query import is_foreign
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import formatted, quotation
from api.services.reporting.polarity import lean_wanted
from api.services.reporting.themes import UNNAMED, ThemeFinding, ThemePassage, find_themes
from api.services.schemas import Question

FOREIGN = (
    "a question in another language than English may be misread: write the product's name alone, "
    "or with what is asked about in English"
)
THEMES = 5
"""Themes of one answer at most."""
_COMPARED, _QUOTED = 3, 2
"""Of each product in a comparison: themes looked for in all, and passages under one, at most."""
SILENT = "no sentence says plainly anything about it"
_LEANING = {1: "praise", -1: "a complaint"}
_MOST_WORDS = 3
"""Words that a question asks about at most; more are no list of subjects."""


async def look_around(desk: ChatDesk) -> None:
    """Ask every source the question itself, when nothing known holds its words.

    Of a comparison each product that nothing is known of is looked up by name; a question that
    points back, or asks about a part, is asked with the name of what it points at.
    """
    names = compared(desk.question)
    if names:
        desk.recall()
        queries = [name for name in names if not desk.knows(name)]
    elif fitting(desk, desk.citable.values()):
        queries = []
    elif desk.before and (points_back(desk.question) or _asks_of_it(desk)):
        queries = [" ".join((*desk.before, *telling_words(desk.question)))]
    else:
        queries = [desk.question]
    await asyncio.gather(
        *(desk.look(name, query, "quick") for query in queries for name in desk.product.askable)
    )


def _asks_of_it(desk: ChatDesk) -> bool:
    """Whether a question names no product, but a part of the one before: `and the lid?`."""
    return bool(desk.unnamed) and "the" in desk.question.casefold().split()


def fitting(desk: ChatDesk, exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits on the turn's subjects that hold a word of the question, by how many.

    For a comparison all of them.
    """
    words, citable = question_words(desk.question), desk.citable
    known = [exhibit for exhibit in exhibits if exhibit.label in citable]
    if compared(desk.question):
        return known
    scored = [(len(words & item_words(exhibit.item)), exhibit) for exhibit in known]
    return [exhibit for score, exhibit in sorted(scored, key=lambda pair: -pair[0]) if score]


def themes_of(desk: ChatDesk) -> tuple[str, list[Exhibit]]:
    """What the fitting exhibits speak of, as a list with citations, and which are cited.

    Of a comparison each product by itself, under its name.
    """
    new = fitting(desk, desk.exhibits.values()) or list(desk.exhibits.values())
    exhibits = new or fitting(desk, desk.session.exhibits.values())
    if not compared(desk.question):
        return _answer(desk, exhibits)
    sides = {name: desk.session.exhibits_for([name]) for name in desk.subjects}
    held = {
        name: [exhibit for exhibit in exhibits if exhibit.label in labels]
        for name, labels in sides.items()
    }
    text, labels = side_by_side({name: known for name, known in held.items() if known}, plain)
    by_label = {exhibit.label: exhibit for exhibit in exhibits}
    return text, [by_label[label] for label in labels]


def _answer(desk: ChatDesk, exhibits: Sequence[Exhibit]) -> tuple[str, list[Exhibit]]:
    """What is said of the words that the question adds to its subject.

    Where nothing is: that, and what else is said.
    """
    name = next(iter(desk.subjects), "") or desk.question
    known = {stem(word) for word in telling_words(name)}
    lean = lean_wanted(desk.question)
    telling = [word for word in telling_words(desk.question) if lean_wanted(word) is None]
    words = [word for word in telling if stem(word) not in known]
    if not words or len(words) > _MOST_WORDS:
        return _themes(name, exhibits, lean=lean)
    text, cited = _themes(name, exhibits, words, lean)
    if cited:
        return text, cited
    text, cited = _themes(name, exhibits, lean=lean)
    named = ", ".join(formatted(word) for word in words)
    return f"{silent(named)} What they say besides:\n\n{text}" if cited else "", cited


def silent(words: str) -> str:
    """That nothing was found to show for words that were asked about."""
    return f"No sentence of the posts says plainly anything about {words}."


def _themes(
    question: str,
    exhibits: Sequence[Exhibit],
    focus: Sequence[str] = (),
    lean: int | None = None,
) -> tuple[str, list[Exhibit]]:
    findings = leaning(find_themes(Question(question), exhibits, focus=focus).findings, lean)
    findings = findings[:THEMES]
    cited = dict.fromkeys(passage.label for finding in findings for passage in finding.shown)
    by_label = {exhibit.label: exhibit for exhibit in exhibits}
    return shown_lines(findings, lean, plain), [by_label[label] for label in cited]


def side_by_side(
    sides: Mapping[str, Sequence[Exhibit]], escape: Callable[[str], str] = str
) -> tuple[str, list[str]]:
    """Theme by theme what is said of each product, and the labels that are cited, in order.

    A theme of more products goes first; where nobody speaks plainly of one, that. Without a
    theme, or with one product alone, what is said of each under its name.
    """
    own = {name: find_themes(Question(name), known, most=_COMPARED).findings
           for name, known in sides.items()}  # fmt: skip
    counts = Counter(
        finding.name for findings in own.values() for finding in findings if finding.name != UNNAMED
    )
    if len(sides) < 2 or not counts:
        parts = [f"{escape(name)}:\n\n{shown_lines(own[name], None, escape)}" for name in own]
        shown = (passage for findings in own.values() for f in findings for passage in f.shown)
        return "\n\n".join(parts), list(dict.fromkeys(passage.label for passage in shown))
    themes = [theme for theme, _ in counts.most_common(THEMES)]
    focus = [theme.lower() for theme in themes]
    of_all = {
        (name, finding.name): finding.passages[:_QUOTED]
        for name, known in sides.items()
        for finding in find_themes(Question(name), known, focus=focus).findings
    }
    parts, cited = [], []
    for theme in themes:
        sentences = {name: of_all.get((name, theme), ()) for name in sides}
        lines = [
            f"- {escape(name)}: {quote}"
            for name, held in sentences.items()
            for quote in [_quoted([passage], escape) for passage in held] or [SILENT]
        ]
        parts.append("\n".join((f"{escape(theme)}:", *lines)))
        cited += [passage.label for held in sentences.values() for passage in held]
    return "\n\n".join(parts), list(dict.fromkeys(cited))


def _quoted(passages: Iterable[ThemePassage], escape: Callable[[str], str]) -> str:
    return " ".join(
        f"“{escape(quotation(passage.text))}” [{passage.label}]" for passage in passages
    )


def leaning(findings: Iterable[ThemeFinding], lean: int | None) -> list[ThemeFinding]:
    """The findings without what leans the other way than is asked for, what leans so first."""
    if lean is None:
        return list(findings)
    kept = [
        replace(
            finding,
            passages=tuple(
                sorted(
                    (passage for passage in finding.passages if passage.lean != -lean),
                    key=lambda passage: passage.lean != lean,
                )
            ),
        )
        for finding in findings
    ]
    kept.sort(key=lambda finding: all(passage.lean != lean for passage in finding.passages))
    return [finding for finding in kept if finding.passages]


def shown_lines(
    findings: Iterable[ThemeFinding],
    lean: int | None = None,
    escape: Callable[[str], str] = str,
) -> str:
    """Findings as a list for a chat: each theme with its passages and where they stand.

    Where none surely leans as was asked for, it says so first.
    """
    findings = list(findings)
    sure = any(passage.lean == lean for finding in findings for passage in finding.shown)
    unsure = "" if lean is None or sure else f"None of these is surely {_LEANING[lean]}:\n\n"
    return unsure + "\n".join(
        f"- {escape(finding.name)}: {_quoted(finding.shown, escape)}" for finding in findings
    )


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """That there is no answer, and why, without a word about the product."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    if is_foreign(question):
        advice = f"{FOREIGN[0].upper()}{FOREIGN[1:]}."
    else:
        advice = "Another spelling, or a few words on what it is, may help."
    return (
        f"I couldn't find relevant posts about “{formatted(question)}”. "
        f"{outcomes or 'Nothing was looked up.'} {advice}"
    )
