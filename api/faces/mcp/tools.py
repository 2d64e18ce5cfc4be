"""The tools: what each is called, what it takes, and its two answers.

The text is for a model: bounded by depth, strangers' words fenced or escaped. The record is for a
program: the JSON of `fetch` and `analyze`, without what was dropped unless that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from api.faces.markdown import comparison_markdown, report_markdown
from api.faces.mcp.answers import Answer, Tool, bounded
from api.faces.mcp.arguments import (
    AnalysisArguments,
    ComparisonArguments,
    FetchArguments,
    RelevanceArguments,
    SearchArguments,
)
from api.faces.mcp.resources import REPORTS
from api.faces.mcp.watching import watch_tools
from api.faces.web.comparisons import comparisons_of
from api.faces.web.schemas import Relevance
from api.services.archive.answers import ArchiveAnswer
from api.services.archive.describing import described
from api.services.comparing.comparison import Comparison
from api.services.comparing.composing import comparison_of
from api.services.keeping.keys import Tenant
from api.services.keeping.performing import UNKEPT
from api.services.listening import ROOM
from api.services.progress import Listener
from api.services.question.accepting import question_of
from api.services.reasons import reason_in_words
from api.services.reporting.report import Fetched, Report
from api.services.schemas import Gated
from api.services.text import Fence, cut
from api.sources import EVERYWHERE, NAMED, PLACES, SOURCES
from api.wiring.serving import House

_TITLE = 200
"""Characters by which a kept item of one's own is recognised."""


def tools(house: House) -> dict[str, Tool]:
    """Every tool of a server by its name."""

    def fetching(source: str) -> Callable[..., Coroutine[Any, Any, Answer]]:
        async def fetch(tenant: Tenant, given: FetchArguments, listener: Listener) -> Answer:
            heard = await house.fetch(tenant, source, given.ask(source), listener)
            return Answer(heard.text, _record(heard.fetched, dropped=given.include_dropped))

        return fetch

    async def judge(tenant: Tenant, given: RelevanceArguments, listener: Listener) -> Answer:
        question = question_of(given.query, given.about)
        gated = await house.judge(tenant, question, given.own, given.source)
        relevance = Relevance.of(given.own, gated)
        return Answer(_kept(given.own, gated), relevance.model_dump(mode="json"))

    async def analyze(tenant: Tenant, given: AnalysisArguments, listener: Listener) -> Answer:
        question_of(given.query, given.about)  # a program reads `clarify`; a model asks anew
        report = await house.runner.run(tenant, given.ask(), listener)
        text = report_markdown(report, dropped=False)
        kept = f"The whole report is the resource `{REPORTS}{report.id}`."
        if UNKEPT in report.quality_notes:
            kept = "The structured content holds the whole report."
        return Answer(
            bounded(f"{text}\n{kept}", ROOM[given.depth], kept),
            _record(report, dropped=given.include_dropped),
        )

    every = [
        Tool(
            f"fetch_{spec.name}", f"Ask {spec.title}", spec.says, FetchArguments,
            _schema(Fetched), fetching(spec.name),
        )
        for spec in SOURCES.values()
    ]  # fmt: skip
    every += [
        Tool(
            "relevance_filter",
            "Judge your own items",
            "Keep those of your own items that are about a query; if the judge fails, all of them.",
            RelevanceArguments,
            Relevance.model_json_schema(),
            judge,
            asks=False,
        ),
        _archive_tool(house),
        _comparison_tool(house),
        Tool(
            "analyze_product",
            "Analyze a product",
            f"Ask {NAMED} about a product, grade what is relevant, and report with citations. "
            "Takes up to minutes; for a quick look at one place use its fetch tool.",
            AnalysisArguments,
            _schema(Report),
            analyze,
        ),
        *watch_tools(house),
    ]
    return {tool.name: tool for tool in every}


def _archive_tool(house: House) -> Tool:
    async def search(tenant: Tenant, given: SearchArguments, listener: Listener) -> Answer:
        answer = await house.search(
            tenant, given.query, given.filters(), given.k, sandbox=given.sandbox
        )
        return Answer(described(answer, PLACES), answer.model_dump(mode="json"))

    return Tool(
        "search_archive",
        "Search what is stored",
        "What earlier analyses and imports have brought already, by words and meaning, each hit "
        "with its own words. Costs nothing and asks no place: try it first.",
        SearchArguments,
        ArchiveAnswer.model_json_schema(),
        search,
        asks=False,
    )


def _comparison_tool(house: House) -> Tool:
    async def compare(tenant: Tenant, given: ComparisonArguments, listener: Listener) -> Answer:
        asks, comparisons = given.asks(), comparisons_of(house)
        async with comparisons.begun(tenant, asks) as flights:
            answers = await comparisons.answers(asks, flights, listener)
        comparison = comparison_of(asks, answers, EVERYWHERE)
        kept = "The structured content holds every count, passage and cited item."
        text = bounded(comparison_markdown(comparison), ROOM[given.depth], kept)
        return Answer(text, comparison.model_dump(mode="json"))

    return Tool(
        "compare_products",
        "Compare products",
        f"Ask {NAMED} the same about two to five products, and set them side by side: volume, "
        "aspects, and the differences that the numbers support, with citations of each side. "
        "Takes as long and costs as much as an analysis of each.",
        ComparisonArguments,
        Comparison.model_json_schema(),
        compare,
    )


def _record(answer: Fetched | Report, *, dropped: bool) -> dict[str, Any]:
    """The answer as JSON; what was dropped is many times as long as what was kept."""
    if dropped:
        return answer.model_dump(mode="json")
    return answer.model_dump(
        mode="json", exclude={"dropped": True, "sources": {"__all__": {"dropped"}}}
    )


def _schema(model: type[Fetched | Report]) -> dict[str, Any]:
    """What `_record` gives: `dropped` of a source or report may be missing."""
    schema = model.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        if "dropped" in part.get("properties", {}):
            part["required"].remove("dropped")
    return schema


def _kept(items: Sequence[Mapping[str, Any]], gated: Gated) -> str:
    """Which of somebody's own items are about the query, by their places in the list."""
    from api.services.tools import shown  # loads with the product

    kept = [number for number, verdict in enumerate(gated.verdicts) if verdict.relevant]
    why = f"; relevance could not be judged ({reason_in_words(gated.reason)})"
    unsure = why if gated.reason else ""
    fence, lines = Fence(), [f"{len(kept)} of {len(items)} items are about the query{unsure}."]
    lines += [fence.rule] if kept else []
    for number in kept:
        item = shown(items[number], "items", number)
        lines.append(fence.quote(cut(item.title or item.body, _TITLE), f"items[{number}]"))
    return bounded("\n".join(lines), ROOM["quick"], "`relevant` holds all of them.")
