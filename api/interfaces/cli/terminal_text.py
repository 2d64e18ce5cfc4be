"""Answers as plain text for a terminal: words, bars and footnotes without markup.

A Chinese character takes two columns.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace

import regex
from rich.cells import cell_len

from api.core.text import SHORT_ID, clean, one_line, web_url
from api.features.analyses.statistics import Stats
from api.features.archive.search import hit_origin, hit_title
from api.features.archive.search_values import ArchiveAnswer
from api.features.comparisons.comparison import Comparison
from api.interfaces.shared import chart_data, claim_layout, comparison_table, presentation, statistics_text
from api.interfaces.shared.claim_layout import ShownClaim
from api.interfaces.shared.presentation import openable
from api.reports.composition import parts_of
from api.reports.markdown_text import quotation, unlinked
from api.reports.report import DroppedItem, Fetched, KeptItem, Report, SourceReport
from api.sources import ITEM_SOURCES

# Columns of a table's row and of a bar; of a bar where such a row is too wide.
_TABLE, _BAR, _NARROW_BAR = 76, 24, 8
# Columns of a source's name, and of what a sentence of statistics is called.
_SOURCE, _LEAD = 14, 12
# Rows of a chart at most.
_PERIODS = 12
# a word, or one character of a script that does not use spaces: `Ember`, `小`
_PIECE = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]"
    r"|[^\s\p{Han}\p{Hiragana}\p{Katakana}\u3000-\u303f\uff00-\uffef]+"
)
# What no line begins with.
_NO_START = frozenset("，。、！？；：）」』】》…")
_SAMPLE = "SAMPLE DATA: everything here is made up and comes from the offline sandbox."


def report_text(report: Report, dropped: bool, width: int | None) -> str:
    """The whole report, the claims first; `width` in columns, None: the terminal's."""
    report = openable(report)
    page = _TextPage(width, report.items)
    page.title(presentation.heading(report))
    page.wrapped(claim_layout.notice(report))
    page.wrapped(report.disclaimer or "")
    if report.senses:
        _senses(page, report)
    paragraphs = claim_layout.lead(report)
    for paragraph in paragraphs:
        page.wrapped(paragraph)
        page.row()
    first, others = claim_layout.claims_of(report)
    if first and not paragraphs:
        page.row()
    for number, claim in enumerate(first, 1):
        page.claim(claim, number)
    if others:
        page.head("What else is said")
    for number, claim in enumerate(others, len(first) + 1):
        page.claim(claim, number)
    if summary := claim_layout.summary(report):
        page.head("Summary")
        page.wrapped(" ".join(summary))
    behind = [
        (number, claim)
        for number, claim in enumerate((*first, *others), 1)
        if claim.quotes and (claim.quotes[1:] or claim.others)
    ]
    quotes = presentation.further_quotes(report)
    if behind or quotes:
        page.head("In their words")
    for number, claim in behind:
        page.wrapped(f"To claim {number}{f', also in {page.cites(claim.others)}' if claim.others else ''}:")
        for quote in claim.quotes[1:]:
            page.quote(quote.words, quote.key, facts=quote.facts, margin="  ")
    for each in quotes:
        page.quote(each.text, each.key, each.url, margin="  ")
    _figures(page, report)
    _listed(page, "Cited posts" if report.cited else "Kept posts", claim_layout.cited(report))
    if dropped:
        _listed(page, "Kept, not cited", claim_layout.uncited(report))
        _dropped(page, report.dropped)
    if report.suggestions:
        page.head("Next questions")
        for question in report.suggestions:
            page.wrapped(question, "- ")
    page.head("About this report")
    for sentence in claim_layout.process(report):
        page.wrapped(sentence, "- ")
    _sources(page, list(report.sources.values()))
    return page.text


