"""What a question may cost, before anything is asked.

Bounds that hold when no request fails, and what is likely: half of a first batch is about the
question, every other source is asked once more, a report is asked for twice, and texts are a third
as long as they may be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from api.bootstrap import for_own_items, mode_of, stand_in
from api.choices import ReplayJudge
from api.core.domain import Usage
from api.core.ports import PER_CALL
from api.models.answer_parsing import Tokens
from api.models.dialects import GRADED_AT_ONCE
from api.pipeline.gate.name_matches import namesake
from api.pipeline.question.query_screen import screen_query
from api.reports.report_writing import WRITER_REQUESTS
from api.services.product import Ask
from api.settings import Settings
from api.sources import ARCHIVE, SOURCES, Price, default_sources
from api.sources.archive_source import PRICE

# Model requests of one report, and tokens of a text as a share of what is counted at most: as
# measured over questions of the sample data that many speak of.
_LIKELY_REQUESTS, _LENGTH = 2, 0.3
# Of `WRITER_REQUESTS` those that read all exhibits: one for each source that is asked once more,
# one for a correction, one for the report.
_LONG_REQUESTS = 5
UNKNOWN_USD = 0.1
"""USD reserved for an analysis by models of unknown price."""

UNKNOWN_TURN_USD = 0.2
"""Reserved for a chat turn by a model whose price is unknown, and given back after it."""

_GATE, _GATE_ITEM, _LEAST_ITEM = (250, 10), (150, 5), (10, 1)
# What they are likely to be, see `OpenAIJudge`.
_LIKELY_GATE, _LIKELY_GATE_ITEM = (200, 0), (85, 4)
_GRADE, _GRADE_ITEM = (900, 50), (700, 120)
_OTHER, _LEAST_OTHER = (1500, 500), (100, 5)
_CHECK = (10_500, 450)
# Tokens in and out, by call and by item; a rewriting, an explanation or the names of the senses of an
# ambiguous name are another call, a check is that of all passages of a report.
_REPORT, _EXHIBIT = (1000, 1000), (420, 0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Requests, searches, calls and USD by name; USD is None when a price is unknown."""

    least: Mapping[str, Any]
    likely: Mapping[str, Any]
    most: Mapping[str, Any]

    @property
    def reserved(self) -> float:
        """Highest cost in USD; `UNKNOWN_USD` for models of unknown price."""
        usd = self.most["usd"]
        return UNKNOWN_USD if usd is None else float(usd)


@dataclass(frozen=True, slots=True)
class _Work:
    """Requests to sources, calls to models, and the items in them."""

    requests: int = 0
    searches: int = 0
    """Number of requests that count towards a daily quota (YouTube's)."""
    gates: int = 0
    judged: int = 0
    grades: int = 0
    graded: int = 0
    others: int = 0
    checks: int = 0
    reports: int = 0
    exhibits: int = 0


