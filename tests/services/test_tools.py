"""The gate and the fetch tools as agents and programs call them."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import api
from api.core.display_names import SourceLabel, SourceLabels
from api.core.domain import Grade, Verdict
from api.core.items import Gated, Item
from api.errors import ConfigurationError, ModelError, QuotaExhausted, RateLimited, UsageError
from api.pipeline.gate.verdicts import Gate
from api.reports.report import Fetched
from api.services import tools
from api.services.product import Ask, Product
from api.services.tools import Filtered, listening_toolset, relevance_filter, shown
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import Everything, Grading, calling, kit, post, posts, providing

DONE = ModelResponse([TextPart("done")])
NAMES = ["fetch_reddit_tool", "fetch_youtube_tool", "fetch_amazon_tool"]


def dicts(count: int) -> list[dict[str, Any]]:
    """What callers have."""
    return [{"title": f"Post {number}", "body": "b"} for number in range(count)]


async def test_the_filter_returns_the_same_objects_in_order() -> None:
    """
    Kept ones, not copies, and the share of all.
    """
    items, judge = dicts(4), FakeJudge(["1", "3"])

    relevant, share = await relevance_filter("ember mug", items, "reddit", judge=judge)

    assert relevant[0] is items[1]
    assert relevant[1] is items[3]
    assert (len(relevant), share) == (2, 0.5)
    assert type(relevant) is list
    assert judge.asked == [["0", "1", "2", "3"]]


async def test_a_filtered_is_a_real_pair() -> None:
    """
    It has two places, is equal to a plain tuple, and carries how it came about.
    """
    items = dicts(2)
    result = await relevance_filter("mug", items, "reddit", judge=FakeJudge(["0"]), about="hot")

    assert isinstance(result, tuple)
    assert len(result) == 2
    assert result == ([items[0]], 0.5)
    assert ([items[0]], 0.5) == result
    assert (result[0], result[-1]) == ([items[0]], 0.5)
    assert repr(result) == repr(([items[0]], 0.5))
    assert [verdict.relevant for verdict in result.verdicts] == [True, False]
    assert (result.status, result.reason, result.model) == ("ok", None, "fake-1")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
async def test_a_filtered_survives_copying(again: Any) -> None:
    """With everything it carries."""
    result = await relevance_filter("mug", dicts(2), "reddit", judge=FakeJudge(["0"]))

    twin = again(result)

    assert type(twin) is Filtered
    assert twin == result
    assert (twin.verdicts, twin.status, twin.model) == (result.verdicts, "ok", "fake-1")


def test_a_filtered_made_by_hand_knows_nothing() -> None:
    """
    Its fields are there all the same.
    """
    made = Filtered(([1], 1.0))

    assert (made, made.verdicts, made.status, made.reason) == (([1], 1.0), (), "skipped", None)


async def test_no_items_cost_nothing() -> None:
    """
    B24: nothing is asked, built or read from the environment.
    """
    judge, nothing = FakeJudge(), dicts(0)
    with providing(None):
        result = await relevance_filter("mug", nothing, "reddit")
        judged = await relevance_filter("mug", nothing, "reddit", judge=judge)

    assert (result.status, judged.status, judge.asked) == ("skipped", "skipped", [])
    assert result == judged == ([], 1.0)


async def test_all_false_is_an_answer() -> None:
    """
    B19: nothing relevant is not a failure.
    """
    result = await relevance_filter("mug", dicts(4), "reddit", judge=FakeJudge())

    assert (result, result.status) == (([], 0.0), "ok")


async def test_a_failing_judge_lets_all_pass_and_says_so() -> None:
    """
    B20: all items, 1.0, degraded, and the reason.
    """
    items = dicts(3)
    judge = FakeJudge(trouble={0: ModelError("timeout")})

    result = await relevance_filter("mug", items, "reddit", judge=judge)

    assert result == (items, 1.0)
    assert (result.status, result.reason, result.model) == ("degraded", "timeout", None)
    assert not any(verdict.judge for verdict in result.verdicts)


async def test_nothing_is_remembered_between_calls() -> None:
    """
    Each call with items asks the judge.
    """
    judge = FakeJudge(["0"])
    for _ in range(2):
        await relevance_filter("mug", dicts(2), "reddit", judge=judge)

    assert len(judge.asked) == 2


async def test_the_configured_gate_judges_when_none_is_passed() -> None:
    """
    The provider's gate, stand-in included, and its share.
    """

    @dataclass
    class Provided:
        gate: Gate

    gate = Gate(FakeJudge(trouble={0: ModelError("quota")}), fallback=FakeJudge(["1"], name="local-1"))
    with providing(Provided(gate)):
        result = await relevance_filter("mug", dicts(4), "reddit")

    assert (len(result[0]), result[1]) == (1, 0.25)
    assert (result.status, result.reason, result.model) == ("degraded", "quota", "local-1")


async def test_the_environment_alone_is_enough() -> None:
    """
    Without a key the local judge answers.
    """
    items = [
        {"title": "Plaud Note review", "content": "plaud.ai transcribes my calls"},
        {"title": "My sourdough starter smells", "description": "rye flour, three days old"},
    ]

    result = await api.relevance_filter("plaud.ai", items, "reddit")

    assert result == ([items[0]], 0.5)
    assert (result.status, result.reason) == ("ok", None)
    assert str(result.model).startswith("local")


async def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    ConfigurationError is the one thing that is raised.
    """
    monkeypatch.setenv("LISTENPOST_JUDGE", "oracle")

    with pytest.raises(ConfigurationError, match="LISTENPOST_JUDGE"):
        await relevance_filter("mug", dicts(1), "reddit")


