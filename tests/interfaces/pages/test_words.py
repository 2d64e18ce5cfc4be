"""Every screen, served below a path: no code of the program where a person reads, no link that leaves the path."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, get_args
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from fastapi.routing import APIRoute

from api.core.domain import Decision, Outcome, Stage, Status
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.store_ports import Filters
from api.features.comparisons import comparison
from api.features.watches import watch_run as watching
from api.features.watches.notification import correction_path
from api.interfaces.http.app import SCREENS
from api.interfaces.shared import presentation
from api.reports.report import Backing, FindingKind
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.pages.visiting import QUICK, finished, link_in, submit

WATCH = {"query": "Oura", "every": "mon 8:00", "depth": "quick", "source": ["reddit"]}
SNAKE = re.compile(r"(?<![\w/.@-])[a-z]+(?:_[a-z0-9]+)+(?![\w/])")
"""A word of a program: `full_report`; the name of a variable of the environment is in capitals."""
READ_ALOUD = ("title", "aria-label", "alt", "placeholder")
TYPED = ("value", "placeholder")
"""Attributes that a form sends, or a person reads."""
ROOT = "/tools/listenpost"
SILENT = ("script", "style", "template")
CODES = {
    *Outcome, *Decision,
    *(code for kind in (Stage, Status, FindingKind, Backing) for code in get_args(kind)),
    *get_args(comparison.State), *get_args(comparison.Measure), *get_args(watching.State),
}  # fmt: skip
"""What the program calls it."""
PLAIN = {*presentation.OUTCOMES.values(), "changed", "complaint", "posts", "praise"}
"""What people are told in the same word."""


class Visible(HTMLParser):
    """What a person reads of a page, piece by piece, where its links lead, and what else is a path to a browser."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.links: list[str] = []
        self.paths: list[str] = []
        self.silent = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in SILENT
        self.pieces += [value for name, value in attrs if name in READ_ALOUD and value]
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]
        self.paths += [value for name, value in attrs if name not in TYPED and value and value.startswith("/")]

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in SILENT

    def handle_data(self, data: str) -> None:
        if not self.silent and (words := " ".join(data.split())):
            self.pieces.append(words)


def strangers() -> set[str]:
    """Words of programs that people write in the sample data: `config_entry`."""
    data = files("api.sandbox").joinpath("data")
    folders = (data.joinpath(name) for name in ("posts", "keyless"))
    texts = (file.read_text("utf-8") for folder in folders for file in folder.iterdir())
    return {word for text in texts for word in SNAKE.findall(text)}


def codes_on(page: str, allowed: Iterable[str]) -> list[str]:
    """The pieces of a page that hold a code."""
    pieces = Visible(page).pieces
    snakes = [word for piece in pieces for word in SNAKE.findall(piece) if word not in allowed]
    return sorted({*snakes, *(piece for piece in pieces if piece in CODES - PLAIN)})


async def crawled(served: Served, starts: Iterable[str]) -> dict[str, httpx.Response]:
    """Every page that links of ours lead to, by its address."""
    pages: dict[str, httpx.Response] = {}
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path in pages:
            continue
        answer = pages[path] = await served.client.get(path)
        if answer.headers.get("content-type", "").startswith("text/html"):
            links = (urlsplit(urljoin(path, link)) for link in Visible(answer.text).links)
            waiting += [
                link.path + (f"?{link.query}" if link.query else "")
                for link in links
                if not link.netloc and not link.scheme and not link.path.startswith("/v1/")
            ]
    return pages


