"""The answer of a chat without a model: sentences of the posts by theme, or why there is none."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import regex

from api.core.domain import Question
from api.core.text import fold, one_line
from api.core.words import content_words, is_not_english, words
from api.features.chat.chat_citations import passages_for, plain_text, subjects_meant
from api.features.chat.lookups import ChatLookups
from api.pipeline.question import query_guard
from api.reports.exhibits import Exhibit
from api.reports.keyless.aspects import aspects_named
from api.reports.keyless.polarity import lean_wanted
from api.reports.keyless.theme_finding import PASSAGES, ThemeFinding, ThemePassage, unsure_side
from api.reports.keyless.theme_sentences import VOICE
from api.reports.keyless.themes import find_themes
from api.reports.markdown_text import formatted, quotation
from api.reports.quotes import LABEL, sentences
from api.reports.report import LONGEST_PASSAGE

FOREIGN = (
    "a question in another language than English may be misread: write the product's name alone, "
    "or with what is asked about in English"
)
# Themes of one answer; of each product in a comparison, themes looked for and passages of one.
_THEMES, _COMPARED_THEMES, _COMPARED_PASSAGES = 5, 3, 2
# Words that a question asks about at most: more are no list of topics.
_MOST_TOPICS = 3
# a word inside a question that is a name by its form: `Ember`, `rtx4090`
_NAME_LIKE = regex.compile(r"(?<=\S\s)[\p{L}\p{N}]*[\p{Lu}\p{N}][\p{L}\p{N}.]*")
# `who said that?`, `which posts say so?`, `where is this from?`
_WHO = regex.compile(
    r"(?i)^\W*(?:and )?(?:(?:who|which (?:post|review|user|buyer|owner)s?)"
    r" (?:said|says?|wrote|writes?)|where (?:is|are|does|did|do))"
    r" (?:that|this|it|so|these|those)(?: (?:come )?from)?\W*$"
)
_NO_POST, _NO_SENTENCE = "No post that was found mentions", "No sentence of the posts says plainly anything about"
Escape = Callable[[str], str]  # how strangers' words are written into an answer


async def look_up_question(lookups: ChatLookups) -> None:
    """Ask every source the question itself, when nothing known holds its words.

    Not when it asks who said what was answered before. Of a comparison each unknown product is
    looked up by name, and in what follows it each of which no post holds the words asked about. A
    question that points back, or asks about a part, is asked with the name of what it is about.
    """
    question, before = lookups.question, lookups.previous_subjects
    names, keywords = query_guard.compared_names(question), set(content_words(question))
    queries: list[str] = []
    if _who_said(lookups)[1]:
        return
    if names:
        lookups.exhibits |= lookups.citable
        queries = [name for name in names if not lookups.knows(name)]
    elif len(lookups.subjects) > 1:
        lookups.exhibits |= lookups.citable
        topics = _topics(question, lookups.subjects)
        queries = [
            " ".join((name, *topics))
            for name in lookups.subjects
            if topics and not _mentioning(topics, lookups.session.exhibits_for([name]).values())
        ]
    elif not any(keywords.intersection(words(" ".join(exhibit.item.texts))) for exhibit in lookups.citable.values()):
        # `and the lid?` names no product, but a part of the one before
        part = lookups.implied_subjects and "the" in question.casefold().split()
        continued = before and (query_guard.refers_back(question) or part)
        meant = subjects_meant(question, lookups.session.subjects)
        own = {query_guard.singular(word) for name in meant for word in name.split()}
        words_asked = [word for word in query_guard.naming_words(question) if query_guard.singular(word) not in own]
        named = meant or (before if continued else ())
        queries = [" ".join((*named, *words_asked)) if named else question]
    sources = lookups.product.askable
    asking = (lookups.ask_source(name, query, "quick") for query in queries for name in sources)
    await asyncio.gather(*asking)


def keyless_answer(lookups: ChatLookups) -> tuple[str, list[Exhibit]]:
    """The answer by the turn's exhibits, of several products side by side, and the exhibits that it cites."""
    session, question = lookups.session, lookups.question
    text, labels = _who_said(lookups)
    if not labels and (len(lookups.subjects) > 1 or query_guard.compared_names(question)):
        sides = {n: list(session.exhibits_for([n]).values()) for n in lookups.subjects}
        known = {name: exhibits for name, exhibits in sides.items() if exhibits}
        lean = lean_wanted(question)
        topics = _topics(question, lookups.subjects) if lookups.continues else []
        text, labels = side_by_side(known, plain_text, topics, lean)
        if topics and not labels:
            rest, labels = side_by_side(known, plain_text, lean=lean)
            text = f"{nothing_plain(topics)} What they say besides:\n\n{rest}"
    elif not labels:
        exhibits, before = list(lookups.citable.values()), lookups.previous_subjects
        name = next(iter(lookups.subjects), "") or question
        # a question that was looked up as it stands is its own subject, with what it asks about
        topics = _topics(question, (name,) if name in before else (), exhibits)
        if topics and name not in before:
            name = " ".join(word for word in query_guard.naming_words(name) if word not in topics) or name
        text, labels = on_topics(name, exhibits, topics, lean_wanted(question), plain_text)
    return text, [session.exhibits[label] for label in labels]


