"""One app's metrics, made when they are first needed: their library is no part of getting ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

if TYPE_CHECKING:
    from api.faces.web.metrics import Metrics


def counted(app: FastAPI) -> Metrics:
    """The app's own counters."""
    from api.faces.web.metrics import Metrics

    made: Metrics | None = getattr(app.state, "metrics", None)
    if made is None:
        made = app.state.metrics = Metrics()
    return made
