"""Entries of RSS, Atom and JSON Feed, read in a process of its own that ends in time.

feedparser takes minutes for some documents of 200 KB (290 s for one long author, by its pattern of mail addresses) and
holds the interpreter's lock meanwhile, so that neither a thread nor a check of the size would do.
"""

from __future__ import annotations

import json
import sys
from calendar import timegm
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

from api.core.text import clean, cut, one_line, web_url
from api.sources.markup import is_too_deep, words_of_html

SECONDS = 10
"""Limit of processor time for one document, in seconds."""
MOST = 1_000
"""Most entries read from one document; the largest of 200 feeds had 1,046."""
# of one text, in characters: a long article is judged by its beginning
_LONGEST_BODY, _LONGEST_TITLE, _LONGEST_ADDRESS = 10_000, 300, 2_000
_MEMORY = 1_000_000_000
_JSON_FEED = "https://jsonfeed.org/version/"
# how texts end that are only a beginning
_TEASER_ENDS = ("…", "...", "[…]", "[...]", "read more", "continue reading", "more »")
_MEDIUM = "continue reading on "


def main(seconds: int = SECONDS) -> None:
    """Read a document from stdin, with its type and address on the first line, and write its contents as JSON.

    Args:
        seconds: of processor time, after which the process ends.
    """
    try:
        from resource import RLIMIT_AS, RLIMIT_CPU, setrlimit

        setrlimit(RLIMIT_CPU, (seconds, seconds))
        setrlimit(RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError, OSError):  # another system: whoever started it stops it
        pass
    head, _, body = sys.stdin.buffer.read().partition(b"\n")
    kind, address = json.loads(head)
    sys.stdout.write(json.dumps(document_of(body, kind, address)))


def document_of(body: bytes, kind: str, address: str) -> dict[str, Any] | None:
    """Title, entries and their full number; None when it is not a feed. See `_fields`."""
    if body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return _json_feed(body, address)
    return _xml_feed(body, kind, address)


def _xml_feed(body: bytes, kind: str, address: str) -> dict[str, Any] | None:
    import feedparser

    headers = {"content-type": kind or "application/xml", "content-location": address}
    parsed = feedparser.parse(body.lstrip(), response_headers=headers, sanitize_html=False, resolve_relative_uris=False)
    entries = [entry for entry in parsed.entries if isinstance(entry, dict)]
    if not entries and (not parsed.get("version") or not (parsed.feed.get("title") or parsed.feed.get("links"))):
        return None  # a page, or elements in a namespace that the library does not know
    cut_off = bool(parsed.get("bozo")) and type(parsed.get("bozo_exception")).__name__ == "SAXParseException"
    is_cut = cut_off and not body.rstrip().endswith(b">")
    if is_cut:
        entries = entries[:-1]  # the last one is there in part only
    return {
        "title": _title(parsed.feed.get("title")),
        "entries": [_xml_entry(entry, address) for entry in entries[:MOST]],
        "count": len(entries),
        "cut": is_cut,
    }


def _xml_entry(entry: dict[str, Any], address: str) -> dict[str, Any]:
    texts = [*(part.get("value") for part in entry.get("content") or ()), entry.get("summary")]
    bodies = sorted((_words(text) for text in texts if isinstance(text, str)), key=len)
    link = _address(entry.get("link"), address)
    guid = clean(entry.get("id"))
    permalink = web_url(guid) if entry.get("guidislink") is not False else ""
    authors = [author.get("name") for author in entry.get("authors") or () if isinstance(author, dict)]
    # by `dict.get`: that of feedparser answers a missing `updated` with `published`, and warns
    dates = [dict.get(entry, "published_parsed"), dict.get(entry, "updated_parsed")]
    return _fields(
        title=entry.get("title"), body=bodies[-1] if bodies else "", guid=guid, link=link or permalink,
        comments=_address(entry.get("comments"), address),
        author=entry.get("author") or next(filter(None, authors), ""),
        at=next((timegm(date) for date in dates if date), None),
        teaser=not entry.get("content") and _is_teaser(bodies[-1] if bodies else ""),
    )  # fmt: skip


def _json_feed(body: bytes, address: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict) or not str(parsed.get("version")).startswith(_JSON_FEED):
        return None
    listed = parsed.get("items")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {
        "title": _title(parsed.get("title")),
        "entries": [_json_entry(entry, address) for entry in entries[:MOST]],
        "count": len(entries),
        "cut": False,
    }


def _json_entry(entry: Mapping[str, Any], address: str) -> dict[str, Any]:
    html, text, summary = (entry.get(name) for name in ("content_html", "content_text", "summary"))
    full = [_words(html), cut(clean(text), _LONGEST_BODY) if isinstance(text, str) else ""]
    bodies = sorted((*full, _words(summary)), key=len)
    listed = entry.get("authors")  # version 1.1; `author` before it
    authors: Sequence[Any] = [*(listed if isinstance(listed, list) else ()), entry.get("author")]
    link = _address(entry.get("url"), address)
    return _fields(
        title=entry.get("title"), body=bodies[-1], guid=clean(entry.get("id")), link=link,
        comments="", author=next((part.get("name") for part in authors if isinstance(part, dict)), ""),
        at=next(filter(None, (clean(entry.get(name)) for name in ("date_published", "date_modified"))), None),
        teaser=not any(full) and _is_teaser(bodies[-1]),
    )  # fmt: skip


def _fields(
    *, title: object, body: str, guid: str, link: str, comments: str, author: object, at: object, teaser: bool
) -> dict[str, Any]:
    # a blog's comments stand below the post itself; elsewhere their page is the post, and the link what it is about
    elsewhere = bool(comments and link) and not comments.startswith(link.rstrip("/"))
    return {
        "title": _title(title), "body": "" if body == "Comments" else body, "guid": guid[:_LONGEST_ADDRESS],
        "url": comments if elsewhere or not link else link, "link": link if elsewhere else "",
        "author": cut(one_line(clean(author)), _LONGEST_TITLE), "at": at, "teaser": teaser,
    }  # fmt: skip


def _title(value: object) -> str:
    return cut(one_line(_words(value)), _LONGEST_TITLE)


def _words(html: object) -> str:
    """Plain words of HTML that may be escaped twice, as in a CDATA section."""
    text = words_of_html(html)
    if "</" in text and not is_too_deep(text):
        text = words_of_html(text)
    return cut(text, _LONGEST_BODY)


def _address(value: object, base: str) -> str:
    """An absolute http address; empty for others, and for the publisher's own machine."""
    text = clean(value)[: _LONGEST_ADDRESS + 1]
    if not text or len(text) > _LONGEST_ADDRESS:
        return ""
    try:
        joined = web_url(urljoin(base, text))
        return joined if urlsplit(joined).hostname else ""
    except ValueError:
        return ""


def _is_teaser(body: str) -> bool:
    ending = body[-100:].lower().rstrip()
    return ending.endswith(_TEASER_ENDS) or _MEDIUM in ending


if __name__ == "__main__":
    main()
