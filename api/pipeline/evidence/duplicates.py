"""Finding copies of one post: crossposts, link posts to one page, and the same text twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from urllib.parse import parse_qsl, urlencode, urlsplit

import regex
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from api.core.items import Assessed, Comment, Item
from api.core.text import fold

SHORTEST = 40
"""Characters of text below which an identical text is a copy only with a body, or without a page:
two pictures on Reddit may both be called `My mug`, but where nothing except words was handed in,
the same words are one voice."""
LONG = 160
"""Characters from which texts may differ in words that change nothing."""
COMPARED = 6000
"""Characters of text compared."""
FILLERS = frozenset(
    "a an and at crosspost edit for hey hi i in is it just my of on please pls question really repost so thank "
    "thanks that the this to tldr update updated very with xpost".split()
)
"""Words that may come or go between two copies of a long text; none of them turns its meaning."""

_TRACKING = regex.compile(
    r"utm_.*|fbclid|gclid|dclid|msclkid|igshid|mc_[ce]id|ref|ref_|ref_src|ref_source|si|feature|pp",
    regex.I,
)
_HOST = regex.compile(r"^(?:www|m|old|new|np|amp)\.(?=[^.]+\.)")


@dataclass(frozen=True, slots=True)
class Distinct:
    """Items without their copies, both in the order of their keys."""

    kept: tuple[Assessed, ...]
    copies: tuple[Assessed, ...]
    """Dropped by `duplicate`, the reason names the kept key."""


def distinct(assessed: Sequence[Assessed], *, similarity: float, known: Sequence[Assessed] = ()) -> Distinct:
    """Merge copies; the best graded original stays, takes the best fields and lists all places.

    Copies share a crosspost parent, a linked page within their source (tracking parts ignored), or
    their text: word for word, or, when it is long and `similarity` percent alike, but for words
    that change nothing (0: text is not compared). The order of the input does not matter. What is
    a copy of a `known` item is a copy, however good it is; known items are neither changed nor
    given back. A comment that is an item of its own stands under no other item.
    """
    older = {entry.item.key for entry in known}
    kept: list[Assessed] = []
    copies: list[Assessed] = []
    for group in _groups(_by_key([*known, *assessed]), similarity):
        best, *others = sorted(group, key=lambda entry: (entry.item.key not in older, _preference(entry)))
        if best.item.key not in older:
            kept.append(_merged(best, others))
        reason = f"copy of {best.item.key}"
        copies += [
            replace(entry, rank=None, dropped_by="duplicate", reason=reason)
            for entry in others
            if entry.item.key not in older
        ]
    hits = {(entry.item.source, entry.item.id) for entry in (*known, *kept) if entry.item.thread}
    return Distinct(tuple(_once(sorted(kept, key=_key), hits)), tuple(sorted(copies, key=_key)))


def _once(kept: Sequence[Assessed], hits: set[tuple[str, str]]) -> Iterator[Assessed]:
    """The items without comments that are items themselves, or stand under one in their thread."""
    read = set(hits)
    comments: dict[str, tuple[Comment, ...]] = {}
    for entry in sorted(kept, key=lambda entry: not entry.item.thread):
        item = entry.item
        fresh = [comment for comment in item.comments if (item.source, comment.id) not in read]
        read |= {(item.source, comment.id) for comment in fresh if item.thread}
        comments[item.key] = tuple(fresh)
    for entry in kept:
        own = comments[entry.item.key]
        if len(own) < len(entry.item.comments):
            entry = replace(entry, item=entry.item.edited(comments=own))
        yield entry


def copies_among(items: Sequence[Item], known: Sequence[Item], similarity: float) -> set[str]:
    """The keys of those that are a copy of a known item, by the rules of `distinct`."""
    handles = {handle for item in known for handle in _handles(item)}
    texts = [_Text.of(item) for item in known] if similarity else []
    return {
        item.key
        for item in items
        if not handles.isdisjoint(_handles(item))
        or any(map(partial(_Text.of(item).copies, similarity=similarity), texts))
    }


def canonical_url(url: str) -> str:
    """Host, path and meaningful query of an address; empty for a home page or no address."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ""
    host: str = _HOST.sub("", parts.netloc.rpartition("@")[2].lower())
    path: str = regex.sub(r"/ref=.*$", "", parts.path).rstrip("/")
    parameters = sorted(
        (name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(name)
    )
    if not host or not (path or parameters):
        return ""
    return host + path + (f"?{urlencode(parameters)}" if parameters else "")


def _key(entry: Assessed) -> str:
    return entry.item.key


def _by_key(assessed: Sequence[Assessed]) -> list[Assessed]:
    """Each item once, though two queries brought it; in the order of keys."""
    entries: dict[str, Assessed] = {}
    for entry in sorted(assessed, key=lambda entry: (_preference(entry), repr(entry))):
        entries.setdefault(entry.item.key, entry)
    return sorted(entries.values(), key=_key)


def _preference(entry: Assessed) -> tuple[float, bool, float, float, float, float, float, str]:
    """A sort key, the best copy first: well graded by a model, an original, clearly more relevant, long, discussed."""
    graded = entry.grade.score if entry.grade is not None and not entry.grade.defaulted else 0
    item = entry.item
    relevance = -1.0 if entry.relevance is None else entry.relevance
    crosspost = item.crosspost_parent is not None
    votes = next(iter(item.engagement.values()), None) or 0
    # a judge is not sure to a percent, and the poorer copy must not win by less
    rich = (-len(item.body), -len(item.comments), -votes)
    return (-graded, crosspost, -int(relevance * 10), *rich, -relevance, item.key)


def _groups(items: Sequence[Assessed], similarity: float) -> list[list[Assessed]]:
    """The connected sets of items that are copies of each other."""
    leader = list(range(len(items)))

    def find(at: int) -> int:
        while leader[at] != at:
            at = leader[at]
        return at

    pairs = []
    holders: dict[tuple[str, ...], int] = {}
    for at, entry in enumerate(items):
        pairs += [(holders.setdefault(handle, at), at) for handle in _handles(entry.item)]
    if similarity:
        texts = [_Text.of(entry.item) for entry in items]
        pairs += [
            (first, second)
            for first, second in combinations(range(len(texts)), 2)
            if texts[first].copies(texts[second], similarity)
        ]
    for first, second in pairs:
        low, high = sorted((find(first), find(second)))
        leader[high] = low
    groups: dict[int, list[Assessed]] = {}
    for at, entry in enumerate(items):
        groups.setdefault(find(at), []).append(entry)
    return list(groups.values())


def _handles(item: Item) -> Iterator[tuple[str, ...]]:
    """What tells that two items are one post: a key, an original's key, the page they link to.

    An item's own `url` is none: a person's own reviews may all name their product's page.
    """
    yield "post", item.key
    if item.crosspost_parent:
        yield "post", item.crosspost_parent
    if linked := canonical_url(item.link):
        yield "link", item.source, linked


@dataclass(frozen=True, slots=True)
class _Text:
    """What is compared of one item: its words without case, width, accents and punctuation."""

    telling: tuple[str, ...]
    """Those that may turn the meaning."""
    whole: str
    body: str
    bare: bool
    """Whether these words are all there is: no page shows anything besides."""

    @classmethod
    def of(cls, item: Item) -> _Text:
        title, body = (regex.findall(r"\w+", fold(part)) for part in (item.title, item.body[:COMPARED]))
        telling = tuple(word for word in (*title, *body) if word not in FILLERS)
        return cls(telling, " ".join((*title, *body)), " ".join(body), not (item.url or item.link))

    def copies(self, other: _Text, similarity: float) -> bool:
        """The same words, or a long text with words in it that change nothing."""
        shortest = min(len(self.whole), len(other.whole))
        if self.whole == other.whole:
            alike = (self.body and other.body) or (self.bare and other.bare)
            return shortest >= SHORTEST or (shortest > 0 and bool(alike))
        # one text under nearly one title is a crosspost that nobody marked, though it is short
        one_body = self.body == other.body and len(self.body) >= SHORTEST
        # word by word first, which ends at the first that differs: the ratio of two long texts
        # takes a millisecond, and there are as many pairs as the square of the items
        return (
            (one_body or shortest >= LONG)
            and len(self.telling) == len(other.telling)
            and all(map(_same, self.telling, other.telling))
            and fuzz.ratio(self.whole, other.whole) >= similarity
        )


def _same(word: str, other: str) -> bool:
    """Equal, or one letter off in a word too long to be another then: `receive`, `receives`.

    Numbers and names of versions differ by one sign too (`9a`, `8a`; `pro2`, `pro3`).
    """
    return word == other or (
        word[0] == other[0]
        and min(len(word), len(other)) > 5
        and word.isalpha()
        and other.isalpha()
        and Levenshtein.distance(word, other) == 1
    )


def _merged(best: Assessed, others: Sequence[Assessed]) -> Assessed:
    """The best with what its copies add: places, comments and notes, never their dates or votes."""
    if not others:
        return best
    items = [best.item, *sorted((entry.item for entry in others), key=lambda item: item.key)]
    comments: dict[str, Comment] = {}
    for item in items:
        if item.source == best.item.source:
            comments |= {comment.id: comment for comment in item.comments if comment.id not in comments}
    bodies = [item.body for item in items]
    places = (place for item in items for place in (item.places or (item.place,)) if place)
    item = best.item.edited(
        body=best.item.body or max(bodies, key=lambda body: (len(body), body)),
        url=best.item.url or next((item.url for item in items if item.url), ""),
        comments=tuple(comments.values()),
        places=tuple(dict.fromkeys(places)),
        notes=tuple(dict.fromkeys(note for item in items for note in item.notes)),
    )
    return replace(best, item=item)
