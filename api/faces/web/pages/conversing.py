"""A conversation over the evidence of a report, turn by turn; without script, too."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import UsageError
from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.chat import last_of
from api.faces.web.errors import trace_id_of
from api.faces.web.events import GONE, unless_gone
from api.faces.web.media import wants_events
from api.faces.web.pages.access import Filled, Guest
from api.faces.web.pages.live_turn import page_wire, past_turn
from api.faces.web.pages.reading import AnalysisId, report_of
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.faces.web.turns import turn_stream
from api.services.chatting.history import PastTurn, Transcript, read_chat
from api.services.chatting.turns import Turn
from api.services.question.query import LONGEST
from api.services.reporting.credits import credit_of
from api.services.reporting.report import Report
from api.wiring.serving import House

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
_EXAMPLES = 3
_USUAL = (
    "What annoys people about it?",
    "What do people like about it?",
    "What do people say about the price?",
)
"""Questions over any posts, where a report offers too few of its own."""


@router.get("/{analysis_id}/chat")
async def begin_chat(
    request: Request, analysis_id: AnalysisId, visitor: Guest, house: Opened
) -> Response:
    """Nothing has been said yet; a session that has its name already goes on if stopped at once."""
    report = await report_of(house, visitor, analysis_id)
    return _shown(request, visitor, report, Transcript(uuid4().hex, [], report.sample))


@router.get("/{analysis_id}/chat/{session_id}")
async def chat_page(
    request: Request, analysis_id: AnalysisId, session_id: str, visitor: Guest, house: Opened
) -> Response:
    """What has been said, and the field for what comes next."""
    report = await report_of(house, visitor, analysis_id)
    transcript = await read_chat(house.store, visitor.tenant.id, session_id)
    return _shown(request, visitor, report, transcript)


@router.post("/{analysis_id}/chat")
async def say(request: Request, analysis_id: AnalysisId, form: Filled, house: Opened) -> Response:
    """One turn, as events where a script asks for them; who hangs up ends it.

    Guidance, which is not kept, is shown at once.
    """
    work = _answered(request, analysis_id, form, house)
    return await unless_gone(request.receive, work) or Response(status_code=GONE)


async def _answered(request: Request, analysis_id: str, form: Filled, house: House) -> Response:
    visitor, message = form.visitor, form.text("message")
    session_id = form.text("session") or uuid4().hex
    report = await report_of(house, visitor, analysis_id)
    if len(message) > LONGEST:
        raise UsageError(f"a question has at most {LONGEST} characters")
    moments = await house.turn(
        visitor.tenant, message, session_id, known=False, report_id=report.id
    )

    def place(turn: Turn) -> str | None:
        kept = f"/analyses/{report.id}/chat/{turn.session_id}#turn-{turn.number}"
        return kept if turn.number is not None else None

    if wants_events(request.headers.get("accept", "")):
        wire = page_wire(message, place, trace_id_of(request.scope))
        return await turn_stream(moments, wire, house.settings.streams.keepalive)
    turn = await last_of(moments)
    if kept := place(turn):
        return RedirectResponse(kept, 303)
    past = (await read_chat(house.store, visitor.tenant.id, session_id)).turns
    transcript = Transcript(session_id, [*past, past_turn(message, turn)], turn.sample)
    return _shown(request, visitor, report, transcript)


def _in_its_words(turn: PastTurn, report: Report) -> PastTurn:
    """The report as a conversation begins with it: under its sentences the words they rest on."""
    passages = [passage for finding in report.findings for passage in finding.evidence]
    words = {passage.key: passage.passage for passage in reversed(passages)}
    items = {item.key: item for item in report.items if item.key in words}
    citations = [
        replace(
            citation,
            passage=words[citation.key],
            credit=credit_of(items[citation.key], words[citation.key]),
        )
        if citation.key in items
        else citation
        for citation in turn.citations
    ]
    return replace(turn, citations=citations)


def _shown(request: Request, visitor: Visitor, report: Report, transcript: Transcript) -> Response:
    turns = [
        _in_its_words(turn, report) if (turn.turn, turn.question) == (1, report.query) else turn
        for turn in transcript.turns
    ]
    # `What annoys people about it?` is the same as `What annoys people about Oura?`
    offered = " ".join(report.suggestions)
    usual = [question for question in _USUAL if question.rpartition(" ")[0] not in offered]
    return page(
        request, visitor, "chat.html",
        title=f"Ask on: {outline.heading(report)}",
        report=report,
        chat=replace(transcript, turns=turns),
        lookups=(),
        examples=[*report.suggestions, *usual][:_EXAMPLES],
        longest=LONGEST,
    )  # fmt: skip
