"""Answers on stdout or in a file, words for a person on stderr, and streams that are closed.

A stream that nobody reads (closed, or a pipe whose reader has left) takes nothing more and stops
nothing; an answer that stdout cannot take for another reason is an error.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

from api.errors import UsageError

if TYPE_CHECKING:
    from api.services.comparing.comparison import Comparison
    from api.services.reporting.report import Fetched, Report

Answer: TypeAlias = "Report | Fetched | Comparison"
_FILE_COLUMNS = 100
_CONTEXT = "OTEL_PYTHON_CONTEXT"
"""OpenTelemetry reads it while it is imported, and answers a name that it does not know with a
traceback and its default."""


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
class Handover:
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


def deliver(answer: Answer, handover: Handover) -> None:
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


def rendered(answer: Answer, handover: Handover, *, filed: bool) -> str:
    """The answer in its format, without the last line's end; `filed`: for a file."""
    from api.faces import markdown
    from api.faces.cli import terminal
    from api.services.comparing.comparison import Comparison
    from api.services.reporting.report import Report

    form, width = handover.format, _FILE_COLUMNS if filed else None
    if form is ReportFormat.json:
        value = answer.model_dump(mode="json")
        return as_json(value, 1, encoding="utf-8") if filed else as_json(value)
    if isinstance(answer, Comparison):
        return _compared(answer, form, width)
    if not isinstance(answer, Report):
        if form is ReportFormat.markdown:
            return markdown.fetch_markdown(answer, handover.dropped).rstrip("\n")
        return terminal.fetched_text(answer, handover.dropped, width)
    match form:
        case ReportFormat.html:
            from api.faces.web.pages.exporting import report_html

            return report_html(answer).rstrip("\n")
        case ReportFormat.csv:
            from api.faces.spreadsheet import report_csv

            return report_csv(answer).rstrip("\r\n")
        case ReportFormat.markdown:
            return markdown.report_markdown(answer, handover.dropped).rstrip("\n")
        case ReportFormat.text:
            return terminal.report_text(answer, handover.dropped, width)


def _compared(comparison: Comparison, form: ReportFormat, width: int | None) -> str:
    from api.faces import comparisons
    from api.faces.cli import terminal

    match form:
        case ReportFormat.html:
            from api.faces.web.pages.exporting import comparison_html

            return comparison_html(comparison).rstrip("\n")
        case ReportFormat.csv:
            return comparisons.comparison_csv(comparison).rstrip("\r\n")
        case ReportFormat.markdown:
            from api.faces.markdown import comparison_markdown

            return comparison_markdown(comparison).rstrip("\n")
        case _:
            return terminal.comparison_text(comparison, width)


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
