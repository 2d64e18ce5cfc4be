"""The first screen: a question, where and how deep it is asked, and what that costs.

What questions would cost, in the words of the screens; nobody is asked, nothing is begun.

Which places can be asked: what the settings say, and, on a button, what each answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap import mode_of
from api.bootstrap.app_context import AppContext
from api.choices import DepthName, Window
from api.core.text import one_line, quantity
from api.errors import LimitReached, UsageError
from api.features.analyses.store_ports import StoredAnalysis
from api.features.watches.watch import Schedule, runs_a_week
from api.interfaces.http.access import OpenContext
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Visitor, page
from api.interfaces.pages.templates_rendering import faults, validated
from api.interfaces.shared.requests import QuestionRequest
from api.interfaces.shared.upstream_status import Upstream, probed
from api.pipeline.gate.name_matches import namesake
from api.pipeline.question.product_name import search_words
from api.pipeline.question.query_screen import screen_query
from api.services.product import Ask, question_of
from api.settings import Settings
from api.sources import SOURCES, SourceSpec, check_askable, default_sources

# Stands in for a question that is not written yet: a price hardly depends on its words.
_UNNAMED = "a product"


def price(settings: Settings, asks: Sequence[Ask]) -> str:
    """Of questions together: `likely 66 requests, 0.040 USD; at most 0.310 USD`.

    Raises:
        UsageError: one of them is for no place that there is.
    """
    return _worded(settings, *_figures(settings, asks))


def prices(settings: Settings, ask: Ask) -> dict[DepthName, str]:
    """Of one question, by how deep it is asked."""
    at_depth = partial(replace, ask)
    return {depth: price(settings, [at_depth(depth=depth)]) for depth in get_args(DepthName)}


def price_of_runs(settings: Settings, ask: Ask, schedule: Schedule) -> str:
    """Of a watch: what each run is likely to take, and what that makes in a week."""
    runs, (likely, most) = runs_a_week(schedule), _figures(settings, [ask])
    words = f"Each run: {_worded(settings, likely, most)}."
    if mode_of(settings) == "sandbox" or likely["usd"] is None or most["usd"] is None:
        return words
    often = "1 run" if runs == 1 else f"{runs:,.1f} runs".replace(".0 ", " ")
    return (
        f"{words} {often} a week: likely {runs * likely['usd']:.2f} USD, "
        f"at most {runs * most['usd']:.2f} USD."
    )


def _figures(
    settings: Settings, asks: Sequence[Ask]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What is likely, and the bound."""
    from api.bootstrap.estimates import estimate, together  # loads with the product

    worded = [ask if screen_query(ask.query).ok else replace(ask, query=_UNNAMED) for ask in asks]
    figures = together([estimate(settings, ask) for ask in worded])
    return figures.likely, figures.most


def _worded(settings: Settings, likely: Mapping[str, Any], most: Mapping[str, Any]) -> str:
    requests = f"likely {quantity(likely['upstream_calls'], 'request')}"
    if mode_of(settings) == "sandbox":
        return f"{requests} to the sample world, nothing is spent"
    if likely["usd"] is None or most["usd"] is None:
        return f"{requests}; nobody knows the price of the model"
    return f"{requests}, {likely['usd']:.3f} USD; at most {most['usd']:.3f} USD"


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
async def ask_page(
    request: Request, visitor: Guest, app_context: OpenContext, query: str = ""
) -> Response:
    """An empty form, or one with a question to repeat."""
    return await _form(
        request, visitor, app_context, AskForm(query[:500], sources=_usual(app_context))
    )


@router.get("/ask")
async def ask_again() -> Response:
    """Whoever comes back to where a form was sent gets an empty one."""
    return RedirectResponse("/", 303)


@router.get("/ask/prices")
async def ask_prices(
    request: Request, visitor: Guest, app_context: OpenContext
) -> Mapping[DepthName, str]:
    """What stands beside each depth while a form is filled in; of what cannot be asked nothing."""
    fields = request.query_params
    form = AskForm.of({name: fields.getlist(name) for name in fields}, _usual(app_context))
    return await _prices(app_context, form)


