"""How good a search over the archive is on questions whose answers are known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import fmean, median
from time import perf_counter
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from api.errors import UsageError
from api.lab.metrics import Measures, discounted, intervals, rounded

DEPTH = 8
"""Citations that are looked at: what the archive gives unless told otherwise."""
_SHAPE = (
    '{"id": "...", "kind": "...", "part": "dev", "question": "...", '
    '"relevant": [{"key": "...", "comment": null, "grade": 2}]}'
)
Reference = tuple[str, str | None]
"""An item's key, and the id of the comment of it; None for the item itself."""
Search = Callable[[str], Awaitable[Sequence[Reference]]]
"""What a question cites, best first; nothing is a full answer too."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question to the archive, and what answers it."""

    id: str
    kind: str
    part: str
    """`dev`, on which floors are fitted, or `test`."""
    text: str
    relevant: Mapping[Reference, int]
    """2: answers; 1: touches it. Empty: nothing is to be cited."""


@dataclass(frozen=True)
class Retrieved:
    """What one search cites for one question; figures are computed once, for resampling."""

    question: LabelledQuestion
    references: tuple[Reference, ...]
    seconds: float

    @cached_property
    def right(self) -> int:
        """How many citations touch the question at least; two pieces of one entry are two."""
        return sum(reference in self.question.relevant for reference in self.references)

    @cached_property
    def recall(self) -> float:
        """Of the entries that answer best, how many are cited, as a share of what could be."""
        best = max(self.question.relevant.values())
        wanted = {name for name, grade in self.question.relevant.items() if grade == best}
        return len(wanted.intersection(self.references)) / min(DEPTH, len(wanted))

    @cached_property
    def ndcg(self) -> float:
        """Discounted gain over the best there could be: 3 for an answer, 1 for a touch, once."""
        left = dict(self.question.relevant)
        gains = [2.0 ** left.pop(reference, 0) - 1 for reference in self.references]
        best = sorted((2.0**grade - 1 for grade in self.question.relevant.values()), reverse=True)
        return discounted(gains, DEPTH) / discounted(best, DEPTH)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """What one search is worth; `as_json` is what is printed."""

    search: str
    overall: Mapping[str, Any]
    """Measures of `retrieval_measures`, with `intervals`."""
    answerable: Mapping[str, Any]
    """The same over the questions that have an answer."""
    parts: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Mapping[str, Any]]
    ms: float
    """Milliseconds of a search, the median."""
    questions: Mapping[str, Sequence[Reference]]
    """What was cited, by id."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


class _Relevant(BaseModel):
    key: Annotated[str, Field(min_length=1)]
    comment: str | None = None
    grade: Annotated[int, Field(ge=1, le=2)] = 2


class _QuestionLine(BaseModel):
    id: Annotated[str, Field(min_length=1)]
    kind: Annotated[str, Field(min_length=1)]
    part: Literal["dev", "test"]
    question: Annotated[str, Field(min_length=1)]
    relevant: list[_Relevant]


def read_questions(lines: Iterable[str], name: str) -> list[LabelledQuestion]:
    """Labelled questions out of JSON lines; blank lines are skipped.

    Raises:
        UsageError: a line is malformed (file, line number, field, shape), or there is none.
    """
    questions = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _QuestionLine.model_validate_json(line)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            raise UsageError(
                f"`{name}` line {number}: `{field}`: {first['msg']}; write {_SHAPE}"
            ) from None
        relevant = {(entry.key, entry.comment): entry.grade for entry in row.relevant}
        questions.append(LabelledQuestion(row.id, row.kind, row.part, row.question, relevant))
    if not questions:
        raise UsageError(f"`{name}` holds no labelled question; write {_SHAPE}")
    return questions


async def retrieve(search: Search, questions: Sequence[LabelledQuestion]) -> list[Retrieved]:
    """Ask everything, one after another."""
    answers = []
    for question in questions:
        began = perf_counter()
        references = tuple(await search(question.text))[:DEPTH]
        answers.append(Retrieved(question, references, perf_counter() - began))
    return answers


def retrieval_measures(answers: Sequence[Retrieved]) -> Measures:
    """Recall and nDCG over questions with an answer, `quiet` over those without, by the mean.

    `precision` is of all citations together, those of questions without an answer among them: each
    of these is wrong. `quiet` is the share of questions without an answer that cite nothing.
    """
    answerable = [answer for answer in answers if answer.question.relevant]
    others = [answer for answer in answers if not answer.question.relevant]
    cited = sum(len(answer.references) for answer in answers)
    return {
        "n": len(answers),
        "recall": fmean(answer.recall for answer in answerable) if answerable else None,
        "precision": sum(answer.right for answer in answers) / cited if cited else None,
        "ndcg": fmean(answer.ndcg for answer in answerable) if answerable else None,
        "quiet": fmean(not answer.references for answer in others) if others else None,
    }


def score_retrieval(search: str, answers: Sequence[Retrieved]) -> RetrievalResult:
    """Figures over all, by part and by kind; intervals by question."""

    def figures(some: Sequence[Retrieved]) -> dict[str, Any]:
        spread = intervals(some, retrieval_measures)
        return {
            **{name: rounded(value) for name, value in retrieval_measures(some).items()},
            "intervals": {name: [rounded(end) for end in ends] for name, ends in spread.items()},
        }

    def sliced(name: str) -> dict[str, dict[str, Any]]:
        values = dict.fromkeys(getattr(answer.question, name) for answer in answers)
        return {
            value: figures(
                [answer for answer in answers if getattr(answer.question, name) == value]
            )
            for value in values
        }

    return RetrievalResult(
        search,
        figures(answers),
        figures([answer for answer in answers if answer.question.relevant]),
        sliced("part"),
        sliced("kind"),
        round(median(answer.seconds for answer in answers) * 1000, 2),
        {answer.question.id: answer.references for answer in answers},
    )
