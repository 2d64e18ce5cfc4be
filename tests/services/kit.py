"""A whole product of fakes: what `analyze`, `fetch` and the report writer are tested with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from api.choices import DepthName
from api.core.display_names import SourceLabel
from api.core.domain import Grade, Question, Usage, Verdict
from api.core.items import Assessed, Comment, Item
from api.core.ports import Grader, Grades, Judge, Judgement, SilentObserver, Source
from api.core.published import Published
from api.errors import SourceError
from api.pipeline.evidence.collection import Assessor, Evidence, Steps, collect
from api.pipeline.evidence.crawl import Run
from api.pipeline.evidence.ranking import Ranked
from api.pipeline.gate.verdicts import Gate
from api.pipeline.question import Scope
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.exhibits import Dossier
from api.reports.insufficient_data import Explainer, Explanation, Shortfall
from api.reports.report import Finding
from api.reports.report_writing import NoModel, Writer, WrittenDraft
from api.services.product import Product
from api.settings import AdaptiveSettings, DeepDepth, QuickDepth, RankingSettings, RetrievalSettings, StandardDepth
from tests.services.fakes import FakeRewriter, FakeSource, item

MUG = Question("ember mug")
PLACES = {
    name: SourceLabel(name, title, f"What is said on {title}.")
    for name, title in (("reddit", "Reddit"), ("youtube", "YouTube"), ("amazon", "Amazon"))
}
Answer = Callable[[list[ModelMessage]], ModelResponse]


def plain(answer: Published) -> dict[str, Any]:
    """An answer as the JSON that a caller gets."""
    return answer.model_dump(mode="json")


def post(number: int, source: str = "reddit", **fields: Any) -> Item:
    """A post about the mug, unlike every other."""
    words = f"opinion {'abcdefghijklmnopqrstuvwxyz'[number % 26] * 9} on the mug"
    address = f"https://www.example.org/{source}/{'x' * (number + 1)}"
    return item(number, source, **{"title": words, "url": address, **fields})


def posts(count: int, source: str = "reddit", start: int = 0) -> list[Item]:
    """Different posts."""
    return [post(number, source) for number in range(start, start + count)]


def said(body: str, name: str = "c1", votes: int | None = None, **fields: Any) -> Comment:
    """A comment."""
    return Comment(id=name, body=body, engagement={"votes": votes}, **fields)


def assessed(one: Item, **fields: Any) -> Assessed:
    """An item that passed the gate."""
    return Assessed(one, Verdict(True, "fake-1"), **fields)


class Everything:
    """A judge that lets all pass."""

    name = "all-1"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        return Judgement(tuple(Verdict(True, self.name) for _ in items), self.name, Usage(10, 1))


@dataclass
class Grading:
    """Grades by id, 4 where nothing is said."""

    grades: dict[str, Grade] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        self.asked += [one.id for one in items]
        usual = Grade(4, "says what it is like", sentiment=1, aspects=("heat",))
        return Grades(tuple(self.grades.get(one.id, usual) for one in items), Usage(100, 10, 0.01))


class StumblingAssessor(Assessor):
    """A defect between search and ranking."""

    async def assess(self, *args: Any, **named: Any) -> Ranked:
        raise KeyError("secret")


@dataclass
class Author:
    """A writer with one finding about the first exhibit, or an error."""

    fails: Exception | None = None
    draft: DraftText | None = None
    calls: int = 0

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> WrittenDraft:
        self.calls += 1
        if self.fails is not None:
            raise self.fails
        return WrittenDraft(self.draft or self._draft(evidence), Usage(1000, 100, 0.5))

    def _draft(self, evidence: Evidence) -> DraftText:
        finding = Finding("It stays warm.", "praise", (evidence.kept[0].item.key,))
        return DraftText("The mug", "People like it.", (finding,), (), ("Is it heavy?",), DraftFlaws())


@dataclass
class Teller:
    """An explainer, or an error."""

    fails: Exception | None = None
    told: list[Shortfall] = field(default_factory=list)

    async def explain(self, shortfall: Shortfall) -> Explanation:
        self.told.append(shortfall)
        if self.fails is not None:
            raise self.fails
        return Explanation("Nothing was said about it.", ("Another name?",), Usage(7, 3, 0.25))


def kit(
    *sources: FakeSource | tuple[str, SourceError],
    judge: Judge | None = None,
    grader: Grader | None = None,
    writer: Writer | None = None,
    explainer: Explainer | None = None,
    sample: bool = False,
    **steps: Any,
) -> Product:
    """Everything a run needs; sources that cannot be built are a name and an error."""
    named: dict[str, Source | SourceError] = dict(one if isinstance(one, tuple) else (one.name, one) for one in sources)
    return Product(
        named, Gate(judge or Everything()), grader,
        Steps(
            steps.get("rewriter", FakeRewriter()),
            Assessor(
                steps.get("ranking", RankingSettings()),
                steps.get("retrieval", RetrievalSettings()),
            ),
        ),
        writer or Author(), explainer or Teller(), SilentObserver(),
        {"quick": QuickDepth(), "standard": StandardDepth(), "deep": DeepDepth()},
        AdaptiveSettings(), 30, sample, places=PLACES,
    )  # fmt: skip


async def evidence_of(
    product: Product, question: Question = MUG, depth: DepthName = "standard"
) -> tuple[Run, Evidence]:
    """A run and what it found."""
    chosen = product.depths[depth]
    scope = Scope(question, depth, chosen, tuple(product.sources), chosen.limit)
    run = product.start()
    return run, await collect(run, scope, product.steps)


def draft_finding(text: str, kind: str, *cites: str, words: str = "on the mug") -> dict[str, Any]:
    """A finding as a model hands it in, over words that every `post` holds."""
    evidence = [{"cite": cite, "passage": words} for cite in cites]
    return {"text": text, "kind": kind, "evidence": evidence}


def handed_in(**fields: Any) -> ModelResponse:
    """A model's report."""
    draft: dict[str, Any] = {
        "topic": "The mug",
        "summary": "People like it.",
        "findings": [draft_finding("It stays warm.", "praise", "E1")],
        "quotes": [],
        "suggestions": ["Is it heavy?"],
    }
    return ModelResponse([ToolCallPart("final_result", draft | fields)])


