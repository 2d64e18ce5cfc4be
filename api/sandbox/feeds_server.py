"""Feeds of four forms (RSS, a tag of Mastodon, Atom, JSON Feed) with `ETag`, and a page that announces one."""

from __future__ import annotations

import hashlib
import html
import json
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any, ClassVar

from starlette.responses import Response

from api.sandbox import corpus
from api.sandbox.corpus import Post, handle
from api.sandbox.world import EmulatedServer, SandboxCall, World, serves

ROOT = "/feeds.example"
SITE = "https://notes.example"
_FEEDS = ("notes.xml", "tag.rss", "releases.atom", "log.json")
_WALL = "<!doctype html><title>Just a moment...</title><noscript>Enable JavaScript and cookies to continue</noscript>"
_PAGE = "<!doctype html><title>A site</title><p>Nothing here says where a feed is."
_XML = '<?xml version="1.0" encoding="utf-8"?>\n'
_EMPTY = f'{_XML}<rss version="2.0"><channel><title>Quiet</title><link>{SITE}/</link><description/></channel></rss>'


def feeds_setting(url: str) -> str:
    """The feeds of a sandbox as `FEEDS` holds them."""
    return ",".join(f"{url}{ROOT}/{name}" for name in _FEEDS)


class Feeds(EmulatedServer):
    """Answers as a site with feeds does; each is the same until the sandbox ends."""

    upstream = "feeds"
    fault_replies: ClassVar = {
        "401": ("Unauthorized", 401),
        "403": (_WALL, 403),
        "404": ("<title>Not Found</title>", 404),
        "410": ("Gone", 410),
        "429": ("Too many requests", 429, {"Retry-After": "86400"}),
        "html": (_PAGE,),
        "botwall": (_WALL,),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._posts = [post for post in world.of("feeds") or corpus.feeds() if not post.deleted]

    def fault(self, kind: str, call: SandboxCall) -> Any:
        """Answer of two faults with headers or without a body; `_document` makes those that change a document."""
        if kind == "304":
            return Response(status_code=304)
        if kind == "301":
            return Response(status_code=301, headers={"Location": f"{call.path}?moved"})
        if kind == "empty":
            return Response(_EMPTY, media_type="application/rss+xml")
        return super().fault(kind, call)

    @serves("page", f"{ROOT}/")
    def _page(self, call: SandboxCall) -> str:
        link = f'<link rel="alternate" type="application/rss+xml" title="Notes" href="{ROOT}/notes.xml">'
        return f"<!doctype html><html><head><title>Notes</title>{link}</head><body><h1>Notes</h1></body></html>"

    @serves("rss", f"{ROOT}/notes.xml")
    def _notes(self, call: SandboxCall) -> Response:
        items = "".join(
            f"<item><title>{html.escape(post.title)}</title><link>{self._link(post)}</link>"
            f'<guid isPermaLink="false">{post.id}</guid><dc:creator>{handle("feeds", post.id)}</dc:creator>'
            f"<pubDate>{format_datetime(self._moment(post))}</pubDate>"
            f"<description>{html.escape(post.body[:80])} […]</description>"
            f"<content:encoded><![CDATA[{_paragraphs(post.body)}]]></content:encoded></item>"
            for post in self._of("notes")
        )
        return self._rss(call, "Notes on notes", items)

    @serves("rss", f"{ROOT}/tag.rss")
    def _tag(self, call: SandboxCall) -> Response:
        items = "".join(
            f'<item><guid isPermaLink="true">{self._link(post)}</guid><link>{self._link(post)}</link>'
            f"<pubDate>{format_datetime(self._moment(post))}</pubDate>"
            f"<description>{html.escape(_paragraphs(post.body))}</description></item>"
            for post in self._of("tag")
        )
        return self._rss(call, "#obsidian", items)

    @serves("atom", f"{ROOT}/releases.atom")
    def _releases(self, call: SandboxCall) -> Response:
        entries = "".join(
            f"<entry><id>tag:releases.example,2008:Repository/1/{post.id}</id>"
            f"<updated>{self._moment(post).isoformat()}</updated>"
            f'<link rel="alternate" type="text/html" href="{self._link(post)}"/>'
            f'<title>{html.escape(post.title)}</title><content type="html">'
            f"{html.escape(_paragraphs(post.body))}</content><author><name>release-bot</name></author></entry>"
            for post in self._of("releases")
        )
        text = (
            f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><id>{SITE}/releases</id>'
            f"<title>Release notes</title>{entries}</feed>"
        )
        return self._document(call, text, "application/atom+xml; charset=utf-8")

    @serves("json", f"{ROOT}/log.json")
    def _log(self, call: SandboxCall) -> Response:
        items = [
            {
                "id": post.id, "url": self._link(post), "title": post.title, "content_html": _paragraphs(post.body),
                "date_published": self._moment(post).isoformat(), "authors": [{"name": handle("feeds", "log")}],
            }
            for post in self._of("log")
        ]  # fmt: skip
        feed = {"version": "https://jsonfeed.org/version/1.1", "title": "A log", "items": items}
        return self._document(call, json.dumps(feed), "application/feed+json")

    def _of(self, feed: str) -> list[Post]:
        posts = [post for post in self._posts if post.place == feed]
        return sorted(posts, key=lambda post: post.age_days or 0)

    def _moment(self, post: Post) -> datetime:
        return self.world.moment(post.age_days).replace(microsecond=0)

    def _link(self, post: Post) -> str:
        return f"{SITE}/{post.place}/{post.id}"

    def _rss(self, call: SandboxCall, title: str, items: str) -> Response:
        spaces = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"'
        text = (
            f'{_XML}<rss version="2.0" {spaces}><channel><title>{title}</title><link>{SITE}/</link>'
            f"<description>Sample entries</description>{items}</channel></rss>"
        )
        return self._document(call, text, "application/rss+xml; charset=utf-8")

    def _document(self, call: SandboxCall, text: str, kind: str) -> Response:
        """The document, or that it is unchanged."""
        body = text.encode()
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Last-Modified": format_datetime(datetime(2026, 11, 1, tzinfo=UTC), usegmt=True)}
        if call.fault is None and call.request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if call.fault == "cut":
            body = body[: len(body) * 2 // 3]
        if call.fault == "charset":
            body, kind = body.replace(b'encoding="utf-8"', b'encoding="utf-16"', 1), kind.partition(";")[0]
        return Response(body, headers=headers | {"Content-Type": kind})


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{html.escape(part)}</p>" for part in text.split("\n\n"))
