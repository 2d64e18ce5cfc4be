"""What every rendering of an answer shows, before it is laid out: numbers, rows, badges, reasons.

Texts of posts are strangers': each rendering escapes them. Also the English names of languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from api.core.display_names import OUTCOME_REASONS, reason_in_words
from api.core.domain import Decision, Outcome
from api.core.items import Comment, Measure
from api.core.progress import (
    Event,
    ItemsGraded,
    ProductEvent,
    Reported,
    SourceFetched,
    SourceGathered,
    SourceJudged,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
    Writing,
)
from api.core.text import clean, cut, display_title, is_visible, one_line, quantity
from api.features.chat.chat_turn import Citation
from api.features.comparisons.comparison import Comparison
from api.models.answer_parsing import STAND_IN
from api.pipeline.question.product_name import judged_words, product_in
from api.reports.composition import credit_of, parts_of
from api.reports.markdown_text import quotation
from api.reports.replay import Replay
from api.reports.report import DroppedItem, Fetched, Finding, KeptItem, Quote, Report, SourceReport
from api.sources import OWN_ITEMS, SOURCE_TITLES

SAMPLE = "sample"
"""Stands in place of the address of a sample post, which no page in the world shows."""
Answer = TypeVar("Answer", Report, Fetched, Comparison)


def openable(answer: Answer) -> Answer:
    """The answer without addresses of sample posts, which cannot be opened."""
    if not answer.sample:
        return answer
    unlinked = {"url": SAMPLE}
    dropped = () if isinstance(answer, Comparison) else answer.dropped
    changed: dict[str, object] = {
        part: tuple(item.model_copy(update=unlinked | _unsigned(item)) for item in items)
        for part, items in (("items", answer.items), ("dropped", dropped))
        if items
    }
    if isinstance(answer, Report):
        changed["quotes"] = tuple(replace(quote, url=SAMPLE) for quote in answer.quotes)
    return answer.model_copy(update=changed)


def _unsigned(signed: KeptItem | DroppedItem | Comment) -> dict[str, object]:
    """Fields of an item with its author credit, without a profile link."""
    own: dict[str, object] = {"credit": parts_of(signed.credit)[0]} if signed.credit else {}
    if isinstance(signed, KeptItem):
        own["comments"] = tuple(c.model_copy(update=_unsigned(c)) for c in signed.comments)
    return own


LONGEST_TITLE = 300
"""Longest title in a list, in characters; JSON and CSV have all of it."""
LONGEST_HEADING = 120
"""Longest repeated question, in characters; JSON has all of it."""
LONGEST_PRODUCT = 40
"""Characters of a product's name beside others."""
SHOWN = 4
"""Passages of a finding shown to a person; the JSON has the others."""
DECISIONS = {
    Decision.FULL: "a full report",
    Decision.SHORT: "a short report",
    Decision.INSUFFICIENT: "too little was found for a report",
    Decision.CLARIFY: "nothing was asked: the question is unclear or compares products",
    Decision.UNJUDGED: "no model answered: items as they were found",
}
"""Words for each decision."""
OUTCOMES = {
    Outcome.OK: "ok",
    Outcome.IRRELEVANT: "nothing was about it",
    Outcome.EMPTY: "nothing was found",
    **OUTCOME_REASONS,
}
"""Words for each way in which asking a source can end."""
UNSENT = frozenset({Outcome.NOT_ASKED, Outcome.NOT_CONFIGURED})
"""Outcomes of a source that got no request."""
DROPPED = {
    "excluded": "left out as asked",
    "gate": "not about it",
    "cutoff": "graded too low",
    "floor": "too little about it",
    "duplicate": "copy",
}
"""Words for what an item lacked, by the step that dropped it."""
_JUDGED = {"ok": "yes", "degraded": "no", "skipped": "-"}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Result of asking one source, in words and numbers for a table."""

    name: str
    outcome: str
    fetched: int
    kept: str
    """Number of relevant items; `-` when they were not judged."""
    share: str
    """Share of relevant items; `-` without items, or when they were not judged."""
    searched: str
    """Once, or twice where the first search held too little."""
    judged: str
    """Whether relevance could be judged."""
    requests: int


def heading(answer: Report | Fetched) -> str:
    """Topic of the answer; the beginning of a long question."""
    topic = answer.topic if isinstance(answer, Report) else ""
    return shortened(topic or answer.query, LONGEST_HEADING)


def decision(report: Report) -> str:
    """What the evidence allowed, in a sentence."""
    return f"{report.decision_rationale.removesuffix('.')}."


def paragraphs(report: Report) -> list[str]:
    """The summary, and why there is no report."""
    texts = (report.summary, report.explanation_text or "")
    return [part for text in texts for part in text.split("\n\n") if part.strip()]


def signature(item: KeptItem | None, words: str = "") -> tuple[str, str]:
    """Name and profile of the author who must be named with an item or its words; empty when nobody must be."""
    credit = credit_of(item, words) if item is not None else None
    return parts_of(credit) if credit else ("", "")


def badge(finding: Finding) -> str:
    """What a reader must know about a finding's support."""
    return " (unverified)" if finding.support == "unverified" else ""