@dataclass(frozen=True, slots=True)
class _Reach:
    """Which sources are asked, for how many items, and which judge is used."""

    prices: tuple[Price, ...]
    """Prices of the sources that are asked."""
    own: int
    """Items that the person hands in."""
    limit: int
    widest: int
    model: bool
    """A model grades, rewrites and writes."""
    gated: bool
    """A model judges relevance, too."""
    comments: bool
    quoted: bool
    sandboxed: bool
    looks: bool
    """Whether a thin page gets a second look, which judges one item more. Its request is within the bound, which
    includes comments of all items."""

    @property
    def least(self) -> _Work:
        """Everybody is asked once and has nothing."""
        requests = sum(price.searches + price.token for price in self.prices)
        searches = sum(price.counted for price in self.prices)
        gates = _chunks(self.own, PER_CALL) if self.gated else 0
        return _Work(requests, searches, gates, self.own * bool(gates))

    def most(self, queries: int) -> _Work:
        """Every query is asked twice as wide, the second time without quotes; all are kept."""
        searches = requests = 0
        for price in self.prices:
            bare = queries - (not (self.quoted or price.phrases)) if price.quotes else 0
            pages = _chunks(self.widest, price.entries) * (queries + bare)
            details = queries * _chunks(self.widest, price.details) if price.details else 0
            dropped = self.looks and price.threads is not None
            comments = queries * (self._comments(price, self.widest) + dropped)
            requests += price.token + pages * (price.searches + price.more_searches) + details + comments
            searches += pages * price.counted
        batches = _chunks(self.limit, PER_CALL) + _chunks(self.widest, PER_CALL)
        looks = queries * len(self.prices) * self.looks
        gates = queries * len(self.prices) * batches + looks + _chunks(self.own, PER_CALL)
        judged = self.kept(queries) + looks
        return _Work(requests, searches, gates, judged) if self.gated else _Work(requests, searches)

    def likely(self, queries: int) -> _Work:
        """Half of a first batch is kept, and every other place is asked once more."""
        kept, places, again = _half(self.limit), len(self.prices), 0
        if self.widest > self.limit:
            again = _half(places)
        searches, requests = 0, again
        for price in self.prices:
            pages = queries * _chunks(self.limit, price.entries)
            details = _chunks(kept, price.details) if price.details else 0
            comments = self._comments(price, kept)
            requests += price.token + pages * (price.searches + price.more_searches) + details + comments
            searches += pages * price.counted
        work = _Work(requests, searches)
        if not self.gated:
            return work
        batches = queries * places + again
        gates = batches * _chunks(self.limit, PER_CALL) + _chunks(self.own, PER_CALL)
        return replace(work, gates=gates, judged=batches * self.limit + self.own)

    def _comments(self, price: Price, kept: int) -> int:
        """Requests for the comments of so many kept items."""
        most = kept
        if price.threads is not None:
            most = min(kept, price.threads * _chunks(kept, price.entries))
        return most * self.comments

    @property
    def likely_kept(self) -> int:
        """Items that are about the question."""
        return len(self.prices) * _half(self.limit) + _half(self.own)

    def kept(self, queries: int) -> int:
        """Items that so many queries bring at most."""
        return queries * len(self.prices) * self.widest + self.own

    def grades(self, queries: int) -> int:
        """Number of calls that grade all items in one pass."""
        return _chunks(self.kept(queries), GRADED_AT_ONCE)


def estimate(settings: Settings, ask: Ask, own: int | None = None) -> Estimate:
    """Estimate of an analysis; with `own` items no source is asked."""
    reach, depth = _reach(settings, ask, own), settings.depths[ask.depth]
    settings = _answering(settings, reach)
    if not screen_query(ask.query).ok:
        return _estimate(settings, _Work(), _Work(), _Work())
    first, later = depth.query_variants, max(depth.retry_variants - 1, 0)
    if not reach.model:
        return _estimate(settings, reach.least, reach.likely(1), reach.most(1))
    rewritten = int(first > 1)
    if not reach.kept(1):
        nobody = _Work(others=rewritten)
        return _estimate(settings, nobody, nobody, nobody)
    explained = rewritten + (depth.retry_variants > first) + 1
    least = replace(reach.least, others=explained)
    kept, checks = reach.likely_kept, int(settings.models.support_check)
    shown = settings.ranking.rerank_top_k or depth.max_evidence
    likely = replace(
        reach.likely(first),
        grades=_chunks(kept, GRADED_AT_ONCE),
        graded=kept,
        others=rewritten + bool(namesake(ask.query, ask.about)),
        checks=checks,
        reports=_LIKELY_REQUESTS,
        exhibits=min(shown, kept),
    )
    most = replace(
        reach.most(first + later + 1),
        grades=reach.grades(first) + (later > 0) * reach.grades(later) + reach.grades(1),
        graded=reach.kept(first + later + 1),
        others=rewritten + (later > 0) + (not ask.about),
        checks=checks,
        reports=WRITER_REQUESTS,
        exhibits=min(shown, reach.kept(first + later)),
    )
    return _estimate(settings, least, likely, most, len(reach.prices) * reach.limit)


