"""Bluesky's own search, by an account: posts that its stream no longer holds. Asked for questions of people alone.

An app password opens a session at the account's login server, and the account's own server searches: see
docs/sources/bluesky.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from api.core.text import web_url
from api.errors import Broken, RateLimited, Refused
from api.settings import SourceSettings
from api.sources import BLUESKY_ACCOUNT, setting_value
from api.sources.item_fields import as_dict, as_list
from api.sources.json_source import reply_failure
from api.sources.web_client import Limit, Pace, Reply, WebClient, pace_of, public_root

NAME: Final = "bluesky"
PAGE = 100
"""Posts of one answer, the most that it gives."""
_SESSION, _SEARCH = "/xrpc/com.atproto.server.createSession", "/xrpc/app.bsky.feed.searchPosts"
# what an account's server allows, and logins
_LIMIT, _LOGINS = Limit(3_000, 300), Limit(30, 300)
# what a server calls a session that is over
_ENDED = frozenset({"ExpiredToken", "InvalidToken", "AuthMissing"})
Session = tuple[WebClient, str]
"""An account's server, and the token that it takes."""


class BlueskySearch:
    """One account's search; belongs to one event loop. Its session is opened when it is first needed, and kept."""

    def __init__(self, settings: SourceSettings, root_of: Callable[[str, float], Awaitable[str]] = public_root) -> None:
        """Opens no session yet; `root_of` finds the server of an account, as `public_root` does."""
        handle, password = (setting_value(settings, name) for name in BLUESKY_ACCOUNT)
        self._account = {"identifier": handle, "password": password}
        self._settings, self._root_of, self._opening = settings, root_of, asyncio.Lock()
        self._login = self._client(settings.bluesky_login_url)
        self._server = self._login
        self._session: Session | None = None

    async def posts(self, words: str, since: datetime | None) -> Sequence[Mapping[str, Any]]:
        """The most prominent posts with these words, 100 at most, as the AppView shows posts.

        Raises:
            Refused: handle or app password are wrong.
            SourceError: no answer, or one that is not understood.
        """
        params: dict[str, str | int] = {"q": words, "sort": "top", "limit": PAGE}
        if since is not None:
            params["since"] = f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        session = await self.session()
        reply = await self._searched(session, params)
        if as_dict(reply.data).get("error") in _ENDED:
            reply = await self._searched(await self.session(instead_of=session), params)
        posts = as_dict(_checked(reply).data).get("posts")
        if not isinstance(posts, list):
            raise Broken(NAME, "an answer of its search without posts")
        return [as_dict(post) for post in posts]

    async def session(self, instead_of: Session | None = None) -> Session:
        """The open session; a new one where there is none, or the one that ended. Raises `SourceError`."""
        async with self._opening:
            if self._session is not None and self._session is not instead_of:
                return self._session
            pace = pace_of(NAME, f"{self._login.root} logins", _LOGINS)
            reply = await _paced(pace, self._login.post(_SESSION, self._account))
            if reply.status == 401 and not reply.html:
                raise Refused(NAME, f"{' or '.join(f'`{name}`' for name in BLUESKY_ACCOUNT)} is wrong")
            answer = as_dict(_checked(reply).data)
            token = answer.get("accessJwt")
            if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
                raise Broken(NAME, "a session without its token")
            root = await self._root_of(_server_of(answer), self._settings.source_timeout) or self._login.root
            if root != self._server.root:  # else a search that is under way goes on over its connection
                await self._close_server()
                self._server = self._login if root == self._login.root else self._client(root)
            self._session = self._server, token
            return self._session

    async def aclose(self) -> None:
        """Close the connections."""
        await self._close_server()
        await self._login.aclose()

    async def _close_server(self) -> None:
        if self._server is not self._login:
            await self._server.aclose()

    def _client(self, root: str) -> WebClient:
        headers = {"User-Agent": self._settings.user_agent}
        seconds = self._settings.source_timeout
        return WebClient(NAME, root.rstrip("/"), seconds, address="BLUESKY_LOGIN_URL", headers=headers)

    async def _searched(self, session: Session, params: Mapping[str, str | int]) -> Reply:
        client, token = session
        request = client.get(_SEARCH, params, {"Authorization": f"Bearer {token}"})
        return await _paced(pace_of(NAME, f"{client.root} search", _LIMIT), request)


def _server_of(session: Mapping[str, Any]) -> str:
    """Address of the account's server that a session names; empty without one."""
    services = map(as_dict, as_list(as_dict(session.get("didDoc")).get("service")))
    return next((web_url(each.get("serviceEndpoint")) for each in services if each.get("id") == "#atproto_pds"), "")


async def _paced(pace: Pace, request: Awaitable[Reply]) -> Reply:
    await pace.turn()
    reply = await request
    if isinstance(failure := reply_failure(NAME, reply), RateLimited):
        pace.pause(failure.retry_at)
    return reply


def _checked(reply: Reply) -> Reply:
    """The answer; raises what it means where it is none of a search or a session."""
    if (failure := reply_failure(NAME, reply)) is not None:
        raise failure
    return reply
