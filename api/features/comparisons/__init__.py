"""Comparison of products: the same question for each, and which differences may be stated."""
