"""Loopback servers that emulate all sources, OpenAI and Langfuse, and the sample corpus.

All on one port; real clients are pointed at it by base URL. All posts are invented.
"""
