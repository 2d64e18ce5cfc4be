"""The first page: a question, its sources and depth, and its cost; also the state of each source."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap import mode_of
from api.bootstrap.app_context import AppContext
from api.choices import DepthName
from api.core.text import one_line, quantity
from api.errors import LimitReached, MissingExtra, UsageError, missing_module
from api.features.analyses.store_ports import Filters
from api.features.watches.watch import Schedule, runs_a_week
from api.interfaces.http.access import OpenContext
from api.interfaces.pages.forms import QuestionForm, faults, form_fields, texts_of
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Visitor, page
from api.interfaces.pages.templates_rendering import plainly
from api.interfaces.shared.presentation import source_title
from api.interfaces.shared.requests import AnalysisRequest
from api.pipeline.gate.name_matches import namesake
from api.pipeline.question.product_name import search_words
from api.pipeline.question.query_screen import screen_query
from api.services.product import Ask, QuestionOptions, compared_products, question_of
from api.settings import Settings
from api.sources import SOURCES, SourceSpec, check_askable, default_sources

# Stands in for a question that is not written yet: a price hardly depends on its words.
_UNNAMED = "a product"


def price(settings: Settings, asks: Sequence[Ask]) -> str:
    """Price of questions together: `likely 66 requests, 0.040 USD; at most 0.310 USD`.

    Raises:
        UsageError: one of them is for no place that there is.
    """
    return _worded(settings, *_figures(settings, asks))


def prices(settings: Settings, asks: Sequence[Ask]) -> dict[DepthName, str]:
    """Estimated price of all questions together by depth, in words; sends no request. Raises `UsageError`."""
    return {depth: price(settings, [replace(ask, depth=depth) for ask in asks]) for depth in get_args(DepthName)}


def price_of_runs(settings: Settings, ask: Ask, schedule: Schedule) -> str:
    """Price of a watch: each run's likely cost, and the total of a week."""
    runs, (likely, most) = runs_a_week(schedule), _figures(settings, [ask])
    words = f"Each run: {_worded(settings, likely, most)}."
    if mode_of(settings) == "sandbox" or likely["usd"] is None or most["usd"] is None:
        return words
    often = "1 run" if runs == 1 else f"{runs:,.1f} runs".replace(".0 ", " ")
    return f"{words} {often} a week: likely {runs * likely['usd']:.2f} USD, at most {runs * most['usd']:.2f} USD."