@pytest.mark.parametrize(
    ("given", "title", "body"),
    [
        ({"title": "T", "body": "B"}, "T", "B"),
        ({"title": "T", "content": "C"}, "T", "C"),
        ({"title": "T", "description": "D"}, "T", "D"),
        ({"selftext": "S"}, "", "S"),
        ({"reviewText": "R", "summary": "S"}, "S", "R"),
        ({"title": "T", "body": "", "content": None, "description": "D"}, "T", "D"),
        ({"title": None, "body": 123}, "", "123"),
        ({"title": 4.5, "body": math.nan}, "4.5", ""),
        ({"title": ["x"], "created_at": datetime.now(UTC)}, "x", ""),
        ({"title": "", "body": []}, "", ""),
        ({"title": "a\x00b", "body": "half \ud83d"}, "ab", "half \ufffd"),
        ({"title": "\x1b[31mred\u202e", "body": " x\r\ny "}, "red", "x\ny"),
        ("just a text", "just a text", ""),
    ],
)
def test_anything_is_shown_as_an_item(given: object, title: str, body: str) -> None:
    """B22 and B58: null, numbers, missing keys, NUL and lone surrogates are judged, no crash."""
    item = shown(given, "forum", 3)

    assert (item.key, item.id, item.source) == ("forum:3", "3", "forum")
    assert (item.title, item.body) == (title, body)
    f"{item.title}{item.body}".encode()


async def test_odd_items_are_judged_and_come_back_themselves() -> None:
    """
    B22: every one gets a verdict; an `Item` is judged as it is.
    """
    own = Item(key="reddit:t3_x", id="t3_x", source="reddit", title="Own")
    odd: list[Any] = [{"title": ""}, {"body": []}, own, "text", {"title": "a\x00"}]
    judge = FakeJudge(["0", "t3_x", "4"])

    relevant, share = await relevance_filter("mug \ud83d", odd, "reddit", judge=judge)

    assert relevant == [odd[0], own, {"title": "a\x00"}]
    assert relevant[1] is own
    assert share == 0.6
    assert judge.questions[0].text == "mug \ufffd"


@pytest.mark.parametrize(
    ("unread", "words"),
    [
        ({"Review": "x"}, "no text in a field that is known; its fields are `Review`"),
        ({"body": {"html": "x"}}, "`body` must be text, a number or a list of texts, not an o"),
        ({"title": [["x"]]}, "`title` must be text, a number or a list of texts, and holds a list"),
        ({"title": ["x", 5]}, "`title` must be text, a number or a list of texts, and holds a num"),
        ({"title": "x", "url": object()}, "`url` must be text, not object"),
        ({"title": "x", "url": None, "id": False}, "`id` must be text or a number, not false"),
        (
            {"title": "x", "engagement": {"a": "5"}},
            "`engagement` must be an object of numbers, and",
        ),
        ({"title": "x", "engagement": {"a": [None]}}, "`engagement` must be an object of num"),
    ],
)
async def test_what_nobody_can_read_is_not_judged(unread: object, words: str) -> None:
    """The object is named by its place, and what is wrong with it; nothing is asked."""
    judge = FakeJudge()

    with pytest.raises(UsageError, match=rf"^`items\[1\]`: {words}"):
        await relevance_filter("mug", [{"selftext": "a mug"}, unread], "reddit", judge=judge)

    assert judge.asked == []


