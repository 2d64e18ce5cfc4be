"""All servers of one sandbox as one ASGI application, and the paths that steer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.sandbox.amazon import Amazon
from api.sandbox.langfuse import Langfuse
from api.sandbox.openai import OpenAI
from api.sandbox.reddit import Reddit
from api.sandbox.world import World
from api.sandbox.youtube import YouTube


def application(world: World) -> Starlette:
    """The application; its routes never collide, since each site has its own paths."""
    sites = (Reddit(world), YouTube(world), OpenAI(world), Langfuse(world), Amazon(world))
    routes = [*_steering(world), *(route for site in sites for route in site.routes())]
    return Starlette(routes=routes)


def _steering(world: World) -> list[Route]:
    async def log(request: Request) -> Response:
        upstream = request.query_params.get("upstream")
        since = request.query_params.get("since", "")
        first = int(since) if since.isascii() and since.isdigit() else 0
        bodies = request.query_params.get("bodies") == "1"
        found = world.journal.entries(upstream)
        return JSONResponse({"entries": [e.public(bodies) for e in found if e.number > first]})

    async def fault(request: Request) -> Response:
        try:
            _change(world, await request.json())
        except ValueError as error:
            return JSONResponse({"error": {"code": "invalid_request", "message": str(error)}}, 422)
        return JSONResponse({"ok": True})

    async def health(request: Request) -> Response:
        return JSONResponse({"ok": True, "posts": len(world.posts)})

    return [
        Route("/_sandbox/log", log),
        Route("/_sandbox/fault", fault, methods=["POST"]),
        Route("/_sandbox/health", health),
    ]


def _change(world: World, wanted: Any) -> None:
    """Apply `{"clear": bool, "faults": [...], "latency": [...]}`."""
    if not isinstance(wanted, Mapping):
        raise ValueError('send {"faults": ["youtube=quota"], "latency": ["openai=800ms"]}')
    if wanted.get("clear"):
        world.faults.clear()
    for text in _texts(wanted, "faults"):
        world.faults.add(text)
    for text in _texts(wanted, "latency"):
        world.faults.delay(text)


def _texts(wanted: Mapping[str, Any], field: str) -> Iterable[str]:
    value = wanted.get(field) or []
    return [value] if isinstance(value, str) else [str(text) for text in value]
