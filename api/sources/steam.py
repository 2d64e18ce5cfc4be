"""Steam's reviews of one game: the shop's search finds the game, Steam's Web API lists its reviews.

The API forgives everything: a parameter that it does not know falls back to English, to buyers on Steam
alone and to its own order, without a word. So every parameter is sent, in the words of 2026.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from api.core.domain import FetchPlan
from api.core.items import Batch, Comment, Commented, Item, Measure, pseudonym
from api.core.ports import Probe
from api.core.text import clean, cut, one_line
from api.core.words import canonical
from api.errors import Broken
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import setting_value
from api.sources.item_fields import as_dict, as_int, as_list, make_item, says_something, time_since, unfit_reason
from api.sources.json_source import JsonSource
from api.sources.markup import words_of_bbcode
from api.sources.searched_source import Page, window_start
from api.sources.web_client import Limit, pace_of

NAME = "steam"
API, SHOP = "https://api.steampowered.com", "https://store.steampowered.com"
REVIEWS, SEARCH = "/IUserReviewsService/GetAppReviews/v1/", "/api/storesearch/"
PAGE = 100
"""Reviews of one request: the most there is."""
# the shop lets one address ask 200 times in five minutes
_SHOP_LIMIT = Limit(150, 300)
# orders of the API, by number, and the days to which it takes the first
_HELPFUL, _RECENT, _MAX_DAYS = 0, 1, 365
_EVERY_PURCHASE, _EVERY_VOTE = 1, 0
# the month before which nobody could recommend a game there
BEGAN = datetime(2010, 1, 1, tzinfo=UTC)
# times that an empty answer is asked for again while more reviews are promised: up to five were seen
_REPEATS = 2
# counts of votes that are larger came from a number below zero
_MAX_VOTES = 2**31
# names of games in a note, and characters of one
_NAMED, _MAX_NAME = 5, 80
# developers' answers that are kept until they are asked for
_MAX_RESPONSES = 5_000
# a game that everybody can look up, for the probe
_KNOWN_GAME = "Portal 2"
NONE_CALLED = "Steam has no game called {name}"
OTHERS_CALLED = "Steam has no game called exactly {name}; it has {names}: ask for one of them by its whole name"
SEVERAL_CALLED = "Steam has {count} games called {name}; the reviews are of app {id}"
OF_GAME = "reviews of {name} (app {id}), {order}, in all languages, off-topic ones included"
UNLISTED = "Steam listed {listed} of {matching} reviews that match and then no more"
UNREVIEWED = "Steam has no reviews of {name} (app {id})"


@dataclass(frozen=True, slots=True)
class Game:
    """An app of Steam's shop."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ReviewPosition:
    """Position in the list of a game's reviews; the cursor of a page, as JSON."""

    game: int
    name: str
    cursor: str = "*"
    listed: int = 0


