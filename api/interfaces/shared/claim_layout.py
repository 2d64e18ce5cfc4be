"""The claims of a report as every rendering shows them: the most held first, with who says so, when and in which words.

Also the one line that a reader must know first, and how the report was made, which comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import regex

from api.core.text import quantity, utc_minute
from api.core.words import words
from api.interfaces.shared import chart_data, presentation
from api.interfaces.shared.presentation import UNSENT, source_title
from api.pipeline.evidence.figures import Authors, Sentiment
from api.pipeline.question.product_name import question_parts
from api.reports.keyless.aspects import aspects_named
from api.reports.keyless.polarity import SIDES, lean_wanted
from api.reports.keyless.theme_sentences import SUMMARY, is_subject, parts_of
from api.reports.quotes import sentences, without_stop
from api.reports.report import Finding, KeptItem, Report
from api.sources import OWN_ITEMS

FIRST = 5
"""Number of claims shown first, each with one quote; the others follow below."""
MOST_SPOKEN, FEWEST_SPEAKING = 5, 3
"""Aspects that are named above the claims at most, and posts from which one is."""
SHORT_SUMMARY = 160
"""Longest summary shown above the claims, in characters: about two lines."""
_SIDES = {1: "praise", -1: "complaint"}  # kinds of findings, by lean


@dataclass(frozen=True, slots=True)
class ShownQuote:
    """A quote under a claim, with its facts."""

    words: str
    key: str
    facts: str
    """Place, day and measures: `Reddit (r/mugs), 2026-05-03, 34 votes`."""


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A finding with who holds it, since when, and the words to show under it."""

    finding: Finding
    held: str
    """People behind it, and when: `7 people: Reddit 4, YouTube 3; May to November 2026`. For one quoted person `one
    of 14 posts that speak of it`, or empty."""
    over_time: str
    """People by month as text, `by month ▂▁▅█`; empty when there are too few."""
    quotes: tuple[ShownQuote, ...]
    """Quotes of listed posts, the most telling first; at most `presentation.SHOWN`."""
    others: tuple[str, ...]
    """Keys of cited posts whose words are not among the quotes."""
    name: str = ""
    """Subject, such as `Battery`, of a theme's sentence; empty for other claims."""
    words: str = ""
    """What the sentence quotes, where it has a subject."""
    people: str = ""
    """People behind it: `7 people`, `two of the nine people who speak of it say alike`, `one of 14 posts that speak
    of it`; empty when the sentence says so."""
    where: str = ""
    """Where and when, `Reddit 4, YouTube 3; May to November 2026`; empty for one quoted person."""


def claims_of(report: Report) -> tuple[list[ShownClaim], list[ShownClaim]]:
    """The claims that come first, and the others.

    First are those that answer the question where it asks for a part (`the battery of ...`) or a side, in the writer's
    order; where none does or it asks for neither, what most people hold, of as many what most posts speak of.
    """
    items = {item.key: item for item in report.items}
    in_order = lean_wanted(report.query) is not None

    def order(finding: Finding) -> tuple[bool, bool, int, int]:
        # a writer that counts puts claims before subjects of which more people only speak
        kept = in_order or finding.support == "counted"
        held = 0 if kept else sum(finding.people.values()) or len(finding.cites)
        name = "" if kept else (parts_of(finding.text) or ("",))[0]
        return finding not in answers, not kept and is_subject(finding.text), -held, -speaking.get(name.casefold(), 0)

    answers = _answers(report)
    speaking = _posts_by_aspect(report)
    claims = [_claim(finding, items, speaking) for finding in sorted(report.findings, key=order)]
    first = min(FIRST, len(answers) or FIRST)
    return claims[:first], claims[first:]


def _answers(report: Report) -> list[Finding]:
    """The findings on the part and the side that the question asks for."""
    lean, part = lean_wanted(report.query), _part_asked(report.query)
    wanted, known = set(words(part)), aspects_named(part)

    def is_on_part(text: str) -> bool:
        spoken = set(words(text))
        return wanted <= spoken or any(aspect.name in spoken or aspect.is_in(text) for aspect in known)

    def answers(finding: Finding) -> bool:
        texts = (finding.text, *(passage.passage for passage in finding.evidence))
        return any(map(is_on_part, texts)) and (lean is None or finding.kind == _SIDES[lean])

    return [finding for finding in report.findings if answers(finding)]


