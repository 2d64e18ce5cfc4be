"""Sources that fetch nothing: a person's own items, from JSON lines or a program, and a stored report's.

Of a stored report a kept item comes back whole, a dropped one with its title and beginning; copies are left out, since
beginnings do not tell them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from api.core.display_names import source_of_key
from api.core.domain import BY_BOT, EXCLUDED, FetchPlan, Outcome
from api.core.items import Batch, Comment, Commented, Item, pseudonym
from api.core.ports import Probe, Source
from api.core.text import clean, one_line, quantity, unescape, web_url
from api.errors import SourceError, UsageError
from api.features.archive.import_file import STUB
from api.pipeline.gate.caller_items import DATE_FIELDS, title_and_body
from api.reports.report import DroppedItem, KeptItem, Report, SourceReport
from api.sources import OWN_ITEMS
from api.sources.item_fields import (
    as_dict,
    as_list,
    as_number,
    is_bot,
    parsed_date,
    plausible_time,
    says_something,
    undeleted_text,
    unfit_reason,
)
from api.sources.searched_source import in_window

NAME = OWN_ITEMS.name
RATING_FIELDS = ("rating", "stars", "star_rating", "overall")
"""Fields of a review's rating; the first with a value counts."""
MOST_STARS = 5
# `4`, `4.0 out of 5 stars`, `8/10`
_RATING = re.compile(r"(?P<given>\d+(?:\.\d+)?)(?:\s*(?:/|(?:out )?of)\s*(?P<most>\d+))?")
# `de`, `de-DE`, `pt_BR`
_LANGUAGE = re.compile(r"(?P<code>[a-z]{2,3})(?:[-_].*)?", re.IGNORECASE)
_BOM = b"\xef\xbb\xbf"
_UTF_16 = "the input is UTF-16; write UTF-8, with `iconv -f UTF-16 -t UTF-8`"
# first bytes of files that are no JSON lines, and what to do
_OTHER_FILES = {
    b"\x1f\x8b": "the input is compressed with gzip; unpack it with `gunzip`",
    b"PK\x03\x04": "the input is a zip archive or a spreadsheet; unpack it, or save it as CSV",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
_CSV = (
    "the input looks like CSV; write one JSON object per line, with `python -c 'import csv, json, "
    "sys; [print(json.dumps(row)) for row in csv.DictReader(sys.stdin)]'`"
)


@dataclass(frozen=True, slots=True)
class ItemLine:
    """One JSON object, and the bytes of its line with the line break."""

    number: int
    raw: bytes
    fields: Mapping[str, Any]


def read_lines(data: bytes) -> list[ItemLine]:
    """The objects of JSON lines, NaN as null; raises `UsageError` for a line that is none."""
    for sign, words in _OTHER_FILES.items():
        if data.startswith(sign):
            raise UsageError(words)
    lines: list[ItemLine] = []
    for at, raw in enumerate(data.splitlines(keepends=True), 1):
        if text := raw.removeprefix(_BOM).decode("utf-8", "replace").strip():
            try:
                value = json.loads(text, parse_constant=as_number, parse_float=as_number)
            except (ValueError, RecursionError):
                value = None
            if not isinstance(value, dict):
                raise UsageError(_line_fault(text, at, first=not lines))
            lines.append(ItemLine(at, raw, value))
    return lines


def _line_fault(text: str, at: int, first: bool) -> str:
    """What is wrong with a line; the first line shows the kind of the whole file."""
    if text.startswith("["):
        return f"line {at} begins a JSON array; write one object per line, with `jq -c '.[]'`"
    if first and text == "{":
        return f"line {at} begins an object of several lines; write each on one, with `jq -c .`"
    if first and "\0" in text:
        return _UTF_16
    if first and not text.startswith("{") and any(sign in text for sign in (",", ";", "\t")):
        return _CSV
    return f"line {at} is no JSON object; write one object per line"


@dataclass(frozen=True, slots=True)
class OwnItems:
    """Items of a person, and notes on what was lost in reading them."""

    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()


class LocalSource:
    """A source on this machine, whose items have their comments already."""

    async def comments(self, items: Sequence[Item]) -> Commented:
        """The items as they are."""
        return Commented(tuple(items))

    async def with_best_comments(self, item: Item) -> None:
        """Return None: the items are judged once, with their comments."""

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


class ItemsSource(LocalSource):
    """Returns a fixed list; the query selects nothing, since the gate does."""

    name = NAME

    def __init__(self, own: OwnItems) -> None:
        """Keep the items in their order, the first of each key."""
        first: dict[str, Item] = {}
        for item in own.items:
            first.setdefault(item.key, item)
        count = len(own.items)
        self._items, again = tuple(first.values()), count - len(first)
        note = f"{again} of {count} items have the key of an earlier one and were left out"
        self._notes = (note, *own.notes) if again else own.notes

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items inside the window, with a note on those before it; never full."""
        items = tuple(item for item in self._items if in_window(plan.window, item.created_at))
        old, count = len(self._items) - len(items), len(self._items)
        note = f"{old} of {count} items are older than a {plan.window} and were left out"
        return Batch(plan, items, full=False, notes=(note, *self._notes) if old else self._notes)

    async def probe(self) -> Probe:
        """`ok`, with the number of items."""
        return Probe("ok", f"{len(self._items)} items")


def separated(item: Item) -> list[Item]:
    """The comments of a stub as items of their own, under its title, since nothing else of it can be judged.

    Any other item is itself; so is a product of Amazon, whose reviews are read under its name.
    """
    if STUB not in item.notes or item.source == "amazon":
        return [item]
    return [
        Item(
            key=f"{item.key}:{comment.id}", id=comment.id, source=item.source, title=item.title, body=comment.body,
            url=comment.url or item.url, created_at=comment.created_at, engagement=comment.engagement,
            place=item.place, author=comment.author, credit=comment.credit, thread=item.key if item.title else "",
        )
        for comment in item.comments
    ]  # fmt: skip


def read_items(data: bytes) -> OwnItems:
    """Items from JSON lines; raises `UsageError` with the number of a wrong line."""
    lines = read_lines(data)
    if not lines:
        raise UsageError("there is no item; write one JSON object per line")
    rows = _unrated([line.fields for line in lines])
    items = tuple(item_of(fields, line.number) for line, fields in zip(lines, rows, strict=True))
    return OwnItems(items, _undated(rows))


def own_items_of(objects: Sequence[Mapping[str, Any]]) -> OwnItems:
    """Items from a program's objects; raises `UsageError` with the number of a wrong one."""
    objects = _unrated(objects)
    items = (item_of(fields, at + 1, named=f"items[{at}]") for at, fields in enumerate(objects))
    return OwnItems(tuple(items), _undated(objects))


def _undated(items: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note on the times of items and comments that cannot be used."""
    objects = (fields for item in items for fields in (item, *map(as_dict, as_list(item.get("comments")))))
    undated = sum(_date(fields) is not None and _created_at(fields) is None for fields in objects)
    note = f"{quantity(undated, 'time')} could not be read or cannot be true, and counted as undated"
    return (note,) if undated else ()


def item_of(fields: Mapping[str, Any], at: int, source: str = "", named: str = "") -> Item:
    """One object as an item; raises `UsageError`, naming it as `named`, or its line `at`.

    `source` overrides the object's. A missing id is made of texts and line. Texts that are gone or
    invisible, and those of Reddit's bots, are unfit; such comments are left out.
    """
    title, body = _texts(fields, f"`{named}`" if named else f"line {at}")
    before = f"`{named}." if named else f"line {at}, `"
    comments = (
        _comment(given, count, f"{before}comments[{count}]`")
        for count, given in enumerate(as_list(fields.get("comments")))
    )
    source = source or _word(fields.get("source")) or NAME
    made = hashlib.sha256(f"{at}\n{title}\n{body}".encode()).hexdigest()[:12]
    id_ = _word(fields.get("id")) or made
    unfit = unfit_reason(unescape(title), unescape(body))
    return Item(
        key=_word(fields.get("key")) or f"{source}:{id_}", id=id_, source=source, title=title,
        body=body, place=_word(fields.get("place")) or _word(fields.get("product")) or None,
        comments=tuple(comment for comment in comments if comment is not None),
        unfit=unfit or (BY_BOT if is_bot(clean(fields.get("author"))) else ""),
        language=_language(fields.get("language")), **_common(fields),
    )  # fmt: skip


def _comment(given: object, count: int, name: str) -> Comment | None:
    fields = given if isinstance(given, Mapping) else {"body": given}
    body = "\n".join(filter(None, _texts(fields, name)))
    is_by_bot = is_bot(clean(fields.get("author")))
    if is_by_bot or not says_something(undeleted_text(unescape(body))):
        return None
    return Comment(id=_word(fields.get("id")) or str(count + 1), body=body, **_common(fields))


def _common(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that items and comments have in common."""
    measures = {_word(name): count for name, count in as_dict(fields.get("engagement")).items()}
    if (stars := _stars(fields)) is not None:
        measures.setdefault("stars", stars)
    return {
        "url": web_url(fields.get("url")),
        "author": pseudonym("author", fields.get("author")),
        "created_at": _created_at(fields),
        # null is a measure that is not known
        "engagement": {
            name: count for name, count in measures.items() if count is None or (name and as_number(count) is not None)
        },
    }


def _stars(fields: Mapping[str, Any]) -> float | None:
    """Rating of a review in stars, from a number, `4.0` or `4 of 5 stars`; None on another scale."""
    given = next((fields[name] for name in RATING_FIELDS if fields.get(name) not in (None, "")), None)
    match = _RATING.match(_word(given)) if isinstance(given, (str, int, float)) else None
    if match is None or int(match["most"] or MOST_STARS) != MOST_STARS:
        return None
    stars = float(match["given"])
    return stars if 0 < stars <= MOST_STARS else None


def on_five(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no rating of these objects is above five, so that all are stars."""
    ratings = (_RATING.match(_word(fields.get(name))) for fields in objects for name in RATING_FIELDS)
    return all(match is None or float(match["given"]) <= MOST_STARS for match in ratings)


def _unrated(objects: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The objects, without their ratings where these are on another scale than stars."""
    if on_five(objects):
        return objects
    return [{name: value for name, value in fields.items() if name not in RATING_FIELDS} for fields in objects]


def _word(value: object) -> str:
    return one_line(clean(value))


def _language(value: object) -> str:
    """Code of a language without its country; empty for anything else, such as its name."""
    match = _LANGUAGE.fullmatch(_word(value))
    return match["code"].lower() if match else ""


def _date(fields: Mapping[str, Any]) -> object:
    return next((fields[name] for name in DATE_FIELDS if fields.get(name) not in (None, "")), None)


def _created_at(fields: Mapping[str, Any]) -> datetime | None:
    return plausible_time(parsed_date(_date(fields)))


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, str]:
    try:
        return title_and_body(fields)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None


def sources_of_report(report: Report) -> Mapping[str, Source | SourceError]:
    """One source for each that the report asked; one without an answer then has none now."""
    items: dict[str, list[Item]] = {name: [] for name in report.sources}
    # what the archive found bears the source that it once came from
    other = next((name for name, answer in report.sources.items() if answer.outcome.answered), "")
    judged = (_beginning(item) for item in report.dropped if item.dropped_by != "duplicate")
    for item in (*map(_whole, report.items), *judged):
        items.get(item.source, items.get(other, [])).append(item)
    return {
        name: ReportItems(name, tuple(items[name])) if answer.outcome.answered else _failure(answer)
        for name, answer in report.sources.items()
    }


class ReportItems(LocalSource):
    """The items of one source, in the order of the report; never full."""

    def __init__(self, name: str, items: tuple[Item, ...]) -> None:
        """Serve these items under the name of their source."""
        self.name, self._items = name, items

    async def fetch(self, plan: FetchPlan) -> Batch:
        """All items, whatever the query and the limit."""
        return Batch(plan, self._items, full=False)

    async def probe(self) -> Probe:
        """Return `ok` with the number of items."""
        return Probe("ok", f"{len(self._items)} items")


class NotAnswered(SourceError):
    """A source that gave no answer when the report was made; `code` is its outcome then."""

    def __init__(self, source: str, outcome: Outcome, reason: str) -> None:
        """The outcome and reason are those of the stored report."""
        super().__init__(source, reason)
        self.code = str(outcome)  # type: ignore[misc]

    @property
    def reason(self) -> str:
        """Reason of the failure in the report, with its remedy."""
        return self.detail


def _failure(answer: SourceReport) -> NotAnswered:
    error = NotAnswered(answer.source, answer.outcome, answer.reason or "no answer")
    error.retry_at = answer.retry_at
    return error


def _whole(kept: KeptItem) -> Item:
    return Item(**{name: getattr(kept, name) for name in Item.model_fields})


def _beginning(dropped: DroppedItem) -> Item:
    return Item(
        key=dropped.key,
        id=dropped.key.partition(":")[2],
        source=source_of_key(dropped.key),
        title=dropped.title,
        body=dropped.snippet,
        url=dropped.url,
        created_at=dropped.created_at,
        place=dropped.place,
        thread=dropped.thread,
        credit=dropped.credit,
        unfit={"unfit": dropped.reason, "excluded": EXCLUDED + dropped.reason}.get(dropped.dropped_by or "", ""),
    )
