"""The model server: one question in, one text and its cost out; the only importer of openai.

Everything that can go wrong leaves as a `ModelError` with a reason code. Retries, waiting and the
limit on calls under way sit in the HTTP client, so the report writer's calls obey them too.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any
from urllib.parse import urlsplit

import genai_prices
import httpx2
import openai
from openai import AsyncOpenAI

from api.errors import ModelError, building
from api.judges import Limiter
from api.judges.answers import STAND_IN, Completion, Tokens, read_completion
from api.services.wire import (
    REDIRECTS,
    TOO_LARGE,
    TooLarge,
    points_here,
    read_all_async,
    same_server,
    wait_of,
)
from api.settings import ModelSettings

_CONNECT_SECONDS = 3.0
_PAUSE_SECONDS = 0.5
_DROPPED = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion that must answer in JSON."""

    name: str
    """Name of the schema on the wire."""
    schema: Mapping[str, Any]
    system: str
    user: str
    max_tokens: int
    model: str
    seconds: float
    """Deadline in real time, retries and waiting for a free slot included."""


class ModelClient:
    """Asks one OpenAI-compatible server; belongs to one event loop."""

    def __init__(self, settings: ModelSettings, limiter: Limiter | None = None) -> None:
        """Opens nothing; a missing key shows when something is asked."""
        self._settings = settings
        self._limiter = limiter or Limiter(settings.model_concurrency)
        self._schemas_rejected = False

    @cached_property
    def openai(self) -> AsyncOpenAI:
        """The library's client, for building on; its calls obey limit and retry too.

        Raises:
            ModelError: `no_key`, `unauthorized` for a key that no header can carry, `unreachable`
                for a variable that the library cannot read.
        """
        secret, url = self._settings.openai_api_key, self._settings.openai_base_url
        key = secret.get_secret_value().strip() if secret else ""
        if not key:
            raise ModelError("no_key", "set `OPENAI_API_KEY`")
        if not re.fullmatch(r"[!-~]+", key):  # what a header can carry: `sk-...`
            raise ModelError(
                "unauthorized", "`OPENAI_API_KEY` holds a blank or a non-ASCII character"
            )
        try:  # a wrong port fails deep in the library
            _ = urlsplit(url).port
        except ValueError:
            raise ModelError("unreachable", "`OPENAI_BASE_URL` is not a URL") from None
        timeout = httpx2.Timeout(self._settings.report_timeout, connect=_CONNECT_SECONDS)
        with building(partial(ModelError, "unreachable")):
            http = _PatientHttp(
                self._limiter,
                timeout=timeout,
                limits=httpx2.Limits(max_connections=64, max_keepalive_connections=16),
                trust_env=not points_here(url),
            )
            return AsyncOpenAI(
                api_key=key, base_url=url, timeout=timeout, max_retries=0, http_client=http
            )

    async def ask(self, request: Request) -> Completion:
        """One completion at temperature 0; a server that rejects the schema is asked without it.

        Raises:
            ModelError: no complete answer within the deadline; `reason` says why.
        """
        try:
            async with asyncio.timeout(request.seconds):
                body = await self._complete(request)
        except (TimeoutError, openai.APITimeoutError):
            raise ModelError("timeout", f"no answer within {request.seconds:g} s") from None
        except (openai.OpenAIError, httpx2.InvalidURL) as error:
            raise _model_error(error) from None
        return read_completion(body, request.model, price)

    async def probe(self) -> tuple[str, str]:
        """Outcome and detail of listing the server's models, which costs nothing."""
        try:
            async with asyncio.timeout(2 * _CONNECT_SECONDS):
                await self.openai.models.with_raw_response.list()
        except openai.NotFoundError:
            return "ok", "it answers, but does not list its models"
        except (TimeoutError, openai.APITimeoutError):
            return "timed_out", f"no answer within {2 * _CONNECT_SECONDS:g} s"
        except (openai.AuthenticationError, openai.PermissionDeniedError):
            return "refused", "check `OPENAI_API_KEY`"
        except ModelError as error:
            return "unreachable", error.detail
        except (openai.OpenAIError, httpx2.InvalidURL) as error:
            return "unreachable", f"{_model_error(error).reason}; check `OPENAI_BASE_URL`"
        return "ok", "it answers and takes the key"

    async def aclose(self) -> None:
        """Close the connections; the client is not used again."""
        if "openai" in self.__dict__:
            await self.openai.close()

    async def _complete(self, request: Request) -> bytes:
        if self._schemas_rejected:
            return await self._post(request, openai.omit)
        schema = {"name": request.name, "strict": True, "schema": dict(request.schema)}
        try:
            return await self._post(request, {"type": "json_schema", "json_schema": schema})
        except openai.APIStatusError as error:
            words = error.response.text
            named = "response_format" in words or "json_schema" in words
            if error.status_code not in {400, 422} or not named:
                raise
            self._schemas_rejected = True
        return await self._post(request, openai.omit)

    async def _post(self, request: Request, response_format: Any) -> bytes:
        raw = await self.openai.chat.completions.with_raw_response.create(
            model=request.model,
            temperature=0,
            max_completion_tokens=request.max_tokens,
            messages=[
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            response_format=response_format,
            timeout=httpx2.Timeout(request.seconds, connect=min(_CONNECT_SECONDS, request.seconds)),
        )
        return raw.content


class _PatientHttp(httpx2.AsyncClient):
    """Holds a slot for each request and retries once, if the wait fits the request's timeout."""

    def __init__(self, limiter: Limiter, **options: Any) -> None:
        super().__init__(**options)
        self._limiter = limiter

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Send, and send once more after a dropped connection, 408, 409, 429 or 5xx."""
        now = asyncio.get_running_loop().time
        until = now() + (request.extensions.get("timeout", {}).get("read") or math.inf)
        try:
            response = await self._once(request, stream, options)
        except _DROPPED:
            pause = _PAUSE_SECONDS
            if now() + pause >= until:
                raise
        else:
            pause = await _pause(response)
            if now() + pause >= until or pause == math.inf:
                return response
            await response.aclose()
        await asyncio.sleep(pause)
        return await self._once(request, stream, options)

    async def _once(
        self, request: httpx2.Request, stream: bool, options: Mapping[str, Any]
    ) -> httpx2.Response:
        slots = self._limiter.slots()
        await slots.acquire()
        with ExitStack() as held:
            held.callback(slots.release)
            response = await self._follow(request, options)
            if stream:
                response.stream = _Held(response.stream, held.pop_all().close)
                return response
            try:
                async with aclosing(response.aiter_bytes()) as chunks:
                    response._content = await read_all_async(chunks)
            except TooLarge:
                raise _NotTaken("malformed", TOO_LARGE, request) from None
            finally:
                await response.aclose()
        return response

    async def _follow(self, request: httpx2.Request, options: Mapping[str, Any]) -> httpx2.Response:
        """The answer, after redirects within the server; no body of one is read."""
        for _ in range(REDIRECTS + 1):
            response = await super().send(
                request, **{**options, "stream": True, "follow_redirects": False}
            )
            following = response.next_request
            if following is None:
                return response
            await response.aclose()
            if not same_server(str(request.url), str(following.url)):
                raise _NotTaken("unreachable", "it redirects to another host", request)
            request = following
        raise _NotTaken("unreachable", f"it redirects more than {REDIRECTS} times", request)


class _NotTaken(httpx2.RequestError):
    """An answer that is too large, or a redirect with which prompt and key would go along."""

    def __init__(self, reason: str, detail: str, request: httpx2.Request) -> None:
        """`reason` as in `ModelError`; `detail` in our words."""
        super().__init__(detail, request=request)
        self.reason = reason


class _Held(httpx2.AsyncByteStream):
    """A streamed body that gives its slot back when it has ended or is closed."""

    def __init__(self, body: Any, free: Callable[[], None]) -> None:
        self._body, self._free = body, free

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            yield chunk
        self._free()

    async def aclose(self) -> None:
        self._free()
        await self._body.aclose()


async def _pause(response: httpx2.Response) -> float:
    """Seconds until the request may be sent again; infinite when that makes no sense."""
    status, headers = response.status_code, response.headers
    if status < 500 and status not in {408, 409, 429}:
        return math.inf
    if headers.get("x-should-retry") == "false":
        return math.inf
    if status == 429 and b"insufficient_quota" in await response.aread():
        return math.inf
    wait = wait_of(headers)
    return _PAUSE_SECONDS if wait is None else wait


def price(tokens: Tokens, model: str) -> float | None:
    """USD by the library's table of list prices; None when the model is not in it."""
    if model == STAND_IN:
        return 0.0
    used = genai_prices.Usage(
        input_tokens=tokens.prompt_tokens,
        cache_read_tokens=tokens.cached,
        output_tokens=tokens.completion_tokens,
    )
    try:
        return float(genai_prices.calc_price(used, model, provider_id="openai").total_price)
    except (LookupError, ValueError):
        return None


def _model_error(error: openai.OpenAIError | httpx2.InvalidURL) -> ModelError:
    """Our reason for the library's error, without a word the server said."""
    if isinstance(error.__cause__, _NotTaken):
        cause = error.__cause__
        return ModelError(cause.reason, f"{cause}; check `OPENAI_BASE_URL`")
    if isinstance(error.__cause__, httpx2.DecodingError):
        return ModelError("malformed", "the answer cannot be decoded; check `OPENAI_BASE_URL`")
    if not isinstance(error, openai.APIStatusError):
        return ModelError("unreachable", "no connection; check `OPENAI_BASE_URL`")
    status = f"HTTP {error.status_code}"
    if error.status_code in {401, 403}:
        return ModelError("unauthorized", f"{status}; check `OPENAI_API_KEY`")
    if error.status_code == 429 and "insufficient_quota" in error.response.text:
        return ModelError("quota", f"{status}; the account's quota is used up")
    if error.status_code == 429:
        return ModelError("rate_limited", f"{status}; lower `LISTENPOST_MODEL_CONCURRENCY`")
    if error.status_code == 400 and error.code == "content_filter":
        return ModelError("filtered", f"{status}; the server's content filter stopped the question")
    if error.status_code == 404:
        return ModelError("http_error", f"{status}; check `OPENAI_BASE_URL` and the model's name")
    return ModelError("http_error", status)
