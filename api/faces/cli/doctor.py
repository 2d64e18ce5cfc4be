"""`doctor`: per upstream, whether it can be asked, what is left, and how to fix it."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from api import wiring
from api.faces.cli.printing import Format, as_json, say
from api.faces.cli.running import closing, remembered, run
from api.faces.cli.terminal import wrapped
from api.faces.upstreams import probed

_SAMPLE = "sample world: made up and offline; no key is used and nothing is spent"
_WAY_OUT = "`LISTENPOST_MODE=sandbox` is set; without it the real places are asked."
_NAME = 10
"""Columns of the first column at least."""
_WIDE, _INDENT = 76, 2
"""Columns that a row takes; on a narrower terminal it is wrapped, what to do below it indented."""


def doctor_command(form: Format) -> int:
    """Probe everything at once, at the lowest cost there is; exit code 4 when no source answers."""
    settings = wiring.load_settings()

    async def work() -> int:
        async with (
            remembered(settings) as memory,
            closing(wiring.build(settings, memory=memory)) as product,
        ):
            rows, sample = await probed(settings, product), product.sample
        mode = "sandbox" if sample else "live"
        if form is Format.json:
            say(as_json({"mode": mode, "upstreams": list(map(asdict, rows))}))
        else:
            lines = [_SAMPLE if sample else f"mode: {mode}"]
            width = max(_NAME, *(len(row.title) for row in rows))
            for row in rows:
                left = row.quota_left
                details = [row.detail, "" if left is None else f"{left} searches left today"]
                words = ", ".join(filter(None, details))
                lines.append(f"{row.title:<{width}} {row.outcome:<16} {words}".rstrip())
                label = "to be real" if row.outcome == "ok" else "fix"
                lines += [f"{'':<{width}} {label}: {row.fix}"] if row.fix else []
            if sample:
                lines.append(_WAY_OUT)
            columns = shutil.get_terminal_size((_WIDE, 24)).columns
            if columns < _WIDE:
                leads = (" " * _INDENT if line.startswith(" ") else "" for line in lines)
                lines = [
                    part
                    for line, lead in zip(lines, leads, strict=True)
                    for part in wrapped(line, columns, lead)
                ]
            say("\n".join(lines))
        return 0 if any(row.outcome == "ok" for row in rows if row.is_place) else 4

    return run(work)
