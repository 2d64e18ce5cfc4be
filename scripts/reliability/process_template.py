"""Loads what each process of the crash table needs; they are forked from the process that did."""

from __future__ import annotations

from importlib import import_module

from api.models.local.word_vectors import vectors
from api.sources import SOURCES

LOADED = (
    "work_process", "api.store.durable_engine", "api.services.tools", "api.bootstrap.estimates",
    "api.models.model_client", "api.models.model_calls", "api.reports.agent_writer",
    "pydantic_ai.models.openai", "api.langfuse.tracing", "aiosqlite",
    "pydantic_ai.models.instrumented", "api.langfuse.tracing.langfuse_client",
    "api.langfuse.tracing.masking", "api.langfuse.tracing.spans",
    "psycopg", "sqlalchemy.ext.asyncio", "dbos._sys_db_sqlite", "dbos._sys_db_postgres",
    "anyio._backends._asyncio", "genai_prices.data", "langfuse", "openai.resources", "psutil",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter", "pydantic_ai.providers.openai",
    "googleapiclient.discovery_cache", "openai.lib.streaming.chat", "httpcore",
    *(spec.module for spec in SOURCES.values()),
)  # fmt: skip

for name in LOADED:
    import_module(name)
vectors()
