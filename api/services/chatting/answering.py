"""One chat answer while it is written: held back until it rests on something, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from api.services.chatting.cited import Clearing, Ground
from api.services.chatting.looking import Desk
from api.services.chatting.turns import Citation, Said, Turn
from api.services.chatting.unaided import extracts, nothing_found
from api.services.reporting.dossier import Exhibit, gate_line
from api.services.reporting.said import LINK, numbers, said_by
from api.services.schemas import Question
from api.services.text import one_line, web_url

SAMPLE = "sample data: everything here is made up and comes from the offline sandbox"


class Answer:
    """Takes the model's words, tells what stands of them, and makes the turn."""

    def __init__(self, desk: Desk) -> None:
        """Nothing is said yet."""
        self._desk = desk
        self._clearing = Clearing(self._ground)
        self._state = (-1, -1)
        self._last: Ground | None = None
        self._held, self._said = "", ""

    def feed(self, piece: str) -> None:
        """Some more words of the model."""
        self._held += self._clearing.feed(piece)
        self._tell()

    def pause(self) -> None:
        """The model begins something else: what it said so far is complete."""
        self._held += self._clearing.close()
        if (self._said + self._held).strip():
            self._held = self._held.rstrip() + "\n\n"

    def withdraw(self) -> None:
        """Forget words that were held back, since they rest on nothing."""
        self._held = ""
        self._clearing = Clearing(self._ground)

    def finish(self, stopped: str | None, failed: str | None) -> Turn:
        """The turn; `stopped` names the bound that ended it, `failed` why there was no model."""
        if not (stopped or failed):
            self._held += self._clearing.close()
        self._tell()
        notes = [*self._notes(stopped, failed)]
        partial = bool(stopped or failed or self._desk.refused)
        if self._said.strip():
            cited = [self._desk.session.exhibits[label] for label in self._clearing.cited]
            if not cited:
                notes.append("this answer cites no post")
            return self._turn(self._said.strip(), cited, notes, partial)
        text, best = extracts(self._desk)
        if self._desk.empty_handed or not best:
            return self._nothing(notes, partial)
        whole = f"No model wrote this answer; these are the posts' own words.\n\n{text}"
        self._desk.tell(Said(whole))
        return self._turn(whole, best, notes, partial)

    def _tell(self) -> None:
        """Say what is held back, unless it still rests on nothing."""
        if self._held and (self._clearing.cited or not self._desk.empty_handed):
            self._desk.tell(Said(self._held))
            self._said += self._held
            self._held = ""

    def _nothing(self, notes: list[str], partial: bool) -> Turn:
        about = next(reversed(self._desk.queries), self._desk.question)
        text = nothing_found(about, self._desk.lines.values())
        self._desk.tell(Said(text))
        return replace(self._turn(text, (), notes, partial), outcome=self._why())

    def _why(self) -> str:
        asked = [one.outcome.asked for one in self._desk.gathered]
        return "insufficient_data" if any(asked) or not asked else "not_asked"

    def _turn(
        self, text: str, cited: Iterable[Exhibit], notes: Iterable[str], partial: bool
    ) -> Turn:
        citations = tuple(
            Citation(one.label, one.item.key, one_line(one.item.title), web_url(one.item.url))
            for one in cited
        )
        return Turn(self._desk.session.id, text, citations, tuple(dict.fromkeys(notes)), partial)

    def _notes(self, stopped: str | None, failed: str | None) -> Iterator[str]:
        desk = self._desk
        if desk.product.sample:
            yield SAMPLE
        if failed:
            yield f"the chat model could not be used ({failed})"
        if stopped:
            yield f"cut short: {stopped}; this rests on what was found by then"
        if desk.refused:
            most = desk.bounds.tool_calls
            yield f"{desk.refused} look-up(s) refused: one turn may ask {most} sources"
        yield from (gate_line(one) for one in desk.gathered if not one.outcome.asked)
        yield from self._clearing.notes

    def _ground(self) -> Ground:
        """What a sentence may rest on now; made anew when a look-up has added to it."""
        desk, session = self._desk, self._desk.session
        state = (len(session.exhibits), len(desk.told))
        if self._last is None or state != self._state:
            asked = Question(f"{session.said}\n{desk.question}")
            told = " ".join([*desk.told, *(exchange.answer for exchange in session.exchanges)])
            said = said_by(session.exhibits.values(), asked)
            urls = {url for one in session.exhibits.values() for url in _urls(one)}
            urls |= {match[0].rstrip(".,;:!?") for match in LINK.finditer(asked.text)}
            given = said.numbers | set(numbers(told))
            self._state = state
            self._last = Ground(desk.citable, given, said.labels, frozenset(urls))
        return self._last


def _urls(exhibit: Exhibit) -> list[str]:
    item = exhibit.item
    return [url for url in (item.url, *(comment.url for comment in item.comments)) if url]
