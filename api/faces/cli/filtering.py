"""`filter`: the gate alone, over a person's own lines."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from api import wiring
from api.errors import UsageError
from api.faces.cli.choices import Format
from api.faces.cli.printing import as_json, say, say_bytes, tell
from api.faces.cli.running import closing, run
from api.services.question.query import screen
from api.services.schemas import Gated, Question
from api.services.text import clean, one_line
from api.sources.items import ItemLine, item_of, read_lines


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The lines that stay and those that go, in order."""

    kept: Sequence[ItemLine]
    dropped: Sequence[ItemLine]
    gated: Gated

    @property
    def share(self) -> float:
        total = len(self.kept) + len(self.dropped)
        return len(self.kept) / total if total else 1.0


def filter_command(query: str, source: str, about: str, form: Format) -> int:
    """Judge the items on stdin; kept lines go to stdout as they came, byte for byte.

    Raises:
        UsageError: a line that is no JSON object, or a query or source that names nothing.
    """
    screened, name = screen(query), one_line(clean(source))
    if not screened.ok:
        raise UsageError(screened.guidance)
    if not name:
        raise UsageError("`--source` names nothing; say where the items are from")
    settings = wiring.load_settings()
    lines = read_lines(sys.stdin.buffer.read())

    async def work() -> int:
        async with closing(wiring.build_gate(settings)) as own:
            items = [item_of(line.fields, line.number, name) for line in lines]
            gated = await own.gate.judge(Question(screened.query, clean(about)), items, name)
        _print(_sorted(lines, gated), form)
        return 0

    return run(work)


def _sorted(lines: Sequence[ItemLine], gated: Gated) -> _Sorted:
    kept = [line for line, verdict in zip(lines, gated.verdicts, strict=True) if verdict.relevant]
    stays = {line.number for line in kept}
    return _Sorted(kept, [line for line in lines if line.number not in stays], gated)


def _print(found: _Sorted, form: Format) -> None:
    tell(_gate_line(found))
    if form is Format.json:
        say(as_json(_object(found)))
    else:
        say_bytes(b"".join(line.raw for line in found.kept))


def _object(found: _Sorted) -> dict[str, Any]:
    return {
        "relevant": [line.fields for line in found.kept],
        "dropped": [line.fields for line in found.dropped],
        "yield_ratio": found.share,
        "status": found.gated.status,
        "reason": found.gated.reason,
    }


def _gate_line(found: _Sorted) -> str:
    total, gated = len(found.kept) + len(found.dropped), found.gated
    share = f"{found.share * 100:.0f} %" if total else "-"
    line = f"kept {len(found.kept)} of {total}, yield {share}, gate {gated.status}"
    line += f" ({gated.reason})" if gated.reason else ""
    return line + (f", judged by {gated.model}" if gated.model else "")
