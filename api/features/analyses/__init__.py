"""What is kept for whom: stored analyses, keys, limits and what they cost."""
