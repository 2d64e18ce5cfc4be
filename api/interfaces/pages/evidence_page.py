"""What was kept and what was dropped, narrowed to what somebody looks for."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from api.core.display_names import source_of_key
from api.core.domain import judge_reason
from api.core.text import fold
from api.core.words import languages_of
from api.errors import UsageError
from api.features.analyses.corrections import corrections_of
from api.features.analyses.feedback import correct, withdraw
from api.features.analyses.rejudging import ask_again_and_remember
from api.interfaces.http.access import OpenContext
from api.interfaces.pages.analysis_page import AnalysisId, report_of
from api.interfaces.pages.report_values import evidence_values
from api.interfaces.pages.screen import Filled, Guest, PageRoute, page
from api.interfaces.shared import presentation
from api.interfaces.shared.presentation import LANGUAGES, UNCLEAR
from api.models.answer_parsing import STAND_IN
from api.reports.quotes import sentences
from api.reports.report import DroppedItem, KeptItem, Report

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
_STAGES = {"unfit": "no post of a person", **presentation.DROPPED}
# Who drops at each stage but the gate, where a judge does.
_RULES = {
    "cutoff": "the grader", "floor": "the relevance floor", "duplicate": "the search for copies",
    "unfit": "a fixed rule", "excluded": "the question",
}  # fmt: skip
_SAMPLE_JUDGE = "the judge of the sample data"
_COPY_OF = "copy of "
MOST = 50
"""Items of a list on one page."""
# Passages of a kept post that are shown before it is opened, and characters of one that nothing quotes.
_EXCERPTS, _LONGEST_EXCERPT = 2, 240
Entry = TypeVar("Entry")
Start = Annotated[int, Query(ge=0, le=1_000_000)]


@dataclass(frozen=True, slots=True)
class DroppedCard:
    """A dropped item with its facts, reason and place in the list."""

    item: DroppedItem
    stage: str
    facts: tuple[str, ...]
    """Source, date, who dropped it, and its probability of relevance, in words."""
    reason: str
    """Empty where the judge gave none."""
    original: int | None = None
    """Number of the kept item that it copies; None when it is not a copy."""
    number: int = 0
    """Its number among the dropped items of the report, from 1."""


@dataclass(frozen=True, slots=True)
class EvidenceFilter:
    """Conditions on the listed items; an empty field sets no condition."""

    place: str = ""
    stage: str = ""
    language: str = ""
    text: str = ""

    def kept(self, items: Iterable[KeptItem]) -> list[KeptItem]:
        """The kept items that fit the filter, in their order; none where a stage is looked for."""
        return [
            item
            for item in items
            if not self.stage and self.place in {"", item.source} and self._matches(item.title, *_shown(item))
        ]

    def dropped(self, cards: Iterable[DroppedCard]) -> list[DroppedCard]:
        """The dropped items that fit the filter, in their order."""
        return [
            card
            for card in cards
            if self.stage in {"", card.item.dropped_by}
            and self.place in {"", source_of_key(card.item.key)}
            and self._matches(
                card.item.title, card.stage, *card.facts, who_dropped(card.item), card.reason, card.item.snippet
            )
        ]

    def in_words(self) -> list[str]:
        """The conditions in words, shown above the list."""
        names = (
            presentation.source_title(self.place) if self.place else "",
            _STAGES.get(self.stage, self.stage),
            LANGUAGES.get(self.language, self.language),
            f"“{self.text}”" if self.text else "",
        )
        return [name for name in names if name]

    def _matches(self, *texts: str) -> bool:
        """Whether the first text is of the language, and the texts together hold the words."""
        words = "\n".join(texts)
        return self.language in {"", language_of(texts[0])} and fold(self.text) in fold(words)


@dataclass(frozen=True, slots=True)
class ListPart(Generic[Entry]):
    """One page of a long list, with the addresses of the previous and next page."""

    entries: Sequence[Entry]
    first: int
    total: int
    before: str
    after: str
    """Empty on the last page; `before` is empty on the first."""


def language_of(title: str) -> str:
    """The code of the language that the small words of a title tell; or that it is not clear."""
    languages = languages_of(title)
    return next(iter(languages)) if len(languages) == 1 else UNCLEAR


def _shown(item: KeptItem) -> Iterator[str]:
    """What a kept item shows below its title."""
    yield from (presentation.facts_of(item), item.body)
    yield from (comment.body for comment in item.comments)


# how the ranking says that a grade is too low, and the grader's own words
_GRADED = re.compile(r"score (\d) of 5, below the cutoff (\d)(?:: (.+))?", re.S)


def dropped_card(
    item: DroppedItem, numbers: Mapping[str, int], number: int = 0, *, judge_named: bool = True
) -> DroppedCard:
    """Why it was dropped and how likely it was, each once; `numbers` are of the kept items.

    Who dropped it is named only where several judges did (`judge_named`).
    """
    reason, original = item.reason, None
    if match := _GRADED.fullmatch(reason):
        words = f" The grader: {match[3]}" if match[3] else ""
        reason = f"{match[1]} of 5 points for what it says about the question; {match[2]} are needed.{words}"
    if item.dropped_by == "gate":
        reason = judge_reason(reason, item.judge, item.probability)
    elif item.dropped_by == "duplicate":
        original = numbers.get(reason.removeprefix(_COPY_OF))
    likely = item.probability is not None and item.dropped_by == "gate"
    facts = (
        presentation.source_title(source_of_key(item.key)),
        item.place or "",
        f"{item.created_at:%Y-%m-%d}" if item.created_at else "",
        f"dropped by {who_dropped(item)}" if judge_named and item.dropped_by == "gate" else "",
        f"{round((item.probability or 0) * 100)} % likely to be about it" if likely else "",
        "another judge was sure of the opposite" if item.disputed else "",
    )
    stage = _STAGES.get(item.dropped_by or "", "dropped")
    return DroppedCard(item, stage, tuple(fact for fact in facts if fact), reason, original, number)


def excerpts(item: KeptItem, passages: Sequence[str]) -> list[str]:
    """What of a kept post is shown at once: the first words that the report quotes, else its first sentence.

    Nothing where its title says the same.
    """
    title = fold(item.title)
    quoted = [words for words in dict.fromkeys(passages) if fold(words) not in title]
    if quoted:
        return quoted[:_EXCERPTS]
    texts = (text for text, _, _ in presentation.texts_of(item))
    first = next((sentence for text in texts for sentence in sentences(text) if fold(sentence) not in title), "")
    return [presentation.shortened(first, _LONGEST_EXCERPT)] if first else []


def who_dropped(item: DroppedItem) -> str:
    """Name of the judge, or of the step, that dropped the item."""
    judge = _SAMPLE_JUDGE if item.judge == STAND_IN else item.judge
    return _RULES.get(item.dropped_by or "") or judge or "the gate"


def unexplained(cards: Iterable[DroppedCard]) -> str:
    """Sentence naming the judges that gave neither a reason nor a probability; empty when all did."""
    judges = dict.fromkeys(
        who_dropped(card.item)
        for card in cards
        if card.item.dropped_by == "gate" and not card.reason and card.item.probability is None
    )
    if not judges:
        return ""
    named = " and ".join(judges)
    if len(judges) > 1:
        return f"The judges {named} answer yes or no and give no reason."
    named = "The judge of the sample data" if named == _SAMPLE_JUDGE else f"The judge {named}"
    return f"{named} answers yes or no and gives no reason."


def _part(entries: Sequence[Entry], name: str, chosen: EvidenceFilter, starts: Mapping[str, int]) -> ListPart[Entry]:
    """The entries from `starts[name]` on, and the addresses of the parts beside them."""
    first = starts[name]

    def address(start: int) -> str:
        wanted = {**asdict(chosen), **starts, name: start}
        query = urlencode({field: value for field, value in wanted.items() if value})
        return f"?{query}#{name.removesuffix('_from')}"

    return ListPart(
        entries[first : first + MOST], first, len(entries),
        before=address(max(first - MOST, 0)) if first else "",
        after=address(first + MOST) if first + MOST < len(entries) else "",
    )  # fmt: skip


@router.get("/{analysis_id}/evidence")
async def evidence_page(
    request: Request,
    analysis_id: AnalysisId,
    visitor: Guest,
    app_context: OpenContext,
    place: str = "",
    stage: str = "",
    language: str = "",
    text: str = "",
    kept_from: Start = 0,
    dropped_from: Start = 0,
) -> Response:
    """Two lists, and how to narrow them."""
    values = evidence_values(await report_of(app_context, visitor, analysis_id))
    report: Report = values["report"]
    chosen = EvidenceFilter(place, stage, language, text[:200])
    corrections = await corrections_of(app_context.store, visitor.tenant.id, report.question)
    several = len({item.judge for item in report.dropped if item.dropped_by == "gate"}) > 1
    cards = [
        dropped_card(item, values["numbers"], at, judge_named=several) for at, item in enumerate(report.dropped, 1)
    ]
    everything: list[KeptItem | DroppedItem] = [*report.items, *report.dropped]
    stages = {item.dropped_by for item in report.dropped}
    languages = {language_of(item.title) for item in everything}
    starts = {"kept_from": kept_from, "dropped_from": dropped_from}

    def shown() -> Response:
        lost = chosen.dropped(cards)
        return page(
            request,
            visitor,
            "evidence.html",
            title=f"Evidence: {presentation.heading(report)}",
            chosen=chosen,
            narrowed=chosen.in_words(),
            excerpts=excerpts,
            product=presentation.shortened(presentation.product_of(report), presentation.LONGEST_PRODUCT),
            corrected={entry.key: entry.relevant for entry in corrections},
            here_query=request.url.query,
            kept=_part(chosen.kept(report.items), "kept_from", chosen, starts),
            lost=_part(lost, "dropped_from", chosen, starts),
            shares=Counter((card.stage, who_dropped(card.item)) for card in lost).most_common(),
            unexplained=unexplained(lost),
            places=[
                (name, presentation.source_title(name))
                for name in dict.fromkeys(source_of_key(i.key) for i in everything)
            ],
            stages=[(name, words) for name, words in _STAGES.items() if name in stages],
            languages=[
                (code, name) for code, name in sorted(LANGUAGES.items(), key=lambda pair: pair[1]) if code in languages
            ],
            **values,
        )

    return await asyncio.to_thread(shown)


@router.post("/{analysis_id}/again")
async def judge_again(analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """Begin a report on the same posts, with the corrections or as the sense of a button's number.

    Raises:
        NotFound: there is no such analysis, or its report has no such sense.
        UsageError: the number is none.
    """
    tenant, number = form.visitor.tenant, form.text("sense")
    report = await report_of(app_context, form.visitor, analysis_id)
    if number and not number.isdecimal():
        raise UsageError("a sense is chosen by its number", field="sense")
    sense = int(number[:2]) if number else None
    ask = await ask_again_and_remember(app_context.store, tenant.id, report, sense=sense)
    return RedirectResponse(f"/analyses/{await app_context.runner.begin(tenant, ask)}", 303)


@router.post("/{analysis_id}/correction")
async def correct_item(analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """Take a button's value, `yes KEY`, `no KEY` or `undo KEY`; then the list, at that item.

    Raises:
        NotFound: there is no such analysis or item, or nothing to undo.
        UsageError: the value is none of these, or the question has too many corrections.
    """
    tenant = form.visitor.tenant
    answer, _, key = form.text("correct").partition(" ")
    if answer == "undo":
        await withdraw(app_context.store, tenant.id, analysis_id, key)
    elif answer in {"yes", "no"}:
        await correct(app_context.store, tenant.id, analysis_id, key, answer == "yes")
    else:
        raise UsageError("a correction says `yes` or `no` of an item", field="correct")
    report = await report_of(app_context, form.visitor, analysis_id)
    anchors = {item.key: f"source-{at}" for at, item in enumerate(report.items, 1)}
    anchors |= {item.key: f"dropped-{at}" for at, item in enumerate(report.dropped, 1)}
    query = urlencode(parse_qsl(form.text("list")))
    return RedirectResponse(f"/analyses/{analysis_id}/evidence?{query}#{anchors.get(key, 'kept')}", 303)
