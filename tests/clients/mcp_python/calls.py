"""What version 1 of the Python SDK makes of a server; prints one JSON object.

The server is an address, or a command with its arguments.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(command, *arguments):
    """Call everything there is."""
    if command.startswith("http"):
        opening = streamablehttp_client(command)
    else:
        server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
        opening = stdio_client(server)
    async with opening as (reading, writing, *_), ClientSession(reading, writing) as session:
        opened = await session.initialize()
        tools = await session.list_tools()  # from here on structured content is validated
        steps = []

        async def note(progress, total, message):
            steps.append(message)

        async def call(name, **given):
            answer = await session.call_tool(name, given, progress_callback=note)
            return answer.model_dump(mode="json")

        answers = {
            "fetched": await call("fetch_reddit", query="plaud.ai", limit=None, about=""),
            "whole": await call("fetch_amazon", query="plaud.ai", include_dropped=True),
            "judged": await call(
                "relevance_filter",
                query="ember mug",
                source="reddit",
                items=[{"title": "My Ember mug died"}, {"title": "Coupons for socks"}],
            ),
            "report": await call("analyze_product", query="plaud.ai", depth="quick"),
            "refused": await call("fetch_reddit", query="plaud.ai", limits=3),
        }
        address = f"listenpost://reports/{answers['report']['structuredContent']['id']}"
        read = await session.read_resource(address)
        try:
            await session.read_resource("listenpost://reports/none")
        except McpError as error:
            missing = error.error.model_dump(mode="json")
        prompts = await session.list_prompts()
        prompt = await session.get_prompt("compare", {"first": "a mug", "second": "a cup"})
        others = {
            "server": opened.serverInfo.name,
            "tools": tools.model_dump(mode="json")["tools"],
            "progress": steps,
            "report_text": read.model_dump(mode="json")["contents"][0],
            "missing": missing,
            "prompts": prompts.model_dump(mode="json")["prompts"],
            "messages": prompt.model_dump(mode="json")["messages"],
        }
        print(json.dumps(answers | others))


asyncio.run(main(*sys.argv[1:]))
