"""The first screen: a question, where and how deep it is asked, and what that costs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.faces.web.access import Opened
from api.faces.web.pages.access import Filled, Guest, Submission, Visitor
from api.faces.web.pages.fields import validated
from api.faces.web.pages.screen import PageRoute, page
from api.faces.web.schemas import QuestionRequest
from api.services.gate.everyday import namesake
from api.services.keeping.storage import Kept
from api.services.listening import Ask
from api.services.question.query import screen
from api.services.text import many
from api.settings import DepthName, Settings, Window
from api.sources import SOURCES, chosen
from api.sources.spec import SourceSpec
from api.wiring import mode_of
from api.wiring.serving import House

router = APIRouter(include_in_schema=False, route_class=PageRoute)
SAMPLES = ("plaud.ai", "What annoys people about the Oura ring?", "Ember mug")
"""Questions that have an answer in the sample world."""
WINDOWS: dict[Window, str] = {
    "all": "any time", "year": "the last year", "month": "the last month",
    "week": "the last week", "day": "the last day",
}  # fmt: skip
"""How far back a place is asked."""


@dataclass(frozen=True, slots=True)
class PlaceSwitch:
    """A place that a question can be put to, and what stands in the way."""

    name: str
    title: str
    ready: bool
    state: str


@dataclass(frozen=True, slots=True)
class AskForm:
    """What stands in the fields."""

    query: str = ""
    about: str = ""
    depth: DepthName = "standard"
    since: Window = "all"
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, submission: Submission, usual: tuple[str, ...]) -> AskForm:
        """As it was sent; `usual` places where none is named.

        Raises:
            UsageError: a field holds what none of ours offers.
        """
        fields: dict[str, Any] = {
            "query": submission.text("query"),
            "about": submission.text("about"),
            "depth": submission.text("depth", "standard"),
            "since": submission.text("since", "all"),
            "sources": submission.fields.get("source", []),
        }
        body = validated(QuestionRequest, fields)
        sources = tuple(body.sources) or usual
        return cls(body.query, body.about, body.depth, body.since, sources)

    def ask(self, usual: tuple[str, ...]) -> Ask:
        """The question; the usual places are not named, so that the answer is shared with others.

        Raises:
            UsageError: it makes no sense.
        """
        sources = () if self.sources == usual else self.sources
        return Ask(self.query, self.depth, sources, self.since, None, self.about)


@router.get("/")
async def ask_page(request: Request, visitor: Guest, house: Opened, query: str = "") -> Response:
    """An empty form, or one with a question to repeat."""
    return await _form(request, visitor, house, AskForm(query[:500], sources=_usual(house)))


@router.get("/ask")
async def ask_again() -> Response:
    """Whoever comes back to where a form was sent gets an empty one."""
    return RedirectResponse("/", 303)


@router.post("/ask")
async def ask(request: Request, form: Filled, house: Opened) -> Response:
    """Begin an analysis and go to where it can be watched; or say what it would cost."""
    usual = _usual(house)
    filled = AskForm.of(form, usual)
    screened = screen(filled.query)
    if not screened.ok:
        return await _form(request, form.visitor, house, filled, 422, wrong=screened.guidance)
    question = filled.ask(usual)
    if form.text("step") == "estimate":
        words = await asyncio.to_thread(_cost, house.settings, question)
        return await _form(request, form.visitor, house, filled, estimate=words)
    name = namesake(filled.query, filled.about)
    if name and form.text("sure") != filled.query:
        hint = (
            f"“{name}” is also an everyday word, so posts about other things will come. Say what "
            "it is in the field above, as “password manager”, or ask anyway."
        )
        return await _form(request, form.visitor, house, filled, hint=hint)
    flight = await house.runner.join(form.visitor.tenant, question, detached=True)
    if not isinstance(flight, Kept):
        house.runner.leave(flight)
    return RedirectResponse(f"/analyses/{flight.id}", 303)


async def _form(
    request: Request,
    visitor: Visitor,
    house: House,
    form: AskForm,
    status: int = 200,
    **words: str,
) -> Response:
    costs = dict.fromkeys(get_args(DepthName), "")
    if house.loaded:  # else whoever looks first would wait for libraries
        usual = _usual(house)
        for depth in costs:
            question = Ask(form.query or "a product", depth, usual)
            costs[depth] = await asyncio.to_thread(_cost, house.settings, question)
    return page(
        request, visitor, "ask.html", status,
        title="What do people say about it?",
        form=form,
        depths=list(costs.items()),
        windows=list(WINDOWS.items()),
        places=await places_of(house),
        samples=SAMPLES,
        **{"wrong": "", "hint": "", "estimate": "", **words},
    )  # fmt: skip


def _usual(house: House) -> tuple[str, ...]:
    """Places that a question is put to unless others are named."""
    names = chosen(house.settings.sources)
    return tuple(name for name in names if house.sample or _configured(house, name))


def _configured(house: House, name: str) -> bool:
    return SOURCES[name].configured(house.settings.sources)


async def places_of(house: House) -> list[PlaceSwitch]:
    """Every place: what it lacks by the settings, what is left by the ledger; nobody is asked."""
    return list(await asyncio.gather(*(_switch(house, spec) for spec in SOURCES.values())))


async def _switch(house: House, spec: SourceSpec) -> PlaceSwitch:
    if house.sample:
        return PlaceSwitch(spec.name, spec.title, ready=True, state="a stand-in answers")
    if missing := spec.missing(house.settings.sources):
        state = f"not configured: set {' and '.join(missing)}, see {spec.page}"
        return PlaceSwitch(spec.name, spec.title, ready=False, state=state)
    left = await spec.left(house.settings.sources, house.store)
    state = "ready" if left is None else f"ready, {many(left, 'search', 'searches')} left today"
    return PlaceSwitch(spec.name, spec.title, ready=True, state=state)


def _cost(settings: Settings, question: Ask) -> str:
    """What a question takes, in a phrase."""
    from api.wiring.estimating import estimate  # loads with the product

    figures = estimate(settings, question)
    requests = f"likely {figures.likely['upstream_calls']} requests"
    if mode_of(settings) == "sandbox":
        return f"{requests} to the sample world, nothing is spent"
    likely, most = figures.likely["usd"], figures.most["usd"]
    if likely is None or most is None:
        return f"{requests}; nobody knows the price of the model"
    return f"{requests}, {likely:.3f} USD; at most {most:.3f} USD"
