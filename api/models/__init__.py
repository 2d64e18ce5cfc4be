"""Calls of language models, and the judge on this machine."""
