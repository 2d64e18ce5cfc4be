"""What is built on one question: stored analyses, chat, watches, comparisons and the archive."""
