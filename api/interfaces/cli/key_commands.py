"""`keys`: API keys of the HTTP API. The database's libraries are imported where a command runs: help does without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from api.interfaces.cli.output import As, as_json, say, tell
from api.interfaces.cli.report_commands import opened_store

if TYPE_CHECKING:
    from api.features.analyses.api_keys import Keys


@asynccontextmanager
async def _opened_keys() -> AsyncIterator[Keys]:
    from api import bootstrap
    from api.bootstrap.storage import environment_keys

    async with opened_store() as store:
        yield environment_keys(bootstrap.load_settings(), store)


async def add_key(name: Annotated[str, typer.Argument(help="Name of the key's owner.")]) -> None:
    """Create a key and print it; it cannot be shown again."""
    async with _opened_keys() as keys:
        made, text = await keys.add(name)
    say(text)
    tell(f"key `{made.id}` for {made.name}; it is not shown again")


async def list_keys(form: As = "text") -> None:
    """List every key with its origin, revoked ones too; never the key itself."""
    from api.interfaces.cli.terminal_text import shown

    async with _opened_keys() as keys:
        listed = await keys.listed()
    if form == "json":
        rows = [
            {
                "id": key.id,
                "name": key.name,
                "origin": key.origin,
                "created_at": key.created_at and key.created_at.isoformat(),
                "revoked": key.revoked,
            }
            for key in listed
        ]
        say(as_json(rows))
        return
    for key in listed:
        state = "revoked" if key.revoked else "valid"
        say(f"{key.id:<18}{key.origin:<13}{state:<9}{shown(key.name)}")
    if not listed:
        tell("no keys: the HTTP API serves this machine only")


async def revoke_key(key: Annotated[str, typer.Argument(help="Id or name of the key.")]) -> None:
    """Revoke a key for good."""
    async with _opened_keys() as keys:
        await keys.revoke(key)
    tell(f"`{key}` is revoked")
