"""Templates as pages: strangers' text is escaped and a missing value is an error; also the Markdown of chat answers."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import regex
from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.core.text import clean, quantity, web_url
from api.core.words import index_tokens
from api.errors import NotFound
from api.features.chat.chat_citations import is_quoted
from api.features.chat.chat_history import PastTurn
from api.interfaces.http.event_stream import unless_kept
from api.interfaces.pages.report_charts import claim_line
from api.interfaces.shared import claim_layout, comparison_table, presentation, replay_text
from api.reports.composition import parts_of
from api.reports.markdown_text import quotation

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt


# `[E1]`, `[E1, E3]`
_CITATIONS = re.compile(r"\[(E\d+(?:, E\d+)*)\]")
# What is read of Markdown; a link, an image and HTML stay what was written.
_SPOKEN = ("list", "heading", "emphasis", "backticks", "newline", "escape", "entity")


def answer_markup(turn: PastTurn, links: Mapping[str, str] = MappingProxyType({})) -> str:
    """The turn's words; each citation leads to what is shown below them, or to its address among `links` by label."""
    tokens = _markdown().parse(clean(turn.text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3"  # below the question
    shown = {citation.label for citation in turn.citations}

    def cites(match: re.Match[str]) -> str:
        places = {label: links.get(label) or f"#{anchor(turn, label)}" for label in match[1].split(", ")}
        return "".join(
            f'<a class="cite" href="{escape(place)}">[{number_of(label)}]</a>'
            if label in shown
            else f"[{number_of(label)}]"
            for label, place in places.items()
        )

    return _CITATIONS.sub(cites, _markdown().renderer.render(tokens, _markdown().options, {}))


def number_of(label: str) -> str:
    """The number of a citation, as a report shows it: `21` of `E21`."""
    return label.removeprefix("E")


def anchor(turn: PastTurn, label: str) -> str:
    """Anchor of the post that a turn cites as `label`, below its answer."""
    return f"turn-{turn.turn}-{label}"


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"breaks": True, "html": False}).enable(list(_SPOKEN))


# `**Money:**`, `__init__` as code, `*really*`; a mark without its other half is left
_EMPHASIS = re.compile(r"(?<![\w*_`])(\*\*|__|`{1,3}|\*|_)(?=\S)(.+?)(?<=\S)\1(?![\w*_`])")


def unmarked(words: str) -> str:
    """A quote without the marks of Markdown's emphasis and code, as its reader on the page sees it."""
    return _EMPHASIS.sub(r"\2", words)


# what the API's messages quote: `mon 08:00`
_QUOTED = re.compile(r"`([^`]*)`")


def plainly(message: str) -> str:
    """A message of the API as a sentence for people: `this must be …` is “This must be …”."""
    words = _QUOTED.sub(r"“\1”", message.strip())
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?", "…")) else ".")


TEMPLATES = "jinja2"
"""The library, which loads with the first page, or before it in the background."""


# A link to a path of this server in what a template made; in strangers' text every `"` is escaped.
_OWN_LINK = re.compile(r'(\s(?:href|src|action|formaction|data-live|data-prices)=")(?=/(?!/))')


def rendered(template: str, root: str, /, **values: object) -> str:
    """The page or part that a template makes of these values; links to paths of this server are below `root`.

    So templates and the values given to them write paths as routes do, without the setting `root_path`.
    """
    text = _environment().get_template(template).render(values)
    return _OWN_LINK.sub(rf"\g<1>{root}", text) if root else text


@cache
def asset(name: str) -> bytes:
    """The bytes of a file of `static/`, by its name."""
    return files("api.interfaces.pages").joinpath("static", name).read_bytes()


@cache
def style() -> str:
    """The one style, for pages that are saved and carry it with them."""
    return asset("page.css").decode()


