"""`serve`, `work`, `mcp` and `sandbox`: processes that stay; `doctor`: whether sources answer."""

from __future__ import annotations

import gc
import shutil
import socket
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.core.addresses import is_this_machine
from api.core.text import quantity
from api.errors import UsageError
from api.interfaces.cli.output import INTERRUPTED, As, as_json, closing, say, tell
from api.sources import ALL_SOURCES, SOURCE_TITLES

if TYPE_CHECKING:
    from api.features.watches.watch import Watch
    from api.features.watches.watch_run import WatchRun
    from api.interfaces.shared.doctor import Upstream
    from api.settings import ModelSettings

Sandbox = Annotated[
    bool,
    typer.Option("--sandbox", help="Answer from the offline sandbox: made-up data, without keys."),
]
Port = Annotated[int, typer.Option(help="Port; 0: any free one.", min=0, max=65535)]


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; without API keys a loopback address.")] = "127.0.0.1",
    port: Port = 8420,
    sandbox: Sandbox = False,
) -> int:
    """Serve the pages and the HTTP API until interrupted; see docs/http.md."""
    gc.disable()  # what is imported stays: looking for garbage meanwhile is a sixth of the start
    import asyncio

    from api import bootstrap
    from api.bootstrap.app_context import open_app_context
    from api.bootstrap.stream_work import stream_in_background

    gc.freeze()
    gc.enable()
    warnings.filterwarnings("ignore", message="SOCKS support in urllib3")  # `requests` does, unless threads undo it
    settings = bootstrap.load_settings(sandbox=sandbox)

    async def work() -> None:
        app_context = await open_app_context(settings, durable=True)
        try:
            keyed = await app_context.keys.configured()
            if not keyed and not is_this_machine(host):
                raise UsageError(
                    f"`{host}` is no loopback address: without API keys only this machine is "
                    "served; set `LISTENPOST_API_KEYS` or run `listenpost keys add NAME`"
                )
            from api.interfaces.http.app import create_app
            from api.interfaces.http.connections import AnnouncedServer, bounded_config, quieten

            config = bounded_config(create_app(app_context))
            quieten(asyncio.get_running_loop())
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                listener = socket.create_server((host, port), family=family, backlog=config.backlog)
            except (OSError, UnicodeError) as error:
                why = getattr(error, "strerror", None) or "no such address"
                raise UsageError(f"`{host}:{port}` cannot be listened on: {why}") from None
            with listener:
                name, number = listener.getsockname()[:2]
                address = f"http://[{name}]:{number}" if ":" in name else f"http://{name}:{number}"
                who = "with an API key" if keyed else "without API keys: only this machine may call"
                sample = "; sample data from the offline sandbox" if app_context.sample else ""
                words = f"Listenpost on {address} ({who}{sample})"

                def announce() -> None:
                    tell(words)
                    # what the libraries made stays: looking through it takes 0.2 s each time
                    app_context.load().add_done_callback(lambda loading: gc.freeze())

                stream_in_background(app_context)
                await AnnouncedServer(config, announce).serve([listener])
        finally:
            await app_context.aclose()

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


async def work(sandbox: Sandbox = False) -> int:
    """Run watches and queued analyses without a port, until interrupted; see docs/scaling.md."""
    import asyncio

    from api import bootstrap
    from api.bootstrap.app_context import open_app_context
    from api.bootstrap.stream_work import stream_in_background

    settings = bootstrap.load_settings(sandbox=sandbox)
    async with closing(await open_app_context(settings, durable=True)) as app_context:
        await app_context.product()
        assert app_context.engine is not None
        await app_context.engine.opened()
        tell("Listenpost works at what is queued")
        stream_in_background(app_context)
        await asyncio.Event().wait()  # for ever
    return 0


async def listen(sandbox: Sandbox = False) -> int:
    """Read streams (Bluesky, feeds, news) for watches that notify as it happens, until interrupted.

    Prints each notification; see docs/watches.md. Of several processes one reads; when it ends, another goes on.
    """
    from api import bootstrap
    from api.bootstrap.app_context import open_app_context
    from api.bootstrap.stream_work import listen as listen_to
    from api.bootstrap.stream_work import open_streams
    from api.features.watches.notification import run_text

    settings = bootstrap.load_settings(sandbox=sandbox)
    async with closing(await open_app_context(settings)) as app_context:
        await app_context.product()
        async with open_streams(app_context, named=True) as streams:
            made_up_only = sandbox and bootstrap.mode_of(bootstrap.load_settings()) != "sandbox"
            watches = await app_context.store.streamed_watches(None)
            followed = sum(watch.sandbox == made_up_only or app_context.sample > made_up_only for watch in watches)
            names = ", ".join(SOURCE_TITLES[stream.name] for stream in streams)
            tell(f"listening to {names} for {quantity(followed, 'watch', 'watches')}; Ctrl-C ends it")
            if not followed:
                option = " --sandbox" * made_up_only
                tell(f'no watch notifies as it happens: `listenpost watch add "PRODUCT" --as-it-happens{option}`')

            def print_run(watch: Watch, run: WatchRun) -> None:
                say(run_text(watch, run, ALL_SOURCES))

            await listen_to(app_context, streams, print_run, made_up_only=made_up_only)
    return 0


