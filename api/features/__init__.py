"""Features that build on one question: stored analyses, chat, watches, comparisons and the archive."""
