"""Pages of one analysis: progress by source while it runs, then report, evidence, files, and the link to share it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from api.bootstrap.app_context import AppContext
from api.core.domain import Outcome
from api.core.progress import (
    Event,
    ItemGraded,
    Reported,
    SourceFetched,
    SourceGathered,
    SourceJudged,
    SourceKept,
    SourceLookedAgain,
    SourceRefetching,
    SourceStarted,
    Writing,
)
from api.core.text import clean, cut, one_line, quantity
from api.errors import Conflict, ListenpostError, NotFound, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.feedback import source_of
from api.features.analyses.share_links import (
    CorrectionLink,
    LinkAct,
    LinkedPost,
    act_by_link,
    linked_post,
    linked_report,
    open_link,
)
from api.features.analyses.store_ports import StoredAnalysis
from api.features.chat.chat_history import ListedChat, list_chats
from api.interfaces.http.access import OpenContext, authenticated
from api.interfaces.http.analysis_routes import is_possible, shown_as
from api.interfaces.http.event_stream import HEADERS, MEDIA_TYPE, RETRY, frame, pour, unless_gone
from api.interfaces.pages.replay_form import ReplayForm
from api.interfaces.pages.report_values import as_file, kind_of, report_values
from api.interfaces.pages.screen import Ending, Filled, Guest, PageRoute, Visitor, fields_of, page, server_of
from api.interfaces.pages.templates_rendering import rendered
from api.interfaces.shared import chart_data, presentation
from api.reports.report import Report
from api.sources import default_sources

_OF_A_QUERY = (
    SourceStarted, SourceFetched, SourceJudged, SourceRefetching, SourceLookedAgain,
)  # fmt: skip
# Characters of a query that is told from others of its place.
_LONGEST_QUERY = 40
LaneState = Literal["waiting", "busy", "again", "done", "trouble"]


@dataclass(frozen=True, slots=True)
class LaneItem:
    """State of one query, or of all queries of a source once they have ended."""

    fetched: int | None = None
    about: int | None = None
    """Posts that were judged to be about the question."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Progress of one source. Its queries find the same posts, so their counts are never summed."""

    source: str
    state: LaneState = "waiting"
    wanted: int = 0
    """Posts that it was asked for, by the widest query."""
    words: str = "waiting"
    why: str = ""
    """Why it was asked once more, if it was."""
    queries: Mapping[str, LaneItem] = field(default_factory=dict)
    """State by query; the state of all together is under the query that leads."""
    titles: tuple[str, ...] = ()
    """Titles of the first posts that were kept."""

    @property
    def has_ended(self) -> bool:
        """Whether all its queries have."""
        return self.state in {"done", "trouble"}

    @property
    def has_answered(self) -> bool:
        """Whether any of its queries brought something, or nothing."""
        return any(item.fetched is not None for item in self.queries.values())

    @property
    def title(self) -> str:
        """The place as a person knows it."""
        return presentation.source_title(self.source)

    @property
    def counts(self) -> list[tuple[str, int]]:
        """Number of posts requested, found, and kept; each post counts once.

        Until all queries have ended those of the query with the most.
        """
        fetched = [item.fetched for item in self.queries.values() if item.fetched is not None]
        about = [item.about for item in self.queries.values() if item.about is not None]
        known = (
            ("asked for", [self.wanted] if self.wanted else []),
            (chart_data.FETCHED, fetched),
            (chart_data.ABOUT_IT, about),
        )
        return [(name, max(counts)) for name, counts in known if counts]

    def after(self, event: Event) -> Lane:
        """The lane once this has happened to it."""
        words = presentation.progress(event)
        if words and isinstance(event, _OF_A_QUERY) and self.queries.keys() - {event.query}:
            words = f"“{presentation.shortened(event.query, _LONGEST_QUERY)}”: {words}"
        lane = replace(self, words=words or self.words)
        match event:
            case SourceStarted():
                wanted = max(self.wanted, event.limit)
                lane = replace(lane, state="busy", wanted=wanted)
                return lane._with(event.query, self._catch(event.query))
            case SourceFetched():
                catch = self._catch(event.query)
                # asked once more, wider, a place gives what it gave before and more
                fetched = max(catch.fetched or 0, event.fetched)
                return lane._with(event.query, replace(catch, fetched=fetched))
            case SourceJudged() | SourceLookedAgain() if event.relevant or event.status == "ok":
                catch = self._catch(event.query)
                return lane._with(event.query, replace(catch, about=(catch.about or 0) + event.relevant))
            case SourceRefetching():
                catch, wanted = self._catch(event.query), max(self.wanted, event.limit)
                counted = f"{catch.about or 0} of {catch.fetched or 0} found"
                why = f"about it: only {counted}, so it is asked again"
                return replace(lane, state="again", wanted=wanted, why=why)
            case SourceKept():
                return replace(lane, titles=lane.titles or event.titles)
            case SourceGathered():
                state: LaneState = "done" if Outcome(event.outcome).answered else "trouble"
                about = None if event.yield_ratio is None else event.kept
                catch = LaneItem(event.fetched, about) if state == "done" else LaneItem()
                return replace(lane, state=state, queries={event.query: catch}, titles=event.titles)
        return lane

    def _catch(self, query: str) -> LaneItem:
        return self.queries.get(query, LaneItem())

    def _with(self, query: str, catch: LaneItem) -> Lane:
        return replace(self, queries={**self.queries, query: catch})


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of an analysis, and how far it is."""

    name: str
    count: str
    state: Literal["done", "now", ""]
    """Empty: it has not begun."""


@dataclass(slots=True)
class Lanes:
    """All places of one analysis, in the order in which they were asked."""

    lanes: dict[str, Lane]
    step: str = ""
    """What happens to the question as a whole."""
    graded: int = 0
    """Posts that were graded so far."""
    last: type[Event] | None = None
    """The kind of the last event of the question as a whole."""

    @classmethod
    def of(cls, app_context: AppContext, task: AnalysisTask) -> Lanes:
        """Lanes of the sources that will be asked, before anything happens."""
        sources = task.ask.sources or default_sources(app_context.settings.sources)
        return cls({source: Lane(source) for source in sources})

    def hear(self, event: Event) -> None:
        """Update the lanes by an event."""
        if isinstance(event, ItemGraded):
            self.graded += 1
        if event.source is None:
            self.step, self.last = presentation.progress(event) or self.step, type(event)
        else:
            lane = self.lanes.get(event.source, Lane(event.source))
            self.lanes[event.source] = lane.after(event)

    @property
    def phases(self) -> list[Phase]:
        """Asking, judging, grading and writing, each done, under way or to come; none of what runs elsewhere."""
        lanes = self.lanes.values()
        answered = sum(lane.has_ended or lane.has_answered for lane in lanes)
        ended = sum(lane.has_ended for lane in lanes)
        written = self.last in {Writing, Reported}
        counts = (
            ("Asking", f"{answered} of {len(lanes)} places", answered == len(lanes)),
            ("Judging", f"{ended} of {len(lanes)} places" if answered else "", ended == len(lanes)),
            ("Grading", quantity(self.graded, "post") if self.graded else "", written),
            ("Writing and checking", "", self.last is Reported),
        )
        now = next((at for at, (*_, done) in enumerate(counts) if not done), len(counts))
        states: tuple[Literal["done", "now", ""], ...] = ("done", "now", "")
        return [
            Phase(name, count, states[(at >= now) + (at > now)]) for at, (name, count, _) in enumerate(counts) if lanes
        ]

    @property
    def values(self) -> dict[str, Any]:
        """The values that the template of a running analysis shows."""
        return {"lanes": list(self.lanes.values()), "step": self.step, "phases": self.phases}


class LaneStream(Response):
    """Each event holds all lanes as markup; `over` is the last. Who hangs up stops nothing."""

    media_type = MEDIA_TYPE

    def __init__(self, app_context: AppContext, analysis: AnalysisTask | StoredAnalysis) -> None:
        """The analysis has been joined already; the stream leaves it at its end."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._app_context, self._analysis = app_context, analysis

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the analysis is over or the client disconnects."""
        keepalive = self._app_context.settings.streams.keepalive
        try:
            await unless_gone(receive, pour(send, self.raw_headers, self._frames(), keepalive))
        finally:
            if isinstance(self._analysis, AnalysisTask):
                self._app_context.runner.leave(self._analysis, lost=True)

    async def _frames(self) -> AsyncGenerator[bytes]:
        if isinstance(self._analysis, StoredAnalysis):
            # what another process runs; one that is deleted meanwhile is over, too
            with suppress(ListenpostError):
                self._analysis = await self._app_context.runner.awaited(self._analysis)
        if isinstance(self._analysis, AnalysisTask):
            async for each in self._moments(self._analysis):
                yield each
        yield frame("over", {}, "over")

    async def _moments(self, task: AnalysisTask) -> AsyncGenerator[bytes]:
        """All lanes after each event; events that come at once are shown once."""
        root = self._app_context.settings.general.root_path or ""
        lanes, changed, over = Lanes.of(self._app_context, task), asyncio.Event(), asyncio.Event()

        def hear(event: Event) -> None:
            lanes.hear(event)
            changed.set()

        def end() -> None:
            over.set()
            changed.set()

        task.listen(hear)
        task.on_end(end)
        while not over.is_set():
            changed.clear()
            html = rendered("lanes.html", root, **lanes.values)
            yield frame("lanes", {"html": html}, str(task.event_count), RETRY)
            await changed.wait()


router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
NO_ANALYSIS = "There is no such analysis, or it is not yours."
# Posts of a report that cites none; conversations listed beside a report.
_FIRST, _MOST_CHATS = 20, 10


async def possible_id(analysis_id: str) -> str:
    """`AnalysisId`, as a dependency.

    Raises:
        NotFound: no analysis can have this id.
    """
    if not is_possible(analysis_id):
        raise NotFound(NO_ANALYSIS)
    return analysis_id


AnalysisId = Annotated[str, Depends(possible_id)]
"""The id in an address."""


@router.get("/{analysis_id}")
async def analysis_page(
    request: Request, analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext
) -> Response:
    """The report; how far it is while it runs; or why there is none."""
    analysis = await app_context.runner.follow(visitor.tenant, analysis_id)
    if analysis is None:
        raise NotFound(NO_ANALYSIS)
    if isinstance(analysis, AnalysisTask):
        lanes = Lanes.of(app_context, analysis)
        analysis.listen(lanes.hear)
        analysis.leave(lanes.hear)
        return _live(request, visitor, analysis, lanes)
    if analysis.report is not None:
        earlier = await conversations(app_context, visitor, analysis_id)
        return await asyncio.to_thread(_report, request, visitor, analysis.report, earlier)
    if analysis.state == "failed":
        reason = (analysis.reason or analysis.state).rstrip(".")
        title = presentation.shortened(analysis.query, presentation.LONGEST_HEADING)
        return page(request, visitor, "state.html", title=title, reason=reason)
    elsewhere = Lanes({}, "It waits for its turn, or another process works on it.")
    return _live(request, visitor, analysis, elsewhere)


@router.get("/{analysis_id}/live")
async def live(analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext) -> Response:
    """The lanes as events, each with all of them, until the analysis is over."""
    analysis = await app_context.runner.follow(visitor.tenant, analysis_id)
    if analysis is None:
        raise NotFound(NO_ANALYSIS)
    return LaneStream(app_context, analysis)


@router.post("/{analysis_id}/cancel")
async def cancel(analysis_id: AnalysisId, form: Ending, app_context: OpenContext) -> Response:
    """Cancel an analysis that runs."""
    await app_context.runner.cancel(form.visitor.tenant, analysis_id)
    return RedirectResponse(f"/analyses/{analysis_id}", 303)


@router.get("/{analysis_id}/export/{form}")
async def export(analysis_id: AnalysisId, form: str, visitor: Guest, app_context: OpenContext) -> Response:
    """The report as HTML, Markdown, CSV or JSON, to be saved."""
    kind = kind_of(form)
    answer = await asyncio.to_thread(shown_as, await report_of(app_context, visitor, analysis_id), kind)
    return as_file(answer, f"analysis-{analysis_id}", kind)


async def report_of(app_context: AppContext, visitor: Visitor, analysis_id: str) -> Report:
    """The report of a finished analysis.

    Raises:
        NotFound: the visitor has none of that id.
        Conflict: it runs, or has failed.
    """
    kept = await app_context.runner.kept(visitor.tenant.id, analysis_id)
    if kept is None:
        raise NotFound(NO_ANALYSIS)
    if kept.report is None:
        raise Conflict(kept.why_none)
    return kept.report


async def conversations(app_context: AppContext, visitor: Visitor, analysis_id: str) -> list[ListedChat]:
    """The visitor's last conversations over a report, at most `_MOST_CHATS`; none where they cannot be read."""
    try:
        listing = await list_chats(app_context.store, visitor.tenant.id, _MOST_CHATS, report_id=analysis_id)
    except StoreUnavailable:  # the report is shown all the same
        return []
    return [chat for chat in listing.chats if chat.turns]


