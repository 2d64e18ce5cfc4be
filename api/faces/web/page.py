"""A report as one HTML page: nothing is loaded, nothing runs, what strangers wrote is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from api.faces import comparisons, outline
from api.faces.web.charts import STYLE as CHARTS
from api.faces.web.charts import charts
from api.services.comparing.comparison import Comparison
from api.services.reporting.escaping import quotation
from api.services.reporting.findings import Finding
from api.services.reporting.report import DroppedItem, KeptItem, Report
from api.services.text import clean, web_url

_STYLE = (
    """
:root{color-scheme:light dark;--line:#8886;--soft:#5c6670}
:root{--good:#1d6fb8;--bad:#c2570c;--plain:#7d8794}
@media (prefers-color-scheme:dark){:root{--soft:#a3adb8;--good:#5ba8ec;--bad:#f0944a}}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{line-height:1.2}small,.soft{color:var(--soft)}
blockquote{margin:.5rem 0;padding-left:.8rem;border-left:3px solid var(--line)}
.note{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem}
ol.sources{padding-left:0;list-style:none}
ul.evidence{color:var(--soft);list-style:none;padding-left:1em}
ol.sources li{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem;margin:.5rem 0}
ol.sources li:target{outline:3px solid #e0a800;background:#e0a80022}
.badge{border:1px solid var(--line);border-radius:1rem;padding:0 .5rem;font-size:.75rem}
.badge{color:var(--soft);white-space:nowrap}
.share{float:right;margin-left:.8rem;font-variant-numeric:tabular-nums}
table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}
a.cite{text-decoration:none;vertical-align:super;font-size:.75rem}
summary{cursor:pointer}
@media print{
.data{display:none}body{max-width:none;margin:0}h2{break-after:avoid}li{break-inside:avoid}
}
"""
    + CHARTS
)
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Content security policy: this page's own style and nothing else."""
_SAMPLE = '<p class="note">Sample data: made up, from the offline sandbox.</p>'
_SHARE = "Relative relevance among returned sources"


def report_html(report: Report) -> str:
    """The whole page."""
    report = outline.openable(report)
    numbers, items = outline.numbered(report.items), {item.key: item for item in report.items}
    title = text(outline.heading(report)) or "Listenpost"
    parts = [
        f"<h1>{title}</h1>",
        f"<p>{text(outline.decision(report))}</p>",
    ]
    if report.sample:
        parts.append(_SAMPLE)
    notes = (*report.quality_notes, report.disclaimer)
    parts += [f'<p class="note">{text(note)}</p>' for note in notes if note]
    parts += [f"<p>{text(paragraph)}</p>" for paragraph in outline.paragraphs(report)]
    for heading, findings in outline.findings_by_kind(report):
        parts += _list(heading, [_finding(finding, items, numbers) for finding in findings])
    quotes = outline.further_quotes(report)
    if quotes:
        parts.append("<h2>In their words</h2>")
    parts += [
        f"<blockquote>{text(quotation(quote.text))} "
        f"{link('link', quote.url) if web_url(quote.url) else ''}"
        f"{_cites([quote.key], numbers)}{_by(items.get(quote.key), quote.text)}</blockquote>"
        for quote in quotes
    ]
    drawn = charts(report)
    parts += ["<h2>Figures</h2>", *drawn] if drawn else []
    parts += _sources(report.items)
    parts += _dropped(report.dropped)
    parts += ["<h2>Coverage</h2>", f"<p>{text(report.coverage)}</p>"]
    parts += [f'<p class="note">{text(note)}</p>' for note in outline.source_notes(report)]
    parts += _list("Next questions", map(text, report.suggestions))
    return _page(title, parts)


def comparison_html(comparison: Comparison) -> str:
    """The whole page of a comparison."""
    comparison = outline.openable(comparison)
    numbers = outline.numbered(comparison.items)
    items = {item.key: item for item in comparison.items}
    title = text(comparisons.title(comparison))
    parts = [f"<h1>{title}</h1>"]
    if comparison.sample:
        parts.append(_SAMPLE)
    parts.append(f"<p>{text(comparisons.alike(comparison))}</p>")
    rows = [("", tuple(map(comparisons.name_of, comparison.products)))]
    rows += [(row.name, row.cells) for row in comparisons.table(comparison)]
    lines = (
        f"<th>{text(name)}</th>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}"
        for name, cells in rows
    )
    parts.append(f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>")
    parts += [f"<p>{text(note)}</p>" for note in comparisons.notes(comparison)]
    for heading, bullets in comparisons.sections(comparison):
        listed = []
        for bullet in bullets:
            words = "".join(
                f"<li>{text(name)}: <q>{text(quotation(passage.passage))}</q>"
                f"{_cites([passage.key], numbers)}{_by(items[passage.key], passage.passage)}</li>"
                for name, passage in bullet.words
            )
            evidence = f'<ul class="evidence">{words}</ul>' if words else ""
            listed.append(f"{text(bullet.text)}{_cites(bullet.cites, numbers)}{evidence}")
        parts += _list(heading, listed)
    parts += _sources(comparison.items)
    parts.append(f"<p>{text(outline.spent(comparison))}</p>")
    return _page(title, parts)


def _page(title: str, parts: Iterable[str]) -> str:
    """The page around its parts; all of it is escaped already."""
    meta = POLICY.partition("; frame-ancestors")[0]
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(meta)}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


def text(value: object) -> str:
    """Anything as text of a page."""
    return escape(clean(value))


def link(label: str, url: object) -> str:
    """A link that leads to http(s) or nowhere; `label` is escaped already."""
    target = web_url(url)
    if not target:
        return label
    return f'<a href="{escape(target)}" rel="noopener noreferrer nofollow">{label}</a>'


def _finding(finding: Finding, items: Mapping[str, KeptItem], numbers: Mapping[str, int]) -> str:
    """The sentence, and below it the words that carry it."""
    also = outline.unshown(finding, numbers, lambda keys: _cites(keys, numbers))
    sentence = f"{text(finding.text)}{also}"
    passages = "".join(
        f"<li><q>{text(quotation(passage.passage))}</q>{_cites([passage.key], numbers)}"
        f"{_by(items[passage.key], passage.passage)}</li>"
        for passage in outline.evidence(finding, numbers)
    )
    listed = f'<ul class="evidence">{passages}</ul>' if passages else ""
    return f"{sentence}{outline.badge(finding)}{listed}"


def _by(item: KeptItem | None, words: str = "") -> str:
    """Who has to be named, with a link to the profile."""
    name, profile = outline.signature(item, words)
    return f" <small>by {link(text(name), profile)}</small>" if name else ""


def _cites(keys: Sequence[str], numbers: Mapping[str, int]) -> str:
    return "".join(
        f' <a class="cite" href="#source-{number}">[{number}]</a>'
        for number in outline.cited(keys, numbers)
    )


def _sources(items: Sequence[KeptItem]) -> list[str]:
    if not items:
        return []
    listed = "\n".join(_source(item, number) for number, item in enumerate(items, 1))
    return ["<h2>Sources</h2>", f'<ol class="sources">\n{listed}\n</ol>']


def _source(item: KeptItem, number: int) -> str:
    caption = outline.caption(item)
    about = [text(part) for part in (caption.source, caption.place, caption.date) if part]
    badges = "".join(
        f' <span class="badge">{badge.capitalize()}</span>' for badge in caption.badges
    )
    share = ""
    if item.relevance is not None:
        percent = round(item.relevance * 100)
        share = f'<span class="share" title="{_SHARE}">{percent} %</span>'
    words = [item.body, *(comment.body for comment in item.comments)]
    quoted = "".join(
        f"<blockquote>{text(part)}{_by(item, part)}</blockquote>" for part in words if part
    )
    snippet = f"<details><summary>Snippet</summary>{quoted}</details>" if quoted else ""
    label = link(text(outline.title_of(item)), item.url)
    return (
        f'<li id="source-{number}">{share}[{number}] {label}{badges}'
        f"<br><small>{' · '.join(about)}</small>{_by(item)}{snippet}</li>"
    )


def _dropped(dropped: Sequence[DroppedItem]) -> list[str]:
    if not dropped:
        return []
    lines = "".join(
        f"<li>{link(text(outline.title_of(item)), item.url)}: "
        f"{text(outline.why_dropped(item))}</li>"
        for item in dropped
    )
    summary = f"<summary>{len(dropped)} dropped</summary>"
    return [f"<h2>Dropped</h2><details>{summary}<ul>{lines}</ul></details>"]


def _list(heading: str, lines: Iterable[str]) -> list[str]:
    """A list under its heading; the lines are escaped already."""
    entries = "".join(f"<li>{line}</li>" for line in lines)
    return [f"<h2>{heading}</h2>", f"<ul>{entries}</ul>"] if entries else []
