"""What agents call: the relevance gate on its own, and one tool per source.

Everything is configured from the environment through the provider slot; nothing here has a setting,
and the tools never look at an agent's deps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, TypeVar

import regex
from pydantic import BeforeValidator
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai.messages import ModelMessage, TextPart, ToolReturnPart
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from api.errors import ConfigurationError, UsageError
from api.services.containment import Failure, contained
from api.services.gate.handed import texts_of
from api.services.gate.judging import Gate
from api.services.listening import Ask, Heard
from api.services.ports import Judge, Places, title_of
from api.services.provided import provided
from api.services.question.accepting import check, origin_of, question_of
from api.services.reporting.composing import Origin, fetched
from api.services.schemas import Gated, Gathered, Item, Outcome, Status, Usage, Verdict
from api.services.text import clean
from api.settings import DepthName

T = TypeVar("T")
# a model that leaves an argument out may write null for it, which must not cost the run a retry
Look = Annotated[DepthName, BeforeValidator(lambda depth: depth or "quick")]
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
    """What the judge used."""

    @classmethod
    def of(cls, items: Sequence[T], gated: Gated) -> Filtered[T]:
        """Keep the relevant objects themselves, in order."""
        relevant = [
            item for item, verdict in zip(items, gated.verdicts, strict=True) if verdict.relevant
        ]
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
) -> Filtered[T]:
    """Keep the items that are about the query: one judge call per 50 items, nothing remembered.

    Args:
        query: the product or question, as a person typed it.
        items: dicts with `title` and `body` (or another of `api.services.gate.handed.KNOWN`),
            `Item`s or texts; any field may be missing, null or a number.
        source: `reddit`, `youtube`, `amazon` or any other name.
        judge: instead of the configured one.
        about: words that tell the product from its namesakes.

    Returns:
        The same objects in the same order, and relevant / total. Never raises for a judge that
        fails: then all items and 1.0, with status `degraded` and a reason.

    Raises:
        ConfigurationError: the environment holds an unknown or malformed setting.
        UsageError: the query or the source names nothing, an object has no field for a text or
            holds in one that is known what it cannot, or an argument is of another type; no judge
            was asked.
    """
    question = question_of(query, about)
    name = origin_of(source)
    if judge is not None:
        check("judge", judge, Judge, "an object with `name` and `judge`")
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise UsageError(f"`items` must be a list, each {_SHOWABLE}, not {type(items).__name__}")
    given = list(items)
    if not given:
        return Filtered.of(given, Gated((), "skipped"))
    seen = [shown(item, name, number) for number, item in enumerate(given)]
    gate = Gate(judge) if judge is not None else (await provided(own_items=True)).gate
    return Filtered.of(given, await gate.judge(question, seen, name))


_SHOWABLE = "an object with a text in a field that is known, an `Item`, or a text"


def shown(item: object, source: str, number: int) -> Item:
    """Anything as the item a judge sees; its key holds only within the call.

    Raises:
        UsageError: it is none, or as `texts_of` says; it is named by its number from 0.
    """
    if isinstance(item, Item):
        return item
    fields: Any = {"title": item} if isinstance(item, str) else item
    check(f"items[{number}]", fields, Mapping, _SHOWABLE)
    try:
        title, body = texts_of(fields)
    except UsageError as error:
        raise UsageError(f"`items[{number}]`: {error}") from None
    return Item(key=f"{source}:{number}", id=str(number), source=source, title=title, body=body)


async def fetch_reddit_tool(
    ctx: RunContext[object], query: str, depth: Look = "quick", about: About = ""
) -> ToolReturn:
    """What people say on Reddit: posts with their best comments, only those about the product.

    Args:
        query: the product or question in a few words, as people would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "reddit", Ask(query, depth, about=about))


async def fetch_youtube_tool(
    ctx: RunContext[object], query: str, depth: Look = "quick", about: About = ""
) -> ToolReturn:
    """Videos about a product and what viewers say; a call may cost one of 100 searches a day.

    Args:
        query: the product or question in a few words, as people would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "youtube", Ask(query, depth, about=about))


async def fetch_amazon_tool(
    ctx: RunContext[object], query: str, depth: Look = "quick", about: About = ""
) -> ToolReturn:
    """Ratings and buyers' reviews of products on Amazon. Not for topics nobody sells.

    Args:
        query: the product in a few words, as a shopper would write it.
        depth: quick (a look), standard, or deep.
        about: what the product is, to tell it from its namesakes: "the notes app".
    """
    return await _listen(ctx, "amazon", Ask(query, depth, about=about))


def listening_toolset() -> FunctionToolset[Any]:
    """The three fetch tools for an agent with any deps type."""
    toolset: FunctionToolset[Any] = FunctionToolset(id="listenpost")
    for tool in (fetch_reddit_tool, fetch_youtube_tool, fetch_amazon_tool):
        toolset.add_function(tool, takes_ctx=True)
    return toolset


async def _listen(ctx: RunContext[object], source: str, ask: Ask) -> ToolReturn:
    """One source through the gate; the model reads text, the caller finds `metadata`.

    The metadata is the JSON of `Fetched`, with `exhibits` and `error` beside it. A failure is an
    answer of the same shape: nothing raised here may end the agent's run. Tokens and cost of
    judging and grading count for the run. Their requests do not: its limit is one of turns.
    """
    sample = False
    places: Places = {}

    async def listened() -> Heard:
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
        text = f"{title_of(places, source)} {verb} asked: {heard.message}"
        return ToolReturn(text, metadata=metadata)
    usage = heard.fetched.usage
    cost = Decimal(str(usage.usd)) if usage.usd else None  # 0 would make an unknown cost known
    ctx.usage.incr(
        RunUsage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=cost)
    )
    metadata = heard.fetched.model_dump(mode="json")
    return ToolReturn(heard.text, metadata=metadata | {"exhibits": heard.exhibits, "error": None})


_OUTCOMES = {
    UsageError.code: Outcome.NOT_ASKED,
    ConfigurationError.code: Outcome.NOT_CONFIGURED,
}
"""What errors that are no source's lead to; of any other the source is `broken`."""
# `<q-0a1b2c3d E12>`: the fence of an exhibit, which no stranger's text can hold
_FENCED = regex.compile(r"<q-[0-9a-f]+ E(\d{1,9})>")
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
