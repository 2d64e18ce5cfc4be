"""Answers on stdout or in a file, words for a person on stderr, and streams that are closed.

A stream that nobody reads (closed, or a pipe whose reader has left) takes nothing more and stops
nothing; an answer that stdout cannot take for another reason is an error.

Running one command: what it remembers, and its clean stop on Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TextIO, TypeAlias, TypeVar

from api.errors import ConfigurationError, StoreUnavailable, UsageError

if TYPE_CHECKING:
    from api.features.analyses.store_ports import SourceMemory
    from api.features.comparisons.comparison import Comparison
    from api.reports.report import Fetched, Report
    from api.settings import Settings


Answer: TypeAlias = "Report | Fetched | Comparison"
_FILE_COLUMNS = 100
# OpenTelemetry reads it while it is imported, and answers a name that it does not know with a
# traceback and its default.
_CONTEXT = "OTEL_PYTHON_CONTEXT"


class Format(StrEnum):
    """How something is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


class ReportFormat(StrEnum):
    """How a report is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"
    csv = "csv"


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How an answer is handed over."""

    format: ReportFormat
    dropped: bool = False
    """Also what was dropped; a page and a spreadsheet show it anyway."""
    output: Path | None = None
    """A new file; None: stdout."""


def prepare() -> None:
    """Open what was closed at the start, and let no character or library's setting stop a text.

    In the order of their numbers, so that no socket becomes the standard error of a library.
    """
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - to the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if context := os.environ.get(_CONTEXT):
        from importlib.metadata import entry_points

        if not entry_points(group="opentelemetry_context", name=context):
            tell(f"listenpost: warning: `{_CONTEXT}` names nothing that is installed; unset it")
            del os.environ[_CONTEXT]


def say(text: str) -> None:
    """Print an answer, handed over at once.

    Raises:
        UsageError: stdout cannot take it, a full disk for example.
    """
    _give(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "replace"))


def say_bytes(data: bytes) -> None:
    """Print bytes as they are; see `say`."""
    _give(data)


def check_output(path: Path | None) -> None:
    """Before anything is asked or spent: make the file, and take it away again.

    Raises:
        UsageError: there is something of that name, be it a link to nowhere, or no file can be
            made there, or it is `-`, by which people mean stdout.
    """
    if path is None:
        return
    if str(path) == "-":
        raise UsageError("`-` is no file; leave `--output` out, and the answer is on stdout")
    try:
        path.open("xb").close()
        path.unlink()
    except FileExistsError:
        raise UsageError(f"`{path}` exists and is never overwritten; name a new file") from None
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be written ({error.strerror}); nothing was asked, name another file"
        ) from None


def deliver(answer: Answer, handover: OutputOptions) -> None:
    """Print the answer, or write it to a file that did not exist: all of it, or no file.

    Raises:
        UsageError: it cannot be written; then the answer is on stdout.
    """
    path = handover.output
    if path is None:
        say(rendered(answer, handover, filed=False))
        return
    try:
        with path.open("xb") as file:
            try:
                text = rendered(answer, handover, filed=True)
                file.write(f"{text}\n".encode("utf-8", "replace"))
                file.flush()
            except OSError:
                with suppress(OSError):
                    path.unlink()
                raise
    except OSError as error:
        say(rendered(answer, handover, filed=False))
        raise UsageError(
            f"`{path}` cannot be written ({error.strerror}); the answer is on stdout"
        ) from None
    tell(f"written to {path}")


def rendered(answer: Answer, handover: OutputOptions, *, filed: bool) -> str:
    """The answer in its format, without the last line's end; `filed`: for a file."""
    from api.features.comparisons.comparison import Comparison
    from api.interfaces.cli import terminal_text
    from api.interfaces.shared import markdown_report
    from api.reports.report import Report

    form, width = handover.format, _FILE_COLUMNS if filed else None
    if form is ReportFormat.json:
        value = answer.model_dump(mode="json")
        return as_json(value, 1, encoding="utf-8") if filed else as_json(value)
    if isinstance(answer, Comparison):
        return _compared(answer, form, width)
    if not isinstance(answer, Report):
        if form is ReportFormat.markdown:
            return markdown_report.fetch_markdown(answer, handover.dropped).rstrip("\n")
        return terminal_text.fetched_text(answer, handover.dropped, width)
    match form:
        case ReportFormat.html:
            from api.interfaces.pages.report_files import report_html

            return report_html(answer).rstrip("\n")
        case ReportFormat.csv:
            from api.interfaces.shared.comparison_table import report_csv

            return report_csv(answer).rstrip("\r\n")
        case ReportFormat.markdown:
            return markdown_report.report_markdown(answer, handover.dropped).rstrip("\n")
        case ReportFormat.text:
            return terminal_text.report_text(answer, handover.dropped, width)


