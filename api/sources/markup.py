"""HTML, Markdown and BBCode of posts as plain text."""

from __future__ import annotations

import re
from collections import Counter

from selectolax.lexbor import LexborHTMLParser

from api.core.text import clean, unescape

MAX_DEPTH = 1_000
"""Nested tags of a page; pages have about 40, and the parser's time grows too fast with more."""
# tags that the parser nests, "<div", "</ul", or opens anew in every paragraph until they are
# closed: "<b", "</font"
_TAG = re.compile(
    r"<(/?)(a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u|div|[uod]l|section|article|aside"
    r"|main|nav|header|footer|blockquote|details|fieldset|figure|center|address|menu"
    r"|dialog|summary|hgroup|search|listing|pre|dir|optgroup)(?![\w-])",
    re.I,
)
MAX_LENGTH = 100_000
"""Characters of one text that are read."""
# what is not the author's own text: scripts, pictures, quotes (a forum's are `aside.quote`)
_NOT_TEXT = ["script", "style", "noscript", "template", "img", "aside.quote", "blockquote"]
_BLOCKS = "p, pre, div, ul, ol, table, h1, h2, h3, h4, h5, h6"
# invisible in Markdown, or left of a template: `<!-- x -->`, `- [ ] I searched`
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.S)
_UNCHECKED = re.compile(r"^[ \t]*[-*+] \[ \][^\n]*$", re.M)
# `![alt](https://x "title")`
_PICTURE = re.compile(r"!\[[^\][]*\]\([^()\s]*(?:\s[^()]*)?\)")
# what Steam's texts hold beside words; `[10/10]` is no tag
_BBCODE = re.compile(
    r"\[/?(?:h[1-6]|b|u|i|s|strike|spoiler|noparse|hr|list|olist|\*|url|table|tr|th|td|p|c|emoticon)"
    r"(?:[= ][^\[\]\n]{0,500})?\]",
    re.I,
)
# what opens or closes a part that is nobody's own words
_BBCODE_FOREIGN = re.compile(
    r"\[(?P<close>/?)(?:quote|code|img|previewyoutube|dynamiclink)(?:[= ][^\[\]\n]{0,500})?\]", re.I
)
_BBCODE_BLOCK = re.compile(r"\[(?:/?(?:h[1-6]|p|hr|list|olist|table|tr)|\*)(?:[= ][^\[\]\n]{0,500})?\]", re.I)
# a line of a list to be ticked that is not: `\u2610 You forget what reality is`
_UNTICKED = re.compile(r"^[ \t]*(?:\u2610|\U0001f532)[^\n]*$", re.M)
# more than one empty line
_EMPTY_LINES = re.compile(r"\n{3,}")


def is_too_deep(html: str) -> bool:
    """Whether tags are nested deeper than a page needs; to be asked before it is parsed."""
    opened, depth = Counter[str](), 0
    for end, name in _TAG.findall(html):
        tag = name.lower()
        if not end:
            opened[tag], depth = opened[tag] + 1, depth + 1
        elif opened[tag]:
            opened[tag], depth = opened[tag] - 1, depth - 1
        if depth > MAX_DEPTH:
            return True
    return False


def words_of_html(value: object) -> str:
    """The author's own text, with a blank line between paragraphs and no quotes."""
    html = value[:MAX_LENGTH] if isinstance(value, str) else ""
    if "<" not in html:
        return unescape(html)
    if is_too_deep(html):
        return ""
    body = LexborHTMLParser(html).body
    if body is None:
        return ""
    for node in body.css(", ".join(_NOT_TEXT)):
        node.decompose()
    for node in body.css("br, li, tr"):
        node.insert_before("\n")
    for node in body.css(_BLOCKS):
        node.insert_before("\n\n")
        node.insert_after("\n\n")
    return _EMPTY_LINES.sub("\n\n", clean(body.text()))


_FEED_TYPES = ("application/rss+xml", "application/atom+xml", "application/feed+json", "application/json")
# bytes of a page in which its head ends
_HEAD = 200_000


def announced_feeds(html: str) -> list[str]:
    """Addresses of the feeds that a page announces, as it writes them, the first first."""
    head = html[:_HEAD]
    if "<" not in head or is_too_deep(head):
        return []
    links = LexborHTMLParser(head).css("link[rel][type][href]")
    return [
        address.strip()
        for link in links
        if "alternate" in (link.attributes.get("rel") or "").lower().split()
        and (link.attributes.get("type") or "").partition(";")[0].strip().lower() in _FEED_TYPES
        and (address := link.attributes.get("href"))
    ]


def words_of_markdown(value: object) -> str:
    """The author's own text of Markdown: without comments, unchecked boxes and pictures."""
    text = clean(value)[:MAX_LENGTH]
    for pattern in (_COMMENT, _UNCHECKED, _PICTURE):
        text = pattern.sub("", text)
    return _EMPTY_LINES.sub("\n\n", text).strip()


def words_of_bbcode(value: object) -> str:
    """The author's own text of Steam's BBCode: without tags, quotations, pictures and unticked lines."""
    text = _UNTICKED.sub("", clean(value if isinstance(value, str) else "")[:MAX_LENGTH])
    parts, depth, at = [], 0, 0
    for match in _BBCODE_FOREIGN.finditer(text):
        parts += [] if depth else [text[at : match.start()]]
        depth, at = max(0, depth + (-1 if match["close"] else 1)), match.end()
    text = _BBCODE_BLOCK.sub("\n", "\n".join([*parts, *([] if depth else [text[at:]])]))
    return _EMPTY_LINES.sub("\n\n", _BBCODE.sub("", text)).strip()
