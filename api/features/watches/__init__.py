"""Watches: a question that is asked again and again, and what has changed meanwhile."""
