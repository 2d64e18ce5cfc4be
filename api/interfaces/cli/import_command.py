"""`import`: what others have collected comes into the archive, and goes again."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from api.core.text import quantity, utc_minute
from api.errors import NotFound, UsageError
from api.interfaces.cli.output import Data, Encoding, as_json, say, tell
from api.interfaces.cli.report_commands import opened_store

if TYPE_CHECKING:
    from rich.progress import Progress

    from api.features.archive.import_file import ImportPreview
    from api.features.archive.imports import Import, ImportPosition, ImportProgress, Imports
    from api.sources.imported.detection import CollectedFile


FILE = "FILE"
"""Stands in the place of a command's name when a file is named."""
DAMAGED = 3
"""Exit code when the rest of a file was not read because it is damaged or beyond a limit; the rest is stored."""
# Between two lines of progress where there is no terminal.
_SECONDS = 5.0
ImportId = Annotated[str, typer.Argument(metavar="ID", help="Id of an import, or its beginning.")]
WholeImportId = Annotated[str, typer.Argument(metavar="ID", help="Whole id of an import.")]


class FileOrCommand(TyperGroup):
    """`import FILE` beside `import list`; a file that is called `list` is `./list`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name of the command for files before what is no command's name."""
        if args and args[0] not in {*self.commands, "--help"}:
            args = [FILE, *args]
        return super().parse_args(ctx, args)


