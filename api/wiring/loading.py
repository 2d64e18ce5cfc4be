"""A server's product, its libraries loaded while everybody else is served."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module

from api.judges import Switchboard
from api.judges.local_vectors import vectors
from api.services.keeping.storage import SourceMemory, Store
from api.services.listening import Product
from api.settings import Settings
from api.sources import SOURCES
from api.wiring import build, mode_of

_MODEL_PARTS = ("client", "booleans", "explain", "grades", "rewrites")


async def loaded_product(
    settings: Settings, store: Store, switchboard: Switchboard, modules: Sequence[str] = ()
) -> Product:
    """Load what building and the first report would load, and `modules`, in a thread; build."""
    sample = mode_of(settings) == "sandbox"
    needed = ["api.services.tools", "api.wiring.estimating"]
    needed += [spec.module for spec in SOURCES.values()]
    if sample:
        needed.append("api.sandbox.server")
    if sample or settings.models.openai_api_key is not None:
        needed += [f"api.judges.{part}" for part in _MODEL_PARTS]
        needed += ["pydantic_ai.models.openai", "api.services.reporting.agent"]
    if sample or settings.tracing.langfuse_secret_key is not None:
        needed.append("api.tracing")
    if settings.tracing.prompts == "langfuse" and not sample:
        needed.append("api.tracing.prompts")
    await asyncio.to_thread(lambda: [import_module(name) for name in (*needed, *modules)])
    await asyncio.to_thread(vectors)
    return build(settings, switchboard=switchboard, memory=SourceMemory(store, store))
