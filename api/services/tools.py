"""What agents call: the relevance gate on its own, and one tool per source.

Everything is configured from the environment through the provider slot; nothing here has a setting,
and the tools never look at an agent's deps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, TypeVar

import regex
from pydantic import BeforeValidator
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.messages import ModelMessage, TextPart, ToolReturnPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool
from pydantic_ai.usage import RunUsage

from api.choices import Aim, DepthName
from api.core.display_names import SourceLabels, title_in
from api.core.domain import Outcome, Status, Usage, Verdict
from api.core.items import Gated, Gathered, Item
from api.core.ports import Judge
from api.core.text import clean
from api.core.work import Failure, contained
from api.errors import ConfigurationError, UsageError
from api.pipeline.gate.caller_items import title_and_body
from api.pipeline.gate.verdicts import Gate
from api.reports.composition import Origin, fetched
from api.services import provided
from api.services.product import Ask, SourceAnswer, check, origin_of, question_of, texts_of

T = TypeVar("T")
# a model that leaves an argument out may write null for it, which must not cost the run a retry
ToolDepth = Annotated[DepthName, BeforeValidator(lambda depth: depth or "quick")]
About = Annotated[str, BeforeValidator(lambda about: about or "")]


class Filtered(tuple[list[T], float]):
    """`(relevant_items, yield_ratio)`, and how that came about.

    Compares and unpacks like the plain tuple. `verdicts` are in the order of the items; `status` is
    `ok`, `degraded` (all items passed unjudged, `reason` says why) or `skipped` (no items).
    """

    verdicts: tuple[Verdict, ...] = ()
    status: Status = "skipped"
    reason: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    """Tokens and USD of the judge."""

    @classmethod
    def of(cls, items: Sequence[T], gated: Gated) -> Filtered[T]:
        """Keep the relevant objects themselves, in order."""
        relevant = [item for item, verdict in zip(items, gated.verdicts, strict=True) if verdict.relevant]
        share = len(relevant) / len(items) if items else 1.0
        filtered = cls((relevant, share))
        filtered.verdicts, filtered.status = gated.verdicts, gated.status
        filtered.reason, filtered.model = gated.reason, gated.model
        filtered.usage = gated.usage
        return filtered


async def relevance_filter(
    query: str,
    items: Iterable[T],
    source: str,
    *,
    judge: Judge | None = None,
    about: str | None = "",
    not_about: Sequence[str] = (),
    aim: Aim = "about",
) -> Filtered[T]:
    """Keep the items that are about the query: one judge call per 50 items, nothing remembered.

    Args:
        query: the product or question, as a person typed it.
        items: dicts with `title` and `body` (or another of `api.pipeline.gate.caller_items.KNOWN`),
            `Item`s or texts; any field may be missing, null or a number.
        source: `reddit`, `youtube`, `amazon` or any other name.
        judge: instead of the configured one.
        about: words that tell the product from its namesakes.
        not_about: what the product is not.
        aim: `mention` keeps items that only mention the product, too.

    Returns:
        The same objects in the same order, and relevant / total. Never raises for a judge that
        fails: then all items and 1.0, with status `degraded` and a reason.

    Raises:
        ConfigurationError: the environment holds an unknown or malformed setting.
        UsageError: the query or the source names nothing, an object has no field for a text or
            holds in one that is known what it cannot, or an argument is of another type; no judge
            was asked.
    """
    question = question_of(
        Ask(
            query,
            about="" if about is None else about,
            not_about=texts_of("not_about", not_about),
            aim=aim,
        )
    )
    name = origin_of(source)
    if judge is not None:
        check("judge", judge, Judge, "an object with `name` and `judge`")
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise UsageError(f"`items` must be a list, each {_SHOWABLE}, not {type(items).__name__}")
    given = list(items)
    if not given:
        return Filtered.of(given, Gated((), "skipped"))
    seen = [shown(_spared(item), name, number) for number, item in enumerate(given)]
    gate = Gate(judge) if judge is not None else (await provided(own_items=True)).gate
    return Filtered.of(given, await gate.judge(question, seen, name))


def _spared(item: object) -> object:
    """An object of a program without what is empty in it; with nothing left it has no words."""
    if not isinstance(item, Mapping):
        return item
    return {name: value for name, value in item.items() if value != {}} or {"title": ""}


_SHOWABLE = "an object with a text in a field that is known, an `Item`, or a text"


def shown(item: object, source: str, number: int) -> Item:
    """Anything as the item a judge sees; its key holds only within the call.

    Raises:
        UsageError: it is none, or as `title_and_body` says; it is named by its number from 0.
    """
    if isinstance(item, Item):
        return item
    fields: Any = {"title": item} if isinstance(item, str) else item
    check(f"items[{number}]", fields, Mapping, _SHOWABLE)
    try:
        title, body = title_and_body(fields)
    except UsageError as error:
        raise UsageError(f"`items[{number}]`: {error}") from None
    return Item(key=f"{source}:{number}", id=str(number), source=source, title=title, body=body)


async def fetch_reddit_tool(
    ctx: RunContext[object], query: str, depth: ToolDepth = "quick", about: About = ""
) -> ToolReturn:
    """Reddit posts about a product, with their best voted comments.

    Args:
        query: the product or question in a few words, as people would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "reddit", Ask(query, depth, about=about))


