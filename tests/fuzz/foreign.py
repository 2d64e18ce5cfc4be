"""Values as strangers might send them: of the right shape, of none, and of everything between."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.fuzz import foreign

ANSWERS = Path(__file__).resolve().parents[1] / "data" / "answers"
"""Whole answers as they are kept."""
NAMES = (
    # Reddit
    "kind", "data", "children", "after", "id", "title", "selftext", "subreddit", "author",
    "created_utc", "score", "num_comments", "permalink", "body", "replies", "crosspost_parent_list",
    "crosspost_parent", "name", "promoted", "stickied", "url", "is_self", "upvote_ratio",
    # YouTube
    "items", "nextPageToken", "videoId", "snippet", "publishedAt", "channelId", "channelTitle",
    "description", "statistics", "viewCount", "likeCount", "topLevelComment", "comments",
    "textDisplay", "authorChannelId", "value", "error", "errors", "reason", "message", "details",
    # providers of Amazon
    "status", "products", "reviews", "asin", "product_title", "product_price", "review_id",
    "review_comment", "review_date", "currency", "results", "top_reviews", "code", "success",
    # models
    "relevant", "supported", "grades", "queries", "explanation_text", "suggestions", "explanation",
    "sentiment", "aspects", "quote", "choices", "finish_reason", "content", "refusal", "usage",
    "prompt_tokens", "completion_tokens", "model",
    # own items and kept reports
    "created_at", "engagement", "place", "source", "key", "text", "version", "findings", "figures",
    "timeline", "periods", "slots", "cursor", "notes", "read_at", "places",
)  # fmt: skip
WORDS = (
    "t1", "t3", "Listing", "more", "youtube#searchListResponse", "youtube#videoListResponse",
    "youtube#commentThreadListResponse", "[deleted]", "B0TESTAA00", "4.5 out of 5 stars",
    "1,23,456 ratings", "84,7 Tsd.", "\uffe515,592", "$159.00", "quotaExceeded", "stop", "length",
    "Reviewed in Canada on October 29, 2023", "2023-01-15T12:34:56Z", "1e400", "-1", "nan", "null",
    "&amp;lt;b&gt;", "![a](//evil.example/x)", "https://[", "http://a b", "\u202e\u200b\ufeff",
    "\0", "[true,false]", "<think>", "```json", '{"relevant":[true]}', "=cmd|' /C calc'!A0", "E1",
    "[E1]", "\ud800",
)  # fmt: skip
"""Texts that mean something to some reader, or once meant trouble."""

texts = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=40),
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
)
numbers = st.one_of(
    st.integers(-3, 5),
    st.integers(),
    st.sampled_from([10**400, -(10**30), 2**63, 1_700_000_000, 1_700_000_000_000]),
    st.floats(),
)
_ATTRIBUTES = (
    "data-asin=B0TESTAA00", "data-component-type=s-search-result", "data-hook=review", "id=dp",
    "class=a-icon-alt", "data-hook=review-date", "id=R123456789", "href=/dp/B0TESTAA00",
    "data-hook=review-body", "aria-label='5 ratings'", "class='a-price'", "class=a-offscreen",
)  # fmt: skip
markup = st.recursive(
    texts,
    lambda inner: st.builds(
        lambda tag, attributes, parts: f"<{tag} {' '.join(attributes)}>{''.join(parts)}</{tag}>",
        st.sampled_from(["div", "span", "h2", "a", "li", "i", "script", "template"]),
        st.lists(st.sampled_from(_ATTRIBUTES), max_size=3),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)
"""Pages of a shop as they never were."""
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
        st.dictionaries(texts, inner, max_size=2),
    ),
    max_leaves=30,
)
"""Anything that JSON can say, under names that somebody reads."""
records = st.dictionaries(st.one_of(st.sampled_from(NAMES), texts), values, max_size=8)


Place = tuple[str | int, ...]
_GONE = object()


def _paths(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where the values are, outermost first."""
    yield at
    named = value.items() if isinstance(value, dict) else ()
    for name, inner in enumerate(value) if isinstance(value, list) else named:
        yield from _paths(inner, (*at, name))


def spoilt(good: Any) -> st.SearchStrategy[Any]:
    """A good answer of which some values became others, or are gone."""
    changes = st.tuples(st.sampled_from(list(_paths(good))), st.one_of(values, st.just(_GONE)))

    def changed(made: list[tuple[Place, Any]]) -> Any:
        whole = {"": copy.deepcopy(good)}
        for path, value in made:
            holder: Any = whole
            *way, last = ("", *path)
            with suppress(LookupError, TypeError):  # a change before this one took the place away
                for name in way:
                    holder = holder[name]
                if value is _GONE:
                    del holder[last]
                else:
                    holder[last] = value
        return whole.get("")

    return st.lists(changes, max_size=4).map(changed)


def as_json(value: Any) -> bytes:
    """How it is sent; a lone surrogate as its escape, NaN as Python writes it."""
    return json.dumps(value).encode()


def bodies(good: Any) -> st.SearchStrategy[bytes]:
    """Bodies of answers: spoilt, made up, cut, or no JSON at all."""
    sound = st.one_of(spoilt(good), values).map(as_json)
    return st.one_of(
        sound,
        sound,
        sound.map(lambda body: body[: len(body) // 2]),
        sound.map(lambda body: body.replace(b"e", b"\xff")),
        st.binary(max_size=60),
        texts.map(lambda text: f"<html>{text}</html>".encode("utf-8", "replace")),
    )


unchecked = settings(suppress_health_check=list(HealthCheck))
"""Examples as `tests/conftest.py` says; slow or large ones are no mistake."""


def encodes(value: object) -> bool:
    """It can be printed, sent and kept."""
    return isinstance(value, str) and bool(value.encode()) is bool(value) and "\0" not in value


pages = st.one_of(
    foreign.texts,
    foreign.markup,
    foreign.texts.map(lambda text: f"<span id=productTitle>{text}</span><li>{text}"),
)

answers = st.one_of(
    foreign.texts,
    foreign.values.map(json.dumps),
    foreign.values.map(lambda value: f"<think>{value}</think>```json\n{json.dumps(value)}\n```"),
)
