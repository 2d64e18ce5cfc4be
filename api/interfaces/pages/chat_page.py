"""Pages of a conversation over the evidence of a report; a turn is streamed, or loaded whole without script."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap.app_context import AppContext
from api.choices import MAX_QUESTION_LENGTH
from api.errors import ListenpostError, UsageError
from api.features.chat.chat_history import ListedChat, PastTurn, Transcript, read_chat
from api.features.chat.chat_sessions import UNKEPT
from api.features.chat.chat_turn import AnswerPiece, ChatEvent, LookupEnded, LookupStarted, Turn
from api.interfaces.http.access import OpenContext
from api.interfaces.http.chat_routes import last_of
from api.interfaces.http.errors_json import described, trace_id_of
from api.interfaces.http.event_stream import GONE, MEDIA_TYPE, TurnWire, frame, turn_stream, unless_gone, wants_events
from api.interfaces.pages.analysis_page import AnalysisId, conversations, report_of
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Visitor, page, root_of
from api.interfaces.pages.templates_rendering import rendered
from api.interfaces.shared import claim_layout, presentation
from api.reports.report import Report

# Where a look-up that asks not one place looks, by its tool.
_ELSEWHERE = {"search_archive": "through what is stored", "analyze_product": "on every place"}


@dataclass(slots=True)
class LiveTurn:
    """Question, look-ups and text of a turn that still runs."""

    question: str
    root: str
    """Path before every path of this server."""
    text: str = ""
    lookups: dict[str, str] = field(default_factory=dict)
    """State of each look-up, in words."""

    def hear(self, moment: ChatEvent) -> None:
        """Update what is shown by an event."""
        match moment:
            case LookupStarted(call, tool, arguments):
                self.lookups[call] = _looks(tool, arguments)
            case LookupEnded(call, _, line):
                self.lookups[call] = line
            case AnswerPiece(text):
                self.text += text

    def html(self, turn: Turn) -> str:
        """All of it, with what the turn cites once it is over."""
        past = past_turn(self.question, turn)
        # whether the data is made up stands above the conversation once it is loaded anew
        return rendered("turn.html", self.root, sample=True, turn=past, lookups=list(self.lookups.values()))


def past_turn(question: str, turn: Turn) -> PastTurn:
    """A turn that is shown before it is kept, or without being."""
    citations = list(turn.citations)
    return PastTurn(question, turn.text, citations, turn.number, (), stopped=False, sample=turn.sample)


def page_wire(question: str, place: Callable[[Turn], str | None], trace_id: str, root: str = "") -> TurnWire:
    """Events, each with all of the turn as markup; `over` says where it is kept, or why nowhere."""

    async def frames(moments: AsyncIterator[ChatEvent]) -> AsyncGenerator[bytes]:
        live = LiveTurn(question, root)
        over: dict[str, str | None] = {}
        try:
            async for moment in moments:
                live.hear(moment)
                turn = moment if isinstance(moment, Turn) else Turn("", live.text)
                yield frame("turn", {"html": live.html(turn)}, "turn")
                run_step = UNKEPT in turn.notes
                kept = place(turn)
                over = {"place": None, "message": UNKEPT} if run_step else {"place": kept and root + kept}
        except ListenpostError as error:
            yield frame("error", described(error, trace_id), "error")
        else:
            yield frame("over", over, "over")

    return TurnWire(MEDIA_TYPE, frames)


def _looks(tool: str, arguments: Mapping[str, Any]) -> str:
    """Sentence saying that a look-up has begun."""
    place = presentation.source_title(tool.removeprefix("fetch_"))
    query = presentation.shortened(str(arguments.get("query", "")), presentation.LONGEST_HEADING)
    return f"Looks {_ELSEWHERE.get(tool, f'on {place}')} for “{query}” …"


router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
_EXAMPLES = 3
# Questions over any posts, where a report offers too few of its own.
_USUAL = (
    "What annoys people about it?",
    "What do people like about it?",
    "What do people say about the price?",
)


@router.get("/{analysis_id}/chat")
async def begin_chat(request: Request, analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext) -> Response:
    """An empty conversation about a report; its session id is set, so that a stopped first turn can be continued."""
    report = await report_of(app_context, visitor, analysis_id)
    earlier = await conversations(app_context, visitor, report.id)
    return _shown(request, visitor, report, Transcript(uuid4().hex, [], report.sample), earlier)


@router.get("/{analysis_id}/chat/{session_id}")
async def chat_page(
    request: Request,
    analysis_id: AnalysisId,
    session_id: str,
    visitor: Guest,
    app_context: OpenContext,
) -> Response:
    """What has been said, and the field for what comes next."""
    report = await report_of(app_context, visitor, analysis_id)
    transcript = await read_chat(app_context.store, visitor.tenant.id, session_id)
    earlier = await conversations(app_context, visitor, report.id)
    return _shown(request, visitor, report, transcript, [entry for entry in earlier if entry.id != session_id])


@router.post("/{analysis_id}/chat")
async def say(request: Request, analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """One turn, as events when a script requests them; closing the connection ends it.

    Guidance, which is not kept, is shown at once.
    """
    work = _answered(request, analysis_id, form, app_context)
    return await unless_gone(request.receive, work) or Response(status_code=GONE)


async def _answered(request: Request, analysis_id: str, form: Filled, app_context: AppContext) -> Response:
    visitor, message = form.visitor, form.text("message")
    session_id = form.text("session") or uuid4().hex
    report = await report_of(app_context, visitor, analysis_id)
    if len(message) > MAX_QUESTION_LENGTH:
        raise UsageError(f"a question has at most {MAX_QUESTION_LENGTH} characters")
    moments = await app_context.turn(visitor.tenant, message, session_id, known=False, report_id=report.id)

    def place(turn: Turn) -> str | None:
        kept = f"/analyses/{report.id}/chat/{turn.session_id}#turn-{turn.number}"
        return kept if turn.number is not None else None

    if wants_events(request.headers.get("accept", "")):
        wire = page_wire(message, place, trace_id_of(request.scope), root_of(request))
        return await turn_stream(moments, wire, app_context.settings.streams.keepalive)
    turn = await last_of(moments)
    if kept := place(turn):
        return RedirectResponse(kept, 303)
    past = (await read_chat(app_context.store, visitor.tenant.id, session_id)).turns
    transcript = Transcript(session_id, [*past, past_turn(message, turn)], turn.sample)
    return _shown(request, visitor, report, transcript, ())


def _report_links(turns: Sequence[PastTurn], report: Report) -> dict[str, str]:
    """Links from labels to posts in the report, for the turn that repeats it; empty without that turn."""
    numbers = presentation.numbered(report.items)
    cited = {item.key for item in claim_layout.cited(report)}
    return {
        citation.label: f"/analyses/{report.id}#source-{numbers[citation.key]}"
        for turn in turns
        if (turn.turn, turn.question) == (1, report.query)
        for citation in turn.citations
        if citation.key in cited
    }


def _shown(
    request: Request, visitor: Visitor, report: Report, transcript: Transcript, earlier: Sequence[ListedChat]
) -> Response:
    # `What annoys people about it?` is the same as `What annoys people about Oura?`
    suggestions = claim_layout.next_questions(report)
    offered = " ".join(suggestions)
    usual = [question for question in _USUAL if question.rpartition(" ")[0] not in offered]
    return page(
        request, visitor, "chat.html",
        title=f"Follow-up: {presentation.heading(report)}",
        report=report,
        chat=transcript,
        lookups=(),
        report_links=_report_links(transcript.turns, report),
        earlier=earlier,
        examples=[*suggestions, *usual][:_EXAMPLES],
        longest=MAX_QUESTION_LENGTH,
    )  # fmt: skip