def says_nothing(lookups: ChatLookups) -> bool:
    """Whether the answer would be that something is not spoken of."""
    text, exhibits = keyless_answer(lookups)
    return not exhibits or text.startswith((_NO_POST, _NO_SENTENCE))


async def ask_by_name(lookups: ChatLookups) -> None:
    """Ask every source for the turn's products, each with what is asked about it."""
    topics = _topics(lookups.question, lookups.subjects)
    queries = [" ".join((name, *topics)) for name in lookups.subjects] or [lookups.question]
    sources = lookups.product.askable
    await asyncio.gather(*(lookups.ask_source(source, query, "quick") for query in queries for source in sources))


def _who_said(lookups: ChatLookups) -> tuple[str, list[str]]:
    answers = [exchange.answer for exchange in lookups.session.exchanges]
    return who_said(lookups.question, answers, lookups.session.exhibits, plain_text)


def who_said(
    question: str,
    answers: Sequence[str],
    exhibits: Mapping[str, Exhibit],
    escape: Escape = str,
) -> tuple[str, list[str]]:
    """The posts that the last answer cites, and their labels, for a question such as `who said that?`; else empty."""
    last = answers[-1] if answers and _WHO.match(question) else ""
    labels = [label for label in dict.fromkeys(LABEL.findall(last)) if label in exhibits]
    lines = []
    for label in labels:
        quotes = [each.text for each in passages_for(last, exhibits[label], ())]
        title = one_line(exhibits[label].item.title)
        above = "" if title in quotes else f"{escape(quotation(title))}{':' if quotes else ''} "
        shown = "".join(f"“{escape(quotation(words))}” " for words in quotes)
        lines.append(f"- {above}{shown}[{label}]")
    return "\n".join(("The answer before rests on these posts:\n", *lines)) if lines else "", labels


def on_topics(
    name: str,
    exhibits: Sequence[Exhibit],
    topics: Sequence[str] = (),
    lean: int | None = None,
    escape: Escape = str,
) -> tuple[str, list[str]]:
    """Findings about a product, or about topics that the question names, and the labels cited.

    Where no sentence speaks plainly of the topics, the text says so, and quotes the sentences that
    mention them and what else is said. It is empty where nothing can be shown.
    """
    findings = find_themes(Question(name), exhibits, focus=topics, lean=lean, naming=PASSAGES).findings[:_THEMES]
    opening, mentions = "", list[ThemePassage]()
    if topics and not findings:
        stems = set(map(query_guard.singular, topics))
        mentioning = _mentioning(topics, exhibits)
        for exhibit in mentioning[:PASSAGES]:
            for part in (part for text in exhibit.item.texts for part in sentences(text)):
                if len(part) <= LONGEST_PASSAGE and stems & query_guard.joined_spellings(part):
                    mentions.append(ThemePassage(exhibit.label, None, part))
                    break
        findings = find_themes(Question(name), exhibits, lean=lean, naming=PASSAGES).findings[:_THEMES]
        opening = f"{_NO_POST} {', '.join(map(formatted, topics))}."
        if mentioning:
            opening = nothing_plain(topics)
    lines = "\n".join(f"- {_quoted([mention], escape)}" for mention in mentions)
    parts = (
        f"{opening} It is mentioned here:\n\n{lines}" if mentions else opening,
        "What they say besides:" if topics and opening and findings else "",
        theme_list(findings, lean, escape),
    )
    shown = (*mentions, *(passage for finding in findings for passage in finding.shown))
    labels = list(dict.fromkeys(passage.label for passage in shown))
    return ("\n\n".join(filter(None, parts)), labels) if labels else ("", [])


def _topics(question: str, names: Iterable[str], exhibits: Sequence[Exhibit] = ()) -> list[str]:
    """Topics that a question asks about these products; empty when too many words remain.

    Without names, `exhibits` are posts that were found for the whole question: then a topic is an
    aspect of products, or a word that stands in few of them and is no name.
    """
    known = {query_guard.singular(word) for name in names for word in query_guard.naming_words(name)}
    topics = [
        word
        for word in query_guard.naming_words(question)
        if query_guard.singular(word) not in known and lean_wanted(word) is None
    ]
    if not known:
        proper = {fold(word) for word in _NAME_LIKE.findall(question)}
        topics = [
            word
            for word in topics
            if aspects_named(word) or (word not in proper and 2 * len(_mentioning([word], exhibits)) < len(exhibits))
        ]
    return topics if len(topics) <= _MOST_TOPICS else []


