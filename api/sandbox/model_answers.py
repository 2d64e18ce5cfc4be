"""Answers of the sandbox's model, which knows only the prompt, parsed here.

A kind of request is recognised by its schema, or without one by the field that the instructions
name. Reports are the product's keyless reports, and support checks the keyless check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import regex

from api.core.domain import Question, Verdict
from api.core.items import Assessed, Comment, Item
from api.core.ports import Claim
from api.core.text import cut
from api.core.words import index_tokens
from api.pipeline.question.product_name import ASKING_WORDS, product_in, without_web_ending
from api.reports.exhibits import BODY, COMMENT, LINE_END, OF_THREAD, Exhibit
from api.reports.insufficient_data import Shortfall, plain_explanation
from api.reports.keyless.aspects import aspects, aspects_in
from api.reports.keyless.polarity import lean_of
from api.reports.keyless.product_mentions import Subject
from api.reports.keyless.themes import MOST_THEMES, find_themes
from api.reports.local_support import carries
from api.reports.quotes import sentences
from api.reports.report import LONGEST_PASSAGE
from api.sandbox.world import Probabilities

# text in brackets of any script, and hashtags: `(like Plaud)`, `[Plaud]`, `#plaud`
_ASIDE = regex.compile(r"[(\[（][^)\]）]{0,500}[)\]）]|#\w+")
# the end of a sentence: the blank in `Great. But`, or a new line
_SENTENCE = regex.compile(r"(?<=[.!?。！？])\s+|\n+")
_COMMA = regex.compile(r"[,、，/|&+]")
# Entries that make a list, and words beside the name in an entry that says little of it.
_ENTRIES, _LITTLE = 4, 3
_ENDINGS = frozenset("ai com io app co new net org".split())


def in_passing(name: str, parts: Sequence[str]) -> bool:
    """Whether `parts` (title, rest) name it only in brackets, tags and lists, or once and late."""
    words = regex.split(r"[\s.\-]+", name)
    if len(words) > 1 and words[-1].casefold() in _ENDINGS:
        words = words[:-1]
    # in any spelling, without a web ending: `Plaud Note`, `plaud-note`, `PlaudNote`
    joined = "[ .-]?".join(map(regex.escape, words))
    mention = regex.compile(rf"(?<!\w){joined}(?!\w)", regex.I)
    title, body = parts[0] if parts else "", " ".join(parts[1:])
    if not mention.search(f"{title} {body}"):
        return False
    sentences = [part for part in _SENTENCE.split(body) if part.strip()]
    plain = [_ASIDE.sub(" ", part) for part in (title, *sentences)]
    holding = [
        number for number, part in enumerate(plain) if mention.search(_without_list(part, mention, 0 if number else 1))
    ]
    return not holding or (len(holding) == 1 and holding[0] > 1)


def _without_list(sentence: str, mention: regex.Pattern[str], start: int) -> str:
    """The sentence without those entries of a list that hold the name and little else.

    A title may begin with the name, so there the first entry stays (`start` is 1).
    """
    entries = _COMMA.split(sentence)
    if len(entries) < _ENTRIES:
        return sentence
    kept = [
        entry for entry in entries[start:] if not mention.search(entry) or len(mention.sub("", entry).split()) > _LITTLE
    ]
    return ", ".join(entries[:start] + kept)


_QUOTE = re.compile(r"<q-(\w+)(?: ([^<>]*))?>([^<]*)</q-\1>")
_SOURCE = re.compile(r"^source: *(\w+)", re.M)
# facts of an exhibit outside of quotes: `E4: lemmy, 2026-11-07, 60 score, score 4/5`
_FACTS = re.compile(r"^[^\w\n]*+(E\d+): (\w+)\b(.*)", re.M)
_WANTED = re.compile(r"\bqueries wanted: (\d+)")
# a text is never cut within a grapheme, so a cut one may be this many characters below its limit
_GRAPHEME = 8
_PLACE = re.compile(r"^\([^()|]{1,60}\) ")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quoted text with its label."""

    label: str
    text: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Title, body and comments of an item in a prompt, in that order."""
        return tuple(_bare(piece) for piece in self._pieces)

    @property
    def _pieces(self) -> tuple[str, ...]:
        pieces = (part.strip() for part in _PLACE.sub("", self.text).split(" | "))
        return tuple(piece for piece in pieces if piece)

    def as_exhibit(self, source: str, thread: str) -> Exhibit:
        """The exhibit as far as the prompt shows it, without sentences that were cut off."""
        # the product marks the ends of lines in a text, which is on one line in the prompt
        pieces = [re.sub(rf"\s*{LINE_END}\s*", "\n", piece) for piece in self._pieces]
        own = [piece for piece in pieces if _bare(piece) == piece]
        comments = [_bare(piece) for piece in pieces if _bare(piece) != piece]
        title, *body = own or [""]
        place = _PLACE.match(self.text)
        item = Item(
            key=self.label, id=self.label, source=source, title=title, thread=thread,
            body=_whole(" ".join(body).strip(), BODY),
            place=place[0].strip("() ") if place else None,
            comments=tuple(
                Comment(id=str(number), body=_whole(text, COMMENT))
                for number, text in enumerate(comments)
            ),
        )  # fmt: skip
        return Exhibit(self.label, Assessed(item, Verdict(True)))


@dataclass(frozen=True)
class QuotedPrompt:
    """The messages of one request, parsed."""

    messages: tuple[tuple[str, str], ...]  # role and text

    @classmethod
    def of(cls, messages: Iterable[Any]) -> QuotedPrompt:
        """Parse the request's `messages`; parts that are not text are left out."""
        mappings = [m for m in messages if isinstance(m, Mapping)]
        return cls(tuple((str(m.get("role")), _text(m.get("content"))) for m in mappings))

    @cached_property
    def quoted(self) -> tuple[Quoted, ...]:
        """Every quoted text, in order."""
        return tuple(
            Quoted(
                (match[2] or "").strip(),
                match[3].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"),
            )
            for role, text in self.messages
            if role != "assistant"
            for match in _QUOTE.finditer(text)
        )

    @cached_property
    def plain(self) -> str:
        """The text outside of quotes."""
        return "\n".join(_QUOTE.sub("", text) for _, text in self.messages)

    def first(self, label: str) -> str:
        """The first quoted text with that label, else nothing."""
        return next((q.text for q in self.quoted if q.label == label), "")

    def all(self, label: str, *, numbered: bool = False) -> list[str]:
        """Every quoted text with that label, `numbered`: with a number before it (`1 passage`)."""
        labels = ((q.label.partition(" ")[2] if numbered else q.label, q) for q in self.quoted)
        return [q.text for name, q in labels if name == label]

    @property
    def question(self) -> str:
        """The quoted question, else the last message of a user."""
        texts = [text for role, text in self.messages if role == "user"]
        return self.first("question") or (texts[-1].strip() if texts else "")

    @property
    def about(self) -> str:
        """The quoted text of what the question is about."""
        return self.first("about")

    @property
    def source(self) -> str:
        """The name of the source, else nothing."""
        return self._stated(_SOURCE, "")

    @property
    def wanted(self) -> int:
        """Number of queries that the prompt asks for."""
        return int(self._stated(_WANTED, "3"))

    def _stated(self, pattern: re.Pattern[str], default: str) -> str:
        match = pattern.search(self.plain)
        return match[1] if match else default

    @property
    def numbered(self) -> list[Quoted]:
        """Items labelled 1 to n, title and text together."""
        return self._together(r"\d+", comments=False)

    @property
    def exhibits(self) -> list[Quoted]:
        """Items labelled E1, E2 and so on, each once: title, text and comments together."""
        return self._together(r"E\d+", comments=True)

    def _together(self, name: str, *, comments: bool) -> list[Quoted]:
        """The texts of each item: `E1 title`, `E1`, `E1 comment`."""
        parts: dict[str, dict[str, None]] = {}
        for quoted in self.quoted:
            label, _, kind = quoted.label.partition(" ")
            if not re.fullmatch(name, label) or kind not in {"", "title", "comment"}:
                continue
            if kind != "comment":
                parts.setdefault(label, {})[quoted.text] = None
            elif comments:
                parts.setdefault(label, {})[f'"{quoted.text}"'] = None
        return [Quoted(label, " | ".join(texts)) for label, texts in parts.items()]

    @property
    def shown(self) -> list[Exhibit]:
        """The exhibits as values of the product."""
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


