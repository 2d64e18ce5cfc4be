"""`compare`: several products side by side, asked alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.errors import UsageError
from api.faces.cli.choices import (
    Depth,
    DepthChoice,
    Estimate,
    Limit,
    Output,
    ReportAs,
    Sample,
    Since,
    Sources,
    Verbose,
    WindowChoice,
)
from api.faces.cli.printing import Handover, ReportFormat, check_output, deliver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from api.services.listening import Ask


def compare(
    products: Annotated[list[str], typer.Argument(help="Two to five products.")],
    about: Annotated[
        list[str] | None,
        typer.Option(help="What it is, once for each product in their order, or not at all."),
    ] = None,
    depth: Depth = DepthChoice.standard,
    source: Sources = None,
    since: Since = WindowChoice.all,
    limit: Limit = None,
    form: ReportAs = ReportFormat.text,
    verbose: Verbose = False,
    output: Output = None,
    estimate: Estimate = False,
    sandbox: Sample = False,
) -> NoReturn:
    """Ask the same about each product, and set them side by side; see docs/compare.md."""
    from api.services.comparing.asking import asks_of
    from api.services.listening import Ask

    abouts = about or [""] * len(products)
    if len(abouts) != len(products):
        raise UsageError(f"`--about` came {len(abouts)} times for {len(products)} products")
    like = Ask("", depth.value, tuple(source or ()), since.value, limit, sandbox=sandbox)
    asks = asks_of(list(zip(products, abouts, strict=True)), like)
    handover = Handover(form, output=output)
    raise typer.Exit(_compare(asks, handover, verbose=verbose, estimate=estimate))


def _compare(asks: Sequence[Ask], handover: Handover, *, verbose: bool, estimate: bool) -> int:
    """Compare, print and keep; see the module `main` for exit codes."""
    import asyncio

    from api import wiring
    from api.faces.cli.commands import (
        ANSWERED,
        INSUFFICIENT,
        NOT_ASKED,
        built,
        keep,
        say_estimate,
    )
    from api.faces.cli.live import Live
    from api.faces.cli.running import run
    from api.services.comparing.asking import FEWEST, analyze_each
    from api.services.comparing.composing import comparison_of
    from api.services.listening import analyze
    from api.services.reporting.report import Report
    from api.sources import check_askable

    like = asks[0]
    settings = wiring.load_settings(sandbox=like.sandbox)
    check_output(handover.output)
    if estimate:
        from api.wiring.estimating import estimate as estimated
        from api.wiring.estimating import together

        check_askable(like.sources)
        sample = wiring.mode_of(settings) == "sandbox"
        total = together([estimated(settings, ask) for ask in asks])
        return say_estimate(total, handover, sample=sample)

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with built(settings, None, like.sources) as product:
                product.scope(like)
                with Live(verbose=verbose, sample=product.sample) as live:
                    answers = await analyze_each(
                        lambda ask, listener: analyze(product, ask, listener), asks, live.listen
                    )
                if verbose:
                    live.say_requests(product.requests())
                reports = [answer for answer in answers if isinstance(answer, Report)]
                keeping.append(asyncio.create_task(keep(settings, *reports)))
                comparison = comparison_of(asks, answers, product.places)
                deliver(comparison, handover)
        finally:  # stored while the last traces are handed over
            await asyncio.gather(*keeping)
        if len(comparison.comparable) >= FEWEST:
            return ANSWERED
        return INSUFFICIENT if comparison.answered else NOT_ASKED

    return run(work)
