"""How anything is sent to Langfuse: with its keys, and to its own host alone."""

from __future__ import annotations

import base64
from urllib.parse import urljoin

import requests

from api.services.wire import points_here, same_server
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


def basic(settings: TracingSettings) -> str:
    """The header that carries both keys."""
    secret = settings.langfuse_secret_key
    keys = f"{settings.langfuse_public_key}:{secret.get_secret_value() if secret else ''}"
    return f"Basic {base64.b64encode(keys.encode()).decode()}"
