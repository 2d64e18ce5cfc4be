"""The first screen: a question, where and how deep it is asked, and what that costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import LimitReached, UsageError
from api.faces.web.access import Opened
from api.faces.web.pages.access import Filled, Guest
from api.faces.web.pages.fields import faults, validated
from api.faces.web.pages.pricing import prices
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.faces.web.schemas import QuestionRequest
from api.services.gate.everyday import namesake
from api.services.keeping.storage import Kept
from api.services.listening import Ask
from api.services.question.accepting import question_of
from api.services.question.naming import sought
from api.services.text import many, one_line
from api.settings import DepthName, Window
from api.sources import SOURCES, check_askable, chosen
from api.sources.spec import SourceSpec
from api.wiring.serving import House

router = APIRouter(include_in_schema=False, route_class=PageRoute)
SAMPLES = ("plaud.ai", "What annoys people about the Rabbit r1?", "Ember mug")
"""Questions that have an answer in the sample world."""
WINDOWS: dict[Window, str] = {
    "all": "any time", "year": "the last year", "month": "the last month",
    "week": "the last week", "day": "the last day",
}  # fmt: skip
"""How far back a place is asked."""
FIELDS = ("query", "about", "depth", "since", "sources")
"""Beside which a message can stand."""
_NO_QUESTION = "-"


@dataclass(frozen=True, slots=True)
class PlaceSwitch:
    """A place that a question can be put to, and what stands in the way."""

    name: str
    title: str
    ready: bool
    state: str


@dataclass(frozen=True, slots=True)
class AskForm:
    """What stands in the fields, whether or not it can be asked."""

    query: str = ""
    about: str = ""
    depth: str = "standard"
    since: str = "all"
    sources: tuple[str, ...] = ()
    """Places that are ticked."""

    @classmethod
    def of(cls, fields: Mapping[str, Sequence[str]], usual: tuple[str, ...]) -> AskForm:
        """As it was sent; a form without boxes for the places means the `usual` ones.

        One that has boxes sends an empty place, too, so that this is not taken for none ticked.
        """
        texts = {name: fields[name][0] for name in FIELDS[:-1] if any(fields.get(name, ()))}
        sources = tuple(filter(None, fields["source"])) if "source" in fields else usual
        return cls(sources=sources, **texts)

    def ask(self, usual: tuple[str, ...]) -> Ask:
        """The question; the usual places are not named, so that the answer is shared with others.

        Raises:
            UsageError: a field, which it names, holds what cannot be asked.
        """
        question_of(self.query, self.about)
        return self.choice(usual)

    def choice(self, usual: tuple[str, ...]) -> Ask:
        """The same with a question that nobody has looked at: enough for a price.

        Raises:
            UsageError: no place is ticked, or a field, which it names, holds none of ours.
        """
        if not self.sources:
            none_to_tick = "no place is set up here: each says what it lacks"
            words = "choose at least one place" if usual else none_to_tick
            raise UsageError(words, field="sources")
        check_askable(self.sources, tuple(SOURCES))
        fields = {
            "query": self.query or _NO_QUESTION,
            "about": self.about,
            "depth": self.depth,
            "since": self.since,
            "sources": () if set(self.sources) == set(usual) else self.sources,
        }
        return validated(QuestionRequest, fields).ask()


@router.get("/")
async def ask_page(request: Request, visitor: Guest, house: Opened, query: str = "") -> Response:
    """An empty form, or one with a question to repeat."""
    return await _form(request, visitor, house, AskForm(query[:500], sources=_usual(house)))


@router.get("/ask")
async def ask_again() -> Response:
    """Whoever comes back to where a form was sent gets an empty one."""
    return RedirectResponse("/", 303)


@router.get("/ask/prices")
async def ask_prices(request: Request, visitor: Guest, house: Opened) -> Mapping[DepthName, str]:
    """What stands beside each depth while a form is filled in; of what cannot be asked nothing."""
    fields = request.query_params
    form = AskForm.of({name: fields.getlist(name) for name in fields}, _usual(house))
    return await _prices(house, form)


@router.post("/ask")
async def ask(request: Request, form: Filled, house: Opened) -> Response:
    """Begin an analysis and go to where it can be watched; or say what it would cost."""
    usual = _usual(house)
    filled = AskForm.of(form.fields, usual)
    try:
        if form.text("step") == "estimate":
            filled.choice(usual)
            return await _form(request, form.visitor, house, filled, priced=True)
        question = filled.ask(usual)
        hint = namesake_hint(question.query, question.about)
        if hint and form.text("sure") != filled.query:
            return await _form(request, form.visitor, house, filled, hint=hint)
        flight = await house.runner.join(form.visitor.tenant, question, detached=True)
    except (UsageError, LimitReached) as error:
        wrong = faults(error, FIELDS)
        return await _form(request, form.visitor, house, filled, error.status, wrong=wrong)
    if not isinstance(flight, Kept):
        house.runner.leave(flight)
    return RedirectResponse(f"/analyses/{flight.id}", 303)


def namesake_hint(query: str, about: str) -> str:
    """That a name alone is an everyday word, too; "" of a question that holds more to look for."""
    name = namesake(query, about)
    if not name or name != one_line(sought(query)):
        return ""
    return (
        f"“{name}” is also an everyday word, so posts about other things will come. Say what "
        "it is in the field above, as “password manager”, or ask anyway."
    )


async def _form(
    request: Request,
    visitor: Visitor,
    house: House,
    form: AskForm,
    status: int = 200,
    *,
    wrong: Mapping[str, str] | None = None,
    hint: str = "",
    priced: bool = False,
) -> Response:
    costs: Mapping[DepthName, str] = {}
    if priced or house.loaded:  # else whoever looks first would wait for libraries
        costs = await _prices(house, form)
    return page(
        request, visitor, "ask.html", status,
        title="What do people say about it?",
        form=form,
        costs={depth: costs.get(depth, "") for depth in get_args(DepthName)},
        windows=list(WINDOWS.items()),
        places=await places_of(house),
        samples=SAMPLES,
        wrong=wrong or {},
        hint=hint,
        priced=priced,
    )  # fmt: skip


async def _prices(house: House, form: AskForm) -> Mapping[DepthName, str]:
    """By how deep it is asked; none of what cannot be asked."""
    try:
        choice = form.choice(_usual(house))
    except UsageError:
        return {}
    return await asyncio.to_thread(prices, house.settings, choice)


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