def replay_estimate(settings: Settings, ask: Ask, judge: ReplayJudge | None, model: str | None) -> Estimate:
    """Estimate of judging a report's items again.

    Another model only judges, so of both models' prices the higher one counts for all that is asked.
    """
    usual, other = (estimate(settings.judged_by(judge, name), ask, ask.again_items) for name in (None, model))

    def dearer(figures: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
        prices = figures["usd"], changed["usd"]
        return {**figures, "usd": None if None in prices else max(prices)}

    return Estimate(*(dearer(getattr(usual, part), getattr(other, part)) for part in ("least", "likely", "most")))


def fetch_estimate(settings: Settings, ask: Ask) -> Estimate:
    """Estimate of asking one source: one query, and grades beyond `quick`."""
    reach = _reach(settings, ask, None)
    settings = _answering(settings, reach)
    if not screen_query(ask.query).ok:
        return _estimate(settings, _Work(), _Work(), _Work())
    likely, most = reach.likely(1), reach.most(1)
    if reach.model and ask.depth != "quick":
        kept = reach.likely_kept
        likely = replace(likely, grades=_chunks(kept, GRADED_AT_ONCE), graded=kept)
        most = replace(most, grades=reach.grades(1), graded=reach.kept(1))
    return _estimate(settings, reach.least, likely, most)


def together(estimates: Sequence[Estimate]) -> Estimate:
    """Estimate of several questions that share nothing."""

    def summed(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {name: reduce(add, (part[name] for part in parts)) for name in parts[0]}

    return Estimate(
        summed([each.least for each in estimates]),
        summed([each.likely for each in estimates]),
        summed([each.most for each in estimates]),
    )


def most_usd(settings: Settings, ask: Ask) -> float:
    """USD that a question may cost at most; over own or stored items no source is asked."""
    return estimate(settings, ask, len(ask.items) or ask.again_items or None).reserved


def turn_usd(settings: Settings) -> float:
    """USD that one turn may cost, if most of its tokens are read and some are written."""
    from api.models.model_client import price_of  # loads the model's library

    tokens = settings.chat.tokens
    used = Tokens(prompt_tokens=tokens * 9 // 10, completion_tokens=tokens // 10)
    usd = price_of(settings.models, used, settings.models.agent_model)
    return UNKNOWN_TURN_USD if usd is None else usd


def gate_usd(settings: Settings, items: int) -> float:
    """USD that judging this many items may cost."""
    from api.models.model_client import price_of  # loads the model's library

    used = _tokens(_Work(gates=_chunks(items, PER_CALL), judged=items))
    usd = price_of(settings.models, used, settings.models.filter_model)
    return UNKNOWN_USD / 100 if usd is None else usd


def answer_check_usd(settings: Settings) -> float:
    """USD that asking which stored passages answer a question may cost."""
    from api.models.model_client import price_of  # loads the model's library

    usd = price_of(settings.models, Tokens(prompt_tokens=5_000, completion_tokens=100), settings.models.filter_model)
    return UNKNOWN_USD / 100 if usd is None else usd


def gate_usage(settings: Settings) -> tuple[Usage, Usage]:
    """Likely tokens of a judging call: a fixed part, and a part for each item."""
    from api.models.model_client import price_of  # loads the model's library

    def usage(tokens: tuple[int, int], requests: int) -> Usage:
        used = Tokens(prompt_tokens=tokens[0], completion_tokens=tokens[1])
        return Usage(*tokens, price_of(settings.models, used, settings.models.filter_model), requests)

    return usage(_LIKELY_GATE, 1), usage(_LIKELY_GATE_ITEM, 0)


def add(usd: float | None, other: float | None) -> float | None:
    """The sum; an unknown price stays unknown."""
    return None if usd is None or other is None else usd + other


def _reach(settings: Settings, ask: Ask, own: int | None) -> _Reach:
    if own is not None:
        settings = for_own_items(settings)
    sandboxed = own is None and mode_of(settings) == "sandbox"
    names = tuple(dict.fromkeys(ask.sources or default_sources(settings.sources)))
    wanted = [SOURCES[name] for name in names if name in SOURCES]
    places = [spec for spec in wanted if sandboxed or spec.configured(settings.sources)]
    prices = [spec.price(settings.sources) for spec in places]
    if ARCHIVE.name in names:
        prices.append(PRICE)
    model = sandboxed or settings.models.openai_api_key is not None
    limit = ask.limit or settings.depths[ask.depth].limit
    again = settings.adaptive.min_yield > 0
    return _Reach(
        () if own is not None else tuple(prices),
        own or 0,
        limit,
        limit * settings.adaptive.refetch_factor if again else limit,
        model,
        model and (sandboxed or settings.general.judge != "local"),
        settings.sources.comments_per_item > 0,
        any(mark in ask.query for mark in '"“”„«»'),
        sandboxed,
        again and settings.adaptive.second_look,
    )


def _answering(settings: Settings, reach: _Reach) -> Settings:
    """The settings with the models that would really answer."""
    return replace(settings, models=stand_in(settings.models)) if reach.sandboxed else settings


def _estimate(settings: Settings, least: _Work, likely: _Work, most: _Work, follow_ups: int = 0) -> Estimate:
    """Price the three amounts of work; the likely price lies between the others."""
    low, high = _priced(settings, least), _priced(settings, most, follow_ups)
    middle = _priced(settings, likely)
    if middle["usd"] is not None:
        middle["usd"] = round(middle["usd"] * _LENGTH, 4)
    for name, figure in middle.items():
        if None not in (low[name], figure, high[name]):
            middle[name] = min(max(low[name], figure), high[name])
    return Estimate(low, middle, high)


def _priced(settings: Settings, work: _Work, follow_ups: int = 0) -> dict[str, Any]:
    """The counts and their price; `follow_ups` are items that the writer looks up itself."""
    from api.models.model_client import price_of  # loads the model's library

    models, calls = settings.models, work.gates + work.grades + work.others + work.checks
    filtering = price_of(models, _tokens(work), models.filter_model) if calls else 0.0
    writing: float | None = 0.0
    if work.reports:
        requests, shown = min(work.reports, _LONG_REQUESTS), work.exhibits + follow_ups
        written = Tokens(
            prompt_tokens=requests * (_REPORT[0] + shown * _EXHIBIT[0]),
            completion_tokens=requests * _REPORT[1],
        )
        writing = price_of(models, written, models.agent_model)
    check = Tokens(prompt_tokens=work.checks * _CHECK[0], completion_tokens=work.checks * _CHECK[1])
    checker = models.support_model or models.filter_model
    checking = price_of(models, check, checker) if work.checks else 0.0
    usd = add(add(filtering, writing), checking)
    return {
        "upstream_calls": work.requests,
        "youtube_searches": work.searches,
        "model_calls": calls + work.reports,
        "usd": None if usd is None else round(usd, 4),
    }


def _tokens(work: _Work) -> Tokens:
    """Tokens that the filter model reads and writes; the minimum when nothing is graded."""
    few = not work.graded and not work.grades and work.others
    parts = (
        (work.gates, _GATE),
        (work.judged, _LEAST_ITEM if few else _GATE_ITEM),
        (work.grades, _GRADE),
        (work.graded, _GRADE_ITEM),
        (work.others, _LEAST_OTHER if few else _OTHER),
    )
    return Tokens(
        prompt_tokens=sum(count * tokens[0] for count, tokens in parts),
        completion_tokens=sum(count * tokens[1] for count, tokens in parts),
    )


def _half(count: int) -> int:
    """Rounded up: half of one is one."""
    return _chunks(count, 2)


def _chunks(items: int, size: int) -> int:
    return -(-items // size)
