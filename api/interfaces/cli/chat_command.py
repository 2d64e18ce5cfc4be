"""`chat`: questions and answers in a terminal, or one question a line from a pipe.

Answers go to stdout, look-ups, notes and the session's id to stderr. Ctrl-C ends a turn, Ctrl-D the
conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from api import bootstrap
from api.bootstrap import chat
from api.bootstrap.storage import archive_search, feedback_sender, open_store_of
from api.choices import DepthName, Rating
from api.core.text import clean, one_line, quantity, utc_minute, web_url
from api.errors import ListenpostError, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import stored_report
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.feedback import Send, author_of
from api.features.analyses.store_ports import Store
from api.features.chat.chat_citations import is_quoted
from api.features.chat.chat_history import list_chats, rate_turn
from api.features.chat.chat_sessions import ChatSessions, SessionsInMemory
from api.features.chat.chat_turn import SAMPLE, AnswerPiece, ChatEvent, LookupEnded, LookupStarted, Turn
from api.interfaces.cli.command_product import greet
from api.interfaces.cli.output import INTERRUPTED, TERMINATED, langfuse_words, leave
from api.interfaces.shared import presentation
from api.reports.composition import parts_of
from api.reports.markdown_text import quotation, unformatted, unformatted_piece
from api.reports.report import Report
from api.services.product import Product
from api.settings import Settings

if TYPE_CHECKING:
    from api.interfaces.shared.requests import ChatRequest

_CODES = {"answered": 0, "clarify": 3, "insufficient_data": 3, "not_asked": 4}
PROMPT = "> "
_THUMBS: Mapping[str, Rating] = {"/good": "up", "/bad": "down"}


@dataclass(slots=True)
class _Conversation:
    product: Product
    store: Store | None
    sessions: ChatSessions
    depth: DepthName
    session_id: str
    known: bool
    """Whether the session was stored before this command."""
    report: Report | None = None
    """Report whose items a new session knows."""
    begun: bool = False
    """Whether there is a conversation to continue."""
    send: Send | None = None
    """Sends ratings to Langfuse."""
    last: int | None = None
    """Number of the last answer."""

    async def take(self, line: str) -> int:
        """Ask a question, or rate the last answer: `/good`, `/bad [words]`."""
        command, _, words = line.strip().partition(" ")
        if command not in _THUMBS:
            return await self.ask(line)
        if self.last is None:
            raise UsageError("there is no answer yet that could be rated")
        given = await rate_turn(
            self.sessions.store, LOCAL.id, author_of(LOCAL.id), self.session_id, self.last,
            _THUMBS[command], words, self.send,
        )  # fmt: skip
        _tell(langfuse_words(given.watched, given.why))
        return 0

    async def ask(self, question: str) -> int:
        """Ask, show, and say how it ended, as an exit code."""
        events = self.sessions.stream(
            LOCAL.id, question, self.session_id,
            known=self.known, depth=self.depth, report=self.report,
        )  # fmt: skip
        async with aclosing(events):
            with _Screen() as screen:
                async for event in events:
                    self.begun = True
                    screen.show(event)
        assert isinstance(event, Turn)
        self.last = event.number or self.last
        return _CODES[event.outcome]

    async def aclose(self) -> None:
        await self.product.aclose()
        if self.store is not None:
            await self.store.aclose()


def chat_command(request: ChatRequest, question: str | None, depth: DepthName) -> int:
    """Hold a conversation; returns the exit code of the last answer, 0 after Ctrl-D.

    Raises:
        NotFound: there is no such session, or no such report.
        StoreUnavailable: one is named and the database cannot be used.
        UsageError: both are named, or the report's analysis is not done.
    """
    if request.session_id is not None and request.report_id is not None:
        raise UsageError("`--report` begins a session: leave `--session` out")
    settings = bootstrap.load_settings(sandbox=request.sandbox)
    before = signal.signal(signal.SIGTERM, _terminate)
    with asyncio.Runner() as runner:
        try:
            conversation = runner.run(_opened(settings, request, depth))
            try:
                if request.report_id is not None and conversation.store is not None:
                    reading = stored_report(conversation.store, LOCAL.id, request.report_id)
                    conversation.report = runner.run(reading)
                code = _converse(runner, conversation, question)
            finally:
                runner.run(conversation.aclose())
                if conversation.begun:
                    name = conversation.session_id
                    _tell(f"session {name}: `listenpost chat --session {name}` continues it")
        except KeyboardInterrupt:
            leave(INTERRUPTED)
        finally:
            signal.signal(signal.SIGTERM, before)
    return code


# Conversations that are listed, the last used first.
_LISTED = 20


def chat_list_command(request: ChatRequest) -> int:
    """Print the last conversations: when, how many questions, the first one, and the id that continues it.

    Raises:
        NotFound: there is no such report.
        StoreUnavailable: the database cannot be used.
    """
    return asyncio.run(_list_chats(bootstrap.load_settings(sandbox=request.sandbox), request.report_id))


async def _list_chats(settings: Settings, report_id: str | None) -> int:
    store = await open_store_of(settings)
    try:
        if report_id is not None:
            report_id = (await stored_report(store, LOCAL.id, report_id)).id
        listing = await list_chats(store, LOCAL.id, _LISTED, report_id=report_id)
    finally:
        await store.aclose()
    for entry in listing.chats:
        title = presentation.shortened(entry.title, presentation.LONGEST_HEADING) or "(its question cannot be read)"
        sample = ", sample data" if entry.sample else ""
        print(f"{utc_minute(entry.updated_at)}  {quantity(entry.turns, 'question')}{sample}: {title}")
        print(f"    listenpost chat --session {one_line(clean(entry.id))}")
    if not listing.chats:
        _tell("no conversations are stored" + (" about this report" if report_id else ""))
    elif listing.cursor:
        _tell(f"the last {_LISTED} of more: `GET /v1/chats` lists all")
    return 0


async def _opened(settings: Settings, request: ChatRequest, depth: DepthName) -> _Conversation:
    """The conversation; without a database it is not stored, unless a session or report is named."""
    store: Store | None = None
    async with AsyncExitStack() as closing:  # when the model's client cannot be built
        try:
            store = await open_store_of(settings)
            closing.push_async_callback(store.aclose)
        except StoreUnavailable as error:
            if request.session_id or request.report_id:
                raise
            _tell(f"listenpost: warning: the session is not kept: {error}")
        product = bootstrap.build(settings)
        closing.push_async_callback(product.aclose)
        if product.sample:
            _tell("Sample data: everything below is made up and served by the offline sandbox.")
        greet(product)
        archive = None if store is None else archive_search(settings, product, store)
        sessions = ChatSessions(chat(settings, product, archive), SessionsInMemory() if store is None else store)
        closing.pop_all()
    # chosen here, so that a session is known although its first turn was stopped
    session_id = request.session_id or uuid4().hex
    return _Conversation(
        product, store, sessions, depth, session_id, request.session_id is not None,
        send=feedback_sender(settings),
    )  # fmt: skip


def _converse(runner: asyncio.Runner, conversation: _Conversation, question: str | None) -> int:
    if question is not None:
        return runner.run(conversation.ask(question))
    if not sys.stdin.isatty():
        codes = [runner.run(conversation.take(line)) for line in sys.stdin if line.strip()]
        return codes[-1] if codes else 0
    for line in _typed():
        try:
            runner.run(conversation.take(line))
        except KeyboardInterrupt:
            _tell("stopped; Ctrl-D leaves")
        except ListenpostError as error:
            _tell(f"listenpost: error: {error}")
    return 0


def _typed() -> Iterator[str]:
    """Lines that a person types, until Ctrl-D; Ctrl-C discards a line."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - gives `input` a history
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            continue
        if line.strip():
            yield line


