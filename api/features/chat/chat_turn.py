"""Values of a chat turn: the events while it runs, and its answer; and work read as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from pydantic import TypeAdapter
from pydantic.json_schema import SkipJsonSchema

from api.core.domain import Usage
from api.core.items import Credit, Measure
from api.core.published import IF_SET, WHERE_THERE, Timestamp

SAMPLE = "sample data: everything here is made up and comes from the offline sandbox"
"""The note of a turn over made-up posts."""


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """Words of an exhibit that an answer rests on."""

    text: str
    """Word for word, on one line, at most `LONGEST_PASSAGE` characters unless the answer quotes more."""
    comment_id: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None
    """Id of the comment that holds the words; None: the item's title or body does."""
    url: str = ""
    credit: Credit = None  # who wrote them


@dataclass(frozen=True, slots=True)
class Citation:
    """An exhibit that an answer cites."""

    label: str  # as in the text, for example `E3`; the same throughout the session
    key: str
    title: str
    url: str
    passage: str = ""
    """Words of the exhibit that support the citing sentence; empty when none do."""
    credit: Credit = None  # the author of the passage
    source: str = ""
    place: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None
    """Subreddit, channel or brand."""
    created_at: Annotated[Timestamp | SkipJsonSchema[None], WHERE_THERE] = None
    """When the post or comment of `passage` was written."""
    engagement: Annotated[Mapping[str, Measure], IF_SET] = field(default_factory=dict)
    """Measures of that post or comment, the source's main one first."""
    passages: Annotated[tuple[CitedPassage, ...], IF_SET] = ()
    """The passages of up to two citing sentences with their positions; up to eight where they are quoted."""

    def json(self) -> dict[str, Any]:
        """The citation as the JSON of every interface has it."""
        value: dict[str, Any] = _CITATION.dump_python(self, mode="json")
        return value


_CITATION = TypeAdapter(Citation)


@dataclass(frozen=True, slots=True)
class Turn:
    """A finished answer of a chat, with what it cites and cost."""

    session_id: str
    text: str  # markdown without links; exhibits are cited as `[E1]` or `[E1, E3]`
    citations: tuple[Citation, ...] = ()  # in the order of first mention
    notes: tuple[str, ...] = ()  # what was removed, cut short or could not be asked
    partial: bool = False
    """Whether a limit or a failure ended the turn early; the text uses what was found until then."""
    outcome: str = "answered"
    """`answered`, `clarify` (the gate gave guidance), `insufficient_data` or `not_asked`."""
    usage: Usage = field(default_factory=Usage)
    trace_id: str | None = None
    number: int | None = None
    """Number of the turn in the session, from 1, by which it is rated; None for guidance, which is not stored."""
    sample: bool = False  # it rests on made-up posts, in part at least

    def json(self) -> dict[str, Any]:
        """The answer as the JSON of every interface has it."""
        return {
            "session_id": self.session_id,
            "turn": self.number,
            "text": self.text,
            "citations": [citation.json() for citation in self.citations],
            "notes": list(self.notes),
            "partial": self.partial,
            "sample": self.sample,
            "trace_id": self.trace_id,
        }


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of the answer, already checked."""

    text: str


@dataclass(frozen=True, slots=True)
class LookupStarted:
    """The chat began a look-up."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LookupEnded:
    """A look-up has ended; `line` describes the result for a person."""

    id: str
    tool: str
    line: str


ChatEvent = AnswerPiece | LookupStarted | LookupEnded | Turn
"""An event of a running turn; the last one is the `Turn`."""
T = TypeVar("T")
_END = object()


async def streamed(
    work: Callable[[Callable[[T], None]], Coroutine[Any, Any, T]],
) -> AsyncGenerator[T]:
    """The events that `work` emits, then its result; closing the iterator cancels it.

    It runs in a task of its own, so that its spans close in the context they were opened in.
    """
    events: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.create_task(work(events.put_nowait))
    task.add_done_callback(lambda _: events.put_nowait(_END))
    try:
        while (event := await events.get()) is not _END:
            yield event
        yield await task
    finally:
        task.cancel()
        await asyncio.wait([task])
