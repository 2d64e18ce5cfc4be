"""Asking Langfuse whether the keys fit, for `listenpost doctor`."""

from __future__ import annotations

import base64
from http import HTTPStatus
from http.client import HTTPMessage
from typing import IO
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from api.services.wire import points_here, same_server
from api.settings import TracingSettings

_SECONDS = 5.0


def probe(settings: TracingSettings) -> tuple[str, str]:
    """Outcome and detail of one request; blocks."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/projects"
    handlers = [_AtHome(), ProxyHandler({})] if points_here(url) else [_AtHome()]
    try:
        request = Request(url, headers={"Authorization": basic(settings)})  # noqa: S310 - the owner's
        with build_opener(*handlers).open(request, timeout=_SECONDS):
            return "ok", "it answers and takes the keys"
    except HTTPError as error:
        error.close()
        if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return "refused", "check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
        return "unreachable", f"HTTP {error.code}; check `LANGFUSE_BASE_URL`"
    except TimeoutError:
        return "timed_out", f"no answer within {_SECONDS:g} s"
    except (OSError, ValueError) as error:
        reason = type(getattr(error, "reason", error)).__name__
        return "unreachable", f"{reason}; check `LANGFUSE_BASE_URL`"


def basic(settings: TracingSettings) -> str:
    """The header that carries both keys."""
    secret = settings.langfuse_secret_key
    keys = f"{settings.langfuse_public_key}:{secret.get_secret_value() if secret else ''}"
    return f"Basic {base64.b64encode(keys.encode()).decode()}"


class _AtHome(HTTPRedirectHandler):
    """Follows no redirect to another server, since the library would send the keys along."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """None for another server, which makes the answer an error with its status."""
        if not same_server(req.full_url, newurl):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)
