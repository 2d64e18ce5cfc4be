"""What `keys` and `reports` do, and how `analyze` keeps its answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from api import wiring
from api.errors import ConfigurationError, NotFound, StoreUnavailable, UsageError
from api.faces.cli.choices import Format
from api.faces.cli.running import closing, run
from api.faces.cli.terminal import report_text
from api.faces.markdown import report_markdown
from api.services.keeping.keys import LOCAL, Keys
from api.services.keeping.storage import ApiKey, Filters, Listed, Store
from api.services.reporting.report import Report
from api.services.text import clean, cut, one_line
from api.settings import Settings
from api.wiring.serving import environment_keys, open_store_of


async def keep(settings: Settings, report: Report) -> None:
    """Store a report; a store that fails is one warning, never a failed answer."""
    try:
        async with closing(await open_store_of(settings)) as store:
            await store.finish(LOCAL.id, report)
    except (StoreUnavailable, ConfigurationError) as error:
        print(f"listenpost: warning: the answer is not kept: {error}", file=sys.stderr)


def _with_store(work: Callable[[Store, Keys], Awaitable[None]]) -> int:
    settings = wiring.load_settings()

    async def opened() -> int:
        async with closing(await open_store_of(settings)) as store:
            await work(store, environment_keys(settings, store))
        return 0

    return run(opened)


def add_key(name: str) -> int:
    """Print a new key on stdout, alone."""

    async def work(store: Store, keys: Keys) -> None:
        made, text = await keys.add(name)
        print(text)
        print(f"key `{made.id}` for {made.name}; it is not shown again", file=sys.stderr)

    return _with_store(work)


def list_keys(form: Format) -> int:
    """One key a line: id, origin, state, name."""

    async def work(store: Store, keys: Keys) -> None:
        listed = await keys.listed()
        if form is Format.json:
            print(json.dumps([_key(key) for key in listed], ensure_ascii=False))
            return
        for key in listed:
            state = "revoked" if key.revoked else "valid"
            print(f"{key.id:<18}{key.origin:<13}{state:<9}{one_line(clean(key.name))}")
        if not listed:
            print("no keys: the HTTP API serves this machine only", file=sys.stderr)

    return _with_store(work)


def _key(key: ApiKey) -> dict[str, Any]:
    created = None if key.created_at is None else key.created_at.isoformat()
    return {
        "id": key.id, "name": key.name, "origin": key.origin, "created_at": created,
        "revoked": key.revoked,
    }  # fmt: skip


def revoke_key(key: str) -> int:
    """Revoke and say so."""

    async def work(store: Store, keys: Keys) -> None:
        await keys.revoke(key)
        print(f"`{key}` is revoked", file=sys.stderr)

    return _with_store(work)


def list_reports(limit: int, form: Format) -> int:
    """One analysis a line: id, day, what became of it, question."""

    async def work(store: Store, keys: Keys) -> None:
        analyses = (await store.listing(LOCAL.id, Filters(), limit)).analyses
        if form is Format.json:
            print(json.dumps([_row(listed) for listed in analyses], ensure_ascii=False))
            return
        for listed in analyses:
            summary = listed.summary
            sample = " (sample)" if summary and summary.sample else ""
            query = cut(one_line(clean(listed.query)), 60)
            ended = str(summary.decision) if summary else listed.state
            print(f"{listed.id}  {listed.created_at:%Y-%m-%d}  {ended:<18}{query}{sample}")
        if not analyses:
            print(
                "nothing is kept yet; `listenpost analyze QUERY` keeps its answer", file=sys.stderr
            )

    return _with_store(work)


def _row(listed: Listed) -> dict[str, Any]:
    summary = listed.summary
    return {
        "id": listed.id,
        "state": listed.state,
        "created_at": listed.created_at.isoformat(),
        "query": listed.query,
        "decision": summary and summary.decision,
        "depth": summary and summary.depth,
        "sample": summary and summary.sample,
        "reason": listed.reason,
    }


def show_report(report_id: str, form: Format, dropped: bool) -> int:
    """The report in one of the formats of `analyze`."""

    async def work(store: Store, keys: Keys) -> None:
        kept = await store.get(LOCAL.id, report_id)
        if kept is None:
            raise _nothing(report_id)
        if kept.report is None:
            raise UsageError(f"`{report_id}` holds no report: {kept.reason or kept.state}")
        if form is Format.json:
            print(json.dumps(kept.report.model_dump(mode="json"), ensure_ascii=False))
        elif form is Format.markdown:
            print(report_markdown(kept.report, dropped))
        else:
            print(report_text(kept.report, dropped, None))

    return _with_store(work)


def delete_report(report_id: str) -> int:
    """Delete and say so."""

    async def work(store: Store, keys: Keys) -> None:
        if not await store.delete(LOCAL.id, report_id):
            raise _nothing(report_id)
        print(f"`{report_id}` is deleted", file=sys.stderr)

    return _with_store(work)


def _nothing(report_id: str) -> NotFound:
    return NotFound(f"there is no report `{report_id[:60]}`; `listenpost reports` lists them")
