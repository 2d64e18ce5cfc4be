"""What a fetch tool hands to an agent's program: metadata, usage, and labels of exhibits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import UsageLimits

from api.core.domain import Grade, Outcome, Question, Usage, Verdict
from api.core.items import Item
from api.core.ports import Judgement
from api.errors import ConfigurationError, NotConfigured, RateLimited, SourceError
from api.reports.report import Fetched
from api.services.product import Product
from api.services.tools import listening_toolset
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import Grading, calling, kit, posts, providing

LABELS = re.compile(r"^E\d+", re.MULTILINE)
REDDIT, YOUTUBE = "fetch_reddit_tool", "fetch_youtube_tool"


class Paid:
    """A judge that lets all pass, for a price."""

    name = "paid-1"

    def __init__(self, usd: float | None) -> None:
        self.usd = usd

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        verdicts = tuple(Verdict(True, self.name) for _ in items)
        return Judgement(verdicts, self.name, Usage(200, 20, self.usd, 1))


def shelves(**more: Any) -> Product:
    """Three places with three posts each."""
    return kit(*(FakeSource(posts(3, name), name) for name in ("reddit", "youtube", "amazon")), **more)


def returned(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """What tools answered."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


async def run_of(
    *turns: ModelResponse, history: Sequence[ModelMessage] | None = None, **more: Any
) -> AgentRunResult[str]:
    """One run of an agent whose model answers turn by turn."""
    left = iter((*turns, ModelResponse([TextPart("done")])))  # a run marks what it is given

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return next(left)

    agent = Agent(FunctionModel(answer), toolsets=[listening_toolset()])
    return await agent.run("Go", message_history=history, **more)


def fetching(*names: str, **arguments: str) -> ModelResponse:
    """A turn that calls these tools at once."""
    return calling(*((name, {"query": "ember mug", **arguments}) for name in names))


def labels(part: ToolReturnPart) -> list[str]:
    """The exhibits that a model is shown."""
    return LABELS.findall(str(part.content))


def failing(error: SourceError | str) -> Product:
    """A product whose Reddit cannot be asked, or has nothing, or nothing about it."""
    if isinstance(error, SourceError):
        return kit(("reddit", error))
    return kit(FakeSource(posts(3) if error == "irrelevant" else []), judge=FakeJudge())


@pytest.mark.parametrize(
    ("product", "query", "outcome"),
    [
        (shelves(), "ember mug", "ok"),
        (failing("empty"), "ember mug", "empty"),
        (failing("irrelevant"), "ember mug", "irrelevant"),
        (failing(NotConfigured("reddit")), "ember mug", "not_configured"),
        (failing(RateLimited("reddit")), "ember mug", "rate_limited"),
        (shelves(), "hello", "not_asked"),
        (shelves(), "", "not_asked"),
        (None, "ember mug", "broken"),
        (kit(), "ember mug", "not_asked"),
    ],
)
async def test_the_metadata_has_one_shape_on_every_path(product: Product | None, query: str, outcome: str) -> None:
    """What reads the JSON of `fetch` reads them all: no key is missing, whatever happened."""
    with providing(product):
        result = await run_of(calling((REDDIT, {"query": query})))
    (part,) = returned(result.all_messages())

    answer = Fetched.model_validate(part.metadata)

    where_set = {"disputed", "agreement"}
    assert {*part.metadata, *where_set} == {*Fetched.model_fields, "exhibits", "error"}
    assert (answer.source, answer.query, answer.outcome) == ("reddit", query, outcome)
    assert (answer.yield_ratio is None) is not Outcome(outcome).answered  # unknown of what gave no answer
    assert 0 <= (answer.yield_ratio or 0) <= 1
    assert (part.metadata["error"] is None) is (outcome not in {"not_asked", "broken"})
    assert list(part.metadata["exhibits"]) == labels(part)


async def test_the_first_thing_people_try_has_the_shape_too() -> None:
    """`TestModel` calls every tool with `a`, which names no product."""
    with providing(shelves(sample=True)):
        agent = Agent(TestModel(), toolsets=[listening_toolset()])
        result = await agent.run("Go")

    for part in returned(result.all_messages()):
        assert part.metadata["outcome"] in set(Outcome)
        assert part.metadata["sample"] is True


async def test_arguments_of_a_wrong_type_are_the_library_s_to_refuse() -> None:
    """Its answer has no metadata: the tool was not called; the run goes on."""
    with providing(shelves()):
        result = await run_of(fetching(REDDIT, depth="far"))

    parts = [part for message in result.all_messages() for part in message.parts]
    refusals = [part for part in parts if "'quick', 'standard'" in str(getattr(part, "content", ""))]
    assert [getattr(part, "metadata", None) for part in refusals] == [None]


