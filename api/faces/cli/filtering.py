"""`filter`: the gate alone, over a person's own lines."""

from __future__ import annotations

import sys

from api import wiring
from api.errors import UsageError
from api.faces.cli.choices import Format
from api.faces.cli.printing import as_json, say, say_bytes, tell
from api.faces.cli.running import closing, run
from api.faces.web.schemas import Relevance
from api.services.question.query import screen
from api.services.schemas import Question
from api.services.text import clean, one_line
from api.sources.items import item_of, read_lines


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
        async with closing(wiring.build_gate(settings)) as product:
            items = [item_of(line.fields, line.number, name) for line in lines]
            gated = await product.gate.judge(Question(screened.query, clean(about)), items, name)
        relevance = Relevance.of([dict(line.fields) for line in lines], gated)
        tell(_gate_line(relevance, gated.model))
        if form is Format.json:
            say(as_json(relevance.model_dump()))
        else:
            pairs = zip(lines, gated.verdicts, strict=True)
            say_bytes(b"".join(line.raw for line, verdict in pairs if verdict.relevant))
        return 0

    return run(work)


def _gate_line(relevance: Relevance, judge: str | None) -> str:
    kept = len(relevance.relevant)
    total = kept + len(relevance.dropped)
    share = f"{relevance.yield_ratio * 100:.0f} %" if total else "-"
    line = f"kept {kept} of {total}, yield {share}, gate {relevance.status}"
    line += f" ({relevance.reason})" if relevance.reason else ""
    return line + (f", judged by {judge}" if judge else "")
