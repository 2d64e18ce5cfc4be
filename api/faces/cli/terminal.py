"""Answers as text for a terminal: plain words, bars and footnotes; nothing of it is markup."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import Any

from rich.cells import cell_len

from api.faces.cli.layout import padded, shown, wrapped
from api.faces.markdown import KINDS
from api.services.text import web_url
from api.sources import TITLES

_TABLE, _BAR, _NAME = 76, 24, 26
_NARROW_BAR, _NARROW_NAME = 8, 14
"""Columns of a table's row, a bar and an aspect; of the latter two where such a row is too wide."""
_SAMPLE = "SAMPLE DATA: everything here is made up and comes from the offline sandbox."


def report(answer: dict[str, Any], dropped: bool, width: int | None) -> str:
    """The whole report; `width` in columns, None: the terminal's."""
    page = _Page(width)
    page.title(answer["topic"] or answer["query"])
    if answer["sample"]:
        page.wrapped(_SAMPLE)
    for note in answer["quality_notes"]:
        page.wrapped(note, "! ")
    if answer["disclaimer"]:
        page.wrapped(answer["disclaimer"], "! ")
    page.wrapped(f"{answer['decision']}: {answer['decision_rationale']}")
    _words(page, answer)
    numbers = {item["key"]: n for n, item in enumerate(answer["items"], 1)}
    _findings(page, answer, numbers)
    _quotes(page, answer, numbers)
    _figures(page, answer["figures"])
    _sources(page, answer["sources"])
    page.wrapped(answer["coverage"])
    _listed(page, "Cited and kept", answer["items"], numbers)
    if dropped:
        _dropped(page, answer["dropped"])
    if answer["suggestions"]:
        page.head("Next questions")
        for question in answer["suggestions"]:
            page.wrapped(question, "- ")
    _cost(page, answer)
    return page.text


def fetched(answer: dict[str, Any], dropped: bool, width: int | None) -> str:
    """One source's kept items."""
    page = _Page(width)
    if answer["sample"]:
        page.wrapped(_SAMPLE)
    _sources(page, {answer["source"]: answer})
    if answer["reason"]:
        page.wrapped(answer["reason"])
    for note in answer["notes"]:
        page.wrapped(note, "! ")
    numbers = {item["key"]: n for n, item in enumerate(answer["items"], 1)}
    _listed(page, "Kept", answer["items"], numbers)
    if dropped:
        _dropped(page, answer["dropped"])
    return page.text


class _Page:
    """Lines of text, wrapped to a width, without control characters."""

    def __init__(self, width: int | None) -> None:
        columns = width or shutil.get_terminal_size((100, 24)).columns
        self.width = max(40, min(columns, 120))
        self.narrow = self.width < _TABLE
        self._lines: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self._lines)

    def row(self, *cells: str) -> None:
        """Cells that are laid out already, or are ours."""
        self._lines.append(" ".join(cells).rstrip())

    def title(self, text: object) -> None:
        """A heading of strangers' words."""
        lines = wrapped(text, self.width)
        self._lines += [*lines, "=" * max(map(cell_len, lines), default=0)]

    def head(self, text: str) -> None:
        """A heading of ours."""
        self._lines += ["", text, "-" * len(text)]

    def wrapped(self, text: object, lead: str = "") -> None:
        """Strangers' words, within the width."""
        self._lines += wrapped(text, self.width, lead)

    def bar(self, value: int, most: int) -> str:
        """A share as a bar."""
        columns = _NARROW_BAR if self.narrow else _BAR
        filled = round(columns * value / most) if most else 0
        return "█" * filled + "·" * (columns - filled)

    def address(self, url: object) -> None:
        """A link on a line of its own; nothing when it is not http."""
        if target := web_url(url):
            self._lines.append(f"    {target}")


def _words(page: _Page, answer: Mapping[str, Any]) -> None:
    for text in (answer["summary"], answer["explanation_text"]):
        for paragraph in str(text or "").split("\n\n"):
            if paragraph.strip():
                page.row()
                page.wrapped(paragraph)