class SteamSource(JsonSource):
    """Lists Steam's reviews of the game with the asked name."""

    name = NAME
    # what an address may ask without a key is unpublished and low
    limits = (Limit(30, 60),)
    rest = timedelta(minutes=5)

    def __init__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> None:
        root = setting_value(settings, "STEAM_URL")
        super().__init__(settings, memory, roots=(root,) if root else (API, SHOP))
        self._shop = self._roots[-1]
        self._responses: OrderedDict[str, tuple[Comment, ...]] = OrderedDict()

    async def fetch(self, plan: FetchPlan) -> Batch:
        """The reviews without the developer's answers, which `comments` adds; see `Source.fetch`."""
        batch = await super().fetch(plan)
        self._responses |= {item.key: item.comments for item in batch.items if item.comments}
        while len(self._responses) > _MAX_RESPONSES:
            self._responses.popitem(last=False)
        return replace(batch, items=tuple(item.edited(comments=()) for item in batch.items))

    async def with_best_comments(self, item: Item) -> Item | None:
        """Return None: a developer's answer does not make a review of another game relevant."""
        return None

    async def _with_comments_of(self, items: Sequence[Item]) -> Commented:
        return Commented(tuple([await self._commented(item) for item in items]))

    async def _commented(self, item: Item) -> Item:
        """The review with the developer's answer, which came with it."""
        return item.edited(comments=self._responses.get(item.key, ())[: self._max_comments])

    async def _search(self, plan: FetchPlan, cursor: str | None) -> Page:
        """A page of reviews; the first one also costs the search for the game."""
        if cursor is not None:
            return await self._page(plan, ReviewPosition(**json.loads(cursor)))
        games = await self._games(plan.query)
        same = [game for game in games if canonical(game.name) == canonical(plan.query)]
        name = shortened(plan.query)
        if not same:
            names = ", ".join(game.name for game in games[:_NAMED])
            return Page((), notes=((OTHERS_CALLED if names else NONE_CALLED).format(name=name, names=names),))
        game = same[0]
        page = await self._page(plan, ReviewPosition(game.id, game.name))
        several = SEVERAL_CALLED.format(count=len(same), name=name, id=game.id)
        return replace(page, notes=(*page.notes, *([several] if len(same) > 1 else [])))

    async def _games(self, name: str) -> list[Game]:
        """What the shop finds, which may be fan works and music; ten at most, the best seller first."""
        params: dict[str, str | int] = {"term": name, "l": "english", "cc": "us"}
        pace = pace_of(NAME, self._shop, _SHOP_LIMIT)
        entries = self._list(await self._ask(SEARCH, params, self._shop, pace=pace), "items")
        games = [game for game in map(_game, entries) if game is not None]
        if entries and not games:
            raise Broken(NAME, "games without the fields that are read")
        return games

    async def _page(self, plan: FetchPlan, position: ReviewPosition) -> Page:
        params = _parameters(plan, position)
        answer, repeats = await self._reviews(params), 0
        while not answer.get("reviews") and repeats < _repeats(answer, position):
            answer, repeats = await self._reviews(params), repeats + 1
        game, matching = Game(position.game, position.name), as_int(answer.get("total_matching"))
        slots = self._slots(as_list(answer.get("reviews")), lambda entry: review_of(entry, game))
        listed, following = position.listed + len(slots), answer.get("cursor")
        promised = matching is None or listed < matching or len(slots) >= PAGE
        repeated = following == position.cursor
        if slots and promised and isinstance(following, str) and following and not repeated:
            cursor = json.dumps(asdict(replace(position, cursor=following, listed=listed)))
            return Page(slots, cursor, _first_note(plan, position, answer))
        notes = _first_note(plan, position, answer)
        if matching and listed < matching:
            notes += (UNLISTED.format(listed=listed, matching=matching),)
        return Page(slots, None, notes)

    async def _reviews(self, params: Mapping[str, str | int]) -> Mapping[str, Any]:
        answer = await self._ask(REVIEWS, params, search=True)
        response = as_dict(answer).get("response")
        if not isinstance(response, dict) or (response and not isinstance(response.get("query_summary"), dict)):
            raise Broken(NAME, "an answer without query_summary")
        if not isinstance(response.get("reviews", []), list):
            raise Broken(NAME, "an answer without reviews")
        return response

    async def _probed(self) -> Probe:
        games = await self._games(_KNOWN_GAME)
        position = ReviewPosition(games[0].id if games else 620, _KNOWN_GAME)
        await self._reviews(_parameters(FetchPlan(_KNOWN_GAME, 1), position) | {"num_per_page": 0})
        left = self._pace(self._roots[0]).left
        return Probe("ok", f"{left} of {self.limits[0].requests} requests a minute left to us")


build = SteamSource


def _parameters(plan: FetchPlan, position: ReviewPosition) -> dict[str, str | int]:
    """Every parameter, since one that is absent has a default that hides reviews.

    A window is exact in the order of time alone; without one the most helpful reviews of a year come.
    """
    start = window_start(plan.window)
    order: dict[str, str | int] = {"filter": _HELPFUL, "day_range": _MAX_DAYS}
    if start is not None:
        # neither is read without the other
        begin, end = int(start.timestamp()), int(datetime.now(UTC).timestamp()) + 3_600
        order = {"filter": _RECENT, "date_range_start": begin, "date_range_end": end}
    return {
        "appid": position.game, **order, "languages[0]": "all", "purchase_type": _EVERY_PURCHASE,
        "review_type": _EVERY_VOTE, "filter_offtopic_activity": "false", "num_per_page": PAGE,
        "cursor": position.cursor,
    }  # fmt: skip