def further_quotes(report: Report) -> list[Quote]:
    """Quotes that do not stand under a finding already."""
    shown = [passage.passage for finding in report.findings for passage in finding.evidence]
    return [quote for quote in report.quotes if not any(quote.text in words for words in shown)]


LOW_CONFIDENCE = 0.6
"""Probability of a judge below which it was hardly sure that a kept post is about the question."""


def hardly_sure(report: Report) -> list[KeptItem]:
    """Kept posts on which two judges disagree, or of which the judge was unsure."""
    return [item for item in report.items if item.disputed or (item.probability or 1) < LOW_CONFIDENCE]


def numbered(items: Iterable[KeptItem]) -> dict[str, int]:
    """Item key -> the number under which it is cited and listed."""
    return {item.key: number for number, item in enumerate(items, 1)}


def source_title(name: str) -> str:
    """A source as a person knows it."""
    return SOURCE_TITLES.get(name, name)


def source_rows(sources: Iterable[SourceReport]) -> list[SourceRow]:
    """Rows for the configured sources, or for all when none is configured."""
    sources = list(sources)
    return [
        SourceRow(
            name=source_title(source.source),
            outcome=OUTCOMES[source.outcome],
            fetched=source.fetched,
            kept="-" if source.gate.unjudged else str(source.kept),
            share="-"
            if source.yield_ratio is None or not source.fetched
            else f"{source.kept / source.fetched * 100:.0f} %",
            searched="-" if source.outcome in UNSENT else "twice" if source.refetched else "once",
            judged="not judged" if source.gate.unjudged else _JUDGED[source.gate.status],
            requests=source.upstream_calls,
        )
        for source in [entry for entry in sources if not _unset(entry)] or sources
    ]


def unset(sources: Iterable[SourceReport]) -> str:
    """Sentence naming the sources that the table leaves out; empty when it has all."""
    sources = list(sources)
    names = [source_title(source.source) for source in sources if _unset(source)]
    listed = f"Not configured, so not asked: {', '.join(names)}."
    return listed if 0 < len(names) < len(sources) else ""


def _unset(source: SourceReport) -> bool:
    return source.outcome is Outcome.NOT_CONFIGURED


# Characters of a title that stands as an example within a line.
_LONGEST_TITLE = 80


def description_sentence(report: Report) -> str:
    """Sentence with the question's description and exclusions; empty without either."""
    parts = [f"described as “{one_line(report.about)}”"] if report.about else []
    if report.not_about:
        parts.append(f"not meant: {', '.join(f'“{one_line(text)}”' for text in report.not_about)}")
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}." if sentence else ""


def product_of(report: Report) -> str:
    """The product that the question names, else the question."""
    return product_in(judged_words(report.query)) or report.query


def senses_heading(report: Report) -> str:
    """Sentence saying that the posts fall into groups, and which is the largest kept one; empty without groups."""
    if not report.senses:
        return ""
    name = product_of(report)
    most = max(report.senses, key=lambda sense: sense.kept)
    taken = f"; most posts below are of group {most.number}" if most.kept else ""
    groups = f"{len(report.senses)} groups that have little in common"
    return f"What was found for “{name}” falls into {groups}{taken}."


def sense_lines(report: Report) -> list[str]:
    """A line a group, `web browser (browser, tabs): 13 posts, 12 of them kept, such as “...” and “...”`."""
    lines = []
    for sense in report.senses:
        titles = (f"“{shortened(one_line(title), _LONGEST_TITLE)}”" for title in sense.titles)
        counts = f"{quantity(sense.count, 'post')}, {sense.kept} of them kept"
        words = ", ".join(sense.words)
        group = f"{one_line(sense.name)} ({words})" if sense.name else words
        lines.append(f"{group}: {counts}, such as {' and '.join(titles)}")
    return lines


# what happens to most sources that are read to their end
_USUAL = frozenset({"not refetched: the source had no more"})


