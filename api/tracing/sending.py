"""How anything is sent to Langfuse: with its keys, to its own host, its answers within bounds."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urljoin

import httpx
import requests

from api.services.wire import TooLarge, points_here, read_all, same_server
from api.settings import TracingSettings


class HomeSession(requests.Session):
    """Carries keys and prompts, so it follows no redirect to another server.

    Langfuse on this machine is asked past every proxy.
    """

    def __init__(self, settings: TracingSettings) -> None:
        """Nothing is sent yet."""
        super().__init__()
        self.trust_env = not points_here(settings.langfuse_base_url)
        self.auth = lambda request: request  # else an entry of `.netrc` would replace the keys

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None for another server, which makes the redirect itself the answer."""
        target = super().get_redirect_target(resp)
        if target is None or not same_server(resp.url, urljoin(resp.url, target)):
            return None
        return target


class SpanSession(HomeSession):
    """Takes spans there; its answers say all there is to know in their status."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer without its body.

        Raises:
            TooManyRedirects: a redirect, which the exporter would take for success.
        """
        response = super().send(request, **{**options, "stream": True})
        response._content = b""
        response.close()
        if response.is_redirect:
            raise requests.TooManyRedirects("spans are sent to no other address")
        return response


class ScoreClient(httpx.Client):
    """Takes scores there, and reads as much of an answer as any client of ours."""

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """The answer with its body.

        Raises:
            DecodingError: it is too large.
        """
        response = super().send(request, **{**options, "stream": True})
        try:
            response._content = read_all(response.iter_bytes())
        except TooLarge as error:
            raise httpx.DecodingError(str(error), request=request) from None
        finally:
            response.close()
        return response


def basic(settings: TracingSettings) -> str:
    """The header that carries both keys."""
    secret = settings.langfuse_secret_key
    keys = f"{settings.langfuse_public_key}:{secret.get_secret_value() if secret else ''}"
    return f"Basic {base64.b64encode(keys.encode()).decode()}"