def _live(request: Request, visitor: Visitor, analysis: AnalysisTask | StoredAnalysis, lanes: Lanes) -> Response:
    title = presentation.shortened(analysis.query, presentation.LONGEST_HEADING)
    return page(request, visitor, "live.html", title=title, id=analysis.id, **lanes.values)


def _report(request: Request, visitor: Visitor, report: Report, earlier: Sequence[ListedChat]) -> Response:
    """The page of a report with the cited posts, or with the first of all when none is cited."""
    values = report_values(report)
    listed = values["listed"] if values["passages"] else values["listed"][:_FIRST]
    title = presentation.heading(report)
    values |= {"listed": listed, "rest": (), "earlier": earlier, "again": ReplayForm.of(report, {})}
    return page(request, visitor, "report.html", title=title, can_ask=True, **values)


# Longest title of a post on the page that corrects it, and the last second that a link can end at.
_LONGEST_POST, _LAST_MOMENT = 200, 253_402_300_799
share_router = APIRouter(include_in_schema=False, route_class=PageRoute)


@share_router.get("/analyses/{analysis_id}/share")
async def share_page(request: Request, analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext) -> Response:
    """Whether there is a link, and what it would show."""
    return await _shown(request, visitor, app_context, await report_of(app_context, visitor, analysis_id))