def source_notes(report: Report) -> list[str]:
    """Notes of sources on what they left out or could not read, unless the report already qualifies it."""
    noted = ((source_title(source.source), source.notes) for source in report.sources.values())
    notes = dict.fromkeys(f"{title}: {note}" for title, each in noted for note in each if note not in _USUAL)
    return [note for note in notes if note not in report.quality_notes]


def trouble(report: Report) -> str:
    """When a failed source can be asked again, and why one was not judged; the table does not say it."""
    sources = report.sources.values()
    complete = all(not source.retry_at and source.gate.status != "degraded" for source in sources)
    return "" if sources and complete else report.coverage


def judged_by(sources: Iterable[SourceReport]) -> str:
    """Sentence naming the judges of relevance; empty when there was none."""
    sources = tuple(sources)
    judges = dict.fromkeys(source.gate.model for source in sources)
    named = ", ".join(_judge(judge) for judge in judges if judge)
    if any(source.agreement is not None and source.agreement.local for source in sources):
        named += ", and for some posts the local judge in its place,"
    return f"{named[0].upper()}{named[1:]} judged what is about the question." if named else ""


def _judge(name: str) -> str:
    """A judge as a person knows it."""
    if name == STAND_IN:
        return "a small program on this machine, in place of a language model,"
    return f"the judge on this machine ({name})" if name.startswith("local") else f"`{name}`"


def spent(report: Report | Comparison | Replay) -> str:
    """What was asked and what that cost, in a sentence."""
    cost = report.cost
    requests = "1 request" if cost.upstream_calls == 1 else f"{cost.upstream_calls} requests"
    requests += " to the sample data" if report.sample else " to sources"
    if cost.usd == 0 or report.sample:
        return f"{requests}, nothing was spent." if cost.upstream_calls else "Nothing was spent."
    usd = "an unknown sum" if cost.usd is None else f"{cost.usd:.4f} USD"
    return f"{requests}, {cost.tokens} tokens for {usd}."


def title_of(item: KeptItem | DroppedItem) -> str:
    """What an item is called in a list, on one line: its title, or its first words where none can be seen.

    A comment that was found by itself has none: it is called after its thread.
    """
    bodies = (item.snippet,) if isinstance(item, DroppedItem) else (item.body, *(c.body for c in item.comments))
    if is_visible(item.title):
        return display_title(shortened(item.title, LONGEST_TITLE), item.thread)
    first = next(filter(is_visible, bodies), "")
    return f"“{shortened(quotation(first), _LONGEST_TITLE)}”" if first else "untitled"


def shortened(text: str, limit: int) -> str:
    """The text on one line; marked `…` where it is cut."""
    line = one_line(clean(text))
    return line if len(line) <= limit else f"{cut(line, limit).rstrip()}…"


_LONGEST_PLACE = 60
# a measure of a source -> what one of it is called; `5 stars`, `1 vote`
_MEASURES = {
    "votes": "vote", "points": "point", "score": "vote", "stars": "star", "ratings": "rating", "views": "view",
    "likes": "like", "reactions": "reaction", "answers": "answer", "comments": "comment", "replies": "reply",
    "upvotes": "upvote", "shares": "share", "retweets": "retweet", "helpful": "found it helpful",
    "hours": "hour of play",
}  # fmt: skip
_PLURALS = {"reply": "replies", "found it helpful": "found it helpful", "hour of play": "hours of play"}
_MOST_MEASURES = 2


def text_part(item: KeptItem, comment_id: str | None) -> KeptItem | Comment:
    """The comment with that id, or the item."""
    return next((comment for comment in item.comments if comment.id == comment_id), item)


def facts_of(item: KeptItem, comment_id: str | None = None) -> str:
    """Place, day and first measures of an item or its comment: `Reddit (r/mugs), 2026-05-03, 3 votes`."""
    own = text_part(item, comment_id)
    return _facts(item.source, item.place, own.created_at, own.engagement)


# sources of which the text of an item is not what a person says about it
_OWN_TEXTS = {"amazon": "The seller's text", "youtube": "The description of the video"}


def texts_of(item: KeptItem) -> list[tuple[str, str, str]]:
    """The texts of an item that can be seen, its own first: each with whose it is, and its day and measures.

    Nothing stands beside a post's own text, whose facts stand above it.
    """
    texts = [(item.body, _OWN_TEXTS.get(item.source, ""), "")]
    for comment in item.comments:
        facts = ", ".join(_day_and_measures(comment.created_at, comment.engagement))
        texts.append((comment.body, "Review" if "stars" in comment.engagement else "Comment", facts))
    return [entry for entry in texts if is_visible(entry[0])]