def _mentioning(topics: Iterable[str], exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """The exhibits that hold one of the topics, in any spelling."""
    stems = set(map(query_guard.singular, topics))
    return [e for e in exhibits if stems & query_guard.joined_spellings(" ".join(e.item.texts))]


def nothing_plain(topics: Iterable[str]) -> str:
    """A sentence that says that nothing was found to show on these topics."""
    named = ", ".join(map(formatted, topics))
    return f"{_NO_SENTENCE} {named}."


def side_by_side(
    sides: Mapping[str, Sequence[Exhibit]],
    escape: Escape = str,
    topics: Sequence[str] = (),
    lean: int | None = None,
) -> tuple[str, list[str]]:
    """What is said of each product in `sides`, theme by theme, and the labels cited, in order.

    Themes of more products come first. Where no product has a theme, and with one product alone, the
    findings of each stand under its name. The text is empty where nobody speaks of the `topics`.
    """
    own = {
        name: find_themes(
            Question(name), known, most=_COMPARED_THEMES, focus=topics, lean=lean, naming=PASSAGES
        ).findings
        for name, known in sides.items()
    }
    counts = Counter(finding.name for findings in own.values() for finding in findings if finding.name != VOICE)
    if topics and not counts:
        return "", []
    if len(sides) < 2 or not counts:
        parts = [f"{escape(name)}:\n\n{theme_list(own[name], lean, escape)}" for name in own]
        shown = (passage for findings in own.values() for f in findings for passage in f.shown)
        return "\n\n".join(parts), list(dict.fromkeys(passage.label for passage in shown))
    themes = [theme for theme, _ in counts.most_common(_THEMES)]
    focus = [theme.lower() for theme in themes]
    by_side = {
        (name, finding.name): replace(finding, passages=finding.passages[:_COMPARED_PASSAGES])
        for name, known in sides.items()
        for finding in find_themes(Question(name), known, focus=focus, lean=lean).findings
    }
    parts, labels = [], dict[str, None]()
    for theme in themes:
        findings = {name: by_side[name, theme] for name in sides if (name, theme) in by_side}
        side = unsure_side(findings.values(), lean)
        lines = [f"{escape(theme)}{f' (none recognised as {side})' if side else ''}:"]
        for name in sides:
            passages = findings[name].passages if name in findings else ()
            quotes = [_quoted([passage], escape) for passage in passages]
            quotes = quotes or ["no sentence says plainly anything about it"]
            lines += [f"- {escape(name)}: {quote}" for quote in quotes]
            labels |= dict.fromkeys(passage.label for passage in passages)
        parts.append("\n".join(lines))
    return "\n\n".join(parts), list(labels)


def _quoted(passages: Iterable[ThemePassage], escape: Escape) -> str:
    return " ".join(f"“{escape(quotation(p.text))}” [{p.label}]" for p in passages)


def theme_list(findings: Iterable[ThemeFinding], lean: int | None = None, escape: Escape = str) -> str:
    """Findings as a list with labels; those without a certain lean of the wanted kind come last."""
    groups: dict[bool, list[str]] = {True: [], False: []}
    by_name: dict[tuple[bool, str], list[ThemePassage]] = {}
    for finding in findings:
        sure = lean is None or finding.leans(lean)
        by_name.setdefault((sure, finding.name), []).extend(finding.shown)
    for (sure, name), passages in by_name.items():
        title = f"{name}s, one each".replace("One v", "V") if name == VOICE else name
        groups[sure].append(f"- {escape(title)}: {_quoted(passages, escape)}")
    parts = ["\n".join(groups[True])]
    if groups[False]:
        side = unsure_side((), lean)
        none = f"Nothing here was recognised as {side}; some may still be. What is said:"
        parts.append(f"Not recognised as {side}:" if groups[True] else none)
        parts.append("\n".join(groups[False]))
    return "\n\n".join(filter(None, parts))


def not_searched(question: str, lines: Iterable[str]) -> str:
    """The answer when no source could be asked, with the reasons and the remedy."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    remedy = "`listenpost doctor` says what to set or to wait for."
    return f"“{formatted(question)}” was not searched for. {outcomes} {remedy}"


def nothing_found(question: str, lines: Iterable[str]) -> str:
    """The answer where nothing was found, and why, without a word about the product."""
    outcomes = " ".join(f"{formatted(line)}." for line in dict.fromkeys(lines))
    if is_not_english(question):
        advice = f"{FOREIGN[0].upper()}{FOREIGN[1:]}."
    else:
        advice = "Another spelling, or a few words on what it is, may help."
    return (
        f"I couldn't find relevant posts about “{formatted(question)}”. {outcomes or 'Nothing was looked up.'} {advice}"
    )