SHOWABLE = "an object with a text in a field that is known, an `Item`, or a text, not"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"query": ""}, "Nothing was asked. Name a product"),
        ({"query": "hello", "items": []}, "Hello! Say which product"),
        ({"query": "site:reddit.com"}, "It holds search operators only"),
        ({"query": "mug " * 200}, "It is too long: ask in at most 500 characters."),
        ({"query": None}, "`query` must be text, not NoneType"),
        ({"query": ["mug"]}, "`query` must be text, not list"),
        ({"about": 5}, "`about` must be text, not int"),
        ({"source": None}, "`source` must be text, not NoneType"),
        ({"source": " \n"}, "`source` names nothing; say where the items are from"),
        ({"items": "a mug"}, f"`items` must be a list, each {SHOWABLE} str"),
        ({"items": {"title": "a mug"}}, f"`items` must be a list, each {SHOWABLE} dict"),
        ({"items": None}, f"`items` must be a list, each {SHOWABLE} NoneType"),
        ({"items": ["a mug", None]}, f"`items[1]` must be {SHOWABLE} NoneType"),
        ({"items": [5]}, f"`items[0]` must be {SHOWABLE} int"),
        ({"items": [b"a mug"]}, f"`items[0]` must be {SHOWABLE} bytes"),
        ({"items": [object()]}, f"`items[0]` must be {SHOWABLE} object"),
        ({"judge": "x"}, "`judge` must be an object with `name` and `judge`, not str"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_judges(wrong: dict[str, Any], message: str) -> None:
    """A variable that was forgotten would else lose every item without a word."""
    judge = FakeJudge()
    sound: dict[str, Any] = {"query": "mug", "items": ["a mug"], "source": "reddit", "judge": judge}

    with pytest.raises(UsageError) as caught:
        await relevance_filter(**sound | wrong)

    assert str(caught.value).startswith(message)
    assert judge.asked == []


async def test_items_may_come_one_after_the_other() -> None:
    """A generator is read once, and what came is given back; no words are no words."""
    judge = FakeJudge(["1"])
    items = (title for title in ("socks", "a mug"))

    relevant, share = await relevance_filter("mug", items, "reddit", judge=judge, about=None)

    assert (relevant, share) == (["a mug"], 0.5)
    assert judge.questions[0].about == ""


def test_verdicts_and_items_must_match() -> None:
    """
    A shifted list would keep the wrong ones; that is a programming error.
    """
    with pytest.raises(ValueError, match="zip"):
        Filtered.of([1, 2], Gated((Verdict(True),), "ok"))


@pytest.fixture
def product() -> Iterator[Product]:
    """Three sources, everything relevant, in the provider slot."""
    sources = [FakeSource(posts(3, name), name) for name in ("reddit", "youtube", "amazon")]
    whole = kit(*sources, grader=Grading({"0": Grade(1, "about tea")}))
    with providing(whole):
        yield whole


def returned(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    """What tools answered."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


@pytest.mark.parametrize("deps", [None, {"user": 1}, object()], ids=["none", "dict", "object"])
async def test_the_tools_work_in_an_agent_with_any_deps(product: Product, deps: object) -> None:
    """The model reads gate line and exhibits; the caller finds the fetch object."""
    agent = Agent(TestModel(), deps_type=object, toolsets=[listening_toolset()])

    result = await agent.run("What do people say?", deps=deps)

    parts = returned(result.all_messages())
    assert [part.tool_name for part in parts] == NAMES
    assert "Reddit: 3 of 3 results were about it." in str(parts[0].content)
    assert re.search(r"E\d: reddit", str(parts[0].content))  # numbers are given in the order in which calls end
    for part, source in zip(parts, ("reddit", "youtube", "amazon"), strict=True):
        assert part.metadata["source"] == source
        assert part.metadata["outcome"] == "ok"
        assert [item["rank"] for item in part.metadata["items"]] == [1, 2, 3]


async def test_calls_of_one_agent_run_share_numbers_and_memory(product: Product) -> None:
    """
    B39: exhibits number on, a repeated query is free, and the next run starts anew.
    """
    turns = [
        calling(("fetch_reddit_tool", {"query": "ember mug"})),
        calling(("fetch_youtube_tool", {"query": "ember mug"})),
        calling(("fetch_reddit_tool", {"query": "Ember Mug"})),
        DONE,
    ]
    source = product.sources["reddit"]
    assert isinstance(source, FakeSource)

    async def run() -> list[ToolReturnPart]:
        left = iter(turns)
        model = FunctionModel(lambda messages, info: next(left))
        return returned((await Agent(model, tools=_tools()).run("Go")).all_messages())

    first, second, again = await run()
    other = await run()

    assert [f"E{n}:" in str(first.content) for n in (1, 3, 4)] == [True, True, False]
    assert [f"E{n}:" in str(second.content) for n in (3, 4, 6)] == [False, True, True]
    assert "E1:" in str(again.content)
    assert again.metadata["upstream_calls"] == 0
    assert len(source.plans) == 2
    assert "E1:" in str(other[0].content)


async def test_labels_are_unique_over_a_conversation(product: Product) -> None:
    """A later run of the same conversation numbers on; labels in others' words do not count."""
    turns = iter([
        calling(("fetch_reddit_tool", {"query": "ember mug"})),
        DONE,
        calling(("fetch_youtube_tool", {"query": "ember mug"})),
        calling(("fetch_amazon_tool", {"query": "ember mug"})),
        DONE,
    ])  # fmt: skip
    agent = Agent(FunctionModel(lambda messages, info: next(turns)), tools=_tools())

    first = await agent.run("Go")
    history = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    second = await agent.run("What of E99 and <q-1 E98>?", message_history=history)

    one, two, three = (str(part.content) for part in returned(second.all_messages()))
    assert re.findall(r"^E\d+", one, re.M) == ["E1", "E2", "E3"]
    assert re.findall(r"^E\d+", two, re.M) == ["E4", "E5", "E6"]
    assert re.findall(r"^E\d+", three, re.M) == ["E7", "E8", "E9"]


async def test_a_call_without_a_run_numbers_on_too(product: Product) -> None:
    """It remembers nothing else."""
    heard = await product.listen("reddit", Ask("ember mug", "quick"), None, 4)

    assert re.findall(r"^E\d+", heard.text, re.M) == ["E5", "E6", "E7"]


def _tools() -> list[Any]:
    return [tools.fetch_reddit_tool, tools.fetch_youtube_tool, tools.fetch_amazon_tool]


@pytest.mark.parametrize(
    ("depth", "scores", "shown_items"),
    [({}, {None}, 3), ({"depth": "quick"}, {None}, 3), ({"depth": "standard"}, {4}, 2),
     ({"depth": "deep"}, {4}, 2), ({"depth": None, "about": None}, {None}, 3)],
)  # fmt: skip
async def test_depth_decides_about_grading(
    product: Product, depth: dict[str, str | None], scores: set[int | None], shown_items: int
) -> None:
    """Quick, the default and what null means, is the gate alone; the others grade and rank."""
    turns = iter([calling(("fetch_reddit_tool", {"query": "ember mug", **depth})), DONE])
    agent = Agent(FunctionModel(lambda messages, info: next(turns)), tools=_tools())

    (part,) = returned((await agent.run("Go")).all_messages())

    assert {item["score"] for item in part.metadata["items"]} == scores
    assert len(part.metadata["items"]) == shown_items
    assert ("left out as weak" in str(part.content)) is (shown_items == 2)


async def test_the_tools_have_no_way_out_but_the_query(product: Product) -> None:
    """
    B80: query, depth and what it is are all there is, and each says what it is for.
    """
    seen: list[AgentInfo] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return DONE

    await Agent(FunctionModel(answer), toolsets=[listening_toolset()]).run("Go")

    described = seen[0].function_tools
    assert [tool.name for tool in described] == NAMES
    for tool in described:
        fields = tool.parameters_json_schema["properties"]
        assert set(fields) == {"query", "depth", "about"}
        assert all(field["description"] for field in fields.values())
        assert tool.parameters_json_schema["required"] == ["query"]
        assert tool.description


@dataclass
class Failing:
    """A product whose every call fails."""

    error: Exception
    calls: list[tuple[str, Ask, str | None]] = field(default_factory=list)
    sample: bool = True
    places: SourceLabels = field(
        default_factory=lambda: {"reddit": SourceLabel("reddit", "Reddit", "What is said there.")}
    )

    @property
    def gate(self) -> Gate:
        return Gate(Everything())

    async def listen(self, source: str, ask: Ask, run_id: str | None, given: int, conversation: str | None) -> Any:
        self.calls.append((source, ask, run_id))
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "outcome", "message"),
    [
        (ConfigurationError("`JUDGE` is odd"), "configuration", "not_configured", "`JUDGE`"),
        (RateLimited("reddit", "slow down"), "rate_limited", "rate_limited", "slow down"),
        (ModelError("no_key"), "model_unavailable", "broken", "no_key"),
        (TimeoutError(), "timed_out", "timed_out", "no answer in time"),
        (ValueError("https://host/?key=secret"), "internal", "broken", "ValueError"),
        (KeyError("data"), "internal", "broken", "KeyError"),
        (ConnectionResetError("secret"), "internal", "broken", "ConnectionResetError"),
    ],
)
async def test_a_tool_never_ends_the_run(error: Exception, code: str, outcome: str, message: str) -> None:
    """B76: the model reads a safe sentence, the caller the usual object; the others answer too."""
    failing = Failing(error)
    with providing(failing):
        result = await Agent(TestModel(), tools=_tools()).run("Go")

    parts = returned(result.all_messages())
    assert [part.tool_name for part in parts] == NAMES
    assert str(parts[0].content).startswith("Reddit could not be asked: ")
    assert message in str(parts[0].content)
    assert parts[0].metadata["error"]["code"] == code
    answer = Fetched.model_validate(parts[0].metadata)
    assert (answer.outcome, answer.query, answer.sample) == (outcome, "a", True)
    assert message in str(answer.reason)
    assert "secret" not in f"{parts[0].content}{parts[0].metadata}"
    assert {run_id for _, _, run_id in failing.calls} == {result.run_id}
    assert failing.calls[0][1] == Ask("a", "quick")


