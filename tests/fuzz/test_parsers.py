"""Whatever strangers send, each reader of it gives a value or an error of ours, and nothing else.

`ENTRIES` is the table of the readers that are pure; what sources and model steps read comes over
loopback, through their real clients, in `test_clients.py`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.bootstrap import load_settings
from api.core.addresses import is_public, is_this_machine, points_here, same_server
from api.core.http_limits import LONGEST_WAIT, wait_of
from api.core.items import Item, pseudonym
from api.core.own_words import own_words
from api.core.text import Fence, clean, cut, fold, one_line, unescape, web_url
from api.core.words import canonical
from api.errors import Blocked, Broken, ConfigurationError, ModelError, UsageError
from api.evaluation.bench_sets import records
from api.features.watches.watch import schedule_of, target_of, zone_of
from api.interfaces.shared.csv_export import cell
from api.models.answer_parsing import entries, record, verdicts
from api.pipeline.evidence.duplicates import canonical_url
from api.pipeline.gate.name_matches import name_of
from api.pipeline.question.product_name import search_words
from api.pipeline.question.query_guard import compared_names, guarded_query
from api.pipeline.question.query_screen import screen_query, without_operators
from api.reports.markdown_text import formatted, link, md
from api.reports.quotes import verbatim
from api.settings import variables
from api.sources import amazon_pages as amazon
from api.sources import discourse, github, hackernews, lemmy, news, stackexchange, steam
from api.sources.amazon import PROVIDERS, Complaint
from api.sources.amazon_pages import block_reason, parse_product_page, parse_search_page
from api.sources.feeds import feed_of_page, fresh_for
from api.sources.item_fields import as_dict, as_int, as_number, as_time
from api.sources.markup import words_of_bbcode, words_of_html, words_of_markdown
from api.sources.name_filter import NameFilter
from api.sources.own_items import read_items
from api.sources.searched_source import page_from_json
from api.sources.web_client import Download
from api.store.report_json import READER, Unreadable
from tests.fuzz import foreign
from tests.fuzz.foreign import answers, encodes, pages, unchecked
from tests.sources import issue_emulators as issues
from tests.sources.json_emulators import article, game, hit, posted, remark, reply, results, review, story, talk, topic


@dataclass(frozen=True)
class Entry:
    """One reader of what strangers send."""

    name: str
    given: st.SearchStrategy[Any]
    read: Callable[[Any], object]
    errors: tuple[type[Exception], ...] = ()
    """What it may raise: errors of ours."""
    holds: Callable[[Any], bool] = lambda value: True
    """What is true of every value."""


REPORT = json.loads(foreign.ANSWERS.joinpath("full.json").read_text("utf-8"))
PAGE = {"slots": [None], "cursor": "1", "notes": [], "read_at": None}
MADE = {"title": "Ember mug", "body": "warm", "engagement": {"votes": 3}, "comments": ["a"]}
ITEM = Item(key="a:1", id="1", source="a", title="Ember mug", body="It stays &amp; stays warm.")
headers = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]),
    st.one_of(
        foreign.texts,
        foreign.numbers.map(lambda value: str(value)[:500]),
        st.integers(0, 10**25).map(lambda zone: f"Fri, 31 Dec 2100 23:59:59 +{zone}"),
        st.datetimes().map(lambda date: date.strftime("%a, %d %b %Y %H:%M:%S GMT")),
    ),
)


dates = st.one_of(
    foreign.texts,
    st.integers(0, 10**25).map(lambda number: f"max-age={number}"),
    st.integers(0, 10**9).map(lambda zone: f"Fri, 31 Dec 2100 23:59:59 +{zone}"),
)
"""Values of the headers that say how long an answer may be reused."""


def lines_of(rows: list[Any]) -> bytes:
    """One object a line, as a person keeps items."""
    return b"\n".join(map(foreign.as_json, rows))


def reports(version: int) -> st.SearchStrategy[Any]:
    """Kept reports of one version, damaged."""
    damaged = foreign.spoilt(REPORT | {"version": version})
    return damaged.filter(lambda report: isinstance(report, dict))


def environment(values: dict[str, str]) -> object:
    """The settings of a process with these variables."""
    with pytest.MonkeyPatch.context() as environ:
        for name, text in values.items():
            environ.setenv(name, text)
        return load_settings()


MUG = NameFilter(name_of("mug"))
PACKED = gzip.compress(b"\n".join(foreign.as_json(article(number)) for number in range(20)))

ENTRIES = (
    Entry("clean", foreign.values, clean, holds=encodes),
    Entry("unescape", foreign.values, unescape, holds=encodes),
    Entry("one_line", foreign.texts, one_line),
    Entry("cut", foreign.texts, lambda text: cut(text, 7), holds=lambda text: len(text) <= 7),
    Entry("fold", foreign.texts, lambda text: fold(clean(text)), holds=encodes),
    Entry("web_url", foreign.values, web_url, holds=encodes),
    Entry("fence", foreign.texts, Fence("0" * 8).quote, holds=lambda line: line.count("<") == 2),
    Entry("number", foreign.leaves, as_number),
    Entry("whole", foreign.leaves, as_int),
    Entry("moment", foreign.leaves, as_time, holds=lambda date: date is None or date.tzinfo),
    Entry("pseudonym", foreign.leaves, lambda name: pseudonym("author", name)),
    Entry(
        "Retry-After", headers, wait_of,
        holds=lambda wait: wait is None or 0 <= wait <= LONGEST_WAIT,
    ),
    Entry("this machine", foreign.texts, is_this_machine),
    Entry("points here", foreign.texts, points_here),
    Entry("same server", foreign.texts, lambda text: same_server(text, "https://a.example/")),
    Entry("stars", foreign.leaves, amazon.stars_of, holds=lambda n: n is None or 0 < n <= 5),
    Entry("count", foreign.leaves, amazon.count_of, holds=lambda n: n is None or n >= 0),
    Entry("price", foreign.leaves, amazon.price_of, holds=encodes),
    Entry("day", foreign.leaves, amazon.day_of),
    Entry("brand", foreign.leaves, amazon.brand_of),
    Entry("result page", pages, parse_search_page, (Broken,)),
    Entry("product page", pages, parse_product_page, (Broken,)),
    Entry("block page", pages, lambda page: block_reason(202, page)),
    *(
        Entry(f"{name} {kind}", answers, read, (Broken, Complaint))
        for name, provider in PROVIDERS.items()
        for kind, read in (("search", provider.parse_search), ("reviews", provider.parse_reviews))
    ),
    Entry("a story of Hacker News", foreign.spoilt(story(1)), hackernews._item),
    Entry("a comment of Hacker News", foreign.spoilt(reply(1)), lambda fields: hackernews._comment(as_dict(fields))),
    Entry(
        "a question of Stack Exchange", foreign.spoilt(issues.question(1)),
        lambda entry: stackexchange._question(entry, "s"),
    ),
    Entry(
        "an answer of Stack Exchange", foreign.spoilt(issues.answered(1, 1)),
        lambda fields: stackexchange._answer(as_dict(fields), ITEM),
    ),
    Entry("an issue of GitHub", foreign.spoilt(issues.issue(1)), github.item_of),
    Entry("a comment of GitHub", foreign.spoilt(issues.remark(1)), lambda fields: github._comment(as_dict(fields))),
    Entry("a game of Steam", foreign.spoilt(game(1, "Mug")), steam._game),
    Entry(
        "a page that announces a feed",
        st.one_of(st.binary(max_size=60), pages.map(lambda page: page.encode("utf-8", "replace")), foreign.texts.map(
            lambda text: f'<link rel=alternate type=application/rss+xml href="{text}">'.encode("utf-8", "replace")
        )),
        lambda body: feed_of_page(Download(200, {}, body, "https://a.example/", "")), (Blocked, Broken),
    ),
    Entry(
        "how long a feed stays fresh",
        st.dictionaries(st.sampled_from(["cache-control", "expires"]), dates),
        lambda headers: fresh_for(headers, datetime(2026, 11, 30, tzinfo=UTC)), holds=lambda time: time >= timedelta(),
    ),
    Entry("HTML", st.one_of(foreign.values, foreign.markup), words_of_html, holds=encodes),
    Entry("Markdown", foreign.values, words_of_markdown, holds=encodes),
    Entry("own words", foreign.texts, own_words),
    Entry("an address of a receiver", st.ip_addresses().map(str), is_public),
    Entry("a receiver", foreign.texts, lambda text: target_of(text, files=True), (UsageError,)),
    Entry(
        "a schedule",
        st.one_of(
            foreign.texts, st.builds("every {} {}".format, foreign.numbers, st.sampled_from(["min", "h", "days"]))
        ),
        schedule_of, (UsageError,),
    ),
    Entry(
        "a time zone", st.one_of(foreign.texts, st.sampled_from(["../UTC", "/etc/passwd", "Europe"])), zone_of,
        (UsageError,),
    ),
    Entry(
        "a public file of the benchmark",
        st.tuples(
            st.one_of(foreign.bodies([{"a": "b", "c": [{"d": 1}]}]), st.binary()),
            st.sampled_from(["csv", "json", "jsonl"]),
        ),
        lambda file: records(file[0], f"x.{file[1]}"),
    ),
    Entry("a post of Lemmy", foreign.spoilt(talk(1)), lemmy.post_of),
    Entry("a found comment of Lemmy", foreign.spoilt(remark(1, "It")), lemmy.comment_hit_of),
    Entry("a comment of Lemmy", foreign.spoilt(remark(1, "It")), lemmy.comment_of),
    Entry(
        "a review on Steam", foreign.spoilt(review(1)), lambda entry: steam.review_of(entry, steam.Game(620, "Mug")),
        holds=lambda item: item is None or (encodes(item.title) and item.url.startswith("https://steamcommunity.com/")),
    ),
    Entry("an article", foreign.spoilt(article(1)), lambda fields: news.article_of(as_dict(fields))),
    Entry(
        "a list of articles",
        st.lists(st.one_of(foreign.bodies(article(1)), foreign.bodies(article(1)).map(gzip.compress))).map(b"\n".join),
        lambda content: news.items_of(news.read_list(content, MUG, "20260908013100")[1]), (Broken,),
    ),
    Entry(
        "a damaged list of articles",
        st.builds(lambda at, more: PACKED[:at] + more + PACKED[at:], st.integers(0, 400), st.binary(max_size=9)),
        lambda content: news.items_of(news.read_list(content, MUG, "20260908013100")[1]), (Broken,),
    ),
    Entry(
        "a name in an article", st.tuples(foreign.texts, foreign.texts),
        lambda texts: news.names_it(NameFilter(name_of(texts[0])), f"{texts[1]} {texts[0]}"),
    ),
    Entry("BBCode", foreign.values, words_of_bbcode, holds=encodes),
    Entry(
        "a forum's results",
        foreign.spoilt(results([hit(1)], [topic(1)])),
        lambda answer: discourse.items_of(as_dict(answer), "f.example", "https://f.example"),
    ),
    Entry(
        "a forum's topic",
        foreign.spoilt([posted(1, "It"), posted(2, "<p>It")]),
        lambda posts: discourse.with_topic(ITEM, {}, posts if isinstance(posts, list) else [], 5),
    ),
    Entry("a kept page", foreign.spoilt(PAGE).map(json.dumps), page_from_json),
    Entry(
        "own items", st.lists(st.one_of(foreign.spoilt(MADE), foreign.values)).map(lines_of),
        read_items, (UsageError,),
    ),
    Entry("own bytes", st.binary(), read_items, (UsageError,)),
    Entry("a kept report", reports(3), READER.report, (Unreadable,)),
    Entry("a kept report of version 1", reports(1), READER.report, (Unreadable,)),
    Entry("a kept report's summary", reports(3), READER.summary, (Unreadable,)),
    Entry("a model's booleans", answers, lambda text: verdicts(text, 1), (ModelError,)),
    Entry("a model's list", answers, lambda text: entries(text, "grades"), (ModelError,)),
    Entry("a model's object", answers, record, (ModelError,)),
    Entry("a model's quote", foreign.values, lambda words: verbatim(words, ITEM)),
    Entry("query screening", foreign.texts, screen_query),
    Entry("name of a query", foreign.texts, search_words),
    Entry("spelling of a name", foreign.texts, canonical),
    Entry("comparison", foreign.texts, compared_names),
    Entry("search operators", foreign.texts, lambda text: without_operators(text, "reddit")),
    Entry("a model's query", foreign.texts, lambda text: guarded_query("ember mug", text)),
    Entry("markdown", foreign.values, md, holds=encodes),
    Entry("a model's markdown", foreign.texts, formatted),
    Entry("link", foreign.values, lambda url: link("words", url)),
    Entry("address of a copy", foreign.texts, canonical_url),
    Entry("cell of a table", foreign.leaves, cell, holds=lambda v: str(v)[:1] not in {"=", "@"}),
    Entry(
        "settings",
        st.dictionaries(
            st.sampled_from(sorted(variables())),
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
            max_size=4,
        ),
        environment,
        (ConfigurationError,),
    ),
)  # fmt: skip


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_what_strangers_send_is_a_value_or_an_error_of_ours(entry: Entry) -> None:
    """No reader stumbles, and what it gives holds."""

    @unchecked
    @given(entry.given)
    def read(value: Any) -> None:
        try:
            result = entry.read(value)
        except entry.errors:
            return
        assert entry.holds(result), result

    read()
