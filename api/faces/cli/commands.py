"""`analyze` and `fetch`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import Any

from api import wiring
from api.errors import UsageError
from api.faces.cli import terminal
from api.faces.cli.choices import Format
from api.faces.cli.live import Live
from api.faces.cli.printing import as_json, say, tell
from api.faces.cli.remembering import remembered
from api.faces.cli.running import closing, run
from api.faces.markdown import fetch_markdown, report_markdown
from api.services import listening
from api.services.listening import Ask
from api.services.schemas import Item, Outcome
from api.settings import Settings
from api.sources.items import read_items

ANSWERED, USAGE, INSUFFICIENT, NOT_ASKED = 0, 2, 3, 4
_FILE_COLUMNS = 100
_MAX_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the answer is wanted."""

    format: Format
    dropped: bool
    verbose: bool
    output: Path | None
    estimate: bool


def analyze_command(ask: Ask, wanted: Wanted, items: Path | None) -> int:
    """Analyze and print; see the module `main` for exit codes."""
    settings = wiring.load_settings()
    _refuse_overwriting(wanted.output)
    own = None if items is None else _read(items)
    if wanted.estimate:
        from api.faces.cli.estimate import analysis_text

        return _estimated(analysis_text(settings, ask, own, as_json=wanted.format is Format.json))

    async def work() -> int:
        keeping: list[asyncio.Task[None]] = []
        try:
            async with _built(settings, own) as built:
                built.product.scope(ask)
                with Live(verbose=wanted.verbose, sample=built.product.sample) as live:
                    answer = await listening.analyze(built.product, ask, live.listen)
                if wanted.verbose and built.sandbox is not None:
                    live.say_requests(built.sandbox)
                keeping.append(asyncio.create_task(_keep(settings, answer)))
                _deliver(answer, wanted, _REPORT)
        finally:  # stored while the last traces are handed over
            await asyncio.gather(*keeping)
        return _analyzed(answer)

    return run(work)


def fetch_command(ask: Ask, source: str, wanted: Wanted) -> int:
    """Fetch from one source and print."""
    settings = wiring.load_settings()
    _refuse_overwriting(wanted.output)
    if wanted.estimate:
        from api.faces.cli.estimate import fetch_text

        return _estimated(fetch_text(settings, ask, as_json=wanted.format is Format.json))

    async def work() -> int:
        async with _built(settings) as built:
            built.product.scope(ask)
            with Live(verbose=wanted.verbose, sample=built.product.sample) as live:
                heard = await listening.fetch(built.product, source, ask, listener=live.listen)
            if wanted.verbose and built.sandbox is not None:
                live.say_requests(built.sandbox)
            _deliver(heard.data, wanted, _FETCHED)
        if heard.gathered.outcome is Outcome.OK:
            return ANSWERED
        return INSUFFICIENT if heard.gathered.outcome.asked else NOT_ASKED

    return run(work)


@asynccontextmanager
async def _built(settings: Settings, own: list[Item] | None = None) -> AsyncIterator[wiring.Built]:
    """The product; the real sources remember what the commands before asked."""
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(remembered(settings)) if own is None else None
        yield await stack.enter_async_context(closing(wiring.build(settings, own, memory=memory)))


async def _keep(settings: Settings, answer: dict[str, Any]) -> None:
    from api.faces.cli.storing import keep  # the database's libraries load after the answer

    await keep(settings, answer)


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


@dataclass(frozen=True, slots=True)
class _Shapes:
    """How one kind of answer becomes text and markdown."""

    text: Callable[[dict[str, Any], bool, int | None], str]
    markdown: Callable[[dict[str, Any], bool], str]

    def of(self, answer: dict[str, Any], wanted: Wanted, *, filed: bool) -> str:
        """The answer as it is wanted, for a file or for stdout."""
        if wanted.format is Format.json:
            return as_json(answer, 1, encoding="utf-8") if filed else as_json(answer)
        if wanted.format is Format.markdown:
            return self.markdown(answer, wanted.dropped).rstrip("\n")
        return self.text(answer, wanted.dropped, _FILE_COLUMNS if filed else None)


_REPORT = _Shapes(terminal.report, report_markdown)
_FETCHED = _Shapes(terminal.fetched, fetch_markdown)


def _deliver(answer: dict[str, Any], wanted: Wanted, shapes: _Shapes) -> None:
    """Print the answer, or write it to a file that did not exist."""
    path = wanted.output
    if path is None:
        say(shapes.of(answer, wanted, filed=False))
        return
    try:
        _write(path, f"{shapes.of(answer, wanted, filed=True)}\n".encode("utf-8", "replace"))
    except OSError as error:
        say(shapes.of(answer, wanted, filed=False))
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


def _analyzed(answer: dict[str, Any]) -> int:
    if answer["decision"] in {"full_report", "short_report"}:
        return ANSWERED
    sources = answer["sources"].values()
    if sources and not any(Outcome(source["outcome"]).asked for source in sources):
        return NOT_ASKED
    return INSUFFICIENT


def _estimated(text: str) -> int:
    say(text)
    return ANSWERED