def _findings(page: _Page, answer: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
    for kind, title in KINDS:
        found = [one for one in answer["findings"] if one["kind"] == kind]
        if found:
            page.head(title)
        for one in found:
            page.wrapped(f"{one['text']} {_cites(one['cites'], numbers)}", "- ")


def _cites(keys: Iterable[str], numbers: Mapping[str, int]) -> str:
    return "".join(f"[{numbers[key]}]" for key in keys if key in numbers)


def _quotes(page: _Page, answer: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
    if answer["quotes"]:
        page.head("In their words")
    for quote in answer["quotes"]:
        page.wrapped(f"“{quote['text']}” {_cites([quote['key']], numbers)}", "  ")
        page.address(quote["url"])


def _figures(page: _Page, figures: Mapping[str, Any]) -> None:
    sentiment, timeline = figures.get("sentiment", {}), figures.get("timeline", {})
    aspects = figures.get("aspects", [])
    if not (sentiment.get("n") or timeline.get("points") or aspects):
        return
    page.head("Figures")
    if n := sentiment.get("n"):
        page.row(f"Sentiment of {n} graded items")
        for name in ("positive", "neutral", "negative"):
            low, high = sentiment["wilson95"][name]
            spread = "" if page.narrow else f" (95 %: {low * 100:.0f}-{high * 100:.0f} %)"
            count = f"{sentiment[name]} of {n}{spread}"
            page.row(f"  {name:<9}", page.bar(sentiment[name], n), count)
    if points := timeline.get("points"):
        most = max(point["count"] for point in points)
        page.row(f"Items per {timeline['unit']} (UTC), {timeline['undated']} undated")
        for point in points[-12:]:
            count = point["count"]
            page.row(f"  {shown(point['start'])}", page.bar(count, most), str(count))
    if aspects:
        most = max(one["count"] for one in aspects)
        page.row("Aspects")
        widest = _NARROW_NAME if page.narrow else _NAME
        columns = min(widest, max(cell_len(shown(one["aspect"])) for one in aspects[:8]))
        for one in aspects[:8]:
            count = f"{one['count']} (+{one['positive']} -{one['negative']})"
            page.row(f"  {padded(one['aspect'], columns)}", page.bar(one["count"], most), count)


def _sources(page: _Page, sources: Mapping[str, Any]) -> None:
    if not sources:
        return
    page.head("Sources")
    if not page.narrow:
        page.row(
            f"{'source':<12}{'fetched':>8}{'kept':>6}{'yield':>8}  "
            f"{'refetched':<10}{'gate':<10}outcome"
        )
    for name, one in sources.items():
        _source(page, TITLES.get(name, name), one)
    judges = dict.fromkeys(one["gate"]["model"] for one in sources.values())
    if named := ", ".join(shown(judge) for judge in judges if judge):
        page.wrapped(f"Relevance was judged by {named}.")


def _source(page: _Page, name: str, one: Mapping[str, Any]) -> None:
    """A row of the table, or a sentence where a row is too wide; no yield of nothing."""
    share = f"{one['yield_ratio'] * 100:.0f} %" if one["fetched"] else "-"
    refetched, gate = "yes" if one["refetched"] else "no", one["gate"]["status"]
    if page.narrow:
        page.wrapped(
            f"{name}: {one['outcome']}, fetched {one['fetched']}, kept {one['kept']}, "
            f"yield {share}, refetched {refetched}, gate {gate}",
            "- ",
        )
        return
    page.row(
        f"{padded(name, 12)}{one['fetched']:>8}{one['kept']:>6}{share:>8}  "
        f"{refetched:<10}{gate:<10}{one['outcome']}"
    )


def _listed(
    page: _Page, title: str, items: Iterable[Mapping[str, Any]], numbers: Mapping[str, int]
) -> None:
    listed = list(items)
    if listed:
        page.head(title)
    for item in listed:
        place = f" ({item['place']})" if item["place"] else ""
        dated = f", {item['created_at'][:10]}" if item["created_at"] else ""
        badge = ", low relevance" if item["low_relevance"] else ""
        badge += ", disputed" if item["disputed"] else ""
        name = TITLES.get(item["source"], item["source"])
        text = f"{item['title'] or 'untitled'} - {name}{place}{dated}{badge}"
        page.wrapped(text, f"[{numbers[item['key']]}] ")
        page.address(item["url"])


def _dropped(page: _Page, dropped: Iterable[Mapping[str, Any]]) -> None:
    listed = list(dropped)
    if listed:
        page.head("Dropped")
    for one in listed:
        why = f"{one['dropped_by']}: {one['reason']}"
        page.wrapped(f"{one['title'] or 'untitled'} - {why}", "- ")


def _cost(page: _Page, answer: Mapping[str, Any]) -> None:
    cost = answer["cost"]
    usd = "unknown" if cost["usd"] is None else f"{cost['usd']:.4f} USD"
    page.row()
    page.wrapped(
        f"{cost['upstream_calls']} upstream requests, {cost['tokens']} tokens, cost {usd}, "
        f"{answer['timings_ms'].get('total', 0)} ms"
    )
