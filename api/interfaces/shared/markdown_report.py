"""A report as markdown: everything a stranger wrote is escaped, only http links are links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from api.core.text import SHORT_ID, utc_minute, web_url
from api.features.comparisons.comparison import Comparison
from api.interfaces.shared import chart_data, comparison_table, presentation
from api.interfaces.shared.presentation import openable
from api.reports.markdown_text import link, md, quotation
from api.reports.report import DroppedItem, Fetched, KeptItem, Report, SourceReport

# Rows of a table, and bars of a timeline, at most.
_ASPECTS, _PERIODS = 10, 60
_SAMPLE = "> **Sample data**: made up, from the offline sandbox."


def report_markdown(report: Report, dropped: bool) -> str:
    """The whole report."""
    report = openable(report)
    numbers = presentation.numbered(report.items)
    items = {item.key: item for item in report.items}
    cited = {item.key: link(f"\\[{numbers[item.key]}\\]", item.url) for item in report.items}
    parts = [f"# {md(presentation.heading(report))}"]
    if report.sample:
        parts.append(_SAMPLE)
    parts += [f"> {md(note)}" for note in report.quality_notes]
    if report.disclaimer:
        parts.append(f"> {md(report.disclaimer)}")
    if report.senses:
        parts.append(f"**{md(presentation.senses_heading(report))}**")
        lines = [md(line) for line in presentation.sense_lines(report)]
        parts.append("\n".join(f"{at}. {line}" for at, line in enumerate(lines, 1)))
        parts.append(
            f"Say which one is meant with `about`, or judge these posts again with its number: "
            f"`listenpost analyze --again {report.id[:SHORT_ID]} --sense 1`, or `sense` over HTTP."
        )
    parts.append(md(presentation.decision(report)))
    parts += [md(paragraph) for paragraph in presentation.paragraphs(report)]
    for title, findings in presentation.findings_by_kind(report):
        lines = []
        for finding in findings:
            also = presentation.unshown(finding, numbers, lambda keys: _cites(keys, cited))
            lines.append(f"- {md(finding.text)}{also}{presentation.badge(finding)}")
            lines += [
                f"    - “{md(quotation(passage.passage))}” {_cites([passage.key], cited)}"
                f"{_by(items[passage.key], passage.passage)}"
                for passage in presentation.evidence(finding, numbers)
            ]
        parts += [f"## {title}", "\n".join(lines)]
    if quotes := presentation.further_quotes(report):
        lines = [
            f"> “{md(quotation(quote.text))}” "
            f"{link('link', quote.url) + ' ' if web_url(quote.url) else ''}"
            f"{_cites([quote.key], cited)}{_by(items.get(quote.key), quote.text)}"
            for quote in quotes
        ]
        parts += ["## In their words", "\n>\n".join(lines)]
    parts += _figures(report)
    parts += ["## Coverage", _sources(report.sources.values())]
    parts += [f"> {md(note)}" for note in presentation.source_notes(report)]
    parts.append(md(presentation.trouble(report)))
    moment = f"Asked {utc_minute(report.created_at)} at depth {report.depth}."
    judged = presentation.judged_by(report.sources.values())
    parts.append(md(f"{moment} {judged} {presentation.spent(report)}"))
    parts += _listed("Sources", report.items)
    if dropped:
        parts += _dropped(report.dropped)
    if report.suggestions:
        lines = [f"- {md(question)}" for question in report.suggestions]
        parts += ["## Next questions", "\n".join(lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def fetch_markdown(fetched: Fetched, dropped: bool) -> str:
    """One source's kept items."""
    fetched = openable(fetched)
    parts = [
        f"# {md(presentation.heading(fetched))} on {md(presentation.source_title(fetched.source))}"
    ]
    if fetched.sample:
        parts.append(_SAMPLE)
    parts.append(_sources([fetched]))
    if fetched.reason:
        parts.append(md(fetched.reason))
    parts += [f"> {md(note)}" for note in fetched.notes]
    parts += _listed("Items", fetched.items)
    if dropped:
        parts += _dropped(fetched.dropped)
    return "\n\n".join(part for part in parts if part) + "\n"


