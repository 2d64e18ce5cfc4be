"""`analyze`, `fetch` and `filter`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api import wiring
from api.errors import ConfigurationError, UsageError
from api.faces.cli import terminal
from api.faces.cli.choices import Format
from api.faces.cli.estimate import estimate
from api.faces.cli.live import Live
from api.faces.cli.running import closing, run
from api.faces.markdown import fetch_markdown, report_markdown
from api.services import listening
from api.services.listening import Ask
from api.services.schemas import Item, Question
from api.services.tools import Filtered, shown
from api.settings import Settings
from api.sources.items import read_items

ANSWERED, USAGE, INSUFFICIENT, NOT_ASKED = 0, 2, 3, 4
_ASKED = {"ok", "empty", "irrelevant"}


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
    own = None if items is None else _read(items)
    settings = wiring.load_settings()
    _refuse_overwriting(wanted.output)
    if wanted.estimate:
        return _estimated(settings, ask, wanted)

    async def work() -> int:
        async with closing(wiring.build(settings, own)) as built:
            with Live(verbose=wanted.verbose, sample=built.kit.sample) as live:
                answer = await listening.analyze(built.kit, ask, live.listen)
            if wanted.verbose and built.sandbox is not None:
                live.say_requests(built.sandbox)
        try:
            _deliver(answer, wanted, terminal.report, report_markdown)
        finally:
            await _keep(settings, answer)
        return _analyzed(answer)

    return run(work)


def fetch_command(ask: Ask, source: str, wanted: Wanted) -> int:
    """Fetch from one source and print."""
    settings = wiring.load_settings()
    _refuse_overwriting(wanted.output)
    if wanted.estimate:
        return _estimated(settings, ask, wanted)

    async def work() -> int:
        async with closing(wiring.build(settings)) as built:
            with Live(verbose=wanted.verbose, sample=built.kit.sample) as live:
                heard = await listening.fetch(built.kit, source, ask, listener=live.listen)
            if wanted.verbose and built.sandbox is not None:
                live.say_requests(built.sandbox)
        _deliver(heard.data, wanted, terminal.fetched, fetch_markdown)
        outcome = heard.data["outcome"]
        return ANSWERED if outcome == "ok" else INSUFFICIENT if outcome in _ASKED else NOT_ASKED

    return run(work)


def filter_command(query: str, source: str, about: str, form: Format) -> int:
    """Judge the items on stdin; kept lines go to stdout as they came."""
    settings = wiring.load_settings()
    lines = [line for line in sys.stdin.read().splitlines() if line.strip()]
    items = [_object(line, number) for number, line in enumerate(lines, 1)]

    async def work() -> int:
        async with closing(wiring.build_gate(settings)) as own:
            judged = [shown(item, source, number) for number, item in enumerate(items)]
            sifted = await own.gate.sift(Question(query, about), judged, source)
        kept = [verdict.relevant for verdict in sifted.verdicts]
        filtered = Filtered.of(items, sifted)
        if form is Format.json:
            print(json.dumps(_filtered(items, kept, filtered), ensure_ascii=False))
        else:
            for line, relevant in zip(lines, kept, strict=True):
                if relevant:
                    print(line)
        print(_gate_text(filtered, len(items)), file=sys.stderr)
        return ANSWERED

    return run(work)


async def _keep(settings: Settings, answer: dict[str, Any]) -> None:
    sys.stdout.flush()
    from api.faces.cli.storing import keep  # the database's libraries load after the answer

    await keep(settings, answer)


def _filtered(
    items: list[dict[str, Any]], kept: list[bool], filtered: Filtered[dict[str, Any]]
) -> dict[str, Any]:
    relevant, share = filtered
    return {
        "relevant": relevant,
        "dropped": [item for item, keep in zip(items, kept, strict=True) if not keep],
        "yield_ratio": share,
        "status": filtered.status,
        "reason": filtered.reason,
    }


def _gate_text(filtered: Filtered[dict[str, Any]], total: int) -> str:
    relevant, share = filtered
    line = f"kept {len(relevant)} of {total}, yield {share * 100:.0f} %, gate {filtered.status}"
    line += f" ({filtered.reason})" if filtered.reason else ""
    return line + (f", judged by {filtered.model}" if filtered.model else "")


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"line {number} is no JSON object; write one object per line")
    return value


def _read(path: Path) -> list[Item]:
    try:
        return read_items(path.read_text("utf-8", "replace").splitlines())
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None


def _refuse_overwriting(path: Path | None) -> None:
    if path is not None and path.exists():
        raise UsageError(f"`{path}` exists and is never overwritten; name a new file")


def _deliver(
    answer: dict[str, Any],
    wanted: Wanted,
    as_text: Callable[[dict[str, Any], bool, int | None], str],
    as_markdown: Callable[[dict[str, Any], bool], str],
) -> None:
    """Print the answer, or write it to a file that did not exist."""
    width = None if wanted.output is None else 100
    if wanted.format is Format.json:
        text = json.dumps(answer, ensure_ascii=False, indent=None if wanted.output is None else 1)
    elif wanted.format is Format.markdown:
        text = as_markdown(answer, wanted.dropped)
    else:
        text = as_text(answer, wanted.dropped, width)
    if wanted.output is None:
        print(text)
        return
    try:
        with wanted.output.open("x", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as error:
        print(text)
        raise ConfigurationError(
            f"`{wanted.output}` cannot be written ({error.strerror}); the answer is on stdout"
        ) from None
    print(f"written to {wanted.output}", file=sys.stderr)


def _analyzed(answer: dict[str, Any]) -> int:
    if answer["decision"] in {"full_report", "short_report"}:
        return ANSWERED
    sources = answer["sources"].values()
    if sources and not any(source["outcome"] in _ASKED for source in sources):
        return NOT_ASKED
    return INSUFFICIENT


def _estimated(settings: Settings, ask: Ask, wanted: Wanted) -> int:
    print(estimate(settings, ask, as_json=wanted.format is Format.json))
    return ANSWERED
