"""Masks secrets and e-mail addresses in what is sent, and the HTTP clients that send it.

A client sends the keys to Langfuse's own host only, and reads a limited part of an answer.
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

from api.core import http_limits as limits
from api.core.addresses import points_here, same_server
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
# names whose value is a secret as a whole: `openai_api_key`, `X-Secret`, `access-token`
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_-])(?:api[_-]?key|secret(?:[_-]key)?|password|authorization|(?:access|refresh)[_-]token)$"
)
# Every text that masking changes has one of these, which are faster to search than the patterns:
# the beginning or name of a secret, or one of its letters, or a lone surrogate, in JSON's escapes.
_HINTS = (
    *("@", "sk-", "pk-", "aiza", "bearer", "basic"),
    *(f"{name}=" for name in ("key", "token", "secret", "password", "sig")),
    *("api_key", "api-key", "apikey", "secret", "password", "authorization"),
    *(f"{kind}{sign}token" for kind in ("access", "refresh") for sign in "_-"),
    *("\\u00", "\\u017f", "\\u212a", "\\ud"),
)


def mask(value: Any) -> Any:
    """The value with secrets masked in every text, and all of what is named `api_key` or so.

    JSON text stays valid JSON; lone surrogates, which protobuf cannot hold, become `?`.
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
            name: MASKED if part and isinstance(name, str) and _SECRET_NAME.search(name) else mask(part)
            for name, part in value.items()
        }
    return [mask(part) for part in value] if isinstance(value, (list, tuple)) else value


class HomeSession(requests.Session):
    """Sends the keys: no redirect to another server, and no proxy to one on this machine."""

    def __init__(self, settings: TracingSettings) -> None:
        super().__init__()
        self.trust_env = not points_here(settings.langfuse_base_url)
        self.max_redirects = limits.REDIRECTS
        self.headers["Authorization"] = basic(settings)
        self.auth = lambda request: request  # else an entry of `.netrc` would replace the keys

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """None for another server: then the redirect itself is the answer."""
        target = super().get_redirect_target(resp)
        if target is None or not same_server(resp.url, urljoin(resp.url, target)):
            return None
        return target


class SpanSession(HomeSession):
    """Sends spans; only the status of an answer is read."""

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
    """Sends scores, and reads as much of an answer as our other clients."""

    def __init__(self, *, trust_env: bool = True, **options: Any) -> None:
        verify = limits.tls_context(httpx.create_ssl_context, trust_env)
        super().__init__(trust_env=trust_env, verify=verify, **options)

    def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        """The answer with its body.

        Raises:
            DecodingError: it is too large.
        """
        response = super().send(request, **{**options, "stream": True})
        try:
            response._content = limits.read_all(response.iter_bytes())
        except limits.TooLarge as error:
            raise httpx.DecodingError(str(error), request=request) from None
        finally:
            response.close()
        return response


def basic(settings: TracingSettings) -> str:
    """The value of the header `Authorization` with both keys."""
    secret = settings.langfuse_secret_key
    keys = f"{settings.langfuse_public_key}:{secret.get_secret_value() if secret else ''}"
    return f"Basic {base64.b64encode(keys.encode()).decode()}"