def comparison_markdown(comparison: Comparison) -> str:
    """The table, what it marks, the words of each side, and what is cited."""
    comparison = openable(comparison)
    numbers = presentation.numbered(comparison.items)
    items = {item.key: item for item in comparison.items}
    cited = {key: link(f"\\[{numbers[key]}\\]", item.url) for key, item in items.items()}
    parts = [f"# {md(comparison_table.title(comparison))}", _SAMPLE * comparison.sample]
    parts.append(md(comparison_table.alike(comparison)))
    names = [md(comparison_table.name_of(each)) for each in comparison.products]
    table = [["", *names], ["---", *("---:" for _ in names)]]
    table += [
        [md(cell) for cell in (row.name, *row.cells)] for row in comparison_table.table(comparison)
    ]
    parts.append("\n".join(f"| {' | '.join(line)} |" for line in table))
    parts += [md(note) for note in comparison_table.notes(comparison)]

    for heading, bullets in comparison_table.sections(comparison):
        lines = []
        for bullet in bullets:
            lines.append(f"- {md(bullet.text)} {_cites(bullet.cites, cited)}".rstrip())
            lines += [
                f"    - {md(name)}: “{md(quotation(passage.passage))}” "
                f"{_cites([passage.key], cited)}{_by(items[passage.key], passage.passage)}"
                for name, passage in bullet.words
            ]
        parts += [f"## {heading}", "\n".join(lines)]
    parts += _listed("Cited", comparison.items)
    parts.append(md(presentation.spent(comparison)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _cites(keys: Sequence[str], cited: Mapping[str, str]) -> str:
    """Numbers that lead to where it was said."""
    return " ".join(cited[key] for key in keys if key in cited)


def _by(item: KeptItem | None, words: str = "") -> str:
    """Who has to be named, with a link to the profile."""
    name, profile = presentation.signature(item, words)
    return f" by {link(md(name), profile)}" if name else ""


def _figures(report: Report) -> list[str]:
    parts = []
    caption, feelings = chart_data.sentiment(report)
    parts.append(f"{caption}." if caption else "")
    if feelings:
        n = sum(feeling.count for feeling in feelings)
        rows = [
            f"| {feeling.name} | {feeling.count} of {n} | {low * 100:.0f} to {high * 100:.0f} % |"
            for feeling in feelings
            for low, high in [feeling.interval or (0.0, 1.0)]
        ]
        head = f"| they sound | posts | likely share of all {chart_data.TONED} (95 %) |"
        parts.append("\n".join([head, "| --- | ---: | ---: |", *rows]))
    caption, periods = chart_data.timeline(report, _PERIODS)
    parts.append(f"{caption}." if caption else "")
    if periods:
        first, last = periods[0].start, periods[-1].start
        counts = ", ".join(str(period.count) for period in periods)
        chart = f'xychart-beta\n    x-axis "{first} to {last}" 1 --> {len(periods)}'
        # without a range the bars would start at the smallest count, not at 0
        chart += f'\n    y-axis "posts" 0 --> {max(period.count for period in periods)}'
        parts.append(f"```mermaid\n{chart}\n    bar [{counts}]\n```")
    caption, aspects = chart_data.aspects(report, _ASPECTS)
    if aspects:
        head = "| subject | posts |\n| --- | ---: |"
        rows = [f"| {md(aspect.aspect)} | {aspect.count} |" for aspect in aspects]
        if any(map(chart_data.sides, aspects)):
            head = "| subject | posts | of these praise | complaint |\n| --- | ---: | ---: | ---: |"
            rows = [
                f"{row} {aspect.positive} | {aspect.negative} |"
                for row, aspect in zip(rows, aspects, strict=True)
            ]
        parts += [f"{caption}.", "\n".join([head, *rows])]
    return ["## Figures", *parts] if any(parts) else []


def _sources(sources: Iterable[SourceReport]) -> str:
    rows = [
        f"| {md(row.name)} | {md(row.outcome)} | {row.fetched} | {row.kept} "
        f"| {row.share} | {row.searched} | {md(row.judged)} | {row.requests} |"
        for row in presentation.source_rows(sources)
    ]
    if not rows:
        return ""
    head = "| source | outcome | found | about it | share | searched | judged | requests |"
    table = "\n".join([head, "| --- | --- | ---: | ---: | ---: | --- | --- | ---: |", *rows])
    return "\n\n".join(filter(None, [table, md(presentation.unset(sources))]))


def _listed(title: str, items: Iterable[KeptItem]) -> list[str]:
    lines = []
    for number, item in enumerate(items, 1):
        caption = presentation.caption(item)
        place = f" ({md(caption.place)})" if caption.place else ""
        dated = f", {caption.date}" if caption.date else ""
        badges = "".join(f" *{badge}*" for badge in caption.badges)
        label = link(md(presentation.title_of(item)), item.url)
        lines.append(f"{number}. {label}: {md(caption.source)}{place}{dated}{_by(item)}{badges}")
    return [f"## {title}", "\n".join(lines)] if lines else []


def _dropped(dropped: Iterable[DroppedItem]) -> list[str]:
    lines = [
        f"- {link(md(presentation.title_of(item)), item.url)}: {md(presentation.why_dropped(item))}"
        for item in dropped
    ]
    return ["## Dropped", "\n".join(lines)] if lines else []
