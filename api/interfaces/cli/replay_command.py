"""`replay`: a stored report beside its items judged again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from api.core.text import quantity
from api.errors import UsageError
from api.interfaces.cli.analyze_commands import EstimateOnly, say_estimate
from api.interfaces.cli.command_product import built
from api.interfaces.cli.output import Data, OutputOptions, as_json, say, tell
from api.interfaces.cli.report_commands import AnalysisId, kept_of, opened_store

if TYPE_CHECKING:
    from api.interfaces.shared.listing_requests import ReplayRequest
    from api.reports.replay import Replay


async def replay(
    request: ReplayRequest, report: AnalysisId, form: Data = "text", estimate: EstimateOnly = False
) -> None:
    """Judge the items of a stored report again, and print which items and claims differ.

    No source is asked, and nothing is stored: `analyze --again` makes a new report.
    """
    import asyncio

    from api import bootstrap
    from api.bootstrap.estimates import replay_estimate
    from api.bootstrap.storage import replaying, with_stored_sense_and_corrections
    from api.features.analyses.rejudging import ask_again
    from api.reports.replay import replay_of
    from api.services import product as product_service
    from api.sources.own_items import NAME, OwnItems

    async with opened_store() as store:
        stored = await kept_of(store, report)
    before = stored.report
    if before is None:
        raise UsageError(stored.why_none)
    ask, settings = ask_again(before, **request.meaning), bootstrap.load_settings(sandbox=before.sample)
    if estimate:
        figures = await asyncio.to_thread(replay_estimate, settings, ask, request.judge, request.model)
        say_estimate(figures, OutputOptions(form), settings)
        return
    own = OwnItems(()) if NAME in before.sources else None
    async with built(settings, own, ()) as product:
        over = replaying(product, before, request.judge, request.model)
        tell(f"judging {quantity(ask.again_items, 'post')} again …")
        after = await product_service.analyze(over, await with_stored_sense_and_corrections(settings, ask))
    answer = await asyncio.to_thread(replay_of, before, after)
    say(as_json(answer.model_dump(mode="json")) if form == "json" else _text(answer))


def _text(answer: Replay) -> str:
    from api.interfaces.cli.terminal_text import shown, table_lines, wrapped
    from api.interfaces.shared import presentation, replay_text

    columns = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120))
    lines = wrapped(f"“{answer.query}”, judged again", columns)
    lines += wrapped(f"{replay_text.summary(answer)} {' '.join(replay_text.notes(answer))}", columns)
    rows = [["", "before", "now"], *([shown(cell) for cell in row] for row in replay_text.table(answer))]
    lines += ["", *table_lines(rows)]
    for heading, items in (("Newly kept", answer.newly_kept), ("Newly dropped", answer.newly_dropped)):
        lines += ["", heading, "-" * len(heading)] * bool(items)
        for item in items:
            lines += wrapped(f"{replay_text.title(item)} ({replay_text.facts(item)})", columns, "- ")
            lines += wrapped(f"“{item.passage}”" if item.passage else "", columns, "  ")
            lines += wrapped(presentation.SAMPLE if answer.sample else item.url, columns, "  ")
    for heading, claims in replay_text.claims(answer):
        lines += ["", heading, "-" * len(heading)]
        for claim in claims:
            lines += wrapped(f"{claim.text} ({replay_text.counts(claim)})", columns, "- ")
    return "\n".join([*lines, "", *wrapped(presentation.spent(answer), columns)])