def cited_facts(citation: Citation) -> str:
    """As `facts_of`, of the post or comment whose words a chat cites: `Reddit (r/mugs), comment, 2026-05-03, 3 votes`.

    The place alone where nothing carries, or words of several people do.
    """
    where = _facts(citation.source, citation.place, None, {})
    texts = {passage.comment_id for passage in citation.passages}
    if len(texts) != 1:
        return where
    facts = _facts(citation.source, citation.place, citation.created_at, citation.engagement)
    kind = "review" if "stars" in citation.engagement else "comment"
    return facts if texts == {None} else f"{where}, {kind}{facts.removeprefix(where)}"


def credits_of(citation: Citation) -> list[str]:
    """The authors who have to be named beside a citation of a chat, each once."""
    signed = (citation.credit, *(passage.credit for passage in citation.passages))
    return list(dict.fromkeys(filter(None, signed)))


def _facts(source: str, place: str | None, created_at: datetime | None, engagement: Mapping[str, Measure]) -> str:
    where, place = source_title(source), shortened(place or "", _LONGEST_PLACE)
    if place:
        where = place if source == OWN_ITEMS.name else f"{where} ({place})"
    return ", ".join((where, *_day_and_measures(created_at, engagement)))


def _day_and_measures(created_at: datetime | None, engagement: Mapping[str, Measure]) -> list[str]:
    measures = []
    for name, value in engagement.items():
        if value and name in _MEASURES:
            noun = _MEASURES[name]
            plural = _PLURALS.get(noun, f"{noun}s")
            number = f"{value:,.{0 if float(value).is_integer() else 1}f}"
            measures.append(f"{number} {noun if value == 1 else plural}")
    return [*([f"{created_at:%Y-%m-%d}"] if created_at else []), *measures[:_MOST_MEASURES]]


def badges(item: KeptItem) -> list[str]:
    """What to know about an item's being listed."""
    known = (("low relevance", item.low_relevance), ("disputed", item.disputed), (SAMPLE, item.url == SAMPLE))
    return [badge for badge, holds in known if holds]


def why_dropped(item: DroppedItem) -> str:
    """Why an item was dropped, with the judge's reason."""
    disputed = " (disputed)" if item.disputed else ""
    return f"{DROPPED.get(item.dropped_by or '', 'dropped')}{disputed}: {item.reason}"


def progress(event: Event) -> str | None:
    """An event in a few words; None for an event that is not shown."""
    match event:
        case SourceStarted():
            return f"asking for {event.limit} …"
        case SourceFetched():
            return f"{event.fetched} found, judging which are about it …"
        case SourceJudged() if event.status == "degraded" and not event.relevant:
            return f"which of {event.judged} are about it could not be judged"
        case SourceJudged() if event.judged:
            return f"{event.relevant} of {event.judged} judged are about it"
        case SourceRefetching():
            return f"too little of it is about it, searching for {event.limit} …"
        case SourceLookedAgain():
            return f"a second look at what was dropped: {event.relevant} about it"
        case SourceGathered() if not Outcome(event.outcome).answered:
            why = OUTCOME_REASONS[Outcome(event.outcome)]
            return f"{why}: {event.reason}" if event.reason else why
        case SourceGathered() if not event.fetched:
            return OUTCOMES[Outcome.EMPTY]
        case SourceGathered():
            counted = f"{event.kept} of {event.fetched} results"
            again = ", searched twice" if event.refetched else ""
            if event.status == "degraded":
                why = reason_in_words(event.reason)
                return f"kept {counted}{again}; relevance could not be judged ({why})"
            return f"{counted} were about it{again}"
        case ItemsGraded():
            return f"{event.survived} of {event.scored} answer the question"
        case Writing():
            return f"writing about {event.exhibits} items …"
        case Reported():
            return DECISIONS[Decision(event.decision)]
        case ProductEvent() if words := progress(event.event):
            place = f"{source_title(event.event.source)}: " if event.event.source else ""
            return f"{shortened(event.product, LONGEST_PRODUCT)}: {place}{words}"
    return None


UNCLEAR = "?"
"""Stands for a language's code when the words do not identify one."""
LANGUAGES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "br": "Breton",
    "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek",
    "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician",
    "gu": "Gujarati", "ha": "Hausa", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian",
    "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "ku": "Kurdish", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian",
    "mr": "Marathi", "ms": "Malay", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "so": "Somali", "st": "Sesotho", "sv": "Swedish", "sw": "Swahili", "th": "Thai",
    "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
    "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu", UNCLEAR: "not clear",
}  # fmt: skip
