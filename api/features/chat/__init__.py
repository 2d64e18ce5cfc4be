"""One chat turn: what a session remembers, looks up, says and cites."""
