"""A watch's runs as an Atom feed (RFC 4287): what changed, for whatever reads feeds."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from xml.etree.ElementTree import Element, SubElement, tostring  # nosec B405

from api.services.places import Places
from api.services.text import clean, web_url
from api.services.watching.run import WatchRun
from api.services.watching.telling import text_of
from api.services.watching.watch import Watch

MEDIA_TYPE = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
# what no XML may hold, escaped or not: U+FFFE, U+FFFF; control characters are gone by `clean`
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(watch: Watch, runs: Sequence[WatchRun], places: Places) -> bytes:
    """The feed; the same runs are the same bytes. XML is only written here, never read.

    It does not say where it is, as feeds should: its address holds its token.
    """
    feed = Element("feed", xmlns=_NAMESPACE)
    _text(feed, "id", uuid.UUID(watch.id).urn)
    _text(feed, "title", watch.name)
    _text(feed, "updated", _moment(max([watch.created_at, *(run.created_at for run in runs)])))
    _text(SubElement(feed, "author"), "name", "Listenpost")
    for run in runs:
        lines = _NO_XML.sub("", clean(text_of(watch, run, places))).split("\n")
        entry = SubElement(feed, "entry")
        _text(entry, "id", uuid.UUID(run.id).urn)
        _text(entry, "title", lines[0])
        _text(entry, "updated", _moment(run.created_at))
        for line in lines:
            if url := web_url(line):  # alone on its line; within others nothing is to be opened
                SubElement(entry, "link", rel="related", href=url)
        _text(entry, "content", "<br>\n".join(map(_html, lines))).set("type", "html")
    written: bytes = tostring(feed, "utf-8", xml_declaration=True)
    return written


def _html(line: str) -> str:
    """A line as HTML, which the feed then holds as text: `<` of a stranger is `&amp;lt;` there."""
    words = escape(line.strip())
    return f'<a href="{words}">{words}</a>' if web_url(line) else words


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _text(parent: Element, name: str, words: str) -> Element:
    child = SubElement(parent, name)
    child.text = _NO_XML.sub("", words)
    return child