def _compared(comparison: Comparison, form: ReportFormat, width: int | None) -> str:
    from api.interfaces.cli import terminal_text
    from api.interfaces.shared import comparison_table

    match form:
        case ReportFormat.html:
            from api.interfaces.pages.report_files import comparison_html

            return comparison_html(comparison).rstrip("\n")
        case ReportFormat.csv:
            return comparison_table.comparison_csv(comparison).rstrip("\r\n")
        case ReportFormat.markdown:
            from api.interfaces.shared.markdown_report import comparison_markdown

            return comparison_markdown(comparison).rstrip("\n")
        case _:
            return terminal_text.comparison_text(comparison, width)


def as_json(value: Any, indent: int | None = None, *, encoding: str | None = None) -> str:
    """One JSON object as text, escaped where the encoding (default: stdout's) lacks letters."""
    wide = (encoding or sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not wide, indent=indent)
    return text.encode("utf-8", "replace").decode() if wide else text


def tell(line: str) -> None:
    """Print a line on stderr, if anybody is there."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _let_go(sys.stderr)


def finish() -> None:
    """Hand over what is left, so that the interpreter's own end finds nothing to complain about."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _let_go(stream)


def _give(data: bytes) -> None:
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        _let_go(sys.stdout)
    except OSError as error:
        _let_go(sys.stdout)
        raise UsageError(f"the answer cannot be printed: {error.strerror}") from None


def _let_go(stream: TextIO) -> None:
    """From now on the stream leads nowhere, what it still holds included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


INTERRUPTED, TERMINATED = 130, 143


class Closable(Protocol):
    """What a command builds and must close."""

    async def aclose(self) -> None:
        """Let go of everything."""
        ...


B = TypeVar("B", bound=Closable)


@asynccontextmanager
async def closing(built: B) -> AsyncIterator[B]:
    """The built product, closed at the end even when the command is interrupted."""
    try:
        yield built
    finally:
        await built.aclose()


@asynccontextmanager
async def remembered(settings: Settings) -> AsyncIterator[SourceMemory | None]:
    """The searches that are left today and the pages of the last minutes; None in the sandbox.

    A database that cannot be used is one warning: then nothing is remembered or counted.
    """
    from api.bootstrap import mode_of

    if mode_of(settings) == "sandbox":
        yield None
        return
    from api.bootstrap.storage import open_store_of  # loads the database's libraries

    try:
        store = await open_store_of(settings)
    except (StoreUnavailable, ConfigurationError) as error:
        tell(f"listenpost: warning: no searches are counted and no pages remembered: {error}")
        yield None
        return
    async with closing(store):
        yield store


def run(command: Callable[[], Awaitable[int]]) -> int:
    """The command's exit code; 130 after Ctrl-C and 143 after SIGTERM, without a traceback.

    An interrupted process leaves at once: threads that hang in an upstream call or in a look-up of
    a name are not waited for.
    """
    import asyncio  # help needs none of it
    import signal

    stopped: list[int] = []

    async def main() -> int:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def stop(code: int) -> None:
            if stopped:
                leave(code)
            stopped.append(code)
            if task is not None:
                task.cancel()

        with suppress(NotImplementedError):  # Windows: Ctrl-C arrives as KeyboardInterrupt
            loop.add_signal_handler(signal.SIGINT, stop, INTERRUPTED)
            loop.add_signal_handler(signal.SIGTERM, stop, TERMINATED)
        try:
            return await command()
        except asyncio.CancelledError:
            tell("listenpost: interrupted")
            leave(stopped[0] if stopped else INTERRUPTED)

    return asyncio.run(main())


def leave(code: int) -> NoReturn:
    """End the process now, with what was printed handed over."""
    finish()
    os._exit(code)