def _part_asked(query: str) -> str:
    """The part of the product that a question asks about: `battery life`; empty without one, as of `The Last of Us`.

    Either a known aspect in any of the languages of questions, or what stands as `the ... of` in small letters.
    """
    part = question_parts(query).aspect
    if part and (aspects_named(part) or (part.islower() and f"the {part} of " in query)):
        return part
    return next((part for part in _PART.findall(query) if aspects_named(part)), "")


def _unanswered(report: Report) -> list[str]:
    """One sentence saying that no finding answers the question; empty when one does."""
    lean, part = lean_wanted(report.query), _part_asked(report.query)
    if not report.findings or _answers(report) or not (lean or part):
        return []
    about = f" about the {part}" if part else ""
    return [f"Nothing here was recognised as {SIDES[lean]}{about}; some may still be. What is said:" if lean
            else f"No claim here is{about}. What is said instead:"]  # fmt: skip


# `How good is the support of Oura in Germany?`
_PART = regex.compile(r"(?i)\bthe (\p{L}+) of\b")
# `What do people say about the battery of the Plaud Note?`
_ON_A_PART = regex.compile(r"What do people say about the (?P<part>.+?) of (?P<product>.+)\?")


def next_questions(report: Report) -> list[str]:
    """The report's suggestions, those on a part replaced by as many on the subjects that most people speak of.

    A subject that no claim has is spoken of by few, and may be no part at all.
    """
    first, others = claims_of(report)
    names = iter([claim.name for claim in (*first, *others) if claim.name])
    questions = []
    for suggestion in report.suggestions:
        match = _ON_A_PART.fullmatch(suggestion)
        name = next(names, "") if match else ""
        subject = f"What do people say about the {name.lower()} of {match['product']}?" if match and name else ""
        questions.append(subject or suggestion)
    return list(dict.fromkeys(questions))


def sections_of(report: Report) -> list[tuple[str, list[ShownClaim]]]:
    """Non-empty groups of claims with their headings; the first group has none."""
    first, others = claims_of(report)
    return [(heading, claims) for heading, claims in (("", first), ("What else is said", others)) if claims]


def glance(report: Report) -> list[tuple[str, str]]:
    """Figures to see first, each with what it counts: people, posts, tone, time; unknown ones are left out."""
    if not report.items:
        return []
    fetched = sum(source.fetched for source in report.sources.values())
    authors, felt = report.figures.authors, report.figures.sentiment
    figures = (
        (_people_label(authors), str(authors.people) if authors and authors.people else ""),
        (f"posts kept of {fetched} found" if fetched >= len(report.items) else "posts kept", str(len(report.items))),
        ("when written", span([item.created_at for item in report.items if item.created_at], "%b")),
        (_tone_label(felt, len(report.items)) if felt else "", _tone(felt) if felt and felt.n else ""),
    )
    return [(label, value) for label, value in figures if value]


def _people_label(authors: Authors | None) -> str:
    """What the number of people is called: `people, and 12 posts without a known author`."""
    label = "person" if authors and authors.people == 1 else "people"
    unnamed = authors.unnamed if authors else 0
    return f"{label}, and {quantity(unnamed, 'post')} without a known author" if unnamed else label


def _written_by(authors: Authors, total: int) -> str:
    """Number of authors of `total` posts: ` by 21 people, one of whom wrote 3 of them`; empty if one each."""
    if authors.unnamed == total:
        return " without a known author" if total == 1 else ", all without a known author"
    people = quantity(authors.people, "person", "people")
    several = f", one of whom wrote {authors.most} of them" if authors.most > 1 and authors.people > 1 else ""
    unnamed = f"; {quantity(authors.unnamed or 0, 'post')} {'has' if authors.unnamed == 1 else 'have'} no known author"
    unnamed *= bool(authors.unnamed)
    return f" by {people}{several}{unnamed}" if several or unnamed or authors.people < total else ""


def _tone(felt: Sentiment) -> str:
    """`3 positive, 1 neutral, 8 negative`."""
    return ", ".join(f"{each.count} {each.name}" for each in felt.feelings)


def _tone_label(felt: Sentiment, kept: int) -> str:
    """Number of posts with a tone, and of those without a clear one."""
    without = kept - felt.n - felt.repeated
    return f"tone of {quantity(felt.n, 'post')}{f'; {without} without a clear tone' if without > 0 else ''}"