def _senses(page: _TextPage, report: Report) -> None:
    page.row()
    page.wrapped(presentation.senses_heading(report))
    for number, line in enumerate(presentation.sense_lines(report), 1):
        page.wrapped(line, f"  {number}. ")
    page.wrapped(
        "If only one of them is meant, judge these posts again, without asking any source: "
        f"`listenpost analyze --again {report.id[:SHORT_ID]} --sense 1`"
    )


def fetched_text(fetched: Fetched, dropped: bool, width: int | None) -> str:
    """The kept items of one source, as text."""
    fetched = openable(fetched)
    page = _TextPage(width)
    if fetched.sample:
        page.wrapped(_SAMPLE)
    page.head("Sources")
    _sources(page, [fetched])
    if fetched.reason:
        page.wrapped(fetched.reason)
    for note in fetched.notes:
        page.wrapped(note, "! ")
    _listed(page, "Kept", fetched.items)
    if dropped:
        _dropped(page, fetched.dropped)
    return page.text


def archive_text(answer: ArchiveAnswer, width: int | None) -> str:
    """Stored entries about a question: each hit with its text, place, date and link."""
    page = _TextPage(width)
    if answer.sample:
        page.wrapped(_SAMPLE)
    page.wrapped(answer.text)
    for hit in answer.hits:
        page.row()
        place = f" ({hit.place})" if hit.place else ""
        page.wrapped(f"[{hit.label}] {hit_title(hit)}")
        page.wrapped(f"{hit_origin(hit, ITEM_SOURCES)}{place}", "    ")
        if hit.passage != hit.title:
            page.wrapped(f"“{quotation(hit.passage)}”", "    ")
        if hit.credit:
            by, profile = parts_of(hit.credit)
            page.wrapped(f"by {by}", "    ")
            page.address("" if answer.sample else profile)
        page.address("" if answer.sample else hit.url)
    return page.text


def comparison_text(comparison: Comparison, width: int | None) -> str:
    """The table, what it marks, the words of each side, and what is cited."""
    comparison = openable(comparison)
    page = _TextPage(width, comparison.items)
    page.title(comparison_table.title(comparison))
    if comparison.sample:
        page.wrapped(_SAMPLE)
    page.wrapped(comparison_table.alike(comparison))
    page.row()
    _table(page, comparison, comparison_table.table(comparison))
    page.row()
    for note in comparison_table.notes(comparison):
        page.wrapped(note)
    if comparison.voice is not None:
        page.head(comparison_table.VOICE)
        if shares := comparison_table.voice_table(comparison):
            _table(page, comparison, shares)
            page.row()
        for note in comparison_table.voice_notes(comparison):
            page.wrapped(note)
    for heading, bullets in comparison_table.sections(comparison):
        page.head(heading)
        for bullet in bullets:
            page.wrapped(f"{bullet.text} {page.cites(bullet.cites)}", "- ")
            for name, passage in bullet.words:
                page.quote(passage.passage, passage.key, before=f"{name}: ")
    _listed(page, "Cited", comparison.items)
    page.row()
    page.wrapped(presentation.spent(comparison))
    return page.text


def _table(page: _TextPage, comparison: Comparison, rows: Sequence[comparison_table.Row]) -> None:
    """Columns, `7 of 36` as `7/36` where that is too wide, else a sentence for each row."""
    names = tuple(shown(comparison_table.name_of(each)) for each in comparison.products)
    brief = [replace(row, cells=tuple(each.replace(" of ", "/") for each in row.cells)) for row in rows]
    for written in (rows, brief):
        cells = [[shown(cell) for cell in (row.name, *row.cells)] for row in written]
        lines = table_lines([["", *names], *cells])
        if max(map(cell_len, lines)) <= page.width:
            for line in lines:
                page.row(line)
            return
    for row in rows:
        pairs = ", ".join(" ".join(pair) for pair in zip(names, row.cells, strict=True))
        page.wrapped(f"{row.name}: {pairs}", "- ")


