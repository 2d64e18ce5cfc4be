"""The recorded sets as texts, in the order of each file; read in place and never copied."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from selectolax.lexbor import LexborHTMLParser

from api.core.text import clean, cut, one_line, unescape
from api.pipeline.gate.excerpt import PASSAGE_LENGTH
from api.sources.amazon_pages import parse_product_page

ROOT = Path(__file__).resolve().parents[2]
LABELS = ROOT / "evaluation" / "labels"
UPSTREAM = Path(os.environ.get("LISTENPOST_TEST_DATA") or ROOT.parent / "shared" / "data") / "upstream"
MISSING = f"no recordings in {UPSTREAM}; set LISTENPOST_TEST_DATA"
CHARGER = "a battery pack carried along to charge phones and the like (a power bank)"
PHONE = "Samsung's large foldable phone of 2025, the one that opens like a book"
Texts = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """A recording with the query that its texts are labelled for."""

    file: str
    family: str
    query: str
    about: str
    texts: Callable[[Path], Texts]

    @property
    def source(self) -> str:
        """The folder it lies in."""
        return self.file.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Record:
    """One text as the gate would see it; a comment or review has its parent's title."""

    file: str
    position: int
    title: str
    body: str


def records(recorded: RecordedSet) -> list[Record]:
    """Every text of a set, title and first characters of the body."""
    texts = recorded.texts(UPSTREAM / recorded.file)
    return [
        Record(recorded.file, position, one_line(title), cut(one_line(body), PASSAGE_LENGTH))
        for position, (title, body) in enumerate(texts)
    ]


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a JSON lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _search_results(path: Path) -> Texts:
    for item in json.loads(path.read_text("utf-8"))["items"]:
        yield unescape(item["snippet"]["title"]), unescape(item["snippet"]["description"])


def _tiles(path: Path) -> Texts:
    tree = LexborHTMLParser(path.read_text("utf-8"))
    for tile in tree.css('div[data-component-type="s-search-result"]'):
        heading = tile.css_first("h2")
        yield clean(heading.text()) if heading else "", ""


def _reviews(path: Path) -> Texts:
    product = parse_product_page(path.read_text("utf-8"))
    for review in product.reviews:
        yield product.title, review.body.replace("\n", ". ", 1)


def _videos(path: Path) -> Texts:
    for video in json.loads(path.read_text("utf-8")):
        yield clean(video["title"]), clean(video["text"])


def _comments(path: Path) -> Texts:
    for comment in json.loads(path.read_text("utf-8")):
        yield clean(comment["title"]), clean(comment["comment"])


def _threads(path: Path) -> Texts:
    """Comments of the first video of the search that was recorded with them."""
    title, _ = next(_search_results(path.with_name("portable_charger_search_2026.json")))
    for thread in json.loads(path.read_text("utf-8"))["items"]:
        yield title, clean(thread["snippet"]["topLevelComment"]["snippet"]["textOriginal"])


def _entries(path: Path) -> Texts:
    atom = "{http://www.w3.org/2005/Atom}"
    for entry in ElementTree.parse(path).getroot().iter(f"{atom}entry"):
        body = LexborHTMLParser(entry.findtext(f"{atom}content") or "").css_first("div.md")
        yield clean(entry.findtext(f"{atom}title")), clean(body.text()) if body else ""


SETS = (
    RecordedSet(
        "youtube/portable_charger_search_2026.json",
        "search results",
        "budget portable charger",
        "power banks for little money",
        _search_results,
    ),
    RecordedSet(
        "amazon/search_portable_charger_2026_excerpt.html",
        "tiles",
        "portable charger",
        CHARGER,
        _tiles,
    ),
    RecordedSet(
        "amazon/product_portable_charger_2026_excerpt.html",
        "reviews",
        "power bank weight",
        "how heavy a power bank is to carry",
        _reviews,
    ),
    RecordedSet("youtube/corpus_phones_videos_2025.json", "videos", "Galaxy Z Fold 7", PHONE, _videos),
    RecordedSet("youtube/corpus_phones_comments_2025.json", "comments", "Galaxy Z Fold 7", PHONE, _comments),
    RecordedSet(
        "youtube/portable_charger_comments_2026.json",
        "charger comments",
        "portable charger",
        CHARGER,
        _threads,
    ),
    RecordedSet("reddit/search_rss_2026.xml", "feed", "portable charger", CHARGER, _entries),
)
