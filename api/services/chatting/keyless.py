"""What a chat says without a model's words: the posts' own, or that there are none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import regex

from api.services.chatting.lookups import ChatDesk
from api.services.chatting.passages import plain
from api.services.chatting.session import item_words, question_words
from api.services.question.comparing import compared, points_back
from api.services.question.guard import spellings, stem, telling_words
from api.services.question.query import is_foreign
from api.services.reporting.aspects import aspects_in
from api.services.reporting.dossier import Exhibit
from api.services.reporting.escaping import formatted, quotation
from api.services.reporting.polarity import lean_wanted
from api.services.reporting.theme import ThemeFinding, ThemePassage, unsure_side
from api.services.reporting.themes import UNNAMED, find_themes
from api.services.schemas import Question
from api.services.text import fold

FOREIGN = (
    "a question in another language than English may be misread: write the product's name alone, "
    "or with what is asked about in English"
)
THEMES = 5
"""Themes of one answer at most."""
_COMPARED, _QUOTED = 3, 2
"""Of each product in a comparison: themes looked for in all, and passages under one, at most."""
SILENT = "no sentence says plainly anything about it"
_MOST_WORDS = 3
"""Words that a question asks about at most; more are no list of subjects."""
# a word inside a question that by its form belongs to a name: `Ember`, `rtx4090`
_NAME_LIKE = regex.compile(r"(?<=\S\s)[\p{L}\p{N}]*[\p{Lu}\p{N}][\p{L}\p{N}.]*")


async def look_around(desk: ChatDesk) -> None:
    """Ask every source the question itself, when nothing known holds its words.

    Of a comparison each product that nothing is known of is looked up by name, and after it each
    of which no post holds what is asked about; a question that points back, or asks about a part,
    is asked with the name of what it points at.
    """
    names = compared(desk.question)
    if names:
        desk.recall()
        queries = [name for name in names if not desk.knows(name)]
    elif len(desk.subjects) > 1:
        desk.recall()
        words = _asked(desk.question, desk.subjects)
        queries = [
            " ".join((name, *words))
            for name in desk.subjects
            if words and not _mentioning(words, desk.session.exhibits_for([name]).values())
        ]
    elif fitting(desk, desk.citable.values()):
        queries = []
    elif desk.before and (points_back(desk.question) or _asks_of_it(desk)):
        queries = [" ".join((*desk.before, *telling_words(desk.question)))]
    else:
        queries = [desk.question]
    await asyncio.gather(
        *(desk.look(name, query, "quick") for query in queries for name in desk.product.sources)
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

    Of several products each by itself, under its name: in a comparison and in what follows it.
    """
    if len(desk.subjects) > 1 or compared(desk.question):
        return _compared(desk)
    new = fitting(desk, desk.exhibits.values()) or list(desk.exhibits.values())
    return _answer(desk, new or fitting(desk, desk.session.exhibits.values()))


def _compared(desk: ChatDesk) -> tuple[str, list[Exhibit]]:
    """The turn's products side by side, on what is asked about them."""
    sides = {name: list(desk.session.exhibits_for([name]).values()) for name in desk.subjects}
    held = {name: exhibits for name, exhibits in sides.items() if exhibits}
    lean = lean_wanted(desk.question)
    words = _asked(desk.question, desk.subjects) if desk.goes_on else []
    text, labels = side_by_side(held, plain, words, lean)
    if words and not labels:
        rest, labels = side_by_side(held, plain, lean=lean)
        text = f"{silent(words)} What they say besides:\n\n{rest}"
    return text, [desk.session.exhibits[label] for label in labels]


def _answer(desk: ChatDesk, exhibits: Sequence[Exhibit]) -> tuple[str, list[Exhibit]]:
    """What is said of the words that the question adds to its subject.

    Where nothing is said plainly: that, and what else is said, by posts that hold the words first.
    """
    name, lean = next(iter(desk.subjects), "") or desk.question, lean_wanted(desk.question)
    # a question that was looked up as it stands is its own subject, and holds what it asks about
    words = _asked(desk.question, () if name not in desk.before else (name,), exhibits)
    if words and name not in desk.before:
        asked = set(words)
        name = " ".join(word for word in telling_words(name) if word not in asked) or name
    if not words:
        return _themes(name, exhibits, lean=lean)
    text, cited = _themes(name, exhibits, words, lean)
    if cited:
        return text, cited
    mentioning = _mentioning(words, exhibits)
    text, cited = _themes(name, mentioning, lean=lean) if mentioning else ("", [])
    if cited:
        return f"{silent(words)} What the posts that mention it say:\n\n{text}", cited
    text, cited = _themes(name, exhibits, lean=lean)
    opening = silent(words) if mentioning else _unmentioned(words)
    return f"{opening} What they say besides:\n\n{text}" if cited else "", cited


def _asked(question: str, names: Iterable[str], exhibits: Sequence[Exhibit] = ()) -> list[str]:
    """What a question asks about its products; nothing where those are too many words for that.

    Args:
        question: as it was written.
        names: of the products, whose words are left out.
        exhibits: where the names are not known apart from what is asked, posts that were found for
            both: what asks is an aspect of products, or stands in few of them.
    """
    known = {stem(word) for name in names for word in telling_words(name)}
    words = [
        word
        for word in telling_words(question)
        if stem(word) not in known and lean_wanted(word) is None
    ]
    if not known:
        proper = {fold(word) for word in _NAME_LIKE.findall(question)}
        words = [
            word
            for word in words
            if aspects_in(word)
            or (word not in proper and 2 * len(_mentioning([word], exhibits)) < len(exhibits))
        ]
    return words if len(words) <= _MOST_WORDS else []


def _mentioning(words: Iterable[str], exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits that hold one of the words, in any spelling."""
    stems = {stem(word) for word in words}
    return [exhibit for exhibit in exhibits if stems & spellings(" ".join(exhibit.item.texts))]


def silent(words: Iterable[str]) -> str:
    """That nothing was found to show for words that were asked about."""
    named = ", ".join(map(formatted, words))
    return f"No sentence of the posts says plainly anything about {named}."


def _unmentioned(words: Iterable[str]) -> str:
    return f"No post that was found mentions {', '.join(map(formatted, words))}."


def _themes(
    question: str,
    exhibits: Sequence[Exhibit],
    focus: Sequence[str] = (),
    lean: int | None = None,
) -> tuple[str, list[Exhibit]]:
    themed = find_themes(Question(question), exhibits, focus=focus, lean=lean)
    findings = themed.findings[:THEMES]
    cited = dict.fromkeys(passage.label for finding in findings for passage in finding.shown)
    by_label = {exhibit.label: exhibit for exhibit in exhibits}
    return shown_lines(findings, lean, plain), [by_label[label] for label in cited]


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
        parts.append("\n".join((f"{escape(theme)}:", *lines)))
        cited += [passage.label for held in sentences.values() for passage in held]
    return _unsure(of_all.values(), lean) + "\n\n".join(parts), list(dict.fromkeys(cited))


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

    Where none surely leans as was asked for, it says so first.
    """
    findings = list(findings)
    return _unsure(findings, lean) + "\n".join(
        f"- {escape(finding.name)}: {_quoted(finding.shown, escape)}" for finding in findings
    )


def _unsure(findings: Iterable[ThemeFinding], lean: int | None) -> str:
    """That nothing surely leans as was asked for, before what is shown all the same."""
    side = unsure_side(findings, lean)
    return f"None of these is surely {side}:\n\n" if side else ""


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