def calling(*calls: tuple[str, dict[str, Any]]) -> ModelResponse:
    """A model's tool calls of one turn."""
    return ModelResponse([ToolCallPart(name, arguments) for name, arguments in calls])


@dataclass
class Script:
    """A chat model that answers turn by turn, the last answer for ever, and keeps what it saw."""

    turns: Sequence[ModelResponse | Exception]
    seen: list[list[ModelMessage]] = field(default_factory=list)
    infos: list[AgentInfo] = field(default_factory=list)

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(list(messages))
        self.infos.append(info)
        turn = self.turns[min(len(self.seen), len(self.turns)) - 1]
        if isinstance(turn, Exception):
            raise turn
        return turn

    @property
    def prompt(self) -> str:
        """Everything the model was told in the first turn."""
        first = self.seen[0]
        parts = [str(part.content) for message in first for part in message.parts
                 if hasattr(part, "content")]  # fmt: skip
        return "\n".join([self.infos[0].instructions or "", *parts])

    def returns(self, name: str) -> list[str]:
        """What a tool answered, call by call."""
        return [
            str(part.content)
            for message in self.seen[-1]
            for part in message.parts
            if isinstance(part, ToolReturnPart) and part.tool_name == name
        ]


@contextmanager
def providing(provided: object) -> Iterator[None]:
    """Fill the provider slot for a while."""
    import api.services as slot

    async def current(own_items: bool) -> Any:
        return provided

    before = list(slot._provider)
    slot.provide(current)
    try:
        yield
    finally:
        slot._provider[:] = before


NOBODY = NoModel()
"""Judge, writer and explainer that are not there."""