class _Screen:
    """Shows a turn while it runs: as growing Markdown on a terminal, elsewhere as plain text."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._text = ""
        self._undecided = ""  # the end of the text so far, not printed before the next piece

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._text and not self._text.endswith("\n"):
            print(unformatted(self._undecided), flush=True)

    def show(self, event: ChatEvent) -> None:
        match event:
            case AnswerPiece(text):
                self._say(text)
            case LookupStarted(_, tool, arguments):
                query = presentation.shortened(str(arguments.get("query", "")), presentation.LONGEST_HEADING)
                _tell(f"{tool}: {query} …")
            case LookupEnded(_, _, line):
                _tell(line)
            case Turn():
                self._end(event)

    def _say(self, text: str) -> None:
        self._text += text
        if not self._console.is_terminal:
            words, self._undecided = unformatted_piece(self._undecided + text)
            print(words, end="", flush=True)
            return
        if self._live is None:
            self._live = Live(console=self._console, vertical_overflow="visible")
            self._live.start()
        self._live.update(Markdown(self._text, hyperlinks=False))

    def _end(self, turn: Turn) -> None:
        self.__exit__()
        self._live, self._text, self._undecided = None, "", ""
        if turn.citations:
            print()
        for citation in turn.citations:
            facts = presentation.cited_facts(citation)
            title = one_line(clean(citation.title)) or "untitled"
            print(f"[{citation.label}] {title}{f' - {one_line(clean(facts))}' if facts else ''}")
            # what stands in the answer is not repeated below it
            for words in (each.text for each in citation.passages):
                if words != citation.title and not is_quoted(words, turn.text):
                    print(f"     “{quotation(one_line(clean(words)))}”")
            url = None if turn.sample else web_url(citation.url)  # a sample leads nowhere
            if url:
                print(f"     {url}")
            for by, profile in map(parts_of, presentation.credits_of(citation)):
                print(f"     by {one_line(clean(by))}")
                if profile and not turn.sample:
                    print(f"     {profile}")
        if turn.sample:
            print(f"({SAMPLE})")
        print(flush=True)
        for note in turn.notes:
            if note != SAMPLE:
                _tell(f"! {note}")


def _tell(line: str) -> None:
    print(one_line(clean(line)), file=sys.stderr, flush=True)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SystemExit(TERMINATED)
