"""One chat answer while it is written: held back until it rests on something, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from api.services.chatting.keyless import FOREIGN, not_searched, nothing_found, themes_of
from api.services.chatting.lookups import ChatDesk
from api.services.chatting.passages import cited
from api.services.chatting.turns import AnswerPiece, Turn
from api.services.question.query import is_foreign
from api.services.reasons import reason_in_words
from api.services.reporting.clearing import Clearing
from api.services.reporting.dossier import Exhibit, gate_lines
from api.services.reporting.grounds import Ground, ground_of

ANEW = (
    "what was kept of this conversation cannot be read: it begins anew and knows nothing of before"
)
RECALLED = "this rests on what earlier reports kept; no place was asked anew"
SAMPLE = "sample data: everything here is made up and comes from the offline sandbox"


class AnswerDraft:
    """Takes the model's words, passes on what stands of them, and makes the turn."""

    def __init__(self, desk: ChatDesk) -> None:
        """Nothing is written yet."""
        self._desk = desk
        self._clearing = Clearing(self._ground, markdown=True)
        self._grounds: dict[tuple[int, frozenset[str]], Ground] = {}
        self._held, self._text = "", ""

    @property
    def text(self) -> str:
        """What was passed on so far."""
        return self._text.strip()

    @property
    def cited(self) -> tuple[str, ...]:
        """Labels in it, in the order of first mention."""
        return self._clearing.cited

    def feed(self, piece: str) -> None:
        """Some more words of the model."""
        self._held += self._clearing.feed(piece)
        self._pass_on()

    def pause(self) -> None:
        """The model begins something else: what it wrote so far is complete."""
        self._held += self._clearing.close()
        if (self._text + self._held).strip():
            self._held = self._held.rstrip() + "\n\n"

    def withdraw(self) -> None:
        """Forget words that were held back, since they rest on nothing."""
        self._held = ""
        self._clearing = Clearing(self._ground, markdown=True)

    def finish(self, stopped: str | None, failed: str | None) -> Turn:
        """The turn; `stopped` names the bound that ended it, `failed` why there was no model."""
        if not (stopped or failed):
            self._held += self._clearing.close()
        self._pass_on()
        notes = [*self._notes(stopped, failed)]
        partial = bool(stopped or failed or self._desk.refused)
        if self.text:
            exhibits = [self._desk.session.exhibits[label] for label in self.cited]
            if not exhibits:
                notes.append("this answer cites no post")
            return self._turn(self.text, exhibits, notes, partial)
        text, best = themes_of(self._desk)
        if best and not self._desk.empty_handed:
            whole = f"No model wrote this answer; these are the posts' own words.\n\n{text}"
            self._desk.emit(AnswerPiece(whole))
            return self._turn(whole, best, notes, partial)
        about = next(reversed(self._desk.queries), self._desk.question)
        answers = [gathered.outcome.answered for gathered in self._desk.gathered]
        outcome = "insufficient_data" if any(answers) or not answers else "not_asked"
        why = not_searched if outcome == "not_asked" else nothing_found
        text = why(about, self._desk.lines.values())
        self._desk.emit(AnswerPiece(text))
        return replace(self._turn(text, (), notes, partial), outcome=outcome)

    def _pass_on(self) -> None:
        """Pass on what is held back, unless it still rests on nothing."""
        if self._held and (self._clearing.cited or not self._desk.empty_handed):
            self._desk.emit(AnswerPiece(self._held))
            self._text += self._held
            self._held = ""

    def _turn(
        self, text: str, exhibits: Iterable[Exhibit], notes: Iterable[str], partial: bool
    ) -> Turn:
        session = self._desk.session
        citations = cited(text, exhibits, session.subjects)
        labels = [citation.label for citation in citations]
        sample = self._desk.product.sample or session.is_sample(labels)
        notes = tuple(dict.fromkeys((*((SAMPLE,) if sample else ()), *notes)))
        return Turn(session.id, text, citations, notes, partial, sample=sample)

    def _notes(self, stopped: str | None, failed: str | None) -> Iterator[str]:
        desk = self._desk
        if desk.session.anew:
            desk.session.anew = False
            yield ANEW
        if failed and is_foreign(desk.question):
            yield FOREIGN
        if failed:
            yield f"the chat model could not be used ({reason_in_words(failed)})"
        if stopped:
            yield f"cut short: {stopped}; this rests on what was found by then"
        if desk.recalled and not desk.gathered:
            yield RECALLED
        if desk.refused:
            most = desk.most
            yield f"{desk.refused} look-up(s) refused: one turn may ask {most} sources"
        yield from gate_lines(
            gathered for gathered in desk.gathered if not gathered.outcome.answered
        )
        if len(desk.subjects) > 1:
            unknown = (subject for subject in desk.subjects if not desk.knows(subject))
            yield from (f"no relevant post was found on “{subject}”" for subject in unknown)
        yield from self._clearing.flaws.notes

    def _ground(self, sentence: str) -> Ground:
        """What a sentence may rest on now; kept until a look-up adds to it."""
        desk, session = self._desk, self._desk.session
        citable = desk.citable_in(sentence)
        state = (len(desk.replies), frozenset(citable))
        if state not in self._grounds:
            given = [*desk.replies, *(exchange.answer for exchange in session.exchanges)]
            questions = (session.questions_text, desk.question)
            elsewhere = session.exhibits.keys() - citable.keys()
            self._grounds[state] = ground_of(citable, questions, given, elsewhere=elsewhere)
        return self._grounds[state]
