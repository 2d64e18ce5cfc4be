"""Finding copies of one post: crossposts, the same address, nearly the same text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlencode, urlsplit

import regex
from rapidfuzz import fuzz

from api.services.schemas import Assessed, Comment, Item, Measure

SHORTEST = 40
"""Characters of text below which only an identical text with a body is a copy."""
COMPARED = 1200
"""Characters of text compared."""
SAME_TITLE = 60.0
"""Similarity (percent) the titles of copies have at least: boilerplate alone makes no copy."""

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


def distinct(
    assessed: Sequence[Assessed], *, similarity: float, known: Sequence[Assessed] = ()
) -> Distinct:
    """Merge copies; the best graded original stays, takes the best fields and lists all places.

    Copies share a crosspost parent, an address (tracking parts ignored), a linked page within their
    source, or text that is `similarity` percent alike (0: text is not compared). The order of the
    input does not matter. What is a copy of a `known` item is a copy, however good it is; known
    items are neither changed nor given back.
    """
    older = {entry.item.key for entry in known}
    kept: list[Assessed] = []
    copies: list[Assessed] = []
    for group in _groups(_by_key([*known, *assessed]), similarity):
        best, *others = sorted(
            group, key=lambda entry: (entry.item.key not in older, _preference(entry))
        )
        if best.item.key not in older:
            kept.append(_merged(best, others))
        reason = f"copy of {best.item.key}"
        copies += [
            replace(entry, rank=None, dropped_by="duplicate", reason=reason)
            for entry in others
            if entry.item.key not in older
        ]
    return Distinct(tuple(sorted(kept, key=_key)), tuple(sorted(copies, key=_key)))


def canonical_url(url: str) -> str:
    """Host, path and meaningful query of an address; empty for a home page or no address."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return ""
    host: str = _HOST.sub("", parts.netloc.rpartition("@")[2].lower())
    path: str = regex.sub(r"/ref=.*$", "", parts.path).rstrip("/")
    asked = sorted(
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.fullmatch(name)
    )
    if not host or not (path or asked):
        return ""
    return host + path + (f"?{urlencode(asked)}" if asked else "")


def _key(one: Assessed) -> str:
    return one.item.key


def _by_key(assessed: Sequence[Assessed]) -> list[Assessed]:
    """Each key once (the same item may be found by two queries), in the order of keys."""
    found: dict[str, Assessed] = {}
    for one in sorted(assessed, key=lambda one: (_preference(one), repr(one))):
        found.setdefault(one.item.key, one)
    return sorted(found.values(), key=_key)


def _preference(one: Assessed) -> tuple[float, bool, float, int, int, str]:
    """Smallest first: really graded and high, an original, relevant, long, discussed."""
    graded = one.grade.score if one.grade is not None and not one.grade.defaulted else 0
    item = one.item
    relevance = -1.0 if one.relevance is None else one.relevance
    crosspost = item.crosspost_parent is not None
    return (-graded, crosspost, -relevance, -len(item.body), -len(item.comments), item.key)


def _groups(items: Sequence[Assessed], similarity: float) -> list[list[Assessed]]:
    """The connected sets of items that are copies of each other."""
    leader = list(range(len(items)))

    def find(at: int) -> int:
        while leader[at] != at:
            at = leader[at]
        return at

    for first, second in (*_same_handles(items), *_alike(items, similarity)):
        low, high = sorted((find(first), find(second)))
        leader[high] = low
    groups: dict[int, list[Assessed]] = {}
    for at, one in enumerate(items):
        groups.setdefault(find(at), []).append(one)
    return list(groups.values())


def _same_handles(items: Sequence[Assessed]) -> Iterator[tuple[int, int]]:
    first: dict[tuple[str, ...], int] = {}
    for at, one in enumerate(items):
        for handle in _handles(one.item):
            if first.setdefault(handle, at) != at:
                yield first[handle], at


def _handles(item: Item) -> Iterator[tuple[str, ...]]:
    yield "post", item.key
    if item.crosspost_parent:
        yield "post", item.crosspost_parent
    if address := canonical_url(item.url):
        yield "url", address
    if linked := canonical_url(item.link):
        yield "link", item.source, linked


@dataclass(frozen=True, slots=True)
class _Text:
    """What is compared of one item."""

    title: str
    whole: str
    numbers: Counter[str]
    bodied: bool

    def copies(self, other: _Text, similarity: float) -> bool:
        """Alike in text and title, with the same numbers in the title (model 2 is not model 3)."""
        if self.numbers != other.numbers:
            return False
        if min(len(self.whole), len(other.whole)) < SHORTEST:
            return self.bodied and other.bodied and self.whole == other.whole
        if fuzz.ratio(self.title, other.title, score_cutoff=SAME_TITLE) < SAME_TITLE:
            return False
        return fuzz.ratio(self.whole, other.whole, score_cutoff=similarity) >= similarity


def _alike(items: Sequence[Assessed], similarity: float) -> Iterator[tuple[int, int]]:
    if not similarity:
        return
    texts = [_text(one.item) for one in items]
    for first, mine in enumerate(texts):
        for second in range(first + 1, len(texts)):
            if mine.copies(texts[second], similarity):
                yield first, second


def _text(item: Item) -> _Text:
    title = " ".join(regex.findall(r"\w+", item.title.casefold()))
    body = " ".join(regex.findall(r"\w+", item.body[: 2 * COMPARED].casefold()))
    numbers = Counter(regex.findall(r"\d+", title))
    return _Text(title, f"{title} {body}".strip()[:COMPARED], numbers, bool(body))


def _merged(best: Assessed, others: Sequence[Assessed]) -> Assessed:
    if not others:
        return best
    items = [best.item, *sorted((one.item for one in others), key=lambda item: item.key)]
    siblings = [item for item in items if item.source == best.item.source]
    named = [place for item in items for place in (item.places or (item.place,)) if place]
    bodies = [item.body for item in items]
    dated = [item.created_at for item in items if item.created_at is not None]
    item = replace(
        best.item,
        body=best.item.body or max(bodies, key=lambda body: (len(body), body)),
        url=best.item.url or next((item.url for item in items if item.url), ""),
        created_at=min(dated, default=None),
        engagement=_engagement(siblings),
        comments=_comments(siblings),
        places=tuple(dict.fromkeys(named)),
        notes=tuple(dict.fromkeys(note for item in items for note in item.notes)),
    )
    return replace(best, item=item)


def _engagement(items: Iterable[Item]) -> dict[str, Measure]:
    """The highest known value of each measure; one source's copies are never summed."""
    found: dict[str, Measure] = {}
    for item in items:
        for name, value in item.engagement.items():
            known = found.get(name)
            found[name] = value if known is None else max(known, value or known)
    return found


def _comments(items: Iterable[Item]) -> tuple[Comment, ...]:
    found: dict[str, Comment] = {}
    for item in items:
        for comment in item.comments:
            found.setdefault(comment.id, comment)
    return tuple(found.values())
