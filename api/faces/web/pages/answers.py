"""The Markdown of a chat's answers as markup: lists and emphasis; links and HTML stay text."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from api.services.chatting.history import PastTurn
from api.services.text import clean

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# `[E1]`, `[E1, E3]`
_CITATIONS = re.compile(r"\[(E\d+(?:, E\d+)*)\]")
_SPOKEN = ("list", "heading", "emphasis", "backticks", "newline", "escape", "entity")
"""What is read of Markdown; a link, an image and HTML stay what was written."""


def answer_markup(turn: PastTurn) -> str:
    """The turn's words; each citation that is shown below them leads there."""
    tokens = _markdown().parse(clean(turn.text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3"  # below the question
    shown = {citation.label for citation in turn.citations}

    def cites(match: re.Match[str]) -> str:
        return "".join(
            f'<a class="cite" href="#{anchor(turn, label)}">[{label}]</a>'
            if label in shown
            else f"[{label}]"
            for label in match[1].split(", ")
        )

    return _CITATIONS.sub(cites, _markdown().renderer.render(tokens, _markdown().options, {}))


def anchor(turn: PastTurn, label: str) -> str:
    """Where the post that a turn cites as `label` stands below its answer."""
    return f"turn-{turn.turn}-{label}"


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("zero", {"breaks": True, "html": False}).enable(list(_SPOKEN))
