"""Asking Langfuse whether the keys fit, for `listenpost doctor`."""

from __future__ import annotations

from http import HTTPStatus

import requests

from api.services.wire import REDIRECTS, no_connection
from api.settings import TracingSettings
from api.tracing.sending import HomeSession, basic

_SECONDS = 5.0


def probe(settings: TracingSettings) -> tuple[str, str]:
    """Outcome and detail of one request; blocks."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/projects"
    headers = {"Authorization": basic(settings)}
    with HomeSession(settings) as session:
        session.max_redirects = REDIRECTS
        try:
            with session.get(url, headers=headers, timeout=_SECONDS, stream=True) as response:
                status = response.status_code
        except requests.Timeout:
            return "timed_out", f"no answer within {_SECONDS:g} s"
        except (OSError, ValueError) as error:
            return "unreachable", f"{no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "refused", "check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if status != HTTPStatus.OK:
        return "unreachable", f"HTTP {status}; check `LANGFUSE_BASE_URL`"
    return "ok", "it answers and takes the keys"
