"""`stats` and `feedback`: how the answers were that are kept, and what people think of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.errors import UsageError
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.stored import Id, kept_of, with_store

if TYPE_CHECKING:
    from api.services.keeping.keys import Keys
    from api.services.keeping.storage import Feedback, Store


class Printed(StrEnum):
    """How figures and feedback are printed."""

    text = "text"
    json = "json"


Back = Annotated[
    str, typer.Option(help="Days or weeks back (30d, 12w), a date or time (UTC), or all.")
]
As = Annotated[Printed, typer.Option("--format", help="How to print it.")]


def stats(
    since: Back = "30d",
    sample: Annotated[bool, typer.Option("--sample", help="Also count sample data.")] = False,
    form: As = Printed.text,
) -> None:
    """Figures over the analyses that are kept: yields, outcomes, decisions, cost; docs/stats.md."""

    async def work(store: Store, keys: Keys) -> None:
        from datetime import UTC, datetime

        from api.faces.cli.stats_text import stats_text
        from api.services.keeping.keys import LOCAL
        from api.services.keeping.summing import since_of, stats_of

        now = datetime.now(UTC)
        figures = await stats_of(store, LOCAL.id, since_of(since, now), now, with_samples=sample)
        if form is Printed.json:
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
    form: As = Printed.text,
) -> None:
    """Say what you think of a report, a finding or an item; without a thumb: list what was said."""
    if up and down:
        raise UsageError("`--up` or `--down`, not both")
    if labels and (up or down):
        raise UsageError("`--labels` prints what was said; it goes with no thumb")
    if not (up or down) and (comment or finding or item):
        raise UsageError("say `--up` or `--down` with it")

    async def work(store: Store, keys: Keys) -> None:
        from api.services.keeping.feedback import Vote, author_of, give
        from api.services.keeping.keys import LOCAL
        from api.wiring import load_settings
        from api.wiring.feedback import feedback_sender

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
        if form is Printed.json:
            state = {"status": given.watched, "reason": given.why or None}
            say(as_json({**_plain(given.feedback), "langfuse": state}))
        if given.watched == "failed":
            tell(f"listenpost: warning: it is kept here, but not in Langfuse: {given.why}")
        else:
            tell("kept, and sent to Langfuse" if given.watched == "sent" else "kept")

    with_store(work)


async def _say_labels(store: Store, report_id: str) -> None:
    import json

    from api.lab.corrections import corrections
    from api.services.keeping.keys import LOCAL
    from api.services.keeping.reports import stored_report

    report = await stored_report(store, LOCAL.id, report_id)
    lines = corrections(report, await store.feedback(LOCAL.id, report_id))
    for line in lines:
        say(json.dumps(line, ensure_ascii=False))
    if not lines:
        tell("nothing was said of its items that is a label")


def _list(opinions: Sequence[Feedback], form: Printed) -> None:
    from api.faces.cli.terminal import shown
    from api.services.text import clean, one_line

    if form is Printed.json:
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
