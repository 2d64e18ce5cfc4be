"""A stored analysis asked again: its items judged with corrections or another description."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from api.choices import Aim
from api.core.domain import Question, Sense
from api.errors import NotFound, StoreUnavailable, UsageError
from api.features.analyses.corrections import ChosenSense, CorrectionBook, corrections_of, question_digest
from api.reports.report import Report
from api.services.product import Ask, QuestionOptions

Options = TypeVar("Options", bound=QuestionOptions)


def ask_again(
    report: Report,
    *,
    about: str | None = None,
    not_about: Sequence[str] | None = None,
    aim: Aim | None = None,
    sense: int | None = None,
) -> Ask:
    """The question of a report, to be put to the report's own items.

    What is None stays as the report has it. `sense` is the number of one of its senses, whose words
    become the description and those of the others what it is not; 0 is none of them.

    Raises:
        NotFound: the report has no sense of this number.
        UsageError: a sense and a description are given at once, or the report asked nothing.
    """
    if not report.sources:
        raise UsageError("this report asked no source, so there is nothing to judge again")
    if sense is not None:
        if about is not None or not_about is not None:
            raise UsageError("give a sense or a description, not both", field="sense")
        about, not_about = described(report.senses, sense) if sense else ("", ())
    return Ask(
        report.query,
        report.depth,
        limit=report.limit,
        about=report.about if about is None else about,
        not_about=tuple(report.not_about if not_about is None else not_about),
        aim=aim or report.aim,
        sandbox=report.sample,
        since=report.since or "all",
        exclude=report.exclude,
        exclude_authors=report.exclude_authors,
        exclude_sites=report.exclude_sites,
        again=report.id,
        again_items=len(report.items) + len(report.dropped),
    )


def described(senses: Sequence[Sense], number: int) -> tuple[str, tuple[str, ...]]:
    """A sense as a description, and the others as what the product is not.

    Raises:
        NotFound: there is no sense of this number.
    """
    chosen = [sense.description for sense in senses if sense.number == number]
    if not chosen:
        known = f"there are {len(senses)}" if senses else "its items are one group"
        raise NotFound(f"the report has no sense {number}; {known}")
    return chosen[0], tuple(sense.description for sense in senses if sense.number != number)


async def choose_sense(store: CorrectionBook, tenant: str, report: Report, number: int) -> None:
    """Remember what a name means, for every later question of the tenant that says nothing else.

    The number 0 forgets what was chosen.

    Raises:
        NotFound: the report has no sense of this number.
        StoreUnavailable: the database cannot be used.
    """
    sense = ChosenSense(*described(report.senses, number)) if number else None
    await store.choose_sense(tenant, question_digest(Question(report.query)), sense)


async def ask_again_and_remember(
    store: CorrectionBook,
    tenant: str,
    report: Report,
    *,
    sense: int | None = None,
    **meaning: Any,
) -> Ask:
    """See `ask_again`; a `sense` is also remembered, see `choose_sense`."""
    ask = ask_again(report, sense=sense, **meaning)
    if sense is not None:
        await choose_sense(store, tenant, report, sense)
    return ask


async def with_chosen_sense(store: CorrectionBook, tenant: str, options: Options) -> Options:
    """The options with the sense that the tenant chose for the name, unless they describe the product themselves.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    if options.about or options.not_about:
        return options
    chosen = await store.chosen_sense(tenant, question_digest(Question(options.query)))
    return options if chosen is None else replace(options, about=chosen.about, not_about=chosen.not_about)


async def with_sense_and_corrections(store: CorrectionBook, tenant: str, ask: Ask) -> Ask:
    """The question with the sense that the tenant chose for its name, and the tenant's corrections.

    A question that says what it is about, or brings its own items, keeps its description. What was
    said of an item before a sense was chosen holds for the question in that sense, unless something
    else was said of it there. While the database cannot be read the question stays as it is.
    """
    with suppress(StoreUnavailable):
        chosen = await store.chosen_sense(tenant, question_digest(Question(ask.query)))
        if chosen is not None and not (ask.about or ask.not_about or ask.items or ask.again):
            ask = replace(ask, about=chosen.about, not_about=chosen.not_about, chosen_before=True)
        own = await corrections_of(store, tenant, ask.question)
        if chosen is not None and (ask.about, ask.not_about) == (chosen.about, chosen.not_about):
            corrected = {correction.key for correction in own}
            before = await corrections_of(store, tenant, Question(ask.query, aim=ask.aim))
            own = (*(correction for correction in before if correction.key not in corrected), *own)
        return replace(ask, corrections=own)
    return ask
