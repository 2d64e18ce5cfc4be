"""Secrets and e-mail addresses out of everything that is sent: pure functions over any value.

How anything is sent to Langfuse: with its keys, to its own host, its answers within bounds.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urljoin

import httpx
import requests

from api.core.http_limits import TooLarge, points_here, read_all, same_server, tls_context
from api.settings import TracingSettings

MASKED = "[masked]"

_PATTERNS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # keys by their form: `sk-proj-...`, `pk-lf-...`, then Google's `AIza...`
        (r"(?<![A-Za-z0-9])(?:sk|pk)-[A-Za-z0-9_-]{6,}", MASKED),
        (r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{20,}", MASKED),
        # what a header carries: `Bearer eyJ...`, `Basic cGs6c2s=`
        (r"(?i)\b(bearer[ \t]+)[^\s\"'<>,;]{6,}", rf"\1{MASKED}"),
        (r"(?i)\b(basic[ \t]+)[a-z0-9+/]{16,}={0,2}", rf"\1{MASKED}"),
        # a query's secret, `?api_key=...`, and a user in a URL, `https://ada:pw@host`
        (r"(?i)([?&;][\w-]{0,24}(?:key|token|secret|password|sig)=)[^&\s\"'<>\\]+", rf"\1{MASKED}"),
        (r"(?i)(\bhttps?://)[^\s/@\"'<>]{1,256}@", rf"\1{MASKED}@"),
        # an e-mail address, its parts bounded so that no long text takes quadratic time; one that
        # was shown has U+200B where it would be a link, `ada<U+200B>@example.org`
        (
            r"(?<![\w.%+-])[\w.%+-]{1,64}\u200b?@\u200b?"
            r"[a-zA-Z0-9-]{1,63}(?:\u200b?\.\u200b?[a-zA-Z0-9-]{1,63}){1,8}",
            MASKED,
        ),
    )
)
# names whose whole value is a secret: `openai_api_key`, `X-Secret`, `access-token`
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?key|secret(?:[_-]key)?|password|authorization|(?:access|refresh)[_-]token)$"
)


# One of these is in every text that masking changes: a secret's beginning, a name of one, or a
# letter of them or a lone surrogate as JSON may write it.
_HINTS = (
    *("@", "sk-", "pk-", "aiza", "bearer", "basic"),
    *(f"{name}=" for name in ("key", "token", "secret", "password", "sig")),
    *("api_key", "api-key", "apikey", "secret", "password", "authorization"),
    *(f"{kind}{sign}token" for kind in ("access", "refresh") for sign in "_-"),
    *("\\u00", "\\u017f", "\\u212a", "\\ud"),
)


def mask(value: Any) -> Any:
    """The same value with secrets masked in every text, and whole under a name such as `api_key`.

    Text that is JSON stays valid JSON; lone surrogates, which no protobuf can carry, become `?`.
    """
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-8", "replace").decode()
        folded = text.casefold()
        if not any(hint in folded for hint in _HINTS):
            return text
        if text.startswith(("{", "[", '"')):
            with suppress(ValueError, RecursionError):
                document = json.loads(text)
                masked = mask(document)
                return text if masked == document else json.dumps(masked)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        return text
    if isinstance(value, Mapping):
        return {
            name: MASKED
            if part and isinstance(name, str) and _SECRET_NAME.search(name)
            else mask(part)
            for name, part in value.items()
        }
    return [mask(part) for part in value] if isinstance(value, (list, tuple)) else value


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

    def __init__(self, *, trust_env: bool = True, **options: Any) -> None:
        """Its options are those of `httpx.Client`."""
        verify = tls_context(httpx.create_ssl_context, trust_env)
        super().__init__(trust_env=trust_env, verify=verify, **options)

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
