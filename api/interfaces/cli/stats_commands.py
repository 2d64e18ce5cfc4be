"""`stats` and `feedback`: how the answers were that are kept, and what people think of them.

Statistics as text for a terminal.

`search`: what is stored about a question, without asking anybody.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from api.errors import UsageError
from api.interfaces.cli.output import as_json, say, tell
from api.interfaces.cli.stored_commands import Id, kept_of, with_store

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys
    from api.features.analyses.store_ports import Feedback, Store
    from api.features.archive.entries import ArchiveAnswer


class OutputFormat(StrEnum):
    """How figures and feedback are printed."""

    text = "text"
    json = "json"


Back = Annotated[
    str, typer.Option(help="Days or weeks back (30d, 12w), a date or time (UTC), or all.")
]
StatsFormat = Annotated[OutputFormat, typer.Option("--format", help="How to print it.")]


def stats(
    since: Back = "30d",
    sample: Annotated[bool, typer.Option("--sample", help="Also count sample data.")] = False,
    form: StatsFormat = OutputFormat.text,
) -> None:
    """Figures over the analyses that are kept: yields, outcomes, decisions, cost; docs/stats.md."""

    async def work(store: Store, keys: Keys) -> None:
        from datetime import UTC, datetime

        from api.features.analyses.api_keys import LOCAL
        from api.features.analyses.statistics import since_of, stats_of
        from api.interfaces.cli.terminal_text import stats_text

        now = datetime.now(UTC)
        figures = await stats_of(store, LOCAL.id, since_of(since, now), now, with_samples=sample)
        if form is OutputFormat.json:
            say(as_json(figures.model_dump(mode="json")))
        else:
            say(stats_text(figures, shutil.get_terminal_size((100, 24)).columns))

    with_store(work)


def feedback(
    report: Id,
    up: Annotated[bool, typer.Option("--up", help="A thumb up.")] = False,
    down: Annotated[bool, typer.Option("--down", help="A thumb down.")] = False,
    finding: Annotated[
        int | None, typer.Option(help="Of this finding, by its number from 1.", min=1)
    ] = None,
    item: Annotated[str | None, typer.Option(help="Of this item, by its key.")] = None,
    comment: Annotated[str, typer.Option(help="In your words.")] = "",
    labels: Annotated[
        bool, typer.Option("--labels", help="Print what was said of items as labels for `eval`.")
    ] = False,
    form: StatsFormat = OutputFormat.text,
) -> None:
    """Say what you think of a report, a finding or an item; without a thumb: list what was said."""
    if up and down:
        raise UsageError("`--up` or `--down`, not both")
    if labels and (up or down):
        raise UsageError("`--labels` prints what was said; it goes with no thumb")
    if not (up or down) and (comment or finding or item):
        raise UsageError("say `--up` or `--down` with it")

    async def work(store: Store, keys: Keys) -> None:
        from api.bootstrap import load_settings
        from api.bootstrap.storage import feedback_sender
        from api.features.analyses.api_keys import LOCAL
        from api.features.analyses.feedback import Vote, author_of, give

        kept = await kept_of(store, report)
        if labels:
            await _say_labels(store, kept.id)
            return
        if not (up or down):
            _list(await store.feedback(LOCAL.id, kept.id), form)
            return
        opinion = Vote("up" if up else "down", comment, finding, item)
        send, author = feedback_sender(load_settings()), author_of(LOCAL.id)
        given = await give(store, LOCAL.id, author, kept.id, opinion, send)
        if form is OutputFormat.json:
            state = {"status": given.watched, "reason": given.why or None}
            say(as_json({**_plain(given.feedback), "langfuse": state}))
        if given.watched == "failed":
            tell(f"listenpost: warning: it is kept here, but not in Langfuse: {given.why}")
        else:
            tell("kept, and sent to Langfuse" if given.watched == "sent" else "kept")

    with_store(work)


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


def _list(opinions: Sequence[Feedback], form: OutputFormat) -> None:
    from api.core.text import clean, one_line
    from api.interfaces.cli.terminal_text import shown

    if form is OutputFormat.json:
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


_TOO_LITTLE = 3


def search(
    query: Annotated[str, typer.Argument(help="A word, or a question as you would say it.")],
    since: Back = "all",
    source: Annotated[str | None, typer.Option(help="Only what this source holds.")] = None,
    about: Annotated[str, typer.Option(help="Only what was heard on this product.")] = "",
    language: Annotated[
        str | None, typer.Option(help="Only what may be in this language: its code, de.")
    ] = None,
    kept: Annotated[
        bool | None,
        typer.Option("--kept/--dropped", help="Only what a report kept, or only what was dropped."),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Hits at most.", min=1, max=50)] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Search what was heard in the sample world.")
    ] = False,
    form: StatsFormat = OutputFormat.text,
) -> NoReturn:
    """Search what is stored; nothing is fetched and nothing is asked again; docs/archive.md."""
    from datetime import UTC, datetime

    from api import bootstrap  # with the database's libraries
    from api.bootstrap.storage import archive_search, open_store_of
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.statistics import since_of
    from api.features.archive.entries import filters_of
    from api.interfaces.cli.output import closing, run
    from api.sources import ITEM_SOURCES

    settings = bootstrap.load_settings(sandbox=sandbox)
    moment = since_of(since, datetime.now(UTC))
    filters = filters_of(source, moment, about, ITEM_SOURCES, language, kept)

    async def work() -> int:
        async with (
            closing(await open_store_of(settings)) as store,
            closing(bootstrap.build(settings)) as product,
        ):
            answer = await archive_search(settings, product, store).search(
                LOCAL.id, query, filters, k, terse=True
            )
        if form is OutputFormat.json:
            say(as_json(answer.model_dump(mode="json")))
        else:
            _print(answer)
        return 0 if answer.hits else _TOO_LITTLE

    raise typer.Exit(run(work))


def _print(answer: ArchiveAnswer) -> None:
    from api.core.text import quantity
    from api.interfaces.cli.terminal_text import archive_text, shown

    if answer.guidance:
        tell(answer.guidance)
        return
    say(archive_text(answer, None))
    if answer.retrieval.words_only:
        tell("found by words alone: there are no word vectors here")
    if unread := answer.retrieval.unread:
        entries = quantity(unread, "entry", "entries")
        tell(f"{entries} not compared by meaning yet, since they are still being read; ask again")
    if not answer.hits:
        tell(f'ask the places: `listenpost analyze "{shown(answer.query)}"`')
