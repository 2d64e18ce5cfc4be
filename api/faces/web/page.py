"""A report as one HTML page: nothing is loaded, nothing runs, what strangers wrote is escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from api.faces.markdown import KINDS
from api.services.text import clean, web_url
from api.sources import TITLES

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8888}
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{line-height:1.2}small,.soft{color:var(--soft)}
blockquote{margin:.5rem 0;padding-left:.8rem;border-left:3px solid var(--line)}
.note{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem}
ol.sources{padding-left:0;list-style:none}
ol.sources li{border:1px solid var(--line);border-radius:.4rem;padding:.5rem .8rem;margin:.5rem 0}
ol.sources li:target{outline:3px solid #e0a800;background:#e0a80022}
.badge{border:1px solid var(--line);border-radius:1rem;padding:0 .5rem;font-size:.75rem}
.badge{color:var(--soft)}.share{float:right;font-variant-numeric:tabular-nums}
table{border-collapse:collapse}td,th{padding:.1rem .8rem .1rem 0;text-align:left}
a.cite{text-decoration:none;vertical-align:super;font-size:.75rem}
summary{cursor:pointer}
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Content security policy: this page's own style and nothing else."""
_SHARE = "Relative relevance among returned sources"


def report_html(report: Mapping[str, Any]) -> str:
    """The whole page."""
    numbers = {item["key"]: n for n, item in enumerate(report["items"], 1)}
    title = text(report["topic"] or report["query"]) or "Listenpost"
    parts = [
        f"<h1>{title}</h1>",
        *_banner(report),
        *_words(report),
        *_findings(report, numbers),
        *_quotes(report, numbers),
        *_figures(report["figures"]),
        *_sources(report["items"]),
        *_dropped(report["dropped"]),
        *_coverage(report),
        *_list("Next questions", report["suggestions"]),
    ]
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


def _banner(report: Mapping[str, Any]) -> list[str]:
    lines = [
        f"<p><strong>{text(report['decision'])}</strong>: {text(report['decision_rationale'])}"
    ]
    lines[0] += "</p>"
    if report["sample"]:
        lines.append('<p class="note">Sample data: made up, from the offline sandbox.</p>')
    notes = [*report["quality_notes"], *([report["disclaimer"]] if report["disclaimer"] else [])]
    return lines + [f'<p class="note">{text(note)}</p>' for note in notes]


def _words(report: Mapping[str, Any]) -> list[str]:
    said = [str(report[name] or "") for name in ("summary", "explanation_text")]
    paragraphs = [part for words in said for part in words.split("\n\n")]
    return [f"<p>{text(part)}</p>" for part in paragraphs if part.strip()]


def _findings(report: Mapping[str, Any], numbers: Mapping[str, int]) -> list[str]:
    parts = []
    for kind, title in KINDS:
        found = [one for one in report["findings"] if one["kind"] == kind]
        if found:
            lines = (
                f"<li>{text(one['text'])}{_cites(one['cites'], numbers)}</li>" for one in found
            )
            parts += [f"<h2>{title}</h2>", f"<ul>{''.join(lines)}</ul>"]
    return parts


def _cites(keys: Iterable[str], numbers: Mapping[str, int]) -> str:
    known = (numbers[key] for key in keys if key in numbers)
    return "".join(f' <a class="cite" href="#source-{n}">[{n}]</a>' for n in known)


def _quotes(report: Mapping[str, Any], numbers: Mapping[str, int]) -> list[str]:
    if not report["quotes"]:
        return []
    lines = [
        f"<blockquote>{text(quote['text'])} {link('link', quote['url'])}"
        f"{_cites([quote['key']], numbers)}</blockquote>"
        for quote in report["quotes"]
    ]
    return ["<h2>In their words</h2>", *lines]


def _figures(figures: Mapping[str, Any]) -> list[str]:
    sentiment, aspects = figures.get("sentiment") or {}, figures.get("aspects") or []
    parts = []
    if n := sentiment.get("n"):
        shares = ", ".join(
            f"{text(sentiment.get(name))} {name}" for name in ("positive", "neutral", "negative")
        )
        parts.append(f"<p>Sentiment of {text(n)} graded items: {shares}.</p>")
    if aspects:
        rows = "".join(
            f"<tr><td>{text(one['aspect'])}</td><td>{text(one['count'])}</td>"
            f"<td>{text(one['positive'])}</td><td>{text(one['negative'])}</td></tr>"
            for one in aspects[:10]
        )
        head = "<tr><th>aspect</th><th>items</th><th>positive</th><th>negative</th></tr>"
        parts.append(f"<table>{head}{rows}</table>")
    return ["<h2>Figures</h2>", *parts] if parts else []


def _sources(items: Sequence[Mapping[str, Any]]) -> list[str]:
    if not items:
        return []
    listed = "\n".join(_source(item, number) for number, item in enumerate(items, 1))
    return ["<h2>Sources</h2>", f'<ol class="sources">\n{listed}\n</ol>']


def _source(item: Mapping[str, Any], number: int) -> str:
    name = TITLES.get(item["source"], item["source"])
    about = [text(name), text(item["place"]), text((item["created_at"] or "")[:10])]
    badge = ' <span class="badge">Low relevance</span>' if item["low_relevance"] else ""
    share = ""
    if item["relevance"] is not None:
        percent = round(item["relevance"] * 100)
        share = f'<span class="share" title="{_SHARE}">{percent} %</span>'
    said = [item["body"], *(comment["body"] for comment in item["comments"])]
    shown = "".join(f"<blockquote>{text(words)}</blockquote>" for words in said if words)
    snippet = f"<details><summary>Snippet</summary>{shown}</details>" if shown else ""
    label = link(text(item["title"]) or "untitled", item["url"])
    return (
        f'<li id="source-{number}">{share}[{number}] {label}{badge}'
        f"<br><small>{' · '.join(part for part in about if part)}</small>{snippet}</li>"
    )


def _dropped(dropped: Sequence[Mapping[str, Any]]) -> list[str]:
    if not dropped:
        return []
    lines = "".join(
        f"<li>{link(text(one['title']) or 'untitled', one['url'])}: "
        f"{text(one['explanation'] or one['reason'] or one['dropped_by'])}</li>"
        for one in dropped
    )
    summary = f"<summary>{len(dropped)} dropped</summary>"
    return [f"<h2>Dropped</h2><details>{summary}<ul>{lines}</ul></details>"]


def _coverage(report: Mapping[str, Any]) -> list[str]:
    return ["<h2>Coverage</h2>", f"<p>{text(report['coverage'])}</p>"]


def _list(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    return [f"<h2>{title}</h2>", f"<ul>{''.join(f'<li>{text(one)}</li>' for one in lines)}</ul>"]