def mcp(
    text_only: Annotated[
        bool,
        typer.Option(
            "--text-only",
            help="Send text only, for clients that also show structured content to their model.",
        ),
    ] = False,
    sandbox: Sandbox = False,
) -> int:
    """Serve the tools to an MCP client over stdin and stdout; see docs/mcp.md."""
    from api.interfaces.mcp.mcp_transports import mcp_command

    return mcp_command(text_only=text_only, sandbox=sandbox)


def sandbox(
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Port = 8765,
    fault: Annotated[
        list[str] | None,
        typer.Option(help="A failure to simulate: UPSTREAM=NAME, such as youtube=quota; repeatable."),
    ] = None,
    latency: Annotated[
        list[str] | None,
        typer.Option(help="A delay: UPSTREAM[.ENDPOINT]=TIME, such as openai=800ms; repeatable."),
    ] = None,
    recordings: Annotated[Path | None, typer.Option(help="Folder of recorded answers to serve first.")] = None,
) -> int:
    """Serve all sources, OpenAI and Langfuse on this machine, with sample data.

    Prints the variables that point a program at it, and serves until interrupted.
    """
    from api.sandbox.server import environment, serve

    def announce(url: str) -> None:
        for name, value in environment(url).items():
            print(f"export {name}={value}", flush=True)

    if not is_this_machine(host):
        raise UsageError(f"`{host}` is no loopback address; the sandbox serves this machine only")
    if recordings is not None and not recordings.is_dir():
        raise UsageError(f"`{recordings}` is no folder of recordings")
    try:
        serve(
            host, port, faults=fault or [], latency=latency or [], recordings=recordings,
            ready=announce,
        )  # fmt: skip
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"`{host}:{port}` cannot be listened on: {error.strerror}") from None
    return INTERRUPTED


# Width of the first column at least, and of a whole row; on a narrower terminal rows are wrapped.
_NAME_COLUMNS, _ROW_COLUMNS = 10, 76


async def doctor(form: As = "text") -> int:
    """Check every source and service: configured, reachable, quota left, and how to fix it.

    All are asked at once, at the lowest possible cost; exits with 4 when no source answers.
    """
    import asyncio
    from contextlib import AsyncExitStack

    from api import bootstrap
    from api.interfaces.cli.command_product import remembered, with_followed_feeds
    from api.interfaces.shared.doctor import check_upstreams

    settings = bootstrap.load_settings()
    async with (
        remembered(settings) as memory,
        closing(bootstrap.build(settings, memory=memory)) as product,
        AsyncExitStack() as stack,
    ):
        if memory is not None:
            product = await with_followed_feeds(stack, product, settings, memory)
        slow = asyncio.get_running_loop().call_later(_PATIENCE, tell, words_of_waiting(settings.models))
        try:
            rows, sample = await check_upstreams(settings, product, thorough=True), product.sample
        finally:
            slow.cancel()
    if form == "json":
        mode = "sandbox" if sample else "live"
        say(as_json({"mode": mode, "upstreams": list(map(asdict, rows))}))
    else:
        say("\n".join(_status_lines(rows, sample)))
    return 0 if any(row.outcome == "ok" for row in rows if row.is_source) else 4


# Seconds after which `doctor` says on stderr what it waits for.
_PATIENCE = 10


def words_of_waiting(models: ModelSettings) -> str:
    """What `doctor` waits for, and for how long at most."""
    scoring, report = models.scoring_timeout, models.report_timeout
    return (
        f"waiting for the model server: four questions of up to {scoring:g} s (`LISTENPOST_SCORING_TIMEOUT`), "
        f"then a report in up to three forms, {report:g} s each (`LISTENPOST_REPORT_TIMEOUT`)"
    )


def _status_lines(rows: Sequence[Upstream], sample: bool) -> list[str]:
    from api.interfaces.cli.terminal_text import wrapped

    lines = ["mode: live"]
    if sample:
        lines = ["sample data: made up and offline; no key is used and nothing is spent"]
    width = max(_NAME_COLUMNS, *(len(row.title) for row in rows))
    for row in rows:
        left = row.quota_left
        details = [row.detail, "" if left is None else f"{left} searches left today"]
        words = ", ".join(filter(None, details))
        lines.append(f"{row.title:<{width}} {row.outcome:<16} {words}".rstrip())
        label = "to be real" if row.outcome == "ok" else "fix"
        lines += [f"{'':<{width}} {label}: {row.fix}"] if row.fix else []
    if sample:
        lines.append("`LISTENPOST_MODE=sandbox` is set; without it the real places are asked.")
    columns = shutil.get_terminal_size((_ROW_COLUMNS, 24)).columns
    if columns >= _ROW_COLUMNS:
        return lines
    # what to do stands below its row, indented
    indents = ["  " if line.startswith(" ") else "" for line in lines]
    pairs = zip(lines, indents, strict=True)
    return [part for line, indent in pairs for part in wrapped(line, columns, indent)]