async def test_a_query_that_names_nothing_gets_guidance(product: Product) -> None:
    """
    The tool answers like the query gate.
    """
    turns = iter([calling(("fetch_amazon_tool", {"query": "hello"})), DONE])
    agent = Agent(FunctionModel(lambda messages, info: next(turns)), tools=_tools())

    (part,) = returned((await agent.run("Go")).all_messages())

    assert str(part.content).startswith("Amazon was not asked: ")
    assert "Say which product" in str(part.content)
    assert part.metadata["error"]["code"] == "invalid_request"
    assert part.metadata["outcome"] == "not_asked"


async def test_a_source_without_quota_is_told_with_its_reset() -> None:
    """
    The other sources still answer.
    """
    error = QuotaExhausted("youtube", retry_at=datetime(2026, 11, 28, 8, 0, tzinfo=UTC))
    product = kit(FakeSource([post(0)]), ("youtube", error), FakeSource([], "amazon"))
    with providing(product):
        result = await Agent(TestModel(), tools=_tools()).run("Go")

    reddit, youtube, amazon = returned(result.all_messages())
    assert str(youtube.content) == ("YouTube could not be asked: daily quota exhausted, resets 08:00 UTC.")
    assert youtube.metadata["retry_at"] == "2026-11-28T08:00:00Z"
    assert str(amazon.content) == "Amazon was asked and found nothing."
    assert "E1: reddit" in str(reddit.content)


async def test_leaving_cancels_the_tool() -> None:
    """
    B86: cancellation is no failure to be told; it passes.
    """
    source = FakeSource(posts(3), trouble={0: "never"})
    with providing(kit(source)):
        asking = asyncio.create_task(Agent(TestModel(call_tools=["fetch_reddit_tool"]), tools=_tools()).run("Go"))
        await source.entered.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
