"""`correct`, `review` and `corrections`: what the gate decided wrongly, as a person says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from api.core.domain import BEFORE_JUDGING
from api.errors import UsageError
from api.interfaces.cli.output import Data, say, tell
from api.interfaces.cli.report_commands import AnalysisId, kept_of, opened_store

if TYPE_CHECKING:
    from api.features.analyses.corrections import GateQuality, StoredCorrection
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
    remove: Annotated[bool, typer.Option("--remove", help="Remove the correction of this item.")] = False,
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


async def review(
    analysis: AnalysisId,
    audit: Annotated[
        int | None,
        typer.Option(
            help="Review only this many of the items that the gate dropped, drawn at random over "
            "its probabilities, and estimate how many relevant ones it missed.",
            min=1,
        ),
    ] = None,
) -> None:
    """Correct the items of a stored analysis one by one, each with one key, unsure ones first.

    Items that were corrected before are left out, so that a review can be continued. At the end it
    says how right the gate was, with 95 % intervals, once 20 items are corrected.
    """
    from api.features.analyses import feedback
    from api.features.analyses.api_keys import LOCAL
    from api.features.analyses.corrections import corrections_of, gate_quality

    async with opened_store() as store:
        kept = await kept_of(store, analysis)
        if kept.report is None:
            raise UsageError(kept.why_none)
        question = kept.report.question
        known = {correction.key for correction in await corrections_of(store, LOCAL.id, question)}
        left = [entry for entry in _by_doubt(kept.report) if entry.key not in known]
        if audit is not None:
            left = _sampled(kept.report, left, audit)
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
        quality = gate_quality(kept.report, await corrections_of(store, LOCAL.id, question))
    for line in _quality_lines(quality, audited=audit is not None):
        say(line)


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
    judged = {entry.key: entry for entry in entries if entry.dropped_by not in BEFORE_JUDGING}
    return sorted(judged.values(), key=lambda entry: abs((entry.probability or 1.0) - 0.5))


def _sampled(report: Report, left: Sequence[Entry], count: int) -> list[Entry]:
    from api.features.analyses.corrections import audit_sample, probabilities_of

    entries = {entry.key: entry for entry in left}
    dropped = {key: p for key, p in probabilities_of(report)[1].items() if key in entries}
    return [entries[key] for key in audit_sample(dropped, count)]


def _quality_lines(quality: GateQuality, *, audited: bool) -> list[str]:
    """Quality of the gate, one sentence per line; empty before enough items were read."""
    from api.features.analyses.corrections import FEWEST_READ

    lines = []
    missed = quality.missed
    if audited and quality.read:
        lines.append(
            f"By {quality.read} corrected items the gate missed about {missed.value:.0f} relevant "
            f"ones (95 %: {missed.low:.0f} to {missed.high:.0f})."
        )
    if quality.read >= FEWEST_READ:
        for name, figure in (
            ("Of the kept items", quality.precision), ("Of the relevant items", quality.recall),
        ):  # fmt: skip
            if figure is not None:
                what = "are relevant" if figure is quality.precision else "were kept"
                shares = (round(100 * share) for share in (figure.value, figure.low, figure.high))
                value, low, high = shares
                lines.append(f"{name} about {value} % {what} (95 %: {low} to {high}).")
    return lines


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
    """One key press of a person; from a pipe, the next character that is no line break, empty at its end."""
    if sys.stdin.isatty():
        return typer.getchar().lower()
    while (character := sys.stdin.read(1)) == "\n":
        pass
    return character.lower()
