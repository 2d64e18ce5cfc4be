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
from uuid import uuid4

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from api import bootstrap
from api.bootstrap import chat
from api.bootstrap.storage import archive_search, feedback_sender, open_store_of
from api.choices import DepthName, Rating
from api.core.text import clean, one_line, web_url
from api.errors import ListenpostError, StoreUnavailable, UsageError
from api.features.analyses.analysis_job import stored_report
from api.features.analyses.api_keys import LOCAL
from api.features.analyses.feedback import Send, author_of
from api.features.analyses.store_ports import Store
from api.features.chat.chat_history import rate_turn
from api.features.chat.chat_sessions import ChatSessions, SessionsInMemory
from api.features.chat.chat_turn import (
    SAMPLE,
    AnswerPiece,
    ChatEvent,
    LookupEnded,
    LookupStarted,
    Turn,
)
from api.interfaces.cli.analyze_commands import greet
from api.interfaces.cli.output import INTERRUPTED, TERMINATED, leave
from api.interfaces.shared.presentation import LONGEST_HEADING, shortened
from api.reports.composition import parts_of
from api.reports.markdown_text import quotation
from api.reports.report import Report
from api.services.product import Product
from api.settings import Settings

_CODES = {"answered": 0, "clarify": 3, "insufficient_data": 3, "not_asked": 4}
PROMPT = "> "
_THUMBS: Mapping[str, Rating] = {"/good": "up", "/bad": "down"}


@dataclass(slots=True)
class _Talk:
    """One conversation, and what must be closed after it."""

    product: Product
    store: Store | None
    chats: ChatSessions
    depth: DepthName
    session: str
    known: bool
    """The session is there already."""
    report: Report | None = None
    """What a session that begins knows."""
    begun: bool = False
    """There is something to go on with."""
    send: Send | None = None
    """Tells Langfuse of a thumb."""
    last: int | None = None
    """The number of the last answer."""

    async def say(self, line: str) -> int:
        """Ask a question, or rate the last answer: `/good`, `/bad [words]`."""
        command, _, words = line.strip().partition(" ")
        if command in _THUMBS:
            return await self.rate(_THUMBS[command], words)
        return await self.turn(line)

    async def rate(self, rating: Rating, comment: str) -> int:
        """Keep a thumb on the last answer, and say whether Langfuse was told."""
        if self.last is None:
            raise UsageError("there is no answer yet that could be rated")
        given = await rate_turn(
            self.chats.store, LOCAL.id, author_of(LOCAL.id), self.session, self.last, rating,
            comment, self.send,
        )  # fmt: skip
        if given.watched == "failed":
            _tell(f"listenpost: warning: it is kept here, but not in Langfuse: {given.why}")
        else:
            _tell("kept, and sent to Langfuse" if given.watched == "sent" else "kept")
        return 0

    async def turn(self, question: str) -> int:
        """Ask, show, and say how it ended, as an exit code."""
        moments = self.chats.stream(
            LOCAL.id,
            question,
            self.session,
            known=self.known,
            depth=self.depth,
            report=self.report,
        )
        async with aclosing(moments):
            with _Screen() as screen:
                async for moment in moments:
                    self.begun = True
                    screen.show(moment)
        assert isinstance(moment, Turn)
        self.last = moment.number or self.last
        return _CODES[moment.outcome]

    async def aclose(self) -> None:
        """Close product and store."""
        await self.product.aclose()
        if self.store is not None:
            await self.store.aclose()


