"""What a tool answers when something fails that no model and no caller should be ended by."""

from __future__ import annotations

import logging

from api.errors import ListenpostError

DEFECTS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What a defect in an adapter raises; anything else is not ours to swallow."""

_log = logging.getLogger(__name__)


def told(error: Exception) -> tuple[str, str]:
    """Code and message that are safe to show; a defect is logged and named by its kind alone."""
    if isinstance(error, ListenpostError):
        return error.code, str(error)
    _log.error("a tool failed", exc_info=error)
    return "internal", f"an internal error ({type(error).__name__}); the log has the details"