@router.post("/ask")
async def ask(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """Begin an analysis and go to where it can be watched; or say what it would cost."""
    usual = _usual(app_context)
    filled = AskForm.of(form.fields, usual)
    try:
        if form.text("step") == "estimate":
            filled.choice(usual)
            return await _form(request, form.visitor, app_context, filled, priced=True)
        question = filled.ask(usual)
        hint = namesake_hint(question.query, question.about)
        if hint and form.text("sure") != filled.query:
            return await _form(request, form.visitor, app_context, filled, hint=hint)
        task = await app_context.runner.join(form.visitor.tenant, question, detached=True)
    except (UsageError, LimitReached) as error:
        wrong = faults(error, FIELDS)
        return await _form(request, form.visitor, app_context, filled, error.status, wrong=wrong)
    if not isinstance(task, StoredAnalysis):
        app_context.runner.leave(task)
    return RedirectResponse(f"/analyses/{task.id}", 303)


def namesake_hint(query: str, about: str) -> str:
    """That a name alone is an everyday word, too; "" of a question that holds more to look for."""
    name = namesake(query, about)
    if not name or name != one_line(search_words(query)):
        return ""
    return (
        f"“{name}” is also an everyday word, so posts about other things will come. Say what "
        "it is in the field above, as “password manager”, or ask anyway."
    )


async def _form(
    request: Request,
    visitor: Visitor,
    app_context: AppContext,
    form: AskForm,
    status: int = 200,
    *,
    wrong: Mapping[str, str] | None = None,
    hint: str = "",
    priced: bool = False,
) -> Response:
    costs: Mapping[DepthName, str] = {}
    if priced or app_context.loaded:  # else whoever looks first would wait for libraries
        costs = await _prices(app_context, form)
    return page(
        request, visitor, "ask.html", status,
        title="What do people say about it?",
        form=form,
        costs={depth: costs.get(depth, "") for depth in get_args(DepthName)},
        windows=list(WINDOWS.items()),
        places=await places_of(app_context),
        samples=SAMPLES,
        wrong=wrong or {},
        hint=hint,
        priced=priced,
    )  # fmt: skip


async def _prices(app_context: AppContext, form: AskForm) -> Mapping[DepthName, str]:
    """By how deep it is asked; none of what cannot be asked."""
    try:
        choice = form.choice(_usual(app_context))
    except UsageError:
        return {}
    return await asyncio.to_thread(prices, app_context.settings, choice)


def _usual(app_context: AppContext) -> tuple[str, ...]:
    """Places that a question is put to unless others are named."""
    names = default_sources(app_context.settings.sources)
    return tuple(name for name in names if app_context.sample or _configured(app_context, name))


def _configured(app_context: AppContext, name: str) -> bool:
    return SOURCES[name].configured(app_context.settings.sources)


async def places_of(app_context: AppContext) -> list[PlaceSwitch]:
    """Every place: what it lacks by the settings, what is left by the ledger; nobody is asked."""
    return list(await asyncio.gather(*(_switch(app_context, spec) for spec in SOURCES.values())))


async def _switch(app_context: AppContext, spec: SourceSpec) -> PlaceSwitch:
    if app_context.sample:
        return PlaceSwitch(spec.name, spec.title, ready=True, state="a stand-in answers")
    if missing := spec.missing(app_context.settings.sources):
        state = f"not configured: set {' and '.join(missing)}, see {spec.page}"
        return PlaceSwitch(spec.name, spec.title, ready=False, state=state)
    left = await spec.left(app_context.settings.sources, app_context.store)
    state = "ready" if left is None else f"ready, {quantity(left, 'search', 'searches')} left today"
    return PlaceSwitch(spec.name, spec.title, ready=True, state=state)


sources_router = APIRouter(prefix="/sources", include_in_schema=False, route_class=PageRoute)


@sources_router.get("")
async def sources_page(request: Request, visitor: Guest, app_context: OpenContext) -> Response:
    """What each place needs; nobody is asked."""
    return await _shown(request, visitor, app_context, ())


@sources_router.post("")
async def probe(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """What each place, the model and Langfuse answer to the cheapest question there is."""

    async def work() -> Sequence[Upstream]:
        return await probed(app_context.settings, await app_context.product())

    answers = await unless_gone(request.receive, work())
    if answers is None:
        return Response(status_code=GONE)
    return await _shown(request, form.visitor, app_context, answers)


async def _shown(
    request: Request, visitor: Visitor, app_context: AppContext, answers: Sequence[Upstream]
) -> Response:
    return page(
        request, visitor, "sources.html",
        title="Sources", places=await places_of(app_context), answers=answers,
    )  # fmt: skip
