"""Why a message did not arrive."""

from __future__ import annotations

from api.services.watching.run import Failure


class Undelivered(Exception):
    """A message did not arrive: `failure` for programs, the words, with what helps, for people."""

    def __init__(self, failure: Failure, reason: str, *, again: bool = False) -> None:
        """`again`: another try may succeed."""
        super().__init__(reason)
        self.failure, self.reason, self.again = failure, reason, again