async def fetch_youtube_tool(
    ctx: RunContext[object], query: str, depth: ToolDepth = "quick", about: About = ""
) -> ToolReturn:
    """Videos about a product, with comments; a call may cost one of 100 daily searches.

    Args:
        query: the product or question in a few words, as people would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "youtube", Ask(query, depth, about=about))


async def fetch_amazon_tool(
    ctx: RunContext[object], query: str, depth: ToolDepth = "quick", about: About = ""
) -> ToolReturn:
    """Ratings and buyers' reviews of products on Amazon. Not for topics nobody sells.

    Args:
        query: the product in a few words, as a shopper would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "amazon", Ask(query, depth, about=about))


_TOOLS = {
    "reddit": fetch_reddit_tool, "youtube": fetch_youtube_tool, "amazon": fetch_amazon_tool,
}  # fmt: skip


def listening_toolset(sources: Iterable[str] | None = None) -> FunctionToolset[Any]:
    """Fetch tools for an agent with any deps type, one per source: `fetch_reddit_tool`.

    Args:
        sources: only these, such as `["hackernews", "reddit"]`; none: Reddit, YouTube and Amazon,
            and besides every place that can be asked when the agent runs.
    """
    if sources is None:
        return _ToolPerPlace()
    toolset: FunctionToolset[Any] = FunctionToolset(id="listenpost")
    for source in dict.fromkeys(sources):
        _add(toolset, source)
    return toolset


class _ToolPerPlace(FunctionToolset[Any]):
    """The tools of three sources, and of whatever else is configured when they are looked at."""

    def __init__(self) -> None:
        super().__init__(id="listenpost")
        for source in _TOOLS:
            _add(self, source)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The tools; what cannot be built says so when one of the three is called."""

        async def askable() -> tuple[str, ...]:
            return (await provided()).askable

        names = await contained(askable(), "finding the tools")
        for source in () if isinstance(names, Failure) else names:
            if f"fetch_{source}_tool" not in self.tools:
                _add(self, source)
        return await super().get_tools(ctx)


def _add(toolset: FunctionToolset[Any], source: str) -> None:
    """The tool of one source; without a function of its own it is described by its place."""

    async def fetch(ctx: RunContext[object], query: str, depth: ToolDepth = "quick", about: About = "") -> ToolReturn:
        """What people say there.

        Args:
            query: the product or question in a few words, as people would write it.
            depth: quick (a look), standard, or deep.
            about: what the product is, to tell it from its namesakes: "the notes app".
        """
        return await _listen(ctx, source, Ask(query, depth, about=about))

    if source in _TOOLS:
        toolset.add_function(_TOOLS[source], takes_ctx=True)
        return

    async def described(ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition:
        async def says() -> str:
            return (await provided()).places[source].description

        words = await contained(says(), f"describing the tool for {source}")
        return tool if isinstance(words, Failure) else replace(tool, description=words)

    toolset.add_function(
        fetch, takes_ctx=True, name=f"fetch_{source}_tool", prepare=described,
        description=f"What people say on {source}.",
    )  # fmt: skip


async def _listen(ctx: RunContext[object], source: str, ask: Ask) -> ToolReturn:
    """One source through the gate; the model reads text, the caller finds `metadata`.

    The metadata is the JSON of `Fetched`, with `exhibits` and `error` beside it. A failure is an
    answer of the same shape: nothing raised here may end the agent's run. Tokens and cost of
    judging and grading count for the run. Their requests do not: its limit is one of turns.
    """
    sample = False
    places: SourceLabels = {}

    async def listened() -> SourceAnswer:
        nonlocal sample, places
        product = await provided()
        sample, places = product.sample, product.places
        given = _given(ctx.messages)
        return await product.listen(source, ask, ctx.run_id, given, ctx.conversation_id)

    heard = await contained(listened(), f"the tool for {source}")
    if isinstance(heard, Failure):
        error = {"code": heard.code, "message": heard.message}
        outcome = _OUTCOMES.get(heard.code) or Outcome.of(heard.code)
        gathered = Gathered(source, clean(ask.query), outcome, reason=heard.message)
        nothing = fetched(gathered, (), (), Origin("", sample, None))
        metadata = nothing.model_dump(mode="json") | {"exhibits": {}, "error": error}
        verb = "was not" if outcome is Outcome.NOT_ASKED else "could not be"
        text = f"{title_in(places, source)} {verb} asked: {heard.message}"
        return ToolReturn(text, metadata=metadata)
    usage = heard.fetched.usage
    cost = Decimal(str(usage.usd)) if usage.usd else None  # 0 would make an unknown cost known
    ctx.usage.incr(RunUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=cost))
    metadata = heard.fetched.model_dump(mode="json")
    return ToolReturn(heard.text, metadata=metadata | {"exhibits": heard.exhibits, "error": None})


# What errors that are no source's lead to; of any other the source is `broken`.
_OUTCOMES = {
    UsageError.code: Outcome.NOT_ASKED,
    ConfigurationError.code: Outcome.NOT_CONFIGURED,
}
# `<q-0a1b2c3d E12>`, `<q-0a1b2c3d E12 title>`: the fence of an exhibit, which no stranger's text can hold
_FENCED = regex.compile(r"<q-[0-9a-f]+ E(\d{1,9})(?: title| comment)?>")
# `[E12]`, `E12`: what a model cited; its answer may be kept where the tool's is not
_CITED = regex.compile(r"\bE([1-9]\d{0,3})\b")


def _given(messages: Sequence[ModelMessage]) -> int:
    """The highest number of an exhibit that a tool of ours returned, or a model cited.

    The messages of earlier runs count, so that a label means one item throughout; so does the
    answer to a tool's text which somebody shortened away.
    """
    labels = (
        int(label)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart | TextPart)
        for label in (_CITED if isinstance(part, TextPart) else _FENCED).findall(str(part.content))
    )
    return max(labels, default=0)
