"""A report as markdown: everything a stranger wrote is escaped, only http links are links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import regex

from api.services.text import clean, one_line, web_url
from api.sources import TITLES

_SPECIAL = regex.compile(r"([\\`*_\[\]<>#|~!{}()$&])")
_LEAD = regex.compile(r"^(\d*)([-+=.])")
_SELF_LINKING = regex.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(?=:)|\b(www)(?=\.)|(?<=\S)(?=@\S)")
_IN_ADDRESS = {"(": "%28", ")": "%29", "`": "%60", "[": "%5B", "]": "%5D"}
KINDS = (
    ("praise", "What people praise"),
    ("complaint", "What people complain about"),
    ("request", "What people ask for"),
    ("difference", "Where platforms and people differ"),
    ("other", "What else is said"),
)


def md(text: object) -> str:
    """Any text as one line that markdown shows as it is."""
    line = unlinked(_SPECIAL.sub(r"\\\1", one_line(clean(text))))
    return str(_LEAD.sub(r"\1\\\2", line))


def unlinked(line: str) -> str:
    """The text with an invisible break in whatever would become a link by itself."""
    return str(_SELF_LINKING.sub(lambda found: f"{found[0]}\u200b", line))


def link(label: str, url: object) -> str:
    """A link, or the label alone when the URL is not http."""
    target = "".join(_IN_ADDRESS.get(sign, sign) for sign in web_url(url))
    return f"[{label}](<{target}>)" if target else label


def report_markdown(answer: Mapping[str, Any], dropped: bool) -> str:
    """The whole report."""
    parts = [f"# {md(answer['topic'] or answer['query'])}", _banner(answer)]
    if answer["summary"]:
        parts.append(md(answer["summary"]))
    if answer["explanation_text"]:
        parts += [md(part) for part in str(answer["explanation_text"]).split("\n\n")]
    cited = _cited(answer["items"])
    parts += _findings(answer, cited)
    parts += _quotes(answer, cited)
    parts += _figures(answer)
    parts += ["## Coverage", _sources(answer["sources"]), md(answer["coverage"])]
    parts += _listed("Sources", answer["items"])
    if dropped and answer["dropped"]:
        parts += ["## Dropped", "\n".join(_dropped(one) for one in answer["dropped"])]
    if answer["suggestions"]:
        parts += ["## Next questions", "\n".join(f"- {md(q)}" for q in answer["suggestions"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def fetch_markdown(answer: Mapping[str, Any], dropped: bool) -> str:
    """One source's kept items."""
    name = TITLES.get(answer["source"], answer["source"])
    parts = [f"# {md(answer['query'])} on {md(name)}", _sample(answer)]
    parts.append(_sources({answer["source"]: answer}))
    if answer["reason"]:
        parts.append(md(answer["reason"]))
    parts += [f"> {md(note)}" for note in answer["notes"]]
    parts += _listed("Items", answer["items"])
    if dropped and answer["dropped"]:
        parts += ["## Dropped", "\n".join(_dropped(one) for one in answer["dropped"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _banner(answer: Mapping[str, Any]) -> str:
    lines = [_sample(answer)] if answer["sample"] else []
    lines += [f"> {md(note)}" for note in answer["quality_notes"]]
    if answer["disclaimer"]:
        lines.append(f"> {md(answer['disclaimer'])}")
    lines.append(f"**{md(answer['decision'])}**: {md(answer['decision_rationale'])}")
    return "\n\n".join(lines)


def _sample(answer: Mapping[str, Any]) -> str:
    return "> **Sample data**: made up, from the offline sandbox." if answer["sample"] else ""


def _cited(items: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Item key -> its number, linked to where it stands."""
    return {item["key"]: link(f"\\[{n}\\]", item["url"]) for n, item in enumerate(items, 1)}


def _findings(answer: Mapping[str, Any], cited: Mapping[str, str]) -> list[str]:
    parts = []
    for kind, title in KINDS:
        found = [one for one in answer["findings"] if one["kind"] == kind]
        if found:
            lines = [f"- {md(one['text'])} {_cites(one['cites'], cited)}" for one in found]
            parts += [f"## {title}", "\n".join(lines)]
    return parts


def _cites(keys: Iterable[str], cited: Mapping[str, str]) -> str:
    return " ".join(cited[key] for key in keys if key in cited)


def _quotes(answer: Mapping[str, Any], cited: Mapping[str, str]) -> list[str]:
    if not answer["quotes"]:
        return []
    lines = [
        f"> “{md(quote['text'])}” {link('link', quote['url'])} {_cites([quote['key']], cited)}"
        for quote in answer["quotes"]
    ]
    return ["## In their words", "\n>\n".join(lines)]


def _figures(answer: Mapping[str, Any]) -> list[str]:
    figures = answer["figures"]
    sentiment, timeline = figures.get("sentiment", {}), figures.get("timeline", {})
    parts = []
    if sentiment.get("n"):
        shares = "".join(
            f'\n    "{name}" : {sentiment[name]}'
            for name in ("positive", "neutral", "negative")
            if sentiment[name]
        )
        title = f"Sentiment, n = {sentiment['n']}"
        parts.append(f"```mermaid\npie showData title {title}{shares}\n```")
    if points := timeline.get("points"):
        starts = ", ".join(f'"{point["start"]}"' for point in points)
        counts = ", ".join(str(point["count"]) for point in points)
        chart = f"xychart-beta\n    x-axis [{starts}]\n    bar [{counts}]"
        parts.append(f"Items per {timeline['unit']} (UTC):\n\n```mermaid\n{chart}\n```")
    if aspects := figures.get("aspects"):
        rows = [
            f"| {md(one['aspect'])} | {one['count']} | {one['positive']} | {one['negative']} |"
            for one in aspects[:10]
        ]
        head = "| aspect | items | positive | negative |\n| --- | ---: | ---: | ---: |"
        parts.append("\n".join([head, *rows]))
    return ["## Figures", *parts] if parts else []


def _sources(sources: Mapping[str, Any]) -> str:
    rows = [
        f"| {md(TITLES.get(name, name))} | {md(one['outcome'])} | {one['fetched']} | {one['kept']} "
        f"| {_share(one)} | {'yes' if one['refetched'] else 'no'} "
        f"| {md(one['gate']['status'])} | {one['upstream_calls']} |"
        for name, one in sources.items()
    ]
    if not rows:
        return ""
    head = "| source | outcome | fetched | kept | yield | refetched | gate | requests |"
    return "\n".join([head, "| --- | --- | ---: | ---: | ---: | --- | --- | ---: |", *rows])


def _share(source: Mapping[str, Any]) -> str:
    return f"{source['yield_ratio'] * 100:.0f} %" if source["fetched"] else "-"


def _listed(title: str, items: Iterable[Mapping[str, Any]]) -> list[str]:
    lines = []
    for number, item in enumerate(items, 1):
        place = f" ({md(item['place'])})" if item["place"] else ""
        badge = " *low relevance*" if item["low_relevance"] else ""
        badge += " *disputed*" if item["disputed"] else ""
        dated = f", {item['created_at'][:10]}" if item["created_at"] else ""
        label = link(md(item["title"]) or "untitled", item["url"])
        name = md(TITLES.get(item["source"], item["source"]))
        lines.append(f"{number}. {label}: {name}{place}{dated}{badge}")
    return [f"## {title}", "\n".join(lines)] if lines else []


def _dropped(one: Mapping[str, Any]) -> str:
    why = f"{one['dropped_by']}: {one['reason']}"
    return f"- {link(md(one['title']) or 'untitled', one['url'])}: {md(why)}"