def _bare(piece: str) -> str:
    return piece[1:-1] if len(piece) > 1 and piece[0] == piece[-1] == '"' else piece


KINDS: Mapping[str, str] = {
    "relevant": "judge", "supported": "support", "answered": "answers", "grades": "grades", "queries": "rewrite",
    "explanation_text": "explain", "senses": "senses", "findings": "agent",
}  # fmt: skip
"""Field of the answer -> name of the endpoint."""
_THRESHOLD = 0.5
_ANSWERED = 0.5  # share of a question's words in a passage that answers it
# Probabilities for the scores 3, 4 and 5, higher than the gate's, which sees less of the text.
_PARTLY, _SURE, _VERY_SURE = 0.55, 0.58, 0.7
_MENTIONED = 0.3  # highest probability of a text that names it only in passing
_SHORT = "starting point"  # in the instructions of a short report
# Findings of a short report, quotes of any, aspects of a grade, and words of its quote at least.
_FEW, _QUOTES, _ASPECTS, _FEWEST_WORDS = 2, 4, 5, 4


# words of the package's prompts by which a kind is recognised where no schema is sent
_ASKED_FOR = {
    "object of these five fields": "grades", "with true or false as its value": "supported",
    "JSON object {number: true/false}": "relevant",
    "object {number of the group: text}": "senses", "one name, queries": "queries",
    "two names: explanation_text": "explanation_text",
}  # fmt: skip


