"""Loopback servers of all places, OpenAI and Langfuse that behave, and the sample corpus.

All on one port; real clients are pointed at it by base URL. Everything it serves is made up.
"""