def _claim(finding: Finding, items: Mapping[str, KeptItem], speaking: Mapping[str, int]) -> ShownClaim:
    """A finding as it is shown; `speaking`: number of kept posts that mention each aspect."""
    listed = [passage for passage in finding.evidence if passage.key in items]
    shown = listed[: presentation.SHOWN]
    keys = {passage.key for passage in shown}
    texts = (presentation.text_part(items[passage.key], passage.comment_id) for passage in listed)
    moments = [text.created_at for text in texts if text.created_at]
    quotes = tuple(
        # words that the claim quotes are not repeated below it
        ShownQuote("" if without_stop(p.passage) in finding.text else p.passage, p.key, facts)
        for p in shown
        for facts in [presentation.facts_of(items[p.key], p.comment_id)]
    )
    others = tuple(key for key in finding.cites if key in items and key not in keys)
    name, words_of_it, who = parts_of(finding.text) or ("", "", "")
    unit, periods = chart_data.claim_line(finding)
    over_time = f"{unit} {chart_data.sparkline(periods)}" if periods else ""
    people, named = _people_and_places(finding, items)
    among = ""
    if name and not who and len(finding.cites) == 1 < (count := speaking.get(name.casefold(), 0)):
        people = among = f"one of {count} posts that speak of it"
    elif finding.support == "counted":
        people = who if name and who else people if name else ""
    # of one person the words below say where and when
    alone = sum(_places(finding, items).values()) == 1 and quotes
    held = "; ".join(filter(None, (_holders(finding, items), span(moments))))
    if alone and words_of_it and len(finding.cites) == 1:  # the sentence is one quotation
        held = among
    where = "" if alone else "; ".join(filter(None, (", ".join(named), span(moments))))
    return ShownClaim(finding, held, over_time, quotes, others, name, words_of_it if name else "", people, where)


def in_words(claim: ShownClaim) -> str:
    """People, time and months of a claim in words, for interfaces without pictures."""
    return ", ".join(filter(None, (claim.held, claim.over_time)))


def _holders(finding: Finding, items: Mapping[str, KeptItem]) -> str:
    """`7 people: Reddit 4, YouTube 3`; `6 posts by one author on Reddit`; posts where people were not counted.

    `spoken of by 7 people: ...` where they say different things.
    """
    who, named = _people_and_places(finding, items)
    places = _places(finding, items)
    alone = named[0].removesuffix(" 1") if sum(places.values()) == 1 else ", ".join(named)
    if finding.support == "counted":  # the sentence says how many
        return alone if len(places) > 1 else source_title(next(iter(places), ""))
    who = f"spoken of by {who}" if is_subject(finding.text) else who
    if len(places) == 1:
        name = next(iter(places))
        return who if name == OWN_ITEMS.name else f"{who} on {source_title(name)}"
    return f"{who}: {', '.join(named)}" if places else who


def _people_and_places(finding: Finding, items: Mapping[str, KeptItem]) -> tuple[str, list[str]]:
    """`7 people`, or posts where people were not counted; and `Reddit 4` for each place."""
    posts, places = len(finding.cites), _places(finding, items)
    total = sum(places.values())
    who = quantity(total, "person", "people") if finding.people else quantity(posts, "post")
    if finding.people and posts > total:
        who = f"{posts} posts by one author" if total == 1 else f"{who} in {posts} posts"
    return who, [f"{source_title(name)} {count}" for name, count in places.items()]


def _places(finding: Finding, items: Mapping[str, KeptItem]) -> Mapping[str, int]:
    """People of each place, or listed posts where people were not counted, most first."""
    return finding.people or dict(Counter(items[key].source for key in finding.cites if key in items).most_common())


def span(moments: Sequence[datetime], month: str = "%B") -> str:
    """`May to November 2026`; of one month or day only that; empty of nothing. `month`: how a month is written."""
    if not moments:
        return ""
    first, last = min(moments), max(moments)
    if first.date() == last.date():
        return f"{last.day} {last:{month} %Y}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{last:{month} %Y}"
    return f"{first:{month}}{'' if first.year == last.year else f' {first.year}'} to {last:{month} %Y}"


