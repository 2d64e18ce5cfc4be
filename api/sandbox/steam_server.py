"""Steam: the shop's search for games, and the reviews of one game by the API of October 2026."""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import Any, ClassVar

from api.sandbox.corpus import DIGITS, Post, game_id, spelled
from api.sandbox.site_search import tokens
from api.sandbox.world import EmulatedServer, SandboxCall, World, fields, reply, serves, whole

_MOST, _MOST_GAMES, _DAY = 100, 10, 86_400
_HELPFUL, _RECENT, _STEAM_PURCHASES = 0, 1, 0


class Steam(EmulatedServer):
    """Answers as Steam does: old words as parameters are no mistake but fall back to the defaults."""

    upstream = "steam"
    fault_replies: ClassVar = {
        "429": ("", 429, {"retry-after": "60"}),
        # the address that was given up leads to the shop, which is another server
        "redirect": ("", 302, {"location": "https://store.steampowered.example/"}),
    }

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._games: dict[str, list[Post]] = defaultdict(list)
        for post in world.of("steam"):
            if not post.deleted:
                self._games[post.place].append(post)

    def fault(self, kind: str, call: SandboxCall) -> Any:
        if kind == "empty" and call.path.startswith("/IUser"):  # a cursor, but nothing to read
            summary = {"num_reviews": 0, "total_reviews": 41}
            return reply({"response": {"query_summary": summary, "cursor": "AoJ4empty=", "total_matching": 41}})
        return super().fault(kind, call)

    @serves("shop", "/api/storesearch/")
    def _shop(self, call: SandboxCall) -> dict[str, Any]:
        """Games with any of the words in their names, those with most reviews first."""
        words = set(tokens(call.query.get("term", "")))
        names = [name for name in self._games if words & set(tokens(name))]
        names.sort(key=lambda name: (-len(self._games[name]), name))
        items = [fields("steam_game") | {"name": name, "id": game_id(name)} for name in names[:_MOST_GAMES]]
        return {"total": len(items), "items": items}

    @serves("reviews", "/IUserReviewsService/GetAppReviews/v1/")
    def _reviews(self, call: SandboxCall) -> dict[str, Any]:
        """A page of reviews; after the last one, or when none match, the answer has no list."""
        name = next((name for name in self._games if game_id(name) == call.number("appid", 0)), None)
        if name is None:
            return {"response": {}}
        posts = self._matching(name, call)
        start, size = self._start(call.query.get("cursor", "*")), min(call.number("num_per_page", 20), _MOST)
        shown = [] if call.fault == "end" else posts[start : start + size]
        summary: dict[str, Any] = {"num_reviews": len(shown)}
        if not start:
            liked = sum(_is_up(post) for post in self._games[name])
            summary |= {
                "review_score": 8, "review_score_desc": "Very Positive", "total_positive": liked,
                "total_negative": len(self._games[name]) - liked, "total_reviews": len(self._games[name]),
            }  # fmt: skip
        following = start if call.fault == "repeat" else start + len(shown)
        cursor = call.query.get("cursor", "*") if not shown else _cursor(following)
        answer: dict[str, Any] = {"query_summary": summary, "cursor": cursor, "total_matching": len(posts)}
        return {"response": answer | ({"reviews": [self._review(post) for post in shown]} if shown else {})}

    def _matching(self, name: str, call: SandboxCall) -> list[Post]:
        """Reviews of the requested purchases, languages and time, in the requested order; defaults leave some out."""
        begin, end = call.number("date_range_start", 0), call.number("date_range_end", 0)
        order, days = call.number("filter", _HELPFUL), call.number("day_range", 30)
        posts = self._games[name]
        if call.query.get("languages[0]", "english") != "all":
            posts = [post for post in posts if post.body.isascii()]
        if call.number("purchase_type", _STEAM_PURCHASES) == _STEAM_PURCHASES:
            posts = [post for post in posts if _is_bought(post)]
        if begin and end:
            posts = [post for post in posts if begin <= self.world.created(post.age_days) <= end]
        if order == _HELPFUL:
            recent = [post for post in posts if (post.age_days or 0) <= days]
            return sorted(recent or posts, key=lambda post: (-post.votes, post.id))
        return sorted(posts, key=lambda post: (post.age_days or 0, post.id))

    def _review(self, post: Post) -> dict[str, Any]:
        minutes = int(spelled(DIGITS, 4, "minutes", post.id)) + 5
        author = fields("steam_author") | {
            "steamid": f"7656119{spelled(DIGITS, 10, 'player', post.id)}", "playtime_forever": minutes + 60,
            "playtime_at_review": minutes,
        }  # fmt: skip
        created = int(self.world.created(post.age_days))
        answers = [
            {"developer_response": each.body, "timestamp_dev_responded": int(self.world.created(each.age_days))}
            for each in post.comments[:1]
        ]
        return fields("steam_review") | {
            "recommendationid": post.id, "author": author, "review": post.body,
            "language": "english" if post.body.isascii() else "german", "timestamp_created": created,
            "timestamp_updated": created, "voted_up": _is_up(post), "votes_up": post.votes,
            "steam_purchase": _is_bought(post), **(answers[0] if answers else {}),
        }  # fmt: skip

    def _start(self, cursor: str) -> int:
        try:
            return whole(base64.b64decode(cursor, validate=True).decode(), 0)
        except ValueError:  # the star that asks for the first page
            return 0


def _cursor(start: int) -> str:
    """A cursor in Steam's form, with characters that an address has to escape."""
    return base64.b64encode(f"{start:05}".encode()).decode()


def _is_up(post: Post) -> bool:
    return (post.stars or 0) > 3


def _is_bought(post: Post) -> bool:
    return not post.sponsored
