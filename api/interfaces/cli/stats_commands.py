"""`stats`, `feedback` and `search`: over what is stored; no source is asked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.errors import UsageError, install_command, missing_module
from api.interfaces.cli.output import Data, DataFormat, as_json, closing, langfuse_words, say, tell
from api.interfaces.cli.stored_commands import AnalysisId, kept_of, opened_store

if TYPE_CHECKING:
    from api.features.analyses.store_ports import Feedback, Store
    from api.features.archive.entries import ArchiveAnswer
    from api.interfaces.shared.listing_requests import FeedbackRequest, SearchRequest, StatsRequest

_NOTHING_FOUND = 3


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


async def feedback(
    request: FeedbackRequest,
    report: AnalysisId,
    up: Annotated[bool, typer.Option("--up", help="Rate it as good.")] = False,
    down: Annotated[bool, typer.Option("--down", help="Rate it as bad.")] = False,
    labels: Annotated[bool, typer.Option("--labels", help="Print ratings of items as labels for `eval`.")] = False,
    form: Data = "text",
) -> None:
    """Rate a report, or a finding or item of it; without --up or --down: list the ratings."""
    if up and down:
        raise UsageError("`--up` or `--down`, not both")
    if labels and (up or down):
        raise UsageError("`--labels` prints ratings; it goes with no thumb")
    if not (up or down) and (request.comment or request.finding or request.item_key):
        raise UsageError("say `--up` or `--down` with it")
    from api.bootstrap import load_settings
    from api.bootstrap.storage import feedback_sender
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.feedback import author_of, give

    async with opened_store() as store:
        kept = await kept_of(store, report)
        if labels:
            await _say_labels(store, kept.id)
        elif up or down:
            request.rating = "up" if up else "down"
            send, author = feedback_sender(load_settings()), author_of(LOCAL.id)
            given = await give(store, LOCAL.id, author, kept.id, request.vote(), send)
            if form == "json":
                state = {"status": given.watched, "reason": given.why or None}
                say(as_json({**_plain(given.feedback), "langfuse": state}))
            tell(langfuse_words(given.watched, given.why))
        else:
            _list(await store.feedback(LOCAL.id, kept.id), form)


async def _say_labels(store: Store, report_id: str) -> None:
    import json

    from api.evaluation.labelled_items import corrections
    from api.features.analyses.analysis_job import stored_report
    from api.features.analyses.api_keys import LOCAL

    report = await stored_report(store, LOCAL.id, report_id)
    lines = corrections(report, await store.feedback(LOCAL.id, report_id))
    for line in lines:
        say(json.dumps(line, ensure_ascii=False))
    if not lines:
        tell("nothing was said of its items that is a label")


def _list(opinions: Sequence[Feedback], form: DataFormat) -> None:
    from api.core.text import clean, one_line
    from api.interfaces.cli.terminal_text import shown

    if form == "json":
        say(as_json([_plain(opinion) for opinion in opinions]))
        return
    for opinion in opinions:
        subject = {
            "report": "report",
            "finding": f"finding {opinion.finding}",
            "item": f"item {one_line(clean(opinion.item_key))}",  # unbroken, for `--item`
        }[opinion.subject]
        say(f"{opinion.rating:<5}{subject}  {shown(opinion.comment)}".rstrip())
    if not opinions:
        tell("nothing was said of it yet; `--up` or `--down` does")


def _plain(opinion: Feedback) -> dict[str, Any]:
    from dataclasses import asdict

    given = opinion.created_at
    return asdict(opinion) | {"created_at": given and given.isoformat()}


async def search(request: SearchRequest, form: Data = "text") -> int:
    """Search stored posts, without asking any source; see docs/archive.md.

    Exits with 3 when nothing is found.
    """
    from api import bootstrap
    from api.bootstrap.storage import archive_search, open_store_of
    from api.features.analyses.api_keys import LOCAL

    settings, filters = bootstrap.load_settings(sandbox=request.sandbox), request.filters()
    async with (
        closing(await open_store_of(settings)) as store,
        closing(bootstrap.build(settings)) as product,
    ):
        answer = await archive_search(settings, product, store).search(
            LOCAL.id, request.query, filters, request.k, terse=True
        )
    if form == "json":
        say(as_json(answer.model_dump(mode="json")))
    else:
        _print(answer)
    return 0 if answer.hits else _NOTHING_FOUND


def _print(answer: ArchiveAnswer) -> None:
    from api.core.text import quantity
    from api.interfaces.cli.terminal_text import archive_text, shown

    if answer.guidance:
        tell(answer.guidance)
        return
    say(archive_text(answer, None))
    if failed := answer.retrieval.embedding_failed:
        tell(f"found by words alone: no vector of the question ({failed}); check `LISTENPOST_EMBEDDINGS_URL`")
    elif answer.retrieval.words_only and not answer.retrieval.unread:
        remedy = f"; {install_command('search')} installs them" * bool(missing_module("search"))
        tell(f"found by words alone: there are no word vectors here{remedy}")
    if unread := answer.retrieval.unread:
        entries = quantity(unread, "entry", "entries")
        tell(f"{entries} not compared by meaning yet, since their vectors are still being made or read")
    if not answer.hits:
        tell(f'ask the places: `listenpost analyze "{shown(answer.query)}"`')
