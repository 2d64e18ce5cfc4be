"""Reading a prompt: the quoted texts in it, by label, and what stands in the clear."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from api.services.reporting.dossier import BODY, COMMENT, LINE_END, OF_THREAD, Exhibit
from api.services.reporting.sentences import sentences
from api.services.schemas import Assessed, Comment, Item, Verdict

_QUOTE = re.compile(r"<q-(\w+)(?: ([^<>]*))?>([^<]*)</q-\1>")
_SOURCE = re.compile(r"^source: *(\w+)", re.M)
# what is said of an exhibit in the clear: `E4: lemmy, 2026-11-07, 60 score, score 4/5`
_FACTS = re.compile(r"^[^\w\n]*+(E\d+): (\w+)\b(.*)", re.M)
_WANTED = re.compile(r"\bqueries wanted: (\d+)")
# `the 30 best of 33 kept posts`
_KEPT = re.compile(r"\b\d+ best of (\d+) kept posts\b")
_GRAPHEME = 8
"""Characters that a text may be shorter than its limit and yet be cut."""
_PLACE = re.compile(r"^\([^()|]{1,60}\) ")


@dataclass(frozen=True, slots=True)
class Quoted:
    """One quoted text."""

    label: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Title, body and comments apart."""
        return tuple(_bare(piece) for piece in self._pieces)

    @property
    def _pieces(self) -> tuple[str, ...]:
        """The same with the comments in quotation marks."""
        pieces = (part.strip() for part in _PLACE.sub("", self.text).split(" | "))
        return tuple(piece for piece in pieces if piece)

    def as_exhibit(self, source: str, thread: str) -> Exhibit:
        """The exhibit as far as the prompt shows it; a sentence that was cut off is left out."""
        own = [_lined(piece) for piece in self._pieces if _bare(piece) == piece]
        comments = [_lined(_bare(piece)) for piece in self._pieces if _bare(piece) != piece]
        title, body = (*own, "", "")[:2]
        place = _PLACE.match(self.text)
        item = Item(
            key=self.label, id=self.label, source=source, title=title, thread=thread,
            body=_whole(" ".join((body, *own[2:])).strip(), BODY),
            place=place[0].strip("() ") if place else None,
            comments=tuple(
                Comment(id=str(number), body=_whole(text, COMMENT))
                for number, text in enumerate(comments)
            ),
        )  # fmt: skip
        return Exhibit(self.label, Assessed(item, Verdict(True)))


@dataclass(frozen=True)
class QuotedPrompt:
    """All messages of one request, as one text each."""

    messages: tuple[tuple[str, str], ...]
    """Role and text."""

    @classmethod
    def of(cls, messages: Iterable[Any]) -> QuotedPrompt:
        """From the request's `messages`; parts that are not text are left out."""
        mappings = [m for m in messages if isinstance(m, Mapping)]
        return cls(tuple((str(m.get("role")), _text(m.get("content"))) for m in mappings))

    @cached_property
    def quoted(self) -> tuple[Quoted, ...]:
        """Every quoted text, in order."""
        return tuple(
            Quoted((match[2] or "").strip(), _unescaped(match[3]))
            for role, text in self.messages
            if role != "assistant"
            for match in _QUOTE.finditer(text)
        )

    @cached_property
    def plain(self) -> str:
        """Everything in the clear."""
        return "\n".join(_QUOTE.sub("", text) for _, text in self.messages)

    def first(self, label: str) -> str:
        """The first quoted text with that label, or nothing."""
        return next((q.text for q in self.quoted if q.label == label), "")

    def all(self, label: str, *, numbered: bool = False) -> list[str]:
        """Every quoted text with that label, or (`1 passage`) with a number before it."""
        labels = ((q.label.partition(" ")[2] if numbered else q.label, q) for q in self.quoted)
        return [q.text for name, q in labels if name == label]

    @property
    def question(self) -> str:
        """The user's question: quoted, else the last thing a user wrote."""
        texts = [text for role, text in self.messages if role == "user"]
        return self.first("question") or (texts[-1].strip() if texts else "")

    @property
    def about(self) -> str:
        """What the question is about, when the person said so."""
        return self.first("about")

    @property
    def source(self) -> str:
        """The source named in the clear, or nothing."""
        match = _SOURCE.search(self.plain)
        return match[1] if match else ""

    @property
    def wanted(self) -> int:
        """How many queries are asked for."""
        match = _WANTED.search(self.plain)
        return int(match[1]) if match else 3

    @property
    def kept(self) -> int:
        """How many items were kept, where a writer is shown the best of them; else 0."""
        match = _KEPT.search(self.plain)
        return int(match[1]) if match else 0

    @property
    def numbered(self) -> list[Quoted]:
        """Items labelled 1 to n."""
        return [q for q in self.quoted if q.label.isdigit()]

    @property
    def exhibits(self) -> list[Quoted]:
        """Items labelled E1 and so on, each once."""
        labelled = (q for q in self.quoted if re.fullmatch(r"E\d+", q.label))
        return list({q.label: q for q in labelled}.values())

    @property
    def shown(self) -> list[Exhibit]:
        """The exhibits as the product has them."""
        facts = {match[1]: (match[2], match[3]) for match in _FACTS.finditer(self.plain)}
        shown = []
        for exhibit in self.exhibits:
            source, more = facts.get(exhibit.label, ("", ""))
            shown.append(exhibit.as_exhibit(source, "thread" if OF_THREAD in more else ""))
        return shown


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, Mapping))


def _whole(text: str, limit: int) -> str:
    """The text without the sentence that the product's limit cut off, if it did."""
    if len(text) < limit - _GRAPHEME:
        return text
    return " ".join(sentences(text)[:-1])


def _lined(text: str) -> str:
    """The text with its lines apart, where the product shows that one ends."""
    return re.sub(rf"\s*{LINE_END}\s*", "\n", text)


def _bare(piece: str) -> str:
    return piece[1:-1] if len(piece) > 1 and piece[0] == piece[-1] == '"' else piece


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
