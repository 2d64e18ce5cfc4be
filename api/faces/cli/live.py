"""What a person sees while waiting, on stderr: one line per source, and grades when verbose."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from api.services.dossier import TITLES
from api.services.ports import Event
from api.services.text import clean, one_line

if TYPE_CHECKING:
    from api.sandbox.server import Sandbox


class Live:
    """A table that follows the events in a terminal; plain lines elsewhere."""

    def __init__(self, *, verbose: bool, sample: bool) -> None:
        """`sample`: say at once that everything is made up."""
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._verbose, self._sample = verbose, sample
        self._rows: dict[str, str] = {}
        self._live: RichLive | None = None

    def __enter__(self) -> Self:
        """Start following."""
        if self._sample:
            self._say("Sample data: everything below is made up and served by the offline sandbox.")
        if self._console.is_terminal:
            self._live = RichLive(console=self._console, transient=False, refresh_per_second=8)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop following; the last state stays on the screen."""
        if self._live is not None:
            self._live.stop()

    def listen(self, event: Event) -> None:
        """Show one event."""
        if event.kind == "graded.item":
            if self._verbose:
                self._say(_graded(event))
            return
        said = _said(event)
        if said is None:
            return
        name = TITLES.get(event.source, event.source) if event.source else "Report"
        if self._live is not None:
            self._rows[name] = said
            self._live.update(self._table())
        elif self._verbose or event.kind in {"source.kept", "source.refetching"}:
            self._say(f"{name}: {said}")

    def say_requests(self, sandbox: Sandbox) -> None:
        """List what the sandbox was asked."""
        for entry in sandbox.log.entries():
            self._say(f"{entry.upstream} {entry.method} {entry.path} -> {entry.status}")

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for name, said in self._rows.items():
            table.add_row(Text(name, style="bold"), Text(said))
        return table

    def _say(self, line: str) -> None:
        self._console.print(Text(one_line(clean(line))))


def _said(event: Event) -> str | None:
    data = event.data
    match event.kind:
        case "source.started":
            return f"asking for {data['limit']} …"
        case "source.fetched":
            return f"{data['fetched']} fetched, judging …"
        case "source.judged":
            return f"{data['relevant']} of {data['judged']} relevant"
        case "source.refetching":
            return f"too little of it is relevant, fetching {data['limit']} …"
        case "source.kept":
            return _kept(data)
        case "graded":
            return f"{data['survived']} of {data['scored']} survive grading"
        case "writing":
            return f"writing over {data['exhibits']} exhibits …"
        case "report":
            return f"{data['decision']}"
    return None


def _kept(data: Any) -> str:
    if data["outcome"] not in {"ok", "irrelevant", "empty"}:
        return f"{data['outcome']}: {data['reason']}"
    line = f"kept {data['kept']} of {data['fetched']}"
    line += f", yield {data['yield_ratio'] * 100:.0f} %" if data["fetched"] else ""
    line += ", refetched" if data["refetched"] else ""
    return line + (f", gate degraded ({data['reason']})" if data["status"] == "degraded" else "")


def _graded(event: Event) -> str:
    data = event.data
    verdict = "KEEP" if data["score"] >= data.get("cutoff", 3) else "DROP"
    place = f" ({data['place']})" if data["place"] else ""
    head = f"{event.source} {data['number']}{place}: score {data['score']}/5"
    return f"{head} - {verdict}: {data['explanation']}"