def kind_of(schema: Mapping[str, Any] | None, prompt: QuotedPrompt) -> str | None:
    """The field of `KINDS` that is asked for; None for a chat.

    Verdicts and grades stand under numbers: which of them is meant shows the schema's entry, and
    whether sentences are quoted.
    """
    field = next((kind for words, kind in _ASKED_FOR.items() if words in prompt.plain), None)
    if schema is not None:
        fields = schema.get("properties", {})
        field = next((field for field in KINDS if field in fields), None)
        if fields and all(name.isdecimal() for name in fields):
            kind = next(iter(fields.values())).get("type")
            field = {"boolean": "relevant", "string": "senses"}.get(kind, "grades")
    if field in {"relevant", "supported"} and prompt.all("passage", numbered=True):
        return "supported" if prompt.all("sentence", numbered=True) else "answered"
    return field


def answer(field: str, prompt: QuotedPrompt, judge: Probabilities) -> dict[str, Any]:
    """The JSON object for a kind of request."""
    if field == "relevant":
        return _by_number(p >= _THRESHOLD for p in _judged(prompt, prompt.numbered, judge))
    if field == "supported":
        parts = zip(
            *(prompt.all(name, numbered=True) for name in ("sentence", "passage", "context")),
            strict=False,
        )
        question = Question(prompt.question, prompt.about)
        return _by_number(carries(Claim(*part), question) for part in parts)
    if field == "answered":
        wanted = set(index_tokens(prompt.question))
        held = (wanted.intersection(index_tokens(text)) for text in prompt.all("passage", numbered=True))
        return _by_number(len(words) >= _ANSWERED * len(wanted) for words in held)
    if field == "grades":
        chances = _judged(prompt, prompt.numbered, judge)
        graded = zip(prompt.numbered, chances, strict=True)
        return _by_number(_grade(prompt, item, chance) for item, chance in graded)
    if field == "queries":
        return {"queries": _queries(prompt)[: prompt.wanted]}
    if field == "senses":
        return _by_number(f"about {words.partition(',')[0]}" for words in prompt.all("words", numbered=True))
    if field == "explanation_text":
        return _explanation(prompt)
    return report(prompt)


def _by_number(values: Iterable[Any]) -> dict[str, Any]:
    return {str(number): value for number, value in enumerate(values, 1)}


def report(prompt: QuotedPrompt) -> dict[str, Any]:
    """The themes of the exhibits in the prompt, as the JSON of a draft."""
    question = Question(prompt.question, prompt.about)
    most = _FEW if _SHORT in prompt.plain else MOST_THEMES
    themed = find_themes(question, prompt.shown, most=most)
    first = {finding.passages[0].text: finding.passages[0].label for finding in themed.findings}
    return {
        "topic": themed.topic, "summary": themed.bare_summary,
        "findings": [
            {
                "text": finding.bare, "kind": finding.kind,
                "evidence": [{"cite": p.label, "passage": p.text} for p in finding.passages],
            }
            for finding in themed.findings
        ],
        "quotes": [{"text": text, "cite": label} for text, label in first.items()][:_QUOTES],
        "suggestions": list(themed.suggestions),
    }  # fmt: skip


