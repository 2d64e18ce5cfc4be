"""Answers on stdout or in a file, words for a person on stderr, and streams that are closed.

A stream that nobody reads (closed, or a pipe whose reader has left) takes nothing more and stops
nothing; an answer that stdout cannot take for another reason is an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Protocol, TextIO, TypeVar

import typer

from api.errors import UsageError

if TYPE_CHECKING:
    from api.features.comparisons.comparison import Comparison
    from api.reports.report import Fetched, Report

    Answer = Report | Fetched | Comparison

DataFormat = Literal["text", "json"]
TextFormat = Literal["text", "json", "markdown"]
OutputFormat = Literal["text", "json", "markdown", "html", "csv"]
Data = Annotated[DataFormat, typer.Option("--format", help="Output format.")]
As = Annotated[TextFormat, typer.Option("--format", help="Output format.")]
ReportAs = Annotated[OutputFormat, typer.Option("--format", help="Output format.")]
Dropped = Annotated[bool, typer.Option("--dropped", help="Also list dropped items, with the reasons.")]
Output = Annotated[Path | None, typer.Option(help="Write the answer to this new file.")]
Encoding = Annotated[
    str, typer.Option("--encoding", help="Encoding of the file (such as `cp1251`); default: detected.")
]
INTERRUPTED, TERMINATED = 130, 143
_FILE_COLUMNS = 100
# OpenTelemetry reads it while it is imported, and answers a name that it does not know with a
# traceback and its default.
_CONTEXT = "OTEL_PYTHON_CONTEXT"


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Format and destination of an answer."""

    format: OutputFormat
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


def deliver(answer: Answer, options: OutputOptions) -> None:
    """Print the answer, or write it to a file that did not exist: all of it, or no file.

    Raises:
        UsageError: it cannot be written; then the answer is on stdout.
    """
    path = options.output
    if path is None:
        say(_rendered(answer, options, None))
        return
    try:
        with path.open("xb") as file:
            try:
                text = _rendered(answer, options, _FILE_COLUMNS)
                file.write(f"{text}\n".encode("utf-8", "replace"))
                file.flush()
            except OSError:
                with suppress(OSError):
                    path.unlink()
                raise
    except OSError as error:
        say(_rendered(answer, options, None))
        raise UsageError(f"`{path}` cannot be written ({error.strerror}); the answer is on stdout") from None
    tell(f"written to {path}")


def _rendered(answer: Answer, options: OutputOptions, columns: int | None) -> str:
    """The answer without the last line's end; `columns` of a file, None for the terminal's."""
    from api.features.comparisons.comparison import Comparison
    from api.interfaces.cli import terminal_text
    from api.interfaces.shared import csv_export, markdown_report
    from api.reports.report import Report

    form, dropped = options.format, options.dropped
    if form == "json":
        value = answer.model_dump(mode="json")
        return as_json(value) if columns is None else as_json(value, 1, encoding="utf-8")
    if isinstance(answer, Comparison):
        if form == "html":
            from api.interfaces.pages.report_values import comparison_html  # loads FastAPI

            text = comparison_html(answer)
        elif form == "csv":
            text = csv_export.comparison_csv(answer)
        elif form == "markdown":
            text = markdown_report.comparison_markdown(answer)
        else:
            text = terminal_text.comparison_text(answer, columns)
    elif isinstance(answer, Report):
        if form == "html":
            from api.interfaces.pages.report_values import report_html  # loads FastAPI

            text = report_html(answer)
        elif form == "csv":
            text = csv_export.report_csv(answer)
        elif form == "markdown":
            text = markdown_report.report_markdown(answer, dropped)
        else:
            text = terminal_text.report_text(answer, dropped, columns)
    elif form == "markdown":
        text = markdown_report.fetch_markdown(answer, dropped)
    else:
        text = terminal_text.fetched_text(answer, dropped, columns)
    return text.rstrip("\r\n")


def as_json(value: Any, indent: int | None = None, *, encoding: str | None = None) -> str:
    """One JSON object as text; characters that the encoding (default: stdout's) lacks are escaped."""
    wide = (encoding or sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not wide, indent=indent)
    return text.encode("utf-8", "replace").decode() if wide else text


def tell(line: str) -> None:
    """Print a line on stderr, if anybody is there."""
    LOADING.clear()
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _let_go(sys.stderr)


class LoadingSign:
    """`Loading …` on a terminal, until the first line of a command takes its place."""

    def __init__(self) -> None:
        self._shown = False

    def show(self) -> None:
        """Show it on stderr, where that is a terminal."""
        if sys.stderr.isatty():
            self._write("Loading …")

    def clear(self) -> None:
        """Take it away again; the cursor is at the beginning of its line."""
        if self._shown:
            self._write(" " * len("Loading …"))
            self._shown = False

    def _write(self, text: str) -> None:
        self._shown = True
        with suppress(OSError):
            print(text, end="\r", file=sys.stderr, flush=True)


LOADING = LoadingSign()


def langfuse_words(state: str, reason: str) -> str:
    """Confirms that a rating is stored, and whether Langfuse has it, from the state of a `Given`."""
    if state == "failed":
        return f"listenpost: warning: it is kept here, but not in Langfuse: {reason}"
    return "kept, and sent to Langfuse" if state == "sent" else "kept"


def finish() -> None:
    """Hand over what is left, so that the interpreter's own end finds nothing to complain about."""
    LOADING.clear()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _let_go(stream)


def _give(data: bytes) -> None:
    LOADING.clear()
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
    """Redirect the stream to nowhere, with what it still buffers."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class Closable(Protocol):
    """An object that a command builds and must close."""

    async def aclose(self) -> None:
        """Close connections and threads, at the end of the command."""
        ...


B = TypeVar("B", bound=Closable)


@asynccontextmanager
async def closing(built: B) -> AsyncIterator[B]:
    """The built product, closed at the end even when the command is interrupted."""
    try:
        yield built
    finally:
        await built.aclose()


def run_to_end(command: Coroutine[Any, Any, int | None]) -> int:
    """The command's exit code; 130 after Ctrl-C and 143 after SIGTERM, without a traceback.

    An interrupted process leaves at once: threads that hang in an upstream call or in a look-up of
    a name are not waited for.
    """
    import asyncio  # help does without
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
            return await command or 0
        except asyncio.CancelledError:
            tell("listenpost: interrupted")
            leave(stopped[0] if stopped else INTERRUPTED)

    return asyncio.run(main())


def leave(code: int) -> NoReturn:
    """End the process now, with what was printed handed over."""
    finish()
    os._exit(code)
