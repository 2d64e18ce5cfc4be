"""Stored analyses of each tenant, with API keys, limits, corrections and statistics."""