@share_router.post("/analyses/{analysis_id}/share")
async def share(request: Request, analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """Make a new link, which is shown only once and replaces the old one."""
    report = await report_of(app_context, form.visitor, analysis_id)
    path = await open_link(app_context.store, form.visitor.tenant.id, analysis_id)
    return await _shown(request, form.visitor, app_context, report, path)


@share_router.post("/analyses/{analysis_id}/unshare")
async def unshare(analysis_id: AnalysisId, form: Ending, app_context: OpenContext) -> Response:
    """Remove the link; the report stays."""
    await app_context.store.set_link(form.visitor.tenant.id, analysis_id, None)
    return RedirectResponse(f"/analyses/{analysis_id}/share", 303)


@share_router.get("/shared/{analysis_id}")
async def shared_page(request: Request, analysis_id: AnalysisId, app_context: OpenContext, token: str = "") -> Response:
    """The report and its evidence; there is nothing to do here but to read."""
    if not await app_context.keys.configured():
        await authenticated(app_context, request)
    report = await linked_report(app_context.store, app_context.keys, app_context.limits, analysis_id, token)
    answer = await asyncio.to_thread(
        lambda: page(
            request,
            None,
            "shared.html",
            title=presentation.heading(report),
            shared=True,
            **report_values(report),
        )
    )
    answer.headers["X-Robots-Tag"] = "noindex, nofollow"
    return answer


async def correction_link(
    request: Request,
    app_context: OpenContext,
    watch_id: str,
    report_id: str,
    item: str = "",
    until: Annotated[int, Query(ge=0, le=_LAST_MOMENT)] = 0,
    sign: str = "",
) -> CorrectionLink:
    """The link of a request, as a dependency; raises `Forbidden` where only this machine may ask."""
    if not await app_context.keys.configured():
        await authenticated(app_context, request)
    return CorrectionLink(watch_id, report_id, item, until, sign)


OpenedLink = Annotated[CorrectionLink, Depends(correction_link)]


@share_router.get("/corrections/{watch_id}/{report_id}")
async def correction_page(request: Request, link: OpenedLink, app_context: OpenContext) -> Response:
    """Ask what to do with a link's post; opening the page changes nothing, since mail scanners open it too."""
    return _linked(request, await linked_post(app_context.store, app_context.keys, app_context.limits, link))


@share_router.post("/corrections/{watch_id}/{report_id}")
async def correct_post(request: Request, link: OpenedLink, app_context: OpenContext) -> Response:
    """Do with the link's post what the pressed button says, and confirm it; the signature replaces a login."""
    named = (await fields_of(request)).get("do", ["not_about"])[0]
    act = next((act for act in get_args(LinkAct) if act == named), None)
    if act is None:
        raise UsageError("this is no action of a link", field="do")
    return _linked(request, await act_by_link(app_context.store, app_context.keys, app_context.limits, link, act), act)


_DONE = {"star": "Starred", "read": "Marked as read", "not_about": "Marked as not about it"}


def _linked(request: Request, post: LinkedPost, done: str = "") -> Response:
    answer = page(
        request, None, "correct.html",
        title=_DONE.get(done, "What about this post?"), state=post.entry.state if post.entry else None,
        post=cut(one_line(clean(post.item.title)), _LONGEST_POST) or post.item.key,
        origin=presentation.source_title(source_of(post.report, post.item.key) or ""),
        query=post.watch.query, watch=post.watch.name,
        action=f"{request.url.path}?{request.url.query}", done=done,
    )  # fmt: skip
    answer.headers["X-Robots-Tag"] = "noindex, nofollow"
    return answer


async def _shown(
    request: Request, visitor: Visitor, app_context: AppContext, report: Report, path: str = ""
) -> Response:
    return page(
        request, visitor, "share.html",
        title=f"Share: {presentation.heading(report)}",
        id=report.id,
        linked=await app_context.store.has_link(visitor.tenant.id, report.id),
        path=path,
        server=server_of(request),
    )  # fmt: skip
