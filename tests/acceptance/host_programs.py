"""Programs of other people that use Listenpost, as the tests run them."""

from __future__ import annotations

SALARY = "ada earns 4711 a month"

TO_LANGFUSE = """
from langfuse import get_client, propagate_attributes
Agent.instrument_all()
client = get_client()
filed = lambda: propagate_attributes(user_id="grace", session_id="s-9", tags=["desk"])
"""
"""With its own Langfuse client, whose provider is the process's."""

PROGRAM = """
import asyncio, json
import api
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

{tracing}

def look(messages, info):
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return ModelResponse([TextPart("it is fine")])
    query = {{"query": "plaud.ai"}}
    tools = ("fetch_reddit_tool", "fetch_amazon_tool")
    return ModelResponse([ToolCallPart(tool, query) for tool in tools])

def pay(messages, info):
    return ModelResponse([TextPart("{salary}")])

research = Agent(FunctionModel(look), name="research", toolsets=[api.listening_toolset()])
payroll = Agent(FunctionModel(pay), name="payroll_agent")

async def main():
    for number in range(2):
        with filed():
            await research.run("is plaud any good?")
        await payroll.run("what does ada earn?")

asyncio.run(main())
{end}
"""