def _judged(prompt: QuotedPrompt, items: Sequence[Quoted], judge: Probabilities) -> list[float]:
    texts, name = [item.text for item in items], product_in(prompt.question)
    about = "; not ".join((prompt.about, *prompt.all("not about")))
    chances = judge(prompt.question, about, texts, prompt.source) if texts else []
    return [
        min(chance, _MENTIONED) if name and in_passing(name, item.parts) else chance
        for item, chance in zip(items, chances, strict=True)
    ]


def _grade(prompt: QuotedPrompt, item: Quoted, chance: float) -> dict[str, Any]:
    texts = [*item.parts, *prompt.all(f"{item.label} comment")]
    whole = " ".join(texts)
    subject = Subject.of(Question(prompt.question, prompt.about), [whole])
    held = [(aspect, match[0]) for aspect in aspects() if (match := aspect.pattern.search(whole))]
    parts = (part for text in texts for part in sentences(text) if len(part) <= LONGEST_PASSAGE)
    leans = {lean for part in parts if (lean := lean_of(part, subject=subject))}
    if chance < _PARTLY:
        score = 1 if chance < _PARTLY / 2 else 2
    else:
        detailed = len(held) > 1 or bool(leans)
        score = 3 + bool(held and chance >= _SURE) + bool(detailed and chance >= _VERY_SURE)
    return {
        "score": score,
        "explanation": _why(subject, texts, [f"{a.name} (“{words}”)" for a, words in held], chance),
        "sentiment": sum(leans) if leans else None,
        "aspects": [aspect.name for aspect, _ in held][:_ASPECTS],
        "quote": _best_quote(texts, subject),
    }


def _why(subject: Subject, texts: Sequence[str], topics: Sequence[str], chance: float) -> str:
    """An explanation: where the name is, what is talked about, and the judge's probability."""
    title, *rest = texts or [""]
    match = subject.pattern.search(title) or subject.pattern.search(" ".join(rest))
    place = "in the title" if subject.is_named(title) else "below the title"
    named = f"names “{match[0]}” {place}" if match else "does not write the name"
    if subject.name and in_passing(subject.name, texts):
        named += ", only in passing"
    speaks = f" and speaks of {', '.join(topics[:3])}" if topics else ""
    return f"{named[0].upper()}{named[1:]}{speaks}; {chance:.0%} likely to be about it."


def _best_quote(texts: Sequence[str], subject: Subject) -> str:
    """The sentence that says most: with a lean, known aspects and the product's name."""
    candidates = [
        sentence
        for text in texts
        for sentence in sentences(text)
        if len(sentence) <= LONGEST_PASSAGE and len(sentence.split()) >= _FEWEST_WORDS
    ]

    def weight(sentence: str) -> float:
        sure = lean_of(sentence, subject=subject) is not None
        named = subject.is_named(sentence)
        return 2.0 * sure + min(2, len(aspects_in(sentence))) + 0.5 * named

    best = max(candidates, key=weight, default="")
    return best if best and weight(best) >= 1 else ""


def _queries(prompt: QuotedPrompt) -> list[str]:
    name = product_in(prompt.question) or prompt.question
    core = without_web_ending(name)
    held = {word.casefold() for word in re.findall(r"\w+", name)} | ASKING_WORDS
    beside = [w for w in re.findall(r"[^\W\d_][\w-]{3,}", prompt.about) if w.casefold() not in held]
    queries = [
        f"{core} {' '.join(beside[-2:])}" if beside else "", f"{core} review", core,
        "".join(name.replace(".", "").split()), f"{core} problems", f"{core} alternatives",
    ]  # fmt: skip
    original = prompt.question.casefold()
    return [query for query in dict.fromkeys(queries) if query and query.casefold() != original]


def _explanation(prompt: QuotedPrompt) -> dict[str, Any]:
    dropped = (text.partition(" | reason: ") for text in prompt.all("dropped"))
    shortfall = Shortfall(
        Question(prompt.question, prompt.about),
        (prompt.question, *(query for query in prompt.all("query") if query != prompt.question)),
        tuple(prompt.all("source")),
        tuple((cut(title, LONGEST_PASSAGE), reason) for title, _, reason in dropped),
        kept=sum(int(count) for count in prompt.all("kept") if count.isdecimal()),
        own=bool(prompt.all("own")),
        by_name=bool(prompt.all("by_name")),
    )
    plain = plain_explanation(shortfall)
    return {"explanation_text": plain.text, "suggestions": list(plain.suggestions)}
