"""What every life needs, loaded once by the process from which all are forked."""

from __future__ import annotations

from importlib import import_module

from api.judges.local_vectors import vectors
from api.sources import SOURCES

LOADED = (
    "lives", "api.engine", "api.services.tools", "api.wiring.estimating", "api.judges.client",
    "api.judges.booleans", "api.judges.explain", "api.judges.grades", "api.judges.rewrites",
    "api.services.reporting.agent", "pydantic_ai.models.openai", "api.tracing", "aiosqlite",
    "api.tracing.agents", "api.tracing.client", "api.tracing.sending", "api.tracing.wordless",
    "psycopg", "sqlalchemy.ext.asyncio", "dbos._sys_db_sqlite", "dbos._sys_db_postgres",
    "anyio._backends._asyncio", "genai_prices.data", "langfuse", "openai.resources", "psutil",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter", "pydantic_ai.providers.openai",
    "googleapiclient.discovery_cache", "openai.lib.streaming.chat", "httpcore",
    *(spec.module for spec in SOURCES.values()),
)  # fmt: skip

for name in LOADED:
    import_module(name)
vectors()