def _figures(settings: Settings, asks: Sequence[Ask]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The likely and the highest figures."""
    from api.bootstrap.estimates import estimate, together  # loads with the product

    worded = [ask if screen_query(ask.query).ok else replace(ask, query=_UNNAMED) for ask in asks]
    figures = together([estimate(settings, ask) for ask in worded])
    return figures.likely, figures.most


def _worded(settings: Settings, likely: Mapping[str, Any], most: Mapping[str, Any]) -> str:
    requests = f"likely {quantity(likely['upstream_calls'], 'request')}"
    if mode_of(settings) == "sandbox":
        return "free with sample data"
    if likely["usd"] is None or most["usd"] is None:
        return f"{requests}; nobody knows the price of the model"
    return f"{requests}, {likely['usd']:.3f} USD; at most {most['usd']:.3f} USD"


router = APIRouter(include_in_schema=False, route_class=PageRoute)
EXAMPLES = ("What annoys people about the Oura ring?", "Ember mug battery", "Notion vs Obsidian")
"""Questions of each kind, shown to who has asked none: on one side of it, on a part, on two products."""
SAMPLES = ("plaud.ai", "What annoys people about the Rabbit r1?", "Ember mug")
"""Questions that have an answer in the sample data."""
_DRAWN = ("query", "about", "not_about", "depth", "since", "sources", "exclude", "exclude_authors",
          "exclude_sites")  # fmt: skip
_RECENT = 5
# Places that the sentence above the field names.
_NAMED = 3
# Stands in for a question that is not written yet: a price hardly depends on its words.
_NO_QUESTION = "-"


@dataclass(frozen=True, slots=True)
class SourceSwitch:
    """A source that a question can be put to, and whether it can be asked."""

    name: str
    title: str
    ready: bool
    state: str


def _form_of(fields: Mapping[str, Sequence[str]], usual: tuple[str, ...]) -> QuestionForm:
    """The submitted form; a form without boxes for the sources means the `usual` ones.

    One that has boxes sends an empty source, too, so that this is not taken for none ticked.
    """
    sources = tuple(filter(None, fields["source"])) if "source" in fields else usual
    return QuestionForm(AnalysisRequest, texts_of(AnalysisRequest, fields), sources)


def _question(form: QuestionForm, usual: tuple[str, ...]) -> Ask:
    """The question of a form.

    Raises:
        UsageError: a field, which it names, holds what cannot be asked.
    """
    question_of(QuestionOptions(form.texts["query"]))
    return _choice(form, usual)


def _choice(form: QuestionForm, usual: tuple[str, ...]) -> Ask:
    """The question as submitted, not yet checked, which is enough for a price.

    The usual sources are not named, so that the answer is shared with others.

    Raises:
        UsageError: no source is ticked, or a field, which it names, holds none of ours.
    """
    if not form.sources:
        none_to_tick = "no place is set up here: each says what it lacks"
        words = "choose at least one place" if usual else none_to_tick
        raise UsageError(words, field="sources")
    check_askable(form.sources, tuple(SOURCES))
    sources = () if set(form.sources) == set(usual) else form.sources
    request = form.request(query=form.texts["query"] or _NO_QUESTION, sources=sources)
    ask: Ask = request.ask()
    return ask


@router.get("/")
async def ask_page(request: Request, visitor: Guest, app_context: OpenContext, query: str = "") -> Response:
    """An empty form, or one with a question to repeat."""
    return await _form(request, visitor, app_context, _form_of({"query": [query[:500]]}, usual_places(app_context)))


@router.get("/ask")
async def ask_again() -> Response:
    """Whoever comes back to where a form was sent gets an empty one."""
    return RedirectResponse("/", 303)


@router.get("/ask/prices")
async def ask_prices(request: Request, visitor: Guest, app_context: OpenContext) -> Mapping[DepthName, str]:
    """Price beside each depth while a form is filled in; empty for an invalid form."""
    fields = request.query_params
    form = _form_of({name: fields.getlist(name) for name in fields}, usual_places(app_context))
    return await _prices(app_context, form)


@router.post("/ask")
async def ask(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """Begin an analysis and go to where it can be watched; or say what it would cost.

    A question that names several products begins nothing: it leads to the form of comparisons, filled in.
    """
    usual = usual_places(app_context)
    filled = _form_of(form.fields, usual)
    try:
        if form.text("step") == "estimate":
            _choice(filled, usual)
            return await _form(request, form.visitor, app_context, filled, priced=True)
        question = _question(filled, usual)
        if products := compared_products(question):
            options = {name: text for name, text in filled.texts.items() if text and name != "query"}
            address = urlencode({"product": products, **options, "source": question.sources}, doseq=True)
            return RedirectResponse(f"/compare?{address}", 303)
        hint = namesake_hint(question.query, question.about)
        if hint and form.text("sure") != filled.texts["query"]:
            return await _form(request, form.visitor, app_context, filled, hint=hint)
        analysis_id = await app_context.runner.begin(form.visitor.tenant, question)
    except (UsageError, LimitReached) as error:
        wrong = faults(error, AnalysisRequest.model_fields)
        return await _form(request, form.visitor, app_context, filled, error.status, wrong=wrong)
    return RedirectResponse(f"/analyses/{analysis_id}", 303)


def namesake_hint(query: str, about: str) -> str:
    """Hint that a name alone is also an everyday word; empty when the question has more to search for."""
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
    form: QuestionForm,
    status: int = 200,
    *,
    wrong: Mapping[str, str] | None = None,
    hint: str = "",
    priced: bool = False,
) -> Response:
    costs: Mapping[DepthName, str] = {}
    if priced or app_context.loaded:  # else whoever looks first would wait for libraries
        costs = await _prices(app_context, form)
    compared = compared_products(QuestionOptions(form.texts["query"], about=form.texts["about"]))
    return page(
        request, visitor, "ask.html", status,
        title="What do people say about it?",
        form=form,
        costs={depth: costs.get(depth, "") for depth in get_args(DepthName)},
        fields=form_fields(AnalysisRequest),
        drawn=_DRAWN,
        places=await places_of(app_context, visitor),
        named=_listed(form.sources),
        examples=EXAMPLES,
        samples=SAMPLES,
        recent=await recent_questions(app_context, visitor, _RECENT),
        wrong=wrong or {},
        hint=hint,
        priced=priced,
        compared=compared,
    )  # fmt: skip


def _listed(sources: Sequence[str]) -> str:
    """`Reddit, YouTube and 6 more places`; `the places that you choose` without any."""
    titles = [source_title(name) for name in sources[:_NAMED]]
    more = len(sources) - len(titles)
    rest = [f"{quantity(more, 'more place', 'more places')}"] if more else []
    return " and ".join(filter(None, (", ".join(titles), *rest))) or "the places that you choose"


async def recent_questions(app_context: AppContext, visitor: Visitor, most: int) -> list[str]:
    """The last questions of the visitor, each once, the newest first."""
    newest = await app_context.store.listing(visitor.tenant.id, Filters(), 4 * most)
    return list(dict.fromkeys(analysis.query for analysis in newest.analyses))[:most]


async def _prices(app_context: AppContext, form: QuestionForm) -> Mapping[DepthName, str]:
    """Estimated price of the form's question by depth, with all compared products; empty for an invalid form."""
    try:
        choice = _choice(form, usual_places(app_context))
    except UsageError:
        return {}
    asks = [replace(choice, query=name) for name in compared_products(choice)] or [choice]
    return await asyncio.to_thread(prices, app_context.settings, asks)


def usual_places(app_context: AppContext) -> tuple[str, ...]:
    """Places that a question is put to unless others are named."""
    settings, sample = app_context.settings.sources, app_context.sample
    names = default_sources(settings)
    return tuple(name for name in names if (sample and not missing_module(name)) or SOURCES[name].configured(settings))


async def places_of(app_context: AppContext, visitor: Visitor) -> list[SourceSwitch]:
    """All sources with their missing settings and the searches left by the ledger; sends no request.

    One of several keys does not see what is left: it would show whether another watches the same.
    """
    return list(await asyncio.gather(*(_switch(app_context, spec, not visitor.keyed) for spec in SOURCES.values())))


async def _switch(app_context: AppContext, spec: SourceSpec, counted: bool) -> SourceSwitch:
    if spec.off_note(app_context.settings.sources):
        return SourceSwitch(spec.name, spec.title, ready=True, state="only when ticked")
    if module := missing_module(spec.name):
        state = plainly(str(MissingExtra(spec.name, module)))
        return SourceSwitch(spec.name, spec.title, ready=False, state=state)
    if app_context.sample:
        return SourceSwitch(spec.name, spec.title, ready=True, state="a stand-in answers")
    if missing := spec.missing(app_context.settings.sources):
        state = f"not configured: set {' and '.join(missing)}, see {spec.page}"
        return SourceSwitch(spec.name, spec.title, ready=False, state=state)
    left = await spec.left(app_context.settings.sources, app_context.store) if counted else None
    state = "ready" if left is None else f"ready, {quantity(left, 'search', 'searches')} left today"
    return SourceSwitch(spec.name, spec.title, ready=True, state=state)
