"""`stats`: statistics of stored analyses, without asking a source."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from api.interfaces.cli.output import Data, as_json, say
from api.interfaces.cli.report_commands import opened_store

if TYPE_CHECKING:
    from api.interfaces.shared.listing_requests import StatsRequest


async def stats(request: StatsRequest, form: Data = "text") -> None:
    """Print statistics of stored analyses: yields, outcomes, decisions, cost; see docs/stats.md."""
    from datetime import UTC, datetime

    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.statistics import since_of, stats_of

    now = datetime.now(UTC)
    since = since_of(request.since, now)
    async with opened_store() as store:
        figures = await stats_of(store, LOCAL.id, since, now, with_samples=request.sample)
    if form == "json":
        say(as_json(figures.model_dump(mode="json")))
    else:
        from api.interfaces.cli.terminal_text import stats_text

        say(stats_text(figures, shutil.get_terminal_size((100, 24)).columns))