async def test_a_wrong_setting_has_the_shape_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing could be built, and the metadata says why."""
    monkeypatch.setenv("LISTENPOST_JUDGE", "oracle")

    (part,) = returned((await run_of(fetching(REDDIT))).all_messages())

    assert Fetched.model_validate(part.metadata).outcome is Outcome.NOT_CONFIGURED
    assert part.metadata["error"]["code"] == ConfigurationError.code
    assert "LISTENPOST_JUDGE" in part.metadata["reason"]


async def test_a_cited_label_leads_to_its_post() -> None:
    """`exhibits` holds the key of every item that the model was shown, as in `items`."""
    with providing(shelves(grader=Grading({"0": Grade(1, "about tea")}))):
        result = await run_of(fetching(REDDIT, depth="standard"))
    (part,) = returned(result.all_messages())

    assert part.metadata["exhibits"] == {"E1": "reddit:1", "E2": "reddit:2"}
    assert [item["key"] for item in part.metadata["items"]] == ["reddit:1", "reddit:2"]


async def test_what_it_is_reaches_the_judge() -> None:
    """`about` tells the product from its namesakes."""
    judge = FakeJudge(["0"])
    with providing(kit(FakeSource(posts(3)), judge=judge)):
        await run_of(fetching(REDDIT, about="a heated cup"))

    assert judge.questions == [Question("ember mug", "a heated cup")]


async def test_what_a_tool_spent_is_in_its_metadata_and_in_the_run() -> None:
    """Judge and grader, once; a repeated query costs nothing more."""
    product = shelves(judge=Paid(0.5), grader=Grading())
    with providing(product):
        result = await run_of(fetching(REDDIT, YOUTUBE), fetching(REDDIT), fetching(REDDIT, depth="standard"))
    reddit, _, again, graded = returned(result.all_messages())
    bare = (await run_of()).usage

    assert reddit.metadata["usage"] == {
        "requests": 1, "input_tokens": 200, "output_tokens": 20, "usd": 0.5,
    }  # fmt: skip
    assert again.metadata["usage"]["requests"] == again.metadata["usage"]["input_tokens"] == 0
    assert graded.metadata["usage"]["usd"] == 0.01
    assert result.usage.cost == Decimal("1.01")
    assert result.usage.requests == 4
    assert bare.cost is None


@pytest.mark.parametrize(("usd", "sample", "cost"), [(None, False, None), (0.5, True, None)])
async def test_an_unknown_price_stays_unknown(usd: float | None, sample: bool, cost: Decimal | None) -> None:
    """Nor does the sandbox's free model make the run's own price known."""
    with providing(shelves(judge=Paid(usd), sample=sample)):
        result = await run_of(fetching(REDDIT))

    (part,) = returned(result.all_messages())
    assert part.metadata["usage"]["usd"] == (0.0 if sample else usd)
    assert result.usage.cost == cost
    assert result.usage.input_tokens > 200


async def test_the_judge_takes_no_turn_of_the_agent() -> None:
    """A limit of requests is one of turns, so a tool's own do not end the run."""
    with providing(shelves(judge=Paid(0.5))):
        result = await run_of(fetching(REDDIT, YOUTUBE), usage_limits=UsageLimits(request_limit=2))

    assert result.output == "done"


async def test_tools_of_one_step_number_together() -> None:
    """They run at the same time, and no label is given twice."""
    with providing(shelves()):
        first = await run_of(fetching(REDDIT, YOUTUBE))
        second = await run_of(fetching(REDDIT, YOUTUBE, "fetch_amazon_tool"), history=first.all_messages())

    shown: dict[str, set[str]] = {}
    for part in returned(second.all_messages()):
        for label, key in part.metadata["exhibits"].items():
            shown.setdefault(label, set()).add(key)
    assert sorted(shown, key=lambda label: int(label[1:])) == [f"E{n}" for n in range(1, 10)]
    assert all(len(keys) == 1 for keys in shown.values())


async def test_a_post_keeps_its_label_over_the_runs_of_a_conversation() -> None:
    """So that an answer cannot cite one post as two."""
    with providing(shelves()):
        first = await run_of(fetching(REDDIT))
        second = await run_of(fetching(REDDIT, YOUTUBE), history=first.all_messages())
        other = await run_of(fetching(YOUTUBE))

    reddit, again, youtube = returned(second.all_messages())
    assert labels(reddit) == labels(again) == ["E1", "E2", "E3"]
    assert labels(youtube) == ["E4", "E5", "E6"]
    assert labels(returned(other.all_messages())[0]) == ["E1", "E2", "E3"]


async def test_runs_that_go_on_from_one_history_at_the_same_time_share_labels() -> None:
    """Two tabs of one conversation never give one label to two posts."""
    with providing(shelves()):
        first = await run_of(fetching(REDDIT))
        tabs = await asyncio.gather(
            run_of(fetching(YOUTUBE), history=first.all_messages()),
            run_of(fetching("fetch_amazon_tool"), history=first.all_messages()),
        )

    given = [label for tab in tabs for part in returned(tab.new_messages()) for label in labels(part)]
    assert sorted(given) == ["E4", "E5", "E6", "E7", "E8", "E9"]


def shortened(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Without what tools answered, as programs do that save tokens."""
    cited = ModelResponse([TextPart("It leaks [E3], says E2; the 2027 model E10000 does not.")])
    return [messages[0], cited]


def anonymous(messages: list[ModelMessage]) -> list[ModelMessage]:
    """From another program: the same parts, no run and no conversation known."""
    return [
        ModelRequest(message.parts) if isinstance(message, ModelRequest) else ModelResponse(message.parts)
        for message in ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
    ]


@pytest.mark.parametrize("handed", [shortened, anonymous])
async def test_labels_go_on_where_only_the_messages_are_known(handed: Any) -> None:
    """In a new process the messages say which numbers are taken: shown, or cited by the model."""
    with providing(shelves()):
        first = await run_of(fetching(REDDIT))
    with providing(shelves()):
        second = await run_of(fetching(YOUTUBE), history=handed(first.all_messages()))

    assert labels(returned(second.new_messages())[0]) == ["E4", "E5", "E6"]