async def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to import, `-` for stdin.")],
    form: Annotated[
        Literal["auto", "reddit", "youtube", "amazon", "csv", "jsonl"],
        typer.Option("--as", help="Format of the file."),
    ] = "auto",
    columns: Annotated[str, typer.Option("--map", help="Columns of a table: title=Headline,body=Full Text,...")] = "",
    product: Annotated[str, typer.Option(help="Product that the file is about, and title of items without one.")] = "",
    encoding: Encoding = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what the file holds, and write nothing.")] = False,
) -> int:
    """Store what a file holds; an import that was stopped is continued."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.archive import import_file as file_import
    from api.sources.imported.detection import ReadOptions, open_collected, read_columns
    from api.sources.imported.text_encoding import UnreadableFile

    options = ReadOptions(form, read_columns(columns) or None, product.strip(), encoding.strip())
    try:
        with closing(open_collected(file, options, sys.stdin.buffer)) as source:
            for line in source.findings:
                tell(_shown(line))
            if dry_run:
                with _Following(source) as following:
                    preview = file_import.preview_import(source, following.hear)
                _say_preview(preview)
                return _damage_code(source)
            async with opened_store() as store:
                with _Following(source) as following:
                    imported, fresh = await file_import.import_file(source, store, LOCAL.id, following.hear)
    except UnreadableFile as error:  # found behind the beginning
        raise UsageError(f"`{file}` {error}") from None
    if fresh:
        say(_summary(imported))
        if imported.progress.refused:
            tell(f"what was kept aside, and why: `listenpost import show {imported.id}`")
    else:
        say(
            f"`{_shown(file)}` was imported before, as {imported.id}; to import it again, "
            f"first `listenpost import remove {imported.id}`"
        )
    return _damage_code(source)


def _damage_code(source: CollectedFile) -> int:
    """Print what of a file was not read; returns the exit code."""
    for loss in source.opened.losses:
        tell(f"listenpost: warning: {loss}")
    return DAMAGED if source.opened.damage else 0


async def list_imports(form: Data = "text") -> None:
    """List what was imported, the newest first."""
    from api.features.analyses.api_keys import LOCAL

    async with opened_store() as store:
        listed = await store.imports(LOCAL.id)
    if form == "json":
        say(as_json([_plain(row) for row in listed]))
        return
    for row in listed:
        when = utc_minute(row.created_at) if row.created_at else "unknown"
        state = "" if row.finished_at else "  unfinished"
        say(f"{row.id}  {when}  {_counts(row.progress)}  {_shown(row.identity.name)}{state}")
    if not listed:
        tell("nothing was imported yet; `listenpost import FILE` does")


async def show(import_id: ImportId, form: Data = "text") -> None:
    """Show one import: its counts, and the lines that could not be imported, with the reasons."""
    from api.features.analyses.api_keys import LOCAL

    async with opened_store() as store:
        row = await _import_of(store, import_id)
        aside = await store.refusals(LOCAL.id, row.id)
    if form == "json":
        lines = [{"line": r.line, "reason": r.reason, "start": r.start} for r in aside]
        say(as_json({**_plain(row), "refusals": lines}))
        return
    say(_summary(row))
    for refusal in aside:
        say(f"line {refusal.line}: {_shown(refusal.reason)}: {_shown(refusal.start)[:100]}")
    if row.progress.refused > len(aside):
        say(f"and {row.progress.refused - len(aside):,} more, which are only counted")


async def remove(import_id: WholeImportId) -> None:
    """Undo an import: what no report and no other import holds is deleted."""
    from api.features.analyses.api_keys import LOCAL

    async with opened_store() as store:
        row = await _import_of(store, import_id)
        if row.id != import_id:
            raise UsageError(f"what is removed is named whole: `listenpost import remove {row.id}`")
        gone = await store.remove_import(LOCAL.id, row.id)
    tell(f"`{row.id}` is removed, with {gone or 0:,} items that nothing else held")


async def forget(
    file: Annotated[Path, typer.Argument(help="File with ids or keys of deleted items, one on each line.")],
) -> None:
    """Remove items from everything stored, since their authors or their source deleted them."""
    from api.features.analyses.api_keys import LOCAL

    try:
        text = file.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from None
    ids = {line.strip() for line in text.splitlines()} - {""}
    if not ids:
        raise UsageError(f"`{file}` names nothing; write an id or a key on each line")
    async with opened_store() as store:
        gone = await store.forget(await store.keys_of(LOCAL.id, ids))
        comments = await store.forget_comments(LOCAL.id, ids)
    named = quantity(len(ids), "id")
    say(f"{named}: {quantity(gone, 'item')} and {quantity(comments, 'comment')} forgotten")


class _Following(AbstractContextManager["_Following"]):
    """Progress of reading a file on stderr: a bar in a terminal, otherwise occasional lines."""

    def __init__(self, source: CollectedFile) -> None:
        self._opened, self._began = source.opened, time.monotonic()
        self._last = self._began
        self._bar: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> _Following:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
                TransferSpeedColumn,
            )

            self._bar = Progress(
                BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
                TextColumn("{task.description}"), console=Console(stderr=True),
            )  # fmt: skip
            self._task = self._bar.add_task("", total=self._opened.size)
            self._bar.start()
        return self

    def __exit__(self, *how: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def hear(self, progress: ImportProgress, position: ImportPosition) -> None:
        """Show what has become of the file so far."""
        taken, size = self._opened.taken, self._opened.size
        if self._bar is not None:
            rate = position.line / max(time.monotonic() - self._began, 0.001)
            words = f"{_counts(progress)}, {rate:,.0f} lines/s"
            self._bar.update(self._task, completed=taken, description=words)
            return
        now = time.monotonic()
        if now - self._last < _SECONDS:
            return
        self._last = now
        rate = taken / max(now - self._began, 0.001)
        parts = [f"{taken / 1e6:,.0f} MB", _counts(progress), f"{rate / 1e6:.1f} MB/s"]
        if size:
            parts[0] += f" of {size / 1e6:,.0f}"
            parts.append(f"{max(size - taken, 0) / max(rate, 1):,.0f} s left")
        tell(", ".join(parts))


async def _import_of(store: Imports, name: str) -> Import:
    """The import of this id, or the only one whose id begins so.

    Raises:
        NotFound: there is none.
        UsageError: there are several.
    """
    from api.features.analyses.api_keys import LOCAL

    listed = await store.imports(LOCAL.id)
    rows = [row for row in listed if row.id == name] or [row for row in listed if name and row.id.startswith(name)]
    if len(rows) > 1:
        raise UsageError(f"several imports begin with `{name[:60]}`; write more of it")
    if not rows:
        raise NotFound(f"there is no import `{name[:60]}`; `listenpost import list` lists them")
    return rows[0]


def _summary(row: Import) -> str:
    progress = row.progress
    lines = [
        f"{row.id}: {_shown(row.identity.name)} as {row.identity.form}: {_counts(progress)} new, "
        f"{progress.merged:,} there already",
    ]
    if progress.over:
        lines.append(f"{quantity(progress.over, 'comment')} not kept: one item keeps its best 500")
    for reason, count in progress.left_out.items():
        lines.append(f"{count:,} left out: {_shown(reason)}")
    if progress.refused:
        lines.append(f"{quantity(progress.refused, 'line')} kept aside: not readable")
    if row.finished_at is None:
        lines.append(f"unfinished: stored up to line {row.position.line:,}; import it again to go on")
    return "\n".join(lines)


def _say_preview(preview: ImportPreview) -> None:
    progress = preview.progress
    say(
        f"{_counts(progress)}, {quantity(progress.refused, 'line')} that nobody can read, "
        f"{sum(progress.left_out.values()):,} left out; nothing was written"
    )
    for item in preview.examples:
        text = item.body or (item.comments[0].body if item.comments else "")
        day = f"{item.created_at:%Y-%m-%d}" if item.created_at else "undated"
        width = shutil.get_terminal_size((100, 24)).columns
        say(f"  {item.key}  {day}  {_shown(item.title)}: {_shown(text)}"[: max(width, 60)])
    for refusal in preview.refusals:
        say(f"  line {refusal.line}: {_shown(refusal.reason)}")


def _counts(progress: ImportProgress) -> str:
    return f"{quantity(progress.items, 'item')}, {quantity(progress.comments, 'comment')}"


def _plain(row: Import) -> dict[str, Any]:
    from dataclasses import asdict

    created, finished = row.created_at, row.finished_at
    return {
        "id": row.id, "file": row.identity.name, "format": row.identity.form,
        "line": row.position.line,
        **asdict(row.progress), "created_at": created and created.isoformat(),
        "finished_at": finished and finished.isoformat(),
    }  # fmt: skip


def _shown(text: str) -> str:
    from api.interfaces.cli.terminal_text import shown

    return shown(text)
