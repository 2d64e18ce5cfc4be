"""The tools that watch a product, and list what is watched with what changed last."""

from __future__ import annotations

from dataclasses import replace

from api.faces.mcp.answers import Answer, Tool, bounded
from api.faces.mcp.arguments import NoArguments, WatchArguments
from api.faces.watches import WatchView, watch_view
from api.faces.web.watches import WatchList
from api.services.keeping.keys import Tenant
from api.services.listening import ROOM
from api.services.progress import Listener
from api.services.text import Fence
from api.services.watching.running import utc_now
from api.services.watching.telling import text_of
from api.services.watching.watch import new_watch
from api.sources import EVERYWHERE
from api.wiring.serving import House
from api.wiring.watching import keep_watch


def watch_tools(house: House) -> list[Tool]:
    """Both tools of a server."""

    async def watch(tenant: Tenant, given: WatchArguments, listener: Listener) -> Answer:
        new = new_watch(tenant.id, given.query, given.every, utc_now())
        new = replace(
            new, zone=given.tz, about=given.about, sources=given.sources, depth=given.depth
        )
        await keep_watch(house.store, new, new=True)
        view = watch_view(new)
        text = (
            f"`{new.id}` is watched: {view.every} ({view.tz}). Its first run is due at once, by "
            "`listenpost serve`, `work` or `watch run --due`; `list_watches` then tells the rest."
        )
        return Answer(text, view.model_dump(mode="json"))

    async def listing(tenant: Tenant, given: NoArguments, listener: Listener) -> Answer:
        watches, fence, lines = await house.store.watches(tenant.id), Fence(), []
        for kept in watches:
            runs = await house.store.watch_runs(tenant.id, kept.id, 1)
            last = text_of(kept, runs[0], EVERYWHERE) if runs else "it has not run yet"
            state = "paused" if kept.paused else f"due {kept.due_at:%Y-%m-%d %H:%M} UTC"
            lines.append(fence.quote(f"{kept.every} ({kept.zone}), {state}: {last}", kept.id))
        text = "\n".join([fence.rule, *lines]) if lines else "Nothing is watched."
        listed = WatchList(watches=list(map(watch_view, watches)))
        rest = "`listenpost watch show` has the rest."
        return Answer(bounded(text, ROOM["quick"], rest), listed.model_dump(mode="json"))

    return [
        Tool(
            "watch_product",
            "Watch a product",
            "Ask about a product again and again, on a schedule, and keep what is new or unusual. "
            "Only when a person wants to be kept up to date: each run costs what an analysis does.",
            WatchArguments,
            WatchView.model_json_schema(),
            watch,
            asks=False,
            keeps=True,
        ),
        Tool(
            "list_watches",
            "List watches",
            "What is watched, when each is due, and what changed at its last run.",
            NoArguments,
            WatchList.model_json_schema(),
            listing,
            asks=False,
        ),
    ]