async def prepared(served: Served) -> list[str]:
    """Something of everything there is, by the forms; the addresses that nothing links to."""
    report = await finished(served)
    again = await submit(served.client, "/ask", **QUICK | {"query": "Oura"})
    other = again.headers["location"].rpartition("/")[2]
    await served.client.get(again.headers["location"] + "/live")
    chat = f"/analyses/{report.id}/chat"
    turn = await submit(served.client, chat, message="What annoys people about it?", session="")
    watch = (await submit(served.client, "/watches", **WATCH)).headers["location"]
    await submit(served.client, f"{watch}/run")
    link = link_in(await submit(served.client, f"/analyses/{report.id}/share"))
    (kept,) = await served.app_context.store.watches(LOCAL.id)
    correction = correction_path(kept, report.id, report.items[0].key, 4_000_000_000)
    return [
        "/", "/ask", "/ask/prices?query=Oura", "/login", "/search?q=plaud",
        "/gate?since=all&sample=1", f"{watch}/remove",
        f"/compare/between?analysis={report.id}&analysis={other}",
        again.headers["location"] + "/live", turn.headers["location"].partition("#")[0], link,
        correction,
    ]  # fmt: skip


async def sent(served: Served) -> dict[str, str]:
    """Pages that only a form leads to."""
    newest = (await served.app_context.store.listing(LOCAL.id, Filters(), 1)).analyses[0]
    two = {"product": ["Oura", "Whoop"], "depth": "quick", "since": "all", "key": "k1"}
    forms: list[tuple[str, dict[str, Any]]] = [
        ("/sources", {}),
        ("/compare", two),
        ("/compare", two),
        ("/compare", {"product": ["Oura", "OURA"]}),
        ("/ask", {"query": ""}),
        ("/ask", {"query": "Notion"}),
        ("/ask", {"query": "plaud.ai", "estimate": "1"}),
        ("/watches", {"query": "Oura", "every": "never"}),
        (f"/analyses/{newest.id}/replay", {"judge": "local", "about": "a saucepan", "not_about": "a recorder"}),
        (f"/analyses/{newest.id}/replay", {"step": "estimate"}),
    ]
    pages = [(path, fields, await submit(served.client, path, **fields)) for path, fields in forms]
    return {f"{path} {fields}": answer.text for path, fields, answer in pages}


@pytest.fixture
async def served(opening: Opening) -> AsyncIterator[Served]:
    """An app without API keys, below a path."""
    async with opening(ROOT_PATH=ROOT) as made:
        yield made


async def test_no_screen_shows_a_code_or_leaves_its_path(served: Served) -> None:
    """Every screen there is, after reports that went well and ill; and what forms answer."""
    for faults in ("openai.judge=wrong_count", "openai.agent=401 youtube=quota", "openai=401"):
        for fault in faults.split():
            served.sandbox.fault(fault)
        await finished(served)
        served.sandbox.heal()
    pages = await crawled(served, await prepared(served))
    texts = {
        path: answer.text
        for path, answer in pages.items()
        if answer.headers.get("content-type", "").startswith("text/html")
    } | await sent(served)
    known = strangers()

    codes = {path: codes_on(text, known) for path, text in texts.items()}
    assert {path: found for path, found in codes.items() if found} == {}
    leaving = {
        path: [link for link in Visible(text).paths if not f"{link}/".startswith(f"{ROOT}/")]
        for path, text in texts.items()
    }
    assert {path: links for path, links in leaving.items() if links} == {}
    routes = [route for router in SCREENS for route in router.routes if isinstance(route, APIRoute)]
    places = {urlsplit(path).path.removeprefix(ROOT) for path in pages}
    unseen = [
        route.path
        for route in routes
        if "GET" in (route.methods or ()) and not any(map(route.path_regex.match, places))
    ]
    assert unseen == ["/static/{name}"]


@pytest.mark.parametrize(
    ("page", "codes"),
    [
        ("<p>decisions full_report 1</p>", ["full_report"]),
        ("<td>insufficient_data</td>", ["insufficient_data"]),
        ("<td>degraded</td>", ["degraded"]),
        ('<p title="not_asked">-</p>', ["not_asked"]),
        ("<p>Set OPENAI_API_KEY, says config_entry at https://x.example/a_b.</p>", []),
        ("<script>a_b</script><p>ok</p><p>a degraded gate</p>", []),
    ],
)
def test_a_code_is_seen_where_it_stands(page: str, codes: list[str]) -> None:
    """In the text or what is read aloud; no variable of the environment, no stranger's word."""
    assert codes_on(page, {"config_entry"}) == codes