def chat_command(
    question: str | None,
    session: str | None,
    report: str | None,
    depth: DepthName,
    *,
    sandbox: bool,
) -> int:
    """Talk; the code of the last answer, 0 after Ctrl-D.

    Raises:
        NotFound: there is no such session, or no such report.
        StoreUnavailable: one is named and the database cannot be used.
        UsageError: both are named, or the report's analysis is not done.
    """
    if session is not None and report is not None:
        raise UsageError("`--report` begins a session: leave `--session` out")
    settings = bootstrap.load_settings(sandbox=sandbox)
    before = signal.signal(signal.SIGTERM, _terminate)
    with asyncio.Runner() as runner:
        try:
            talk = runner.run(_opened(settings, session, depth, needed=bool(session or report)))
            try:
                if report is not None and talk.store is not None:
                    talk.report = runner.run(stored_report(talk.store, LOCAL.id, report))
                code = _talked(runner, talk, question)
            finally:
                runner.run(talk.aclose())
                if talk.begun:
                    goes_on = f"`listenpost chat --session {talk.session}` goes on"
                    _tell(f"session {talk.session}: {goes_on}")
        except KeyboardInterrupt:
            leave(INTERRUPTED)
        finally:
            signal.signal(signal.SIGTERM, before)
    return code


async def _opened(
    settings: Settings, session: str | None, depth: DepthName, *, needed: bool
) -> _Talk:
    """Everything for a talk; without a database it is not remembered, unless one is `needed`."""
    store: Store | None = None
    async with AsyncExitStack() as closing:  # when the model's client cannot be built
        try:
            store = await open_store_of(settings)
            closing.push_async_callback(store.aclose)
        except StoreUnavailable as error:
            if needed:
                raise
            _tell(f"listenpost: warning: the session is not kept: {error}")
        product = bootstrap.build(settings)
        closing.push_async_callback(product.aclose)
        if product.sample:
            _tell("Sample data: everything below is made up and served by the offline sandbox.")
        greet(product)
        archive = None if store is None else archive_search(settings, product, store)
        chats = ChatSessions(
            chat(settings, product, archive), SessionsInMemory() if store is None else store
        )
        closing.pop_all()
    # chosen here, so that a session is known although its first turn was stopped
    chosen = session or uuid4().hex
    send = feedback_sender(settings)
    return _Talk(product, store, chats, depth, chosen, session is not None, send=send)


def _talked(runner: asyncio.Runner, talk: _Talk, question: str | None) -> int:
    if question is not None:
        return runner.run(talk.turn(question))
    if not sys.stdin.isatty():
        codes = [runner.run(talk.say(line)) for line in sys.stdin if line.strip()]
        return codes[-1] if codes else 0
    for line in _typed():
        try:
            runner.run(talk.say(line))
        except KeyboardInterrupt:
            _tell("stopped; Ctrl-D leaves")
        except ListenpostError as error:
            _tell(f"listenpost: error: {error}")
    return 0


def _typed() -> Iterator[str]:
    """What a person types, until Ctrl-D; Ctrl-C forgets the line."""
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
    """Shows a turn while it runs: as markdown that grows, or as plain text where nobody watches."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live: Live | None = None
        self._text = ""

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave what was said on the screen."""
        if self._live is not None:
            self._live.stop()
        elif self._text and not self._text.endswith("\n"):
            print(flush=True)

    def show(self, moment: ChatEvent) -> None:
        """Show one moment."""
        match moment:
            case AnswerPiece(text):
                self._say(text)
            case LookupStarted(_, tool, arguments):
                query = shortened(str(arguments.get("query", "")), LONGEST_HEADING)
                _tell(f"{tool}: {query} …")
            case LookupEnded(_, _, line):
                _tell(line)
            case Turn():
                self._end(moment)

    def _say(self, text: str) -> None:
        self._text += text
        if not self._console.is_terminal:
            print(text, end="", flush=True)
            return
        if self._live is None:
            self._live = Live(console=self._console, vertical_overflow="visible")
            self._live.start()
        self._live.update(Markdown(self._text, hyperlinks=False))

    def _end(self, turn: Turn) -> None:
        self.__exit__()
        self._live, self._text = None, ""
        if turn.citations:
            print()
        for citation in turn.citations:
            print(f"[{citation.label}] {one_line(clean(citation.title)) or 'untitled'}")
            if citation.passage and citation.passage != citation.title:
                print(f"     “{quotation(one_line(clean(citation.passage)))}”")
            url = None if turn.sample else web_url(citation.url)  # a sample leads nowhere
            if url:
                print(f"     {url}")
            if citation.credit:
                by, profile = parts_of(citation.credit)
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
