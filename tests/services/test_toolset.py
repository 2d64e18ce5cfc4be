"""The toolset: a tool for each place, those of other places with what the place says of itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition

from api.core.display_names import SourceLabel
from api.errors import NotConfigured
from api.services.product import Product
from api.services.tools import listening_toolset
from tests.services.fakes import FakeSource
from tests.services.kit import PLACES, calling, kit, posts, providing

THREE = ["fetch_reddit_tool", "fetch_youtube_tool", "fetch_amazon_tool"]
SAYS = "What owners write in the forum."


def product(*sources: FakeSource | tuple[str, NotConfigured]) -> Product:
    """One that knows a forum, too."""
    return replace(kit(*sources), places={**PLACES, "forum": SourceLabel("forum", "Forum", SAYS)})


async def looked_at(provided: object, sources: list[str] | None = None) -> list[ToolDefinition]:
    """The tools that an agent's model sees."""
    seen: list[AgentInfo] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info)
        return ModelResponse([TextPart("done")])

    with providing(provided):
        await Agent(FunctionModel(answer), toolsets=[listening_toolset(sources)]).run("Go")
    return seen[0].function_tools


async def test_another_place_has_a_tool_where_it_can_be_asked() -> None:
    """Beside the three, which say themselves why they cannot be asked."""
    forum = FakeSource(posts(3, "forum"), "forum")

    named = [tool.name for tool in await looked_at(product(forum, ("reddit", NotConfigured("x"))))]
    unset = await looked_at(product(FakeSource(posts(3), "reddit"), ("forum", NotConfigured("forum"))))

    assert named == [*THREE, "fetch_forum_tool"]
    assert [tool.name for tool in unset] == THREE


async def test_a_chosen_place_is_described_by_itself() -> None:
    """Only what was chosen, each once, with its own words and those of its arguments."""
    (tool,) = await looked_at(product(FakeSource(posts(3), "forum")), ["forum", "forum"])

    assert (tool.name, tool.description) == ("fetch_forum_tool", SAYS)
    fields = tool.parameters_json_schema["properties"]
    assert set(fields) == {"query", "depth", "about"}
    assert all(field["description"] for field in fields.values())
    assert tool.parameters_json_schema["required"] == ["query"]


async def test_its_tool_asks_that_place() -> None:
    """As the three do: what a model reads, and the fetch object beside it."""
    turns = iter(
        [
            calling(("fetch_forum_tool", {"query": "ember mug", "about": "a mug"})),
            ModelResponse([TextPart("done")]),
        ]
    )
    forum = FakeSource(posts(3, "forum"), "forum")
    agent = Agent(FunctionModel(lambda messages, info: next(turns)), toolsets=[listening_toolset(["forum"])])

    with providing(product(forum)):
        result = await agent.run("Go")

    (part,) = (part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart))
    assert "Forum: 3 of 3 results were about it." in str(part.content)
    assert part.metadata["source"] == "forum"
    assert len(forum.plans) == 1


@pytest.mark.parametrize("broken", [None, kit()], ids=["no product", "an unknown place"])
async def test_what_cannot_be_built_costs_no_run(broken: Any) -> None:
    """The tools are there with plain words; what is wrong is said when one is called."""
    (tool,) = await looked_at(broken, ["forum"])

    assert tool.description == "What people say on forum."
    assert [each.name for each in await looked_at(None)] == THREE
