"""Langfuse: tracing of every question, and dashboards kept as files."""
