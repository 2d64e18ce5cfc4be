"""`archive`: vectors of a server for what is stored, and what they cost."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import typer

from api.core.text import quantity
from api.errors import ConfigurationError, ModelError, missing_module
from api.interfaces.cli.output import say, tell
from api.interfaces.cli.stored_commands import opened_store

FAILED = 3
"""Exit code where the server gave no vectors for some entries; what it gave before is stored."""
# Steps between two lines of progress.
_STEPS = 20


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
