"""`analyze` and `fetch`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISFIFO, S_ISREG

from api import wiring
from api.errors import UsageError
from api.faces.cli.choices import Format
from api.faces.cli.live import Live
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.remembering import remembered
from api.faces.cli.running import closing, run
from api.faces.cli.terminal import fetched_text, report_text
from api.faces.markdown import fetch_markdown, report_markdown
from api.services import listening
from api.services.listening import Ask, Product
from api.services.reporting.report import Fetched, Report
from api.services.schemas import Decision, Item, Outcome
from api.settings import Settings
from api.sources.items import read_items

ANSWERED, USAGE, INSUFFICIENT, NOT_ASKED = 0, 2, 3, 4
_FILE_COLUMNS = 100
_MAX_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Handover:
    """How an answer is handed over."""

    format: Format
    dropped: bool
    verbose: bool
    output: Path | None
    estimate: bool


def analyze_command(ask: Ask, handover: Handover, items: Path | None) -> int:
    """Analyze and print; see the module `main` for exit codes."""
    settings = wiring.load_settings()
    _refuse_overwriting(handover.output)
    own = None if items is None else _read(items)
    if handover.estimate:
        from api.faces.cli.estimate import analysis_text

        return _estimated(analysis_text(settings, ask, own, as_json=handover.format is Format.json))

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with _built(settings, own) as product:
                product.scope(ask)
                with Live(verbose=handover.verbose, sample=product.sample) as live:
                    report = await listening.analyze(product, ask, live.listen)
                if handover.verbose:
                    live.say_requests(product.requests())
                keeping.append(asyncio.create_task(_keep(settings, report)))
                _deliver(report, handover)
        finally:  # stored while the last traces are handed over
            await asyncio.gather(*keeping)
        return _exit_code(report)

    return run(work)


def fetch_command(ask: Ask, source: str, handover: Handover) -> int:
    """Fetch from one source and print."""
    settings = wiring.load_settings()
    _refuse_overwriting(handover.output)
    if handover.estimate:
        from api.faces.cli.estimate import fetch_text

        return _estimated(fetch_text(settings, ask, as_json=handover.format is Format.json))

    async def work() -> int:
        async with _built(settings) as product:
            product.scope(ask)
            with Live(verbose=handover.verbose, sample=product.sample) as live:
                heard = await listening.fetch(product, source, ask, listener=live.listen)
            if handover.verbose:
                live.say_requests(product.requests())
            _deliver(heard.fetched, handover)
        outcome = heard.fetched.outcome
        if outcome is Outcome.OK:
            return ANSWERED
        return INSUFFICIENT if outcome.asked else NOT_ASKED

    return run(work)


@asynccontextmanager
async def _built(settings: Settings, own: list[Item] | None = None) -> AsyncIterator[Product]:
    """The product; the real sources remember what the commands before asked."""
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(remembered(settings)) if own is None else None
        yield await stack.enter_async_context(closing(wiring.build(settings, own, memory=memory)))


async def _keep(settings: Settings, report: Report) -> None:
    from api.faces.cli.storing import keep  # the database's libraries load after the answer

    await keep(settings, report)


def _read(path: Path) -> list[Item]:
    try:
        return read_items(_content(path))
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UsageError as error:
        raise UsageError(f"`{path}`: {error}") from None


def _content(path: Path) -> bytes:
    """All of a file, a pipe or what is typed; a device may have no end."""
    most = f"{_MAX_BYTES // 1_000_000} MB"
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not (S_ISREG(mode) or S_ISFIFO(mode) or file.isatty()):
            raise UsageError(f"is neither file nor pipe; name a file of at most {most}")
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise UsageError(f"holds more than {most}; split it")
    return data


def _refuse_overwriting(path: Path | None) -> None:
    if path is not None and os.path.lexists(path):
        raise UsageError(f"`{path}` exists and is never overwritten; name a new file")


def _rendered(answer: Report | Fetched, handover: Handover, *, filed: bool) -> str:
    """The answer in its format, for a file or for stdout."""
    if handover.format is Format.json:
        value = answer.model_dump(mode="json")
        return as_json(value, 1, encoding="utf-8") if filed else as_json(value)
    width = _FILE_COLUMNS if filed else None
    match answer:
        case Report() if handover.format is Format.markdown:
            return report_markdown(answer, handover.dropped).rstrip("\n")
        case Report():
            return report_text(answer, handover.dropped, width)
        case Fetched() if handover.format is Format.markdown:
            return fetch_markdown(answer, handover.dropped).rstrip("\n")
        case Fetched():
            return fetched_text(answer, handover.dropped, width)


def _deliver(answer: Report | Fetched, handover: Handover) -> None:
    """Print the answer, or write it to a file that did not exist."""
    path = handover.output
    if path is None:
        say(_rendered(answer, handover, filed=False))
        return
    try:
        _write(path, f"{_rendered(answer, handover, filed=True)}\n".encode("utf-8", "replace"))
    except OSError as error:
        say(_rendered(answer, handover, filed=False))
        raise UsageError(
            f"`{path}` cannot be written ({error.strerror}); the answer is on stdout"
        ) from None
    tell(f"written to {path}")


def _write(path: Path, data: bytes) -> None:
    """All of it, or no file."""
    with path.open("xb") as file:
        try:
            file.write(data)
            file.flush()
        except OSError:
            with suppress(OSError):
                path.unlink()
            raise


def _exit_code(report: Report) -> int:
    if report.decision in {Decision.FULL, Decision.SHORT}:
        return ANSWERED
    sources = report.sources.values()
    if sources and not any(source.outcome.asked for source in sources):
        return NOT_ASKED
    return INSUFFICIENT


def _estimated(text: str) -> int:
    say(text)
    return ANSWERED
