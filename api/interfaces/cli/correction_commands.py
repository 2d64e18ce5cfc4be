"""`correct`, `review` and `corrections`: what the gate decided wrongly, as a person says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from api.errors import UsageError
from api.interfaces.cli.output import Data, say, tell
from api.interfaces.cli.stored_commands import AnalysisId, kept_of, opened_store

if TYPE_CHECKING:
    from api.features.analyses.corrections import StoredCorrection
    from api.reports.report import DroppedItem, KeptItem, Report

    Entry = KeptItem | DroppedItem

_KEYS = "y about it, n not about it, space skip, u undo, q quit"


async def correct(
    analysis: AnalysisId,
    key: Annotated[str, typer.Argument(help="Key of an item, kept or dropped.")],
    relevant: Annotated[
        bool | None,
        typer.Option("--relevant/--irrelevant", help="Whether the item is about the product."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the correction of this item.")
    ] = False,
) -> None:
    """Correct whether one item is relevant; later analyses of this question learn from it."""
    if (relevant is None) != remove:
        raise UsageError("say one of `--relevant`, `--irrelevant` and `--remove`")
    from api.features.analyses import feedback
    from api.features.analyses.api_keys import LOCAL

    async with opened_store() as store:
        kept = await kept_of(store, analysis)
        if relevant is None:
            await feedback.withdraw(store, LOCAL.id, kept.id, key)
            tell(f"removed the correction of `{key}`")
            return
        entry = await feedback.correct(store, LOCAL.id, kept.id, key, relevant)
        tell(f"`{key}` is {_word(relevant)} “{entry.query}”; its next analysis learns from this")


async def review(analysis: AnalysisId) -> None:
    """Correct the items of a stored analysis one by one, each with one key, unsure ones first.

    Items that were corrected before are left out, so that a review can be continued.
    """
    from api.features.analyses import feedback
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.corrections import corrections_of

    async with opened_store() as store:
        kept = await kept_of(store, analysis)
        if kept.report is None:
            raise UsageError(kept.why_none)
        question = kept.report.question
        known = {correction.key for correction in await corrections_of(store, LOCAL.id, question)}
        left = [entry for entry in _by_doubt(kept.report) if entry.key not in known]
        done: list[str] = []
        at = 0
        tell(f"{len(left)} items to review, {len(known)} corrected before ({_KEYS})")
        while at < len(left):
            say(_shown(left[at], at + 1, len(left)))
            match _pressed():
                case "y" | "n" as answer:
                    key = left[at].key
                    await feedback.correct(store, LOCAL.id, kept.id, key, answer == "y")
                    done.append(key)
                    at += 1
                case "u" if done:
                    at -= 1
                    while left[at].key != done[-1]:
                        at -= 1
                    await feedback.withdraw(store, LOCAL.id, kept.id, done.pop())
                case " ":
                    at += 1
                case "q" | "":
                    break
                case _:
                    tell(_KEYS)
        tell(f"{len(done)} corrected; `listenpost analyze` with the same question learns from them")


async def corrections(form: Data = "text") -> None:
    """List your corrections; `--format json` prints labelled lines that `listenpost eval` reads."""
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.corrections import labelled_lines

    async with opened_store() as store:
        entries = await store.corrections(LOCAL.id)
        if form == "json":
            for line in labelled_lines(entries):
                say(line)
            return
        for line in _lines(entries):
            say(line)
        if not entries:
            tell("there are no corrections; `listenpost review ANALYSIS` makes some")


def _by_doubt(report: Report) -> list[Entry]:
    """Every judged item, those first about which the judge was least sure."""
    entries: list[Entry] = [*report.items, *report.dropped]
    entries += [item for source in report.sources.values() for item in source.dropped]
    judged = {entry.key: entry for entry in entries if entry.dropped_by != "unfit"}
    return sorted(judged.values(), key=lambda entry: abs((entry.probability or 1.0) - 0.5))


def _shown(entry: Entry, number: int, count: int) -> str:
    from api.core.text import cut, one_line
    from api.interfaces.cli.terminal_text import shown
    from api.reports.report import KeptItem

    text = entry.body if isinstance(entry, KeptItem) else entry.snippet
    place = f" · {entry.place}" if entry.place else ""
    state = "kept" if isinstance(entry, KeptItem) else f"dropped: {entry.reason}"
    lines = [f"{number} of {count} · {entry.key}{place} · {state}", entry.title]
    return "\n".join(shown(line) for line in [*lines, cut(one_line(text), 400), ""])


def _lines(entries: Sequence[StoredCorrection]) -> list[str]:
    from api.interfaces.cli.terminal_text import shown

    lines: list[str] = []
    groups: dict[str, list[StoredCorrection]] = {}
    for entry in entries:
        groups.setdefault(entry.question, []).append(entry)
    for group in groups.values():
        about = f" ({group[0].about})" if group[0].about else ""
        lines.append(shown(f"{group[0].query}{about}"))
        lines += [
            shown(f"  {_word(correction.relevant)} it  {correction.key}  {correction.title}")
            for correction in (entry.correction for entry in group)
        ]
    return lines


def _word(relevant: bool) -> str:
    return "about" if relevant else "not about"


def _pressed() -> str:
    """One key of a person; of a pipe the next character that is no line's end, empty at its end."""
    if sys.stdin.isatty():
        return typer.getchar().lower()
    while (character := sys.stdin.read(1)) == "\n":
        pass
    return character.lower()