def notice(report: Report, *, bannered: bool = False) -> str:
    """What must be known before anything is believed, on one line; empty when there is nothing.

    `bannered`: that the data is made up stands above already.
    """
    sources = report.sources.values()
    opened = [source_title(source.source) for source in sources if source.fetched and source.gate.unjudged]
    silent = [
        source_title(source.source)
        for source in sources
        if not source.outcome.answered and source.outcome not in UNSENT
    ]
    parts = [
        "SAMPLE DATA: everything here is made up and comes from the offline sandbox" * (report.sample and not bannered),
        f"nobody judged which posts of {', '.join(opened)} are about it" * bool(opened),
        f"{', '.join(silent)} could not be asked" * bool(silent),
    ]
    line = "; ".join(filter(None, parts))
    return f"{line[0].upper()}{line[1:]}." if line else ""


def lead(report: Report) -> list[str]:
    """The sentences above the claims: why there are none, or a summary of a line or two, and that none is an answer.

    Of a summary that counts the claims, only what else it says.
    """
    if not report.findings:
        return [presentation.decision(report), *presentation.paragraphs(report)]
    return [*_short_summary(report), *_most_spoken(report), *_unanswered(report)]


def _most_spoken(report: Report) -> list[str]:
    """Aspects that most kept posts mention, unless the summary names subjects with their people."""
    aspects = Counter(_posts_by_aspect(report)).most_common(MOST_SPOKEN)
    named = [f"{aspect} ({posts})" for aspect, posts in aspects if posts >= FEWEST_SPEAKING]
    narrowed = lean_wanted(report.query) is not None or _part_asked(report.query) != ""
    if narrowed or len(named) < 2 or "Most spoken of: " in report.summary:
        return []
    return [f"Most spoken of, in posts: {', '.join(named)}."]


def _posts_by_aspect(report: Report) -> dict[str, int]:
    """Number of kept posts that mention each aspect, by its folded name."""
    return {each.aspect.casefold(): len(each.cites) for each in report.figures.aspects or ()}


def _short_summary(report: Report) -> list[str]:
    if SUMMARY.match(report.summary):
        own = [each for each in sentences(report.summary) if "“" not in each]
        return [" ".join(own)] if own else []
    return presentation.paragraphs(report) if len(report.summary) <= SHORT_SUMMARY else []


def summary(report: Report) -> list[str]:
    """The paragraphs of a summary that is too long to stand above the claims."""
    return (
        []
        if not report.findings or _short_summary(report) or SUMMARY.match(report.summary)
        else presentation.paragraphs(report)
    )


def cited(report: Report) -> list[KeptItem]:
    """The items that claims and quotes are from, in the order of their numbers; all where nothing is cited."""
    keys = {key for finding in report.findings for key in finding.cites} | {quote.key for quote in report.quotes}
    return [item for item in report.items if item.key in keys] or list(report.items)


def uncited(report: Report) -> list[KeptItem]:
    """The items that `cited` leaves out."""
    keys = {item.key for item in cited(report)}
    return [item for item in report.items if item.key not in keys]


def process(report: Report, *, priced: bool = True) -> list[str]:
    """How the report was made, one sentence each: basis, dropped items, time, and price."""
    total, authors, checked = len(report.items), report.figures.authors, report.support
    rests = f"It rests on {quantity(total, 'post')}{_written_by(authors, total) if authors else ''}" if total else ""
    cited_posts = f"; {quantity(report.cited, 'post')} {'is' if report.cited == 1 else 'are'} cited"
    unsure = len(presentation.hardly_sure(report))
    asked_at = f"Asked {utc_minute(report.created_at)} at depth {report.depth}"
    if priced:
        spent = presentation.spent(report).removesuffix(".")
        asked_at += f"; {spent[0].lower()}{spent[1:]}"
        asked_at += "" if report.timings_ms.total is None else f"; it took {report.timings_ms.total / 1000:.1f} s"
    sentences_of = (
        presentation.decision(report) if report.findings else "",
        f"{rests}{cited_posts if report.findings else ''}." if rests else "",
        presentation.description_sentence(report),
        *report.quality_notes,
        f"{quantity(unsure, 'kept post')} may not be about the question: judges differ, or one was hardly sure."
        * bool(unsure),
        *presentation.source_notes(report),
        presentation.trouble(report),
        f"{checked.supported} of {checked.pairs} quoted passages were found to say what their claim says."
        * (checked.status == "ok" and checked.pairs > 0),
        f"{asked_at}.",
    )
    return [f"{text[0].upper()}{text[1:].removesuffix('.')}." for text in sentences_of if text]
