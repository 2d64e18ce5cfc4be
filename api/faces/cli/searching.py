"""`search`: what is stored about a question, without asking anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.retrospect import As, Back, Printed

if TYPE_CHECKING:
    from api.services.archive.answers import ArchiveAnswer

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
    form: As = Printed.text,
) -> NoReturn:
    """Search what is stored; nothing is fetched and nothing is asked again; docs/archive.md."""
    from datetime import UTC, datetime

    from api import wiring  # with the database's libraries
    from api.faces.cli.running import closing, run
    from api.services.archive.asking import filters_of
    from api.services.keeping.keys import LOCAL
    from api.services.keeping.summing import since_of
    from api.sources import PLACES
    from api.wiring.archive import archive_search
    from api.wiring.storing import open_store_of

    settings = wiring.load_settings(sandbox=sandbox)
    moment = since_of(since, datetime.now(UTC))
    filters = filters_of(source, moment, about, PLACES, language, kept)

    async def work() -> int:
        async with (
            closing(await open_store_of(settings)) as store,
            closing(wiring.build(settings)) as product,
        ):
            answer = await archive_search(settings, product, store).search(
                LOCAL.id, query, filters, k, terse=True
            )
        if form is Printed.json:
            say(as_json(answer.model_dump(mode="json")))
        else:
            _print(answer)
        return 0 if answer.hits else _TOO_LITTLE

    raise typer.Exit(run(work))


def _print(answer: ArchiveAnswer) -> None:
    from api.faces.cli.terminal import archive_text, shown
    from api.services.text import many

    if answer.guidance:
        tell(answer.guidance)
        return
    say(archive_text(answer, None))
    if answer.retrieval.words_only:
        tell("found by words alone: there are no word vectors here")
    if unread := answer.retrieval.unread:
        entries = many(unread, "entry", "entries")
        tell(f"{entries} not compared by meaning yet, since they are still being read; ask again")
    if not answer.hits:
        tell(f'ask the places: `listenpost analyze "{shown(answer.query)}"`')
