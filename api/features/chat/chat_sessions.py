"""The chat sessions of every tenant: loaded, one turn at a time, and saved after each."""

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

from api.choices import MAX_SESSION_ID_LENGTH, DepthName
from api.errors import StoreUnavailable, UsageError
from api.features.analyses.store_ports import Sessions
from api.features.chat.chat_history import no_chat
from api.features.chat.chat_turn import ChatEvent, Turn
from api.features.chat.session import Session
from api.reports.report import Report

LIVE = 64
"""Sessions that stay in memory with their runs, so that nothing is fetched or judged again."""
UNKEPT = "this turn could not be stored; the session knows it only while the program runs"
_log = logging.getLogger(__name__)
_Key = tuple[str, str]


class ChatEngine(Protocol):
    """Answers the turns of a session; `Chat` implements it."""

    def begin(self, tenant: str = "", session_id: str | None = None, report: Report | None = None) -> Session:
        """A new session, which knows a report's findings and items if one is given."""

    def resume(self, tenant: str, session_id: str, text: str) -> Session | None:
        """A session restored from its text; None when the text cannot be read."""

    def stream(self, session: Session, message: str, depth: DepthName = "quick") -> AsyncGenerator[ChatEvent]:
        """The events of one turn, the `Turn` last."""


@dataclass(slots=True)
class SessionsInMemory:
    """Sessions without a database: they end with the process."""

    _texts: dict[_Key, str] = field(default_factory=dict)

    async def session(self, tenant: str, session_id: str) -> str | None:
        """The session as last saved, in JSON; None when there is none."""
        return self._texts.get((tenant, session_id))

    async def keep_session(self, tenant: str, session_id: str, text: str, report_id: str | None = None) -> None:
        """Save a session as JSON, in place of the one before; without a database nothing is listed by report."""
        self._texts[tenant, session_id] = text


@dataclass(slots=True)
class ChatSessions:
    """Runs turns in stored sessions; each process has the runs of its own sessions in memory."""

    engine: ChatEngine
    store: Sessions
    _live: OrderedDict[_Key, tuple[Session, str | None]] = field(default_factory=OrderedDict)
    """Sessions with their text in the store."""
    _running: dict[_Key, Session] = field(default_factory=dict)
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
        """The events of one turn; a second turn of the session waits for the first.

        A turn that is stopped leaves its question and its finished look-ups in the session. Without
        a `session_id` a session begins, its id is in the `Turn`; with `known` an unknown id is
        refused. `depth` is of look-ups where the model names none; a `report` is what a new session
        knows already.

        Raises:
            NotFound: the tenant has no session of that id.
            UsageError: the id is too long or empty, or cannot stand in a URL.
            StoreUnavailable: the session cannot be read; failing to save it is only noted.
        """
        if session_id is not None:
            _check_id(session_id)
        session = self.engine.begin(tenant, session_id, report)
        key = (tenant, session.id)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            text: str | None = None
            if session_id is not None:
                session, text = await self._opened(key, session, known)
            self._running[key] = session
            try:
                async with aclosing(self.engine.stream(session, message, depth)) as events:
                    async for event in events:
                        if isinstance(event, Turn):
                            try:
                                await self._save(key, session, text)
                            except StoreUnavailable as error:  # the answer is shown all the same
                                _log.warning("a chat turn could not be stored: %s", error)
                                self._keep_live(key, session, text)
                                event = replace(event, notes=(*event.notes, UNKEPT))
                        yield event
            except (asyncio.CancelledError, GeneratorExit):
                if session_id is not None:  # else nobody knows the id
                    with contextlib.suppress(StoreUnavailable):  # nobody is left to read a note
                        await self._save(key, session, text)
                raise
            finally:
                del self._running[key]

    def forget(self, tenant: str, session_id: str) -> bool:
        """Drop a deleted session from memory; whether a turn runs in it, which is not saved."""
        self._live.pop((tenant, session_id), None)
        running = self._running.get((tenant, session_id))
        if running is not None:
            running.deleted = True
        return running is not None

    async def _opened(self, key: _Key, new: Session, known: bool) -> tuple[Session, str | None]:
        """The session and its stored text: from memory unless another process has saved since."""
        text = await self.store.session(*key)
        live = self._live.get(key)
        if live is not None and live[1] == text:
            return live
        if text is None and known:
            raise no_chat(new.id)
        session = None if text is None else self.engine.resume(*key, text)
        new.unreadable = text is not None and session is None
        return session or new, text

    async def _save(self, key: _Key, session: Session, before: str | None) -> None:
        """Save it, with the ratings that were stored since its text was `before`."""
        if session.deleted:
            return
        stored = await self.store.session(*key)
        if stored is not None and stored != before:
            session.take_ratings(stored)
        text = session.save()
        await self.store.keep_session(*key, text, session.report_id or None)
        self._keep_live(key, session, text)

    def _keep_live(self, key: _Key, session: Session, text: str | None) -> None:
        self._live[key] = (session, text)
        self._live.move_to_end(key)
        while len(self._live) > LIVE:
            self._live.popitem(last=False)


def _check_id(session_id: str) -> None:
    """Refuse an id that would not come back whole from the URL of its conversation."""
    if not 1 <= len(session_id) <= MAX_SESSION_ID_LENGTH:
        raise UsageError(f"a session id has 1 to {MAX_SESSION_ID_LENGTH} characters")
    if any(unicodedata.category(character) == "Cc" for character in session_id):
        raise UsageError("a session id has no control characters: leave them out")
    # clients resolve these before they send a URL: `chats/a/../b` is `chats/b`
    if {".", ".."} & set(session_id.split("/")):
        raise UsageError("a session id has no part `.` or `..` between slashes: name it otherwise")