def _repeats(answer: Mapping[str, Any], position: ReviewPosition) -> int:
    """How often an answer without reviews is requested again, since "no more" may be false, above all during sales."""
    matching = as_int(answer.get("total_matching")) or 0
    if matching > position.listed:
        return _REPEATS
    return 0 if position.listed else 1


def _first_note(plan: FetchPlan, position: ReviewPosition, answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Which game and which of its reviews a search covers; only with the first page."""
    if position.listed:
        return ()
    if not answer:
        return (UNREVIEWED.format(name=position.name, id=position.game),)
    days = as_int(answer.get("day_range_used")) or _MAX_DAYS
    order = f"the most helpful of {days} days" if plan.window == "all" else "the newest first"
    return (OF_GAME.format(name=position.name, id=position.game, order=order),)


def shortened(name: object) -> str:
    """A name on one line, as long as one may be in a note."""
    return cut(one_line(clean(name)), _MAX_NAME)


def _game(entry: object) -> Game | None:
    fields = as_dict(entry)
    id_, name = as_int(fields.get("id")), shortened(fields.get("name") if isinstance(fields.get("name"), str) else "")
    return Game(id_, name) if id_ and id_ > 0 and name else None


def review_of(entry: object, game: Game) -> Item | None:
    """A review with a title made by us; None when id, author or text is missing."""
    fields = as_dict(entry)
    id_, person = _digits(fields.get("recommendationid")), as_dict(fields.get("author"))
    steamid, voted = _digits(person.get("steamid")), fields.get("voted_up")
    if not id_ or not steamid or not isinstance(voted, bool) or not isinstance(fields.get("review"), str):
        return None
    body = words_of_bbcode(fields.get("review"))
    url = f"https://steamcommunity.com/profiles/{steamid}/recommended/{game.id}/"
    return make_item(
        NAME, f"{game.id}:{id_}", f"{game.name} (voted {'up' if voted else 'down'})", body,
        time_since(fields.get("timestamp_created"), BEGAN),
        id=id_,
        url=url,
        author=pseudonym("player", steamid),
        engagement={
            "helpful": _votes(fields.get("votes_up")), "hours": _hours(person),
            "comments": as_int(fields.get("comment_count")), "recommended": int(voted),
        },
        place=game.name,
        thread=f"{NAME}:{game.id}",  # the title is the game's, not its author's words
        unfit=unfit_reason(body),
        comments=_response(fields, game, id_, url),
    )  # fmt: skip


def _response(fields: Mapping[str, Any], game: Game, id_: str, url: str) -> tuple[Comment, ...]:
    """What the developer wrote below a review, as a quotation: who sells a game is no voice about it."""
    text = words_of_bbcode(fields.get("developer_response"))
    if not text or not says_something(text):
        return ()
    text = "\n".join(f"> {line}" for line in text.splitlines() if line.strip())
    created = time_since(fields.get("timestamp_dev_responded"), BEGAN)
    author = pseudonym("developer", game.id)
    return (Comment(id=f"{id_}/developer", body=text, url=url, author=author, created_at=created),)


def _digits(value: object) -> str:
    text = str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    return text if text.isascii() and text.isdigit() and len(text) <= 20 else ""


def _votes(value: object) -> int | None:
    votes = as_int(value)
    return votes if votes is not None and 0 <= votes < _MAX_VOTES else None


def _hours(person: Mapping[str, Any]) -> Measure:
    """Hours played when the review was written, else until now, with one decimal; None when unknown."""
    minutes = as_int(person.get("playtime_at_review"))
    minutes = as_int(person.get("playtime_forever")) if minutes is None else minutes
    return None if minutes is None or minutes < 0 else round(minutes / 60, 1)