@cache
def saved_policy() -> str:
    """Content security policy of a saved page: its own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("api.interfaces.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "outline": presentation,
        "claims": claim_layout,
        "comparisons": comparison_table,
        "replays": replay_text,
        "many": quantity,
        "citing": _citing,
        "marked": lambda text, passages: _marked(highlighted(text, passages)),
        "worded": lambda text, question: _marked(asked_for(text, question)),
        "parts_of": parts_of,
        "anchor": anchor,
        "number_of": number_of,
        "answer_markup": answer_markup,
        "claim_line": claim_line,
        "is_quoted": is_quoted,
    }
    made.filters |= {
        "web": web_url,
        "quotation": lambda words: quotation(unmarked(words)),
        "unmarked": unmarked,
        "minute": _minute,
        "plainly": plainly,
        "percent": lambda share: f"{round(share * 100)} %",
    }
    return made


def _minute(moment: datetime) -> str:
    """`Monday 30 November 2026, 22:00 UTC`, as the pages of watches write a moment."""
    utc = moment.astimezone(UTC)
    return f"{utc:%A} {utc.day} {utc:%B} {utc.year}, {utc:%H:%M} UTC"


def _citing(numbers: Mapping[str, int]) -> Callable[[Sequence[str]], str]:
    """Markup of the citations of items by their keys, of which only the numbers are shown."""

    def cites(keys: Sequence[str]) -> str:
        return "".join(
            f' <a class="cite" href="#source-{numbers[key]}">[{numbers[key]}]</a>' for key in keys if key in numbers
        )

    return cites


def _marked(stretches: Sequence[Stretch]) -> str:
    """HTML of a text with its cited or searched parts marked."""
    return "".join(
        f"<mark>{escape(stretch.text)}</mark>" if stretch.cited else escape(stretch.text) for stretch in stretches
    )


# `batteries`, `rtx4090`; of a script without blanks the whole run
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a text, and whether it is cited or asked for."""

    text: str
    cited: bool = False


def highlighted(text: str, passages: Iterable[str]) -> list[Stretch]:
    """The text in pieces, whose cited ones hold a passage; where two overlap, one holds both.

    White space may differ: a passage is kept on one line, its text as it was written.
    """
    text = clean(text)
    spans: list[tuple[int, int]] = []
    for passage in passages:
        # `two  words` in whatever way they are spaced
        pattern = r"\s+".join(map(regex.escape, clean(passage).split()))
        if pattern and (match := regex.search(pattern, text)):
            spans.append(match.span())
    return _parted(text, _merged(spans))


def asked_for(text: str, question: str) -> list[Stretch]:
    """The text in pieces, whose cited ones are words of the question, as the archive's index is."""
    text, wanted = clean(text), set(index_tokens(clean(question)))
    words = (match for match in _WORD.finditer(text) if wanted & set(index_tokens(match[0])))
    return _parted(text, [match.span() for match in words])


def _parted(text: str, spans: list[tuple[int, int]]) -> list[Stretch]:
    stretches: list[Stretch] = []
    end = 0
    for start, stop in spans:
        stretches += [Stretch(text[end:start]), Stretch(text[start:stop], True)]
        end = stop
    stretches.append(Stretch(text[end:]))
    return [stretch for stretch in stretches if stretch.text]


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _cleaned(value: Any) -> Any:
    """Every value of a template as text that can be shown; markup of ours stays what it is."""
    return value if hasattr(value, "__html__") else clean(value)


router = APIRouter(include_in_schema=False)
_MEDIA = {"page.css": "text/css", "page.js": "text/javascript"}
# Pages name them with their digest, so that another version has another address.
_KEPT = "public, max-age=31536000, immutable"


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """One of the two static files; needs no key."""
    if name not in _MEDIA:
        raise NotFound("there is no such file")
    answer = unless_kept(request, Response(asset(name), media_type=_MEDIA[name]))
    answer.headers["Cache-Control"] = _KEPT if request.url.query else "no-cache"
    return answer
