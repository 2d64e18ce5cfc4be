"""Progress on stderr: one line per source, and grades when verbose."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from api.core.domain import Outcome
from api.core.progress import Event, ItemGraded, ProductEvent, Reported, SourceGathered, SourceRefetching, SourceStarted
from api.interfaces.cli.output import LOADING, tell
from api.interfaces.cli.terminal_text import shown
from api.interfaces.shared.presentation import LONGEST_PRODUCT, progress, shortened, source_title

_BUSY, _DONE, _FAILED = "busy", "done", "failed"
_MARKS = {_DONE: Text("✓", style="green"), _FAILED: Text("✗", style="red")}


@dataclass(slots=True)
class _Row:
    words: str
    state: str
    spinner: Spinner


class LiveProgress:
    """A table that follows the events in a terminal; plain lines elsewhere.

    Sources that are not configured share one line, unless there is no other.
    """

    def __init__(self, *, verbose: bool, sample: bool) -> None:
        """`sample`: say at once that everything is made up."""
        self._verbose, self._sample = verbose, sample
        self._rows: dict[str, _Row] = {}
        self._unset: dict[str, str] = {}
        self._others = False
        self._sources_busy: set[str] = set()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._sample:
            self._say("Sample data: everything below is made up and served by the offline sandbox.")
        console = Console(stderr=True, highlight=False)
        if sys.stderr.isatty() and not console.is_dumb_terminal:
            LOADING.clear()
            self._live = Live(console=console, redirect_stdout=False, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following; the last state stays on the screen, and unfinished sources are shown as failed."""
        if self._others and self._unset:
            self._say(f"Not configured: {', '.join(self._unset)}; see `listenpost doctor`")
        else:
            for name, words in self._unset.items():
                self._say(f"{name}: {words}")
        if self._live is None:
            return
        for row in self._rows.values():
            row.state = _FAILED if row.state == _BUSY else row.state
        self._live.update(self._table())
        with suppress(OSError):  # the terminal is gone: no reason to lose the answer
            self._live.stop()
        self._live = None

    def listen(self, event: Event, product: str = "") -> None:
        """Show one event; with several products, each has a line of its own."""
        if isinstance(event, ProductEvent):
            self.listen(event.event, shortened(event.product, LONGEST_PRODUCT))
            return
        if isinstance(event, ItemGraded):
            if self._verbose:
                # a default grade keeps whatever the cutoff: `reddit 1 (r/a): score 4/5 - KEEP: why`
                kept = event.defaulted or event.score >= event.cutoff
                place = f" ({event.place})" if event.place else ""
                head = f"{event.source} {event.number}{place}: score {event.score}/5"
                self._say(f"{head} - {'KEEP' if kept else 'DROP'}: {event.explanation}")
            return
        words = progress(event)
        if words is None:
            return
        name = shown(source_title(event.source) if event.source else "Report")
        if isinstance(event, SourceGathered) and event.outcome == Outcome.NOT_CONFIGURED:
            self._unset[name] = words
            return
        self._others |= isinstance(event, SourceGathered)
        if self._live is None:
            if self._verbose or isinstance(event, SourceGathered | SourceRefetching):
                self._say(f"{product and f'{product}: '}{name}: {words}")
            return
        state = _BUSY
        if isinstance(event, Reported):
            state = _DONE
        elif product:
            words = f"{name}: {words}"
        elif isinstance(event, SourceGathered):
            state = _DONE if Outcome(event.outcome).answered else _FAILED
        name = shown(product) if product else name
        row = self._rows.setdefault(name, _Row(words, state, Spinner("dots")))
        row.words, row.state = shown(words), state
        if isinstance(event, SourceStarted):
            self._sources_busy.add(name)
        elif isinstance(event, SourceGathered) and not product:
            self._sources_busy.discard(name)
            if not self._sources_busy and len(self._rows) > 1:  # the last of several
                self._rows.setdefault("Report", _Row("grading what was kept …", _BUSY, Spinner("dots")))
        self._live.update(self._table())

    def say_requests(self, lines: Iterable[str]) -> None:
        """List what the sandbox was asked."""
        for line in lines:
            self._say(line)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, row in self._rows.items():
            mark: RenderableType = _MARKS.get(row.state, row.spinner)
            table.add_row(mark, Text(name, style="bold"), Text(row.words))
        return table

    def _say(self, line: str) -> None:
        if self._live is None:
            tell(shown(line))
        else:
            with suppress(OSError):
                self._live.console.print(Text(shown(line)))
