"""`search` in what is stored, without asking a source; `archive embed`: vectors of a server for it, and their cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from api.core.text import quantity
from api.errors import ConfigurationError, ModelError, install_command, missing_module
from api.interfaces.cli.output import Data, as_json, closing, say, tell
from api.interfaces.cli.report_commands import opened_store

if TYPE_CHECKING:
    from api.features.archive.search_values import ArchiveAnswer
    from api.interfaces.shared.listing_requests import SearchRequest

FAILED = 3
"""Exit code when the server gave no vectors for some entries; the vectors it gave before are stored."""
_NOTHING_FOUND = 3
# Steps between two lines of progress.
_STEPS = 20


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
        _print_hits(answer, request.k or settings.retrieval.k)
    return 0 if answer.hits else _NOTHING_FOUND


def _print_hits(answer: ArchiveAnswer, most: int) -> None:
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
    again = f'"{shown(answer.query)}"'
    if len(answer.hits) >= most:
        tell(f"these are the first {most}; `--k` names how many")
    if not answer.hits:
        sample = "; sample data is searched with `--sandbox`" * (not answer.sample)
        tell(f"ask the places: `listenpost analyze {again}{' --sandbox' * answer.sample}`{sample}")


async def embed(
    estimate: Annotated[bool, typer.Option("--estimate", help="Print what it would cost, and send nothing.")] = False,
) -> int:
    """Have vectors made of every stored entry that has none of `LISTENPOST_EMBEDDINGS_MODEL`.

    The texts are sent to the server of the settings. What was stopped goes on where it was. Exits with 3 when the
    server fails.
    """
    from api import bootstrap

    settings = bootstrap.load_settings()
    if not settings.embeddings.model:
        raise ConfigurationError("set `LISTENPOST_EMBEDDINGS_MODEL`; without it the vectors are of this machine")
    if bootstrap.mode_of(settings) == "sandbox":
        raise ConfigurationError("what the sandbox makes up is not sent; unset `LISTENPOST_MODE`")
    async with opened_store() as store:
        if (embedding := store.embedding) is None:
            missing = missing_module("search")
            raise ConfigurationError(
                "no vectors are compared here: "
                + (f"`{missing}` is not installed" if missing else "PostgreSQL has no extension `vector` for us")
            )
        embedder = embedding.embedder
        waiting = {tenant: await embedding.waiting(tenant) for tenant in await embedding.tenants()}
        entries, tokens = sum(each.entries for each in waiting.values()), sum(each.tokens for each in waiting.values())
        server = urlsplit(settings.embeddings.url or settings.models.openai_base_url).hostname
        where = f"{quantity(entries, 'entry', 'entries')} without a vector of `{embedder.name}` at {server}"
        say(f"{where}: about {tokens:,} tokens, {_price(embedder.usd(tokens))}")
        if estimate:
            return 0
        done, spent, steps = 0, 0, 0

        def hear(stored: int, used: int) -> None:
            nonlocal done, spent, steps
            done, spent, steps = done + stored, spent + used, steps + 1
            if steps % _STEPS == 0:
                tell(f"{done:,} of {entries:,} entries, {spent:,} tokens")

        failure = None
        try:
            for tenant in waiting:
                await embedding.embed(tenant, hear)
        except ModelError as error:
            failure = error
        say(f"{quantity(done, 'entry', 'entries')} embedded: {spent:,} tokens, {_price(embedder.usd(spent))}")
        if failure is not None:
            tell(f"listenpost: {failure}; `listenpost archive embed` goes on where this ended")
    return FAILED if failure else 0


def _price(usd: float | None) -> str:
    if usd is None:
        return "at a price that nobody knows; state it in `LISTENPOST_MODEL_PRICES`"
    return "free of charge" if usd == 0 else f"{usd:.4f} USD"
