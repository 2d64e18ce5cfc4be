"""HTML pages from templates in `pages/`; values are escaped unless they are `Html`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib import resources
from string import Template


class Html(str):
    """Text that is markup already."""


@cache
def _template(name: str) -> Template:
    return Template((resources.files("api.sandbox") / "pages" / f"{name}.html").read_text("utf-8"))


def render(name: str, **values: object) -> Html:
    """The page or piece of a page `name`."""
    shown = {k: v if isinstance(v, Html) else escape(str(v)) for k, v in values.items()}
    return Html(_template(name).substitute(shown))


def joined(pieces: Iterable[Html]) -> Html:
    """Pieces one after another."""
    return Html("".join(pieces))


def when(condition: object, piece: Html) -> Html:
    """The piece, or nothing."""
    return piece if condition else Html("")
