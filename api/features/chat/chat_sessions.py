"""Sessions of every tenant: loaded, one turn at a time, and kept after each."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import unicodedata
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Protocol
from weakref import WeakValueDictionary

from api.choices import DepthName
from api.errors import StoreUnavailable, UsageError
from api.features.analyses.store_ports import Sessions
from api.features.chat.chat_history import no_chat
from api.features.chat.chat_turn import ChatEvent, Turn
from api.features.chat.session import Session
from api.reports.report import Report

LIVE = 64
"""Sessions whose runs stay in memory."""
UNKEPT = "this turn could not be stored; the session knows it only while the program runs"
LONGEST_ID = 128
"""Characters a session id may have, at every door."""
_log = logging.getLogger(__name__)
_Key = tuple[str, str]


class Answering(Protocol):
    """What holds the conversation; see `Chat`."""

    def begin(
        self, tenant: str = "", session_id: str | None = None, report: Report | None = None
    ) -> Session:
        """A session that remembers nothing, or what a report rests on."""
        ...

    def resume(self, tenant: str, session_id: str, text: str) -> Session | None:
        """A session as it was saved; None when the text cannot be read."""
        ...

    def stream(
        self, session: Session, message: str, depth: DepthName = "quick"
    ) -> AsyncGenerator[ChatEvent]:
        """One turn as it happens, the `Turn` last."""
        ...


@dataclass(slots=True)
class Forgetful:
    """Sessions without a database: they end with the process."""

    _texts: dict[_Key, str] = field(default_factory=dict)

    async def session(self, tenant: str, session_id: str) -> str | None:
        """What was last saved."""
        return self._texts.get((tenant, session_id))

    async def keep_session(self, tenant: str, session_id: str, text: str) -> None:
        """Save it."""
        self._texts[tenant, session_id] = text


@dataclass(slots=True)
class Chats:
    """Turns in sessions that a store keeps; what this process knows of one besides is its run."""

    chat: Answering
    store: Sessions
    _live: OrderedDict[_Key, tuple[Session, str | None]] = field(default_factory=OrderedDict)
    """Each with what the store has of it."""
    _running: dict[_Key, Session] = field(default_factory=dict)
    """Those in which a turn is under way."""
    _locks: WeakValueDictionary[_Key, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def stream(
        self,
        tenant: str,
        message: str,
        session_id: str | None = None,
        *,
        known: bool = True,
        depth: DepthName = "quick",
        report: Report | None = None,
    ) -> AsyncGenerator[ChatEvent]:
        """One turn of one session as it happens; a second turn waits for the first.

        A turn that is stopped leaves its question and its finished look-ups in the session.

        Args:
            tenant: whose session it is; nobody else sees it.
            message: what the person wrote.
            session_id: None begins a session; its id is in the `Turn`.
            known: an id that there is no session of is refused, not begun.
            depth: of the look-ups, where the model does not say.
            report: what a session that begins knows already.

        Raises:
            NotFound: no session of that id is the tenant's.
            UsageError: the id is too long or empty, or no address can hold it.
            StoreUnavailable: the session cannot be read; one that cannot be kept is a note.
        """
        if session_id is not None:
            _check_id(session_id)
        session = self.chat.begin(tenant, session_id, report)
        key = (tenant, session.id)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            text: str | None = None
            if session_id is not None:
                session, text = await self._opened(key, session, known)
            self._running[key] = session
            try:
                async with aclosing(self.chat.stream(session, message, depth)) as moments:
                    async for moment in moments:
                        if isinstance(moment, Turn):
                            try:
                                await self._keep(key, session, text)
                            except StoreUnavailable as error:  # what is worked is not lost
                                _log.warning("a chat turn could not be stored: %s", error)
                                self._hold(key, session, text)
                                moment = replace(moment, notes=(*moment.notes, UNKEPT))
                        yield moment
            except (asyncio.CancelledError, GeneratorExit):
                if session_id is not None:  # else nobody was told the id
                    with contextlib.suppress(StoreUnavailable):  # nobody is left to be told
                        await self._keep(key, session, text)
                raise
            finally:
                del self._running[key]

    def let_go(self, tenant: str, session_id: str) -> bool:
        """Remember nothing more of a session in this process; whether a turn runs in it.

        That turn is answered and not kept.
        """
        self._live.pop((tenant, session_id), None)
        running = self._running.get((tenant, session_id))
        if running is not None:
            running.dropped = True
        return running is not None

    async def _opened(self, key: _Key, fresh: Session, known: bool) -> tuple[Session, str | None]:
        """The live session, unless another process has gone on with it; else what was saved.

        And what the store has of it.
        """
        text = await self.store.session(*key)
        live = self._live.get(key)
        if live is not None and live[1] == text:
            return live
        if text is None and known:
            raise no_chat(fresh.id)
        session = None if text is None else self.chat.resume(*key, text)
        fresh.anew = text is not None and session is None
        return session or fresh, text

    async def _keep(self, key: _Key, session: Session, before: str | None) -> None:
        """Save it, with what was thought of its turns since the store had `before` of it."""
        if session.dropped:
            return
        stored = await self.store.session(*key)
        if stored is not None and stored != before:
            session.heed(stored)
        text = session.save()
        await self.store.keep_session(*key, text)
        self._hold(key, session, text)

    def _hold(self, key: _Key, session: Session, text: str | None) -> None:
        self._live[key] = (session, text)
        self._live.move_to_end(key)
        while len(self._live) > LIVE:
            self._live.popitem(last=False)


def _check_id(session_id: str) -> None:
    """An id must come back whole from the address in which a conversation is read and deleted."""
    if not 1 <= len(session_id) <= LONGEST_ID:
        raise UsageError(f"a session id has 1 to {LONGEST_ID} characters")
    if any(unicodedata.category(character) == "Cc" for character in session_id):
        raise UsageError("a session id has no control characters: leave them out")
    # clients resolve these before they send an address: `chats/a/../b` is `chats/b`
    if {".", ".."} & set(session_id.split("/")):
        raise UsageError("a session id has no part `.` or `..` between slashes: name it otherwise")