class _TextPage:
    """Lines of text, wrapped to a width, without control characters."""

    def __init__(self, width: int | None, items: Sequence[KeptItem] = ()) -> None:
        self.numbers = presentation.numbered(items)
        self._items = {item.key: item for item in items}
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
        """Add text of strangers as a heading, underlined with `=`."""
        lines = wrapped(text, self.width)
        widest = max(map(cell_len, lines), default=0)
        self._lines += [*lines, "=" * min(widest, self.width)]

    def head(self, text: str) -> None:
        """Add a heading, underlined with dashes."""
        self._lines += ["", text, "-" * len(text)]

    def wrapped(self, text: object, lead: str = "") -> None:
        """Add text of strangers, wrapped to the width."""
        self._lines += wrapped(text, self.width, lead)

    def bar(self, value: int, most: int) -> str:
        """`value` of `most` as a bar of a fixed width: `███··`."""
        columns = _NARROW_BAR if self.narrow else _BAR
        filled = round(columns * value / most) if most else 0
        return "█" * filled + "·" * (columns - filled)

    def cites(self, keys: Sequence[str]) -> str:
        """`[1][3]`: the numbers of the items that are listed."""
        return "".join(f"[{self.numbers[key]}]" for key in keys if key in self.numbers)

    def claim(self, claim: ShownClaim, number: int) -> None:
        """The sentence with who says so, and below it the first of its quotes."""
        lead = f"{number}. "
        words = claim_layout.in_words(claim)
        held = f" ({words})" if words else ""
        cites = "" if claim.quotes else f" {self.cites(claim.others)}"
        self.wrapped(f"{claim.finding.text}{cites}{presentation.badge(claim.finding)}{held}", lead)
        for quote in claim.quotes[:1]:
            self.quote(quote.words, quote.key, facts=quote.facts, margin=" " * len(lead))

    def quote(
        self, words: str, key: str, url: str = "", *, before: str = "", facts: str = "", margin: str = "    "
    ) -> None:
        """Words of an item with its number and who has to be named, then where they link to."""
        by, profile = presentation.signature(self._items.get(key), words)
        behind = ", ".join(filter(None, (f"by {by}" if by else "", facts)))
        quoted = f"“{quotation(words)}” " if words else ""
        self.wrapped(f"{before}{quoted}{self.cites([key])} {behind}", margin)
        self.address(url)
        self.address(profile)

    def address(self, url: object) -> None:
        """Add a link on a line of its own; adds nothing when it is not http."""
        if target := web_url(url):
            self._lines.append(f"    {target}")


def _figures(page: _TextPage, report: Report) -> None:
    sentiment, feelings = chart_data.sentiment(report)
    timeline, periods = chart_data.timeline(report, _PERIODS)
    if not (sentiment or timeline):
        return
    page.head("Figures")
    page.wrapped(sentiment)
    n = sum(feeling.count for feeling in feelings)
    for feeling in feelings:
        spread = ""
        if feeling.interval is not None and not page.narrow:
            low, high = feeling.interval
            spread = f" ({low * 100:.0f}-{high * 100:.0f} %)"
        count = f"{feeling.count} of {n}{spread}"
        page.row(f"  {feeling.name:<9}", page.bar(feeling.count, n), count)
    if feelings and not page.narrow:
        page.wrapped(f"in brackets: where the share of all {chart_data.TONED} likely lies (95 %)", "  ")
    page.wrapped(timeline)
    most = max((period.count for period in periods), default=0)
    monthly = all(period.start.day == 1 for period in periods)
    for period in periods:
        start = f"{period.start:%Y-%m}" if monthly else period.start.isoformat()
        page.row(f"  {start}", page.bar(period.count, most), str(period.count))


