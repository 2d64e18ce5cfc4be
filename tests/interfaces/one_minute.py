"""Limits by the minute, tested without the end of one."""

from __future__ import annotations

from dataclasses import replace

from api.bootstrap.app_context import AppContext
from api.features.analyses.limits import utc_now


def within_one_minute(app_context: AppContext) -> AppContext:
    """The context, whose limits count all requests to the minute in which it was opened."""
    opened = utc_now()
    app_context.limits = replace(app_context.limits, clock=lambda: opened)
    return app_context
