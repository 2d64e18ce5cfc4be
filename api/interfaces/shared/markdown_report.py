"""A report as markdown: everything a stranger wrote is escaped, only http links are links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from api.core.text import SHORT_ID, web_url
from api.features.comparisons.comparison import Comparison
from api.interfaces.shared import chart_data, claim_layout, comparison_table, presentation
from api.interfaces.shared.claim_layout import ShownClaim
from api.interfaces.shared.presentation import openable
from api.reports.markdown_text import link, md, quotation
from api.reports.report import DroppedItem, Fetched, KeptItem, Report, SourceReport

# Rows of a table, and bars of a timeline, at most.
_PERIODS = 60
_SAMPLE = "> **Sample data**: made up, from the offline sandbox."


def report_markdown(report: Report, dropped: bool) -> str:
    """The report as Markdown, the claims first; `dropped` lists what was not cited and what was dropped, too."""
    report = openable(report)
    citations = _Citations(report.items)
    parts = [f"# {md(presentation.heading(report))}"]
    parts += [f"> {md(line)}" for line in (claim_layout.notice(report), report.disclaimer) if line]
    if report.senses:
        parts.append(f"**{md(presentation.senses_heading(report))}**")
        lines = [md(line) for line in presentation.sense_lines(report)]
        parts.append("\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1)))
        parts.append(
            "If only one is meant, say so with `about`, or judge these posts again as it: "
            f"`listenpost analyze --again {report.id[:SHORT_ID]} --sense 1`, or `sense` over HTTP."
        )
    parts += [md(paragraph) for paragraph in claim_layout.lead(report)]
    first, others = claim_layout.claims_of(report)
    parts.append("\n".join(map(citations.claim, first)))
    if others:
        parts += ["## What else is said", "\n".join(map(citations.claim, others))]
    if summary := claim_layout.summary(report):
        parts += ["## Summary", *map(md, summary)]
    if quotes := presentation.further_quotes(report):
        lines = [f"> {citations.quote(quote.text, quote.key, quote.url)}" for quote in quotes]
        parts += ["## In their words", "\n>\n".join(lines)]
    parts += _figures(report)
    parts += _listed("Cited posts" if report.cited else "Kept posts", claim_layout.cited(report), citations.numbers)
    if dropped:
        parts += _listed("Kept, not cited", claim_layout.uncited(report), citations.numbers)
        parts += _dropped(report.dropped)
    if report.suggestions:
        lines = [f"- {md(question)}" for question in report.suggestions]
        parts += ["## Next questions", "\n".join(lines)]
    process = "\n".join(f"- {md(sentence)}" for sentence in claim_layout.process(report))
    parts += ["## About this report", process, _sources(report.sources.values())]
    return "\n\n".join(part for part in parts if part) + "\n"


def fetch_markdown(fetched: Fetched, dropped: bool) -> str:
    """The kept items of one source, as Markdown."""
    fetched = openable(fetched)
    parts = [f"# {md(presentation.heading(fetched))} on {md(presentation.source_title(fetched.source))}"]
    if fetched.sample:
        parts.append(_SAMPLE)
    parts.append(_sources([fetched]))
    if fetched.reason:
        parts.append(md(fetched.reason))
    parts += [f"> {md(note)}" for note in fetched.notes]
    parts += _listed("Items", fetched.items, presentation.numbered(fetched.items))
    if dropped:
        parts += _dropped(fetched.dropped)
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison_markdown(comparison: Comparison) -> str:
    """The table, what it marks, the words of each side, and what is cited."""
    comparison = openable(comparison)
    citations = _Citations(comparison.items)
    parts = [f"# {md(comparison_table.title(comparison))}", _SAMPLE * comparison.sample]
    parts.append(md(comparison_table.alike(comparison)))
    names = [md(comparison_table.name_of(each)) for each in comparison.products]
    rows = [map(md, (row.name, *row.cells)) for row in comparison_table.table(comparison)]
    parts.append(_table("l" + "r" * len(names), ["", *names], *rows))
    parts += [md(note) for note in comparison_table.notes(comparison)]
    if comparison.voice is not None:
        shares = [map(md, (row.name, *row.cells)) for row in comparison_table.voice_table(comparison)]
        parts += [
            f"## {comparison_table.VOICE}",
            _table("l" + "r" * len(names), ["", *names], *shares) if shares else "",
        ]
        parts += [md(note) for note in comparison_table.voice_notes(comparison)]
    for heading, bullets in comparison_table.sections(comparison):
        lines = []
        for bullet in bullets:
            lines.append(f"- {md(bullet.text)} {citations.cites(bullet.cites)}".rstrip())
            lines += [
                f"    - {md(name)}: {citations.quote(passage.passage, passage.key)}" for name, passage in bullet.words
            ]
        parts += [f"## {heading}", "\n".join(lines)]
    parts += _listed("Cited", comparison.items, citations.numbers)
    parts.append(md(presentation.spent(comparison)))
    return "\n\n".join(part for part in parts if part) + "\n"


class _Citations:
    """The items that an answer lists, and how it cites and quotes them."""

    def __init__(self, items: Sequence[KeptItem]) -> None:
        self.numbers = presentation.numbered(items)
        self._items = {item.key: item for item in items}

    def cites(self, keys: Sequence[str]) -> str:
        """`[1] [3]`, each a link to the item."""
        items = [self._items[key] for key in keys if key in self._items]
        return " ".join(link(f"\\[{self.numbers[item.key]}\\]", item.url) for item in items)

    def claim(self, claim: ShownClaim) -> str:
        """A sentence with who says so, and below it its quotes."""
        badge, also = presentation.badge(claim.finding), self.cites(claim.others)
        also = f" (also {also})" if also and claim.quotes else f" {also}".rstrip()
        held = md(claim_layout.in_words(claim))
        lines = [f"- **{md(claim.finding.text)}**{badge}{held and f' {held}'}{also}"]
        lines += [f"    - {self.quote(quote.words, quote.key, facts=quote.facts)}" for quote in claim.quotes]
        return "\n".join(lines)

    def quote(self, words: str, key: str, url: object = "", facts: str = "") -> str:
        """Quoted words of an item with its number, author credit and facts."""
        address = f"{link('link', url)} " if web_url(url) else ""
        quoted = f"“{md(quotation(words))}” " if words else ""
        signed = ",".join(filter(None, (_by(self._items.get(key), words), f" {md(facts)}" if facts else "")))
        return f"{quoted}{address}{self.cites([key])}{signed}"


def _table(columns: str, *rows: Iterable[object]) -> str:
    """Rows of markdown, the first of them the head; `columns` has `l` or `r` for each."""
    head, *rest = rows
    marks = ("---:" if column == "r" else "---" for column in columns)
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in (head, marks, *rest))


def _by(item: KeptItem | None, words: str = "") -> str:
    """Author who must be named, with a link to the profile; empty without one."""
    name, profile = presentation.signature(item, words)
    return f" by {link(md(name), profile)}" if name else ""


def _figures(report: Report) -> list[str]:
    parts = []
    caption, feelings = chart_data.sentiment(report)
    parts.append(f"{caption}." if caption else "")
    if feelings:
        n = sum(feeling.count for feeling in feelings)
        rows = [
            (feeling.name, f"{feeling.count} of {n}", f"{low * 100:.0f} to {high * 100:.0f} %")
            for feeling in feelings
            for low, high in [feeling.interval or (0.0, 1.0)]
        ]
        head = ("they sound", "posts", f"likely share of all {chart_data.TONED} (95 %)")
        parts.append(_table("lrr", head, *rows))
    caption, periods = chart_data.timeline(report, _PERIODS)
    parts.append(f"{caption}." if caption else "")
    if periods:
        first, last = periods[0].start, periods[-1].start
        counts = ", ".join(str(period.count) for period in periods)
        chart = f'xychart-beta\n    x-axis "{first} to {last}" 1 --> {len(periods)}'
        # without a range the bars would start at the smallest count, not at 0
        chart += f'\n    y-axis "posts" 0 --> {max(period.count for period in periods)}'
        parts.append(f"```mermaid\n{chart}\n    bar [{counts}]\n```")
    return ["## Figures", *parts] if any(parts) else []


def _sources(sources: Iterable[SourceReport]) -> str:
    sources = list(sources)
    rows = [
        (md(row.name), md(row.outcome), row.fetched, row.kept, row.share, row.searched,
         md(row.judged), row.requests)
        for row in presentation.source_rows(sources)
    ]  # fmt: skip
    if not rows:
        return ""
    head = "source", "outcome", "found", "about it", "share", "searched", "judged", "requests"
    table = _table("llrrrllr", head, *rows)
    unset, judged = presentation.unset(sources), presentation.judged_by(sources)
    return "\n\n".join(filter(None, [table, md(unset), md(judged)]))


def _listed(title: str, items: Iterable[KeptItem], numbers: Mapping[str, int]) -> list[str]:
    lines = []
    for item in items:
        badges = "".join(f" *{badge}*" for badge in presentation.badges(item))
        label, facts = link(md(presentation.title_of(item)), item.url), md(presentation.facts_of(item))
        lines.append(f"- \\[{numbers[item.key]}\\] {label}: {facts}{_by(item)}{badges}")
    return [f"## {title}", "\n".join(lines)] if lines else []


def _dropped(dropped: Iterable[DroppedItem]) -> list[str]:
    lines = [
        f"- {link(md(presentation.title_of(item)), item.url)}: {md(presentation.why_dropped(item))}" for item in dropped
    ]
    return ["## Dropped", "\n".join(lines)] if lines else []
