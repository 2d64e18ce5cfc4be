"""Strangers' HTML and Markdown as the words that were written."""

from __future__ import annotations

import re
from collections import Counter

from selectolax.lexbor import LexborHTMLParser

from api.core.text import clean, unescape

DEEPEST = 1_000
"""Open boxes at one place; pages have about 40, and the parser's time grows too fast."""
# the beginning or end of a box that the parser nests: "<div", "</ul"; or of what it opens anew in
# every paragraph until it is closed: "<b", "</font"
_BOX = re.compile(
    r"<(/?)(a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u|div|[uod]l|section|article|aside"
    r"|main|nav|header|footer|blockquote|details|fieldset|figure|center|address|menu"
    r"|dialog|summary|hgroup|search|listing|pre|dir|optgroup)(?![\w-])",
    re.I,
)
LONGEST = 100_000
"""Characters of one text that are read."""
# What is no word of the author's: a forum's `aside.quote` and a quote hold somebody else's.
_UNREAD = ["script", "style", "noscript", "template", "img", "aside.quote", "blockquote"]
_BOXES = "p, pre, div, ul, ol, table, h1, h2, h3, h4, h5, h6"
# what stands in a Markdown text unseen, or was left of a template: `<!-- x -->`, `- [ ] I searched`
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_UNCHECKED = re.compile(r"^[ \t]*[-*+] \[ \][^\n]*$", re.M)
# `![alt](https://x "title")`
_PICTURE = re.compile(r"!\[[^\][]*\]\([^()\s]*(?:\s[^()]*)?\)")
_EMPTY = re.compile(r"\n{3,}")


def is_too_deep(html: str) -> bool:
    """Whether more boxes stand in each other than a page can need; asked before it is parsed."""
    opened, depth = Counter[str](), 0
    for end, name in _BOX.findall(html):
        box = name.lower()
        if not end:
            opened[box], depth = opened[box] + 1, depth + 1
        elif opened[box]:
            opened[box], depth = opened[box] - 1, depth - 1
        if depth > DEEPEST:
            return True
    return False


def words_of_html(value: object) -> str:
    """What somebody wrote, a blank line between paragraphs; without quotes, pictures and scripts.

    `<p>It&#x27;s fine<p>Really` is `It's fine` and `Really`.
    """
    html = value[:LONGEST] if isinstance(value, str) else ""
    if "<" not in html:
        return unescape(html)
    if is_too_deep(html):
        return ""
    body = LexborHTMLParser(html).body
    if body is None:
        return ""
    for node in body.css(", ".join(_UNREAD)):
        node.decompose()
    for node in body.css("br, li, tr"):
        node.insert_before("\n")
    for node in body.css(_BOXES):
        node.insert_before("\n\n")
        node.insert_after("\n\n")
    return _EMPTY.sub("\n\n", clean(body.text()))


def words_of_markdown(value: object) -> str:
    """The same of Markdown: without comments, boxes that nobody checked, and pictures."""
    text = clean(value)[:LONGEST]
    for pattern in (_COMMENT, _UNCHECKED, _PICTURE):
        text = pattern.sub("", text)
    return _EMPTY.sub("\n\n", text).strip()
