"""Langfuse: tracing of every question, and dashboards that are defined in files."""