def _sources(page: _TextPage, sources: Sequence[SourceReport]) -> None:
    """A table, or a sentence for each source where a row is too wide."""
    if not sources:
        return
    page.row()
    if not page.narrow:
        page.row(
            f"{'source':<{_SOURCE}}{'found':>5}{'about it':>10}{'share':>7}  {'searched':<10}{'judged':<11}outcome"
        )
    for row in presentation.source_rows(sources):
        if page.narrow:
            about = f"{row.kept} of {row.fetched}"
            if row.judged == "not judged":
                about = f"nobody judged which of {row.fetched}"
            page.wrapped(
                f"{row.name}: {row.outcome}, {about} were about it, searched {row.searched}, judged: {row.judged}",
                "- ",
            )
        else:
            page.row(
                f"{padded(row.name, _SOURCE)}{row.fetched:>5}{row.kept:>10}{row.share:>7}  "
                f"{row.searched:<10}{row.judged:<11}{row.outcome}"
            )
    page.wrapped(presentation.unset(sources))
    page.wrapped(presentation.judged_by(sources))


def _listed(page: _TextPage, title: str, items: Sequence[KeptItem]) -> None:
    if items:
        page.head(title)
    for at, item in enumerate(items, 1):
        number = page.numbers.get(item.key, at)
        by, profile = presentation.signature(item)
        details = ", ".join((presentation.facts_of(item), *presentation.badges(item), *([f"by {by}"] if by else [])))
        page.wrapped(f"{presentation.title_of(item)} - {details}", f"[{number}] ")
        page.address(item.url)
        page.address(profile)


def _dropped(page: _TextPage, dropped: Sequence[DroppedItem]) -> None:
    if dropped:
        page.head("Dropped")
    for item in dropped:
        page.wrapped(f"{presentation.title_of(item)} - {presentation.why_dropped(item)}", "- ")


def shown(text: object) -> str:
    """Any value as one line without control characters, escapes, overrides and links."""
    return unlinked(one_line(clean(text)))


def padded(text: object, columns: int) -> str:
    """The text cut or filled up to so many columns."""
    line = shown(text)
    while cell_len(line) > columns:
        line = line[:-1]
    return line + " " * (columns - cell_len(line))


def wrapped(text: object, columns: int, lead: str = "") -> list[str]:
    """Lines of at most so many columns, the first after `lead`, the rest below its end.

    A word that is too long for a line (an address) keeps a line of its own.
    """
    line, margin = lead, " " * cell_len(lead)
    lines: list[str] = []
    filled = False
    words = shown(text)
    for piece in _PIECE.finditer(words):
        space = " " if filled and words[piece.start() - 1] == " " else ""
        fits = cell_len(line) + len(space) + cell_len(piece[0]) <= columns
        if filled and not fits and piece[0] not in _NO_START:
            lines.append(line)
            line, space = margin, ""
        line += space + piece[0]
        filled = True
    return [*lines, line] if filled else []


def table_lines(rows: Sequence[Sequence[str]], *, right: bool = False) -> list[str]:
    """Rows in columns two apart; `right` aligns all but the first column to the right."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = ""
        for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            line += "  " * (at > 0) + (space + cell if right and at else cell + space)
        lines.append(line.rstrip())
    return lines


def stats_text(stats: Stats, columns: int) -> str:
    """Statistics as text; tables keep their width, sentences are wrapped."""
    columns = max(min(columns, 120), 40)
    lines = [line for head in statistics_text.heads(stats) for line in wrapped(head, columns)]
    if not stats.runs:
        return "\n".join(lines)
    lines.append("")
    for name, words in statistics_text.sentences(stats):
        lines += wrapped(words, columns, f"{name:<{_LEAD}}")
    if stats.sources:
        table = statistics_text.source_table(stats.sources)
        rows = [[shown(cell) for cell in row] for row in table]
        lines += ["", *table_lines(rows, right=True)]
        for words in statistics_text.outcomes(stats.sources):
            lines += wrapped(words, columns)
    if stats.periods:
        rows = [[shown(cell) for cell in row] for row in statistics_text.period_table(stats)]
        lines += ["", *table_lines(rows, right=True)]
        lines += wrapped(statistics_text.POOLED, columns)
    return "\n".join(lines)
