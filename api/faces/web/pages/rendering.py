"""Templates become pages here: what strangers wrote is text, and a missing value is a fault."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from api.faces import comparisons, outline
from api.faces.highlights import Stretch, asked_for, excerpted, highlighted
from api.faces.web.pages.answers import anchor, answer_markup
from api.faces.web.pages.fields import plainly
from api.services.reporting.credits import parts_of
from api.services.reporting.escaping import quotation
from api.services.text import clean, many, minute, web_url

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = "jinja2"
"""The library, which loads with the first page, or before it in the background."""


def rendered(template: str, /, **values: object) -> str:
    """The page or part that a template makes of these values."""
    return _environment().get_template(template).render(values)


@cache
def asset(name: str) -> bytes:
    """A file of `static/`."""
    return files("api.faces.web.pages").joinpath("static", name).read_bytes()


@cache
def style() -> str:
    """The one style, for pages that are saved and carry it with them."""
    return asset("page.css").decode()


@cache
def saved_policy() -> str:
    """Content security policy of a saved page: its own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("api.faces.web.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "outline": outline,
        "comparisons": comparisons,
        "many": many,
        "citing": _citing,
        "marked": lambda text, passages: _marked(highlighted(text, passages)),
        "excerpt_of": lambda text, passages: _marked(excerpted(text, passages)),
        "worded": lambda text, question: _marked(asked_for(text, question)),
        "parts_of": parts_of,
        "anchor": anchor,
        "answer_markup": answer_markup,
    }
    made.filters |= {
        "web": web_url,
        "quotation": quotation,
        "minute": minute,
        "plainly": plainly,
        "percent": lambda share: f"{round(share * 100)} %",
    }
    return made


def _citing(numbers: Mapping[str, int]) -> Callable[[Sequence[str]], str]:
    """Markup of the citations of items by their keys, of which only the numbers are shown."""

    def cites(keys: Sequence[str]) -> str:
        return "".join(
            f' <a class="cite" href="#source-{number}">[{number}]</a>'
            for number in outline.cited(keys, numbers)
        )

    return cites


def _marked(stretches: Sequence[Stretch]) -> str:
    """Markup of a text in which what is cited or asked for stands out."""
    return "".join(
        f"<mark>{escape(stretch.text)}</mark>" if stretch.cited else escape(stretch.text)
        for stretch in stretches
    )


def _cleaned(value: Any) -> Any:
    """Every value of a template as text that can be shown; markup of ours stays what it is."""
    return value if hasattr(value, "__html__") else clean(value)
