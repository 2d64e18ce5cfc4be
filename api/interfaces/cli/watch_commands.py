"""`watch`: a question that is asked again and again, and what has changed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.core.text import SHORT_ID
from api.errors import UsageError
from api.interfaces.cli.output import Data, as_json, say, tell
from api.interfaces.cli.stored_commands import opened_store
from api.interfaces.cli.watch_run_commands import WatchName, due_of, opened_watch

if TYPE_CHECKING:
    from api.features.watches.watch import Watch
    from api.interfaces.shared.watch_requests import WatchOptions, WatchPatch, WatchRequest


async def add(request: WatchRequest) -> None:
    """Watch a product; the first run is due at once. Prints the id of the watch."""
    from api.bootstrap.background_work import keep_watch
    from api.features.analyses.api_keys import LOCAL
    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared.watch_view import meaning_note, requested_watch

    requested = requested_watch(_with_whole_paths(request), LOCAL.id, files=True)
    async with opened_store() as store:
        watch = await keep_watch(store, requested, new=True)
    say(watch.id)
    if note := meaning_note(requested, watch):
        tell(shown(note.replace("`about`", "`--about`")))
    tell(f"watching “{watch.name}”, {watch.every} ({watch.zone}); the first run is due now:")
    by_hand = f"`listenpost watch run {watch.id[:SHORT_ID]}`"
    tell(f"{by_hand}; else `listenpost serve`, `work` or `watch run --due` runs it")
    _tell_secret(watch)


async def list_watches(form: Data = "text") -> None:
    """List every watch: id, when it is due next, schedule, name."""
    from api.features.analyses.api_keys import LOCAL
    from api.interfaces.cli.terminal_text import shown
    from api.interfaces.shared.watch_view import watch_view

    async with opened_store() as store:
        watches = await store.watches(LOCAL.id)
    if form == "json":
        say(as_json([watch_view(watch).model_dump(mode="json") for watch in watches]))
        return
    for watch in watches:
        say(f"{watch.id[:SHORT_ID]}  {due_of(watch):<27}{watch.every:<16}{shown(watch.name)}")
    if not watches:
        tell('nothing is watched; `listenpost watch add "PRODUCT"` watches one')


async def change(request: WatchPatch, watch: WatchName) -> None:
    """Change a watch from its next run on; what is not named stays.

    Posts that another question dropped are judged again. `--notify` replaces all receivers.
    """
    from api.interfaces.shared.watch_view import watch_fields

    if not request.model_fields_set:
        raise UsageError("say what to change, for example `--about`")
    await _change(watch, watch_fields(_with_whole_paths(request), files=True), "is changed")


async def pause(watch: WatchName) -> None:
    """Stop running a watch on schedule, until `resume`."""
    await _change(watch, {"paused": True}, "is paused")


async def resume(watch: WatchName) -> None:
    """Run a paused watch on schedule again."""
    await _change(watch, {"paused": False}, "goes on")


async def remove(watch: Annotated[str, typer.Argument(metavar="NAME", help="Name or whole id of a watch.")]) -> None:
    """Delete a watch, its runs and what it has seen; its reports stay."""
    async with opened_watch(watch, abbreviated=False) as (store, stored):
        await store.drop_watch(stored.tenant, stored.id)
    tell(f"“{stored.name}” is watched no more; its reports are kept")


def _with_whole_paths(request: WatchOptions) -> WatchOptions:
    """The request with whole paths of files: whoever runs the watch may be in another folder."""
    texts = getattr(request, "notify", None)
    if not texts:
        return request
    kinds = [text.partition(":") for text in texts]
    whole = tuple(
        f"file:{Path(path).absolute()}" if kind == "file" and path else text
        for text, (kind, _, path) in zip(texts, kinds, strict=True)
    )
    return request.model_copy(update={"notify": whole})


def _tell_secret(watch: Watch) -> None:
    if watch.is_signed:
        tell(f"webhooks are signed with `{watch.secret}`; it is not shown again")


async def _change(name: str, fields: dict[str, object], words: str) -> None:
    """Keep the watch with these fields, due when its clock says so next."""
    from api.bootstrap.background_work import keep_watch
    from api.features.watches.watch_service import changed_watch

    async with opened_watch(name) as (store, watch):
        new = changed_watch(watch, fields)
        await keep_watch(store, new, new=False)
    tell(f"“{new.name}” {words}{'' if new.paused else f'; {due_of(new)}'}")
    if not watch.is_signed:
        _tell_secret(new)
