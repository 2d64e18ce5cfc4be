"""Client of an OpenAI-compatible server; the only file that imports openai.

Every failure leaves as a `ModelError` with a reason code. Retries, dialects and the limit on
concurrent calls are in the HTTP client, so the report writer's calls obey them too.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache, partial
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import genai_prices
import httpx2
import openai
from openai import AsyncOpenAI
from pydantic import TypeAdapter

from api.core import http_limits as limits
from api.core.addresses import points_here, same_server
from api.core.client_pool import ClientPool
from api.core.shared_answers import AnswerMemory, SharedAnswers, shared_run
from api.core.text import estimated_tokens
from api.errors import ModelError, construction_failures_as
from api.models.answer_parsing import STAND_IN, Completion, Tokens, read_completion
from api.models.dialects import ModelCallLimiter, has_no_tools, is_too_long, object_of, stated_context, status_of
from api.reports.report_writing import ReportForm
from api.settings import ModelSettings

_CONNECT_SECONDS = 3.0
_PAUSE_SECONDS = 0.5
# Tokens of a chat template around two messages, and the share of `max_tokens` that must be left for
# an answer where the context is known.
_TEMPLATE_TOKENS, _LEAST_ANSWER = 24, 0.25
# extension of a response: bodies of earlier empty answers, which are paid for
_EARLIER = "listenpost.earlier"
_PLAIN_HEADERS = {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "user-agent"}
_COMPLETION = TypeAdapter(Completion)
_Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
_DISCONNECTED = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)


@dataclass(frozen=True, slots=True)
class Request:
    """One chat completion with a JSON answer."""

    name: str  # name of the schema as sent
    schema: Mapping[str, Any]
    system: str
    user: str
    max_tokens: int
    model: str
    seconds: float  # deadline for the answer, retries included; counts from when a slot is free
    partial: bool = False  # whether an answer that was cut is wanted, too


class ModelClient:
    """Asks one server; belongs to one event loop. A missing key shows at the first call."""

    def __init__(
        self, settings: ModelSettings, limiter: ModelCallLimiter | None = None, memory: AnswerMemory | None = None,
        *, key_alone: bool = False,
    ) -> None:  # fmt: skip
        """`memory` keeps what scheduled runs share; `key_alone`: see `_keep_key_alone`."""
        self._settings, self._answers, self._key_alone = settings, SharedAnswers(memory), key_alone
        self._limiter = limiter or ModelCallLimiter(settings.model_concurrency)

    @cached_property
    def openai(self) -> AsyncOpenAI:
        """The library's client, for use by other libraries; its calls obey the concurrency limit and retries.

        Raises `ModelError`: `no_key`, `unauthorized` for a key that no header can hold, or
        `unreachable` for a variable that the library cannot read.
        """
        secret, url = self._settings.openai_api_key, self._settings.openai_base_url
        key = secret.get_secret_value().strip() if secret else ""
        if not key:
            raise ModelError("no_key", "set `OPENAI_API_KEY`")
        if not re.fullmatch(r"[!-~]+", key):  # what a header can carry: `sk-...`
            what = "`OPENAI_API_KEY` holds a blank or a non-ASCII character"
            raise ModelError("unauthorized", what)
        try:  # a wrong port fails deep in the library
            parts = urlsplit(url)
            _ = parts.port
        except ValueError:
            raise ModelError("unreachable", "`OPENAI_BASE_URL` is not a URL") from None
        timeout = httpx2.Timeout(self._settings.report_timeout, connect=_CONNECT_SECONDS)
        trust_env = not points_here(url)
        with construction_failures_as(partial(ModelError, "unreachable")):
            verify = limits.tls_context(httpx2.create_ssl_context, trust_env)
            unlimited = httpx2.Limits(max_connections=None)
            http = _RetryingClient(
                self._limiter, url, timeout=timeout, limits=unlimited, trust_env=trust_env,
                verify=verify, event_hooks={"request": [partial(_keep_key_alone, key)] if self._key_alone else []},
            )  # fmt: skip
            return AsyncOpenAI(
                api_key=key, base_url=urlunsplit(parts._replace(query="", fragment="")),
                # `?api-version=2024-10-21`
                default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
                timeout=timeout, max_retries=0, http_client=http,
            )  # fmt: skip

    async def ask_fenced(self, request: Request, nonce: str, read: Callable[[str], object]) -> Completion:
        """See `ask`; scheduled runs share the answers to requests that differ in the nonce of their fence alone.

        One that was cut, or that `read` refuses by a `ModelError`, serves its own run alone.
        """
        if shared_run() is None:
            return await self.ask(request)
        written = json.dumps(asdict(request)).replace(nonce, "")
        question = ("model", self._settings.openai_base_url, self._settings.reasoning_effort, written)

        def is_usable(completion: Completion) -> bool:
            with suppress(ModelError):
                read(completion.text)
                return not completion.cut
            return False

        return await self._answers.answer(question, _COMPLETION, partial(self.ask, request), is_usable)

    async def ask(self, request: Request) -> Completion:
        """One completion at temperature 0, in the server's dialect; raises `ModelError`.

        What cannot fit a known context is `too_long` without being sent; where the refusal first
        states the context, and the question fits it with a shorter answer, it is asked once more.
        """
        most = self._answer_tokens(request)
        try:
            return await self._ask(request, most)
        except ModelError as error:
            if error.reason != "too_long" or (fewer := self._answer_tokens(request)) == most:
                raise
            return await self._ask(request, fewer)

    def _answer_tokens(self, request: Request) -> int:
        """The tokens that an answer may have, by the model's context as far as it is known."""
        context = self.context(request.model)
        if context is None:
            return request.max_tokens
        room = context - estimated_tokens(request.system) - estimated_tokens(request.user) - _TEMPLATE_TOKENS
        if room < request.max_tokens * _LEAST_ANSWER:
            raise ModelError("too_long", f"the model's context holds {context} tokens")
        return min(request.max_tokens, room)

    async def _ask(self, request: Request, most: int) -> Completion:
        seconds, effort = request.seconds, self._settings.reasoning_effort
        schema = {"name": request.name, "strict": True, "schema": dict(request.schema)}
        shape = {"type": "json_schema", "json_schema": schema}
        body = {
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.user},
            ],
            "model": request.model,
            "max_completion_tokens": most,
            "response_format": shape,
            "temperature": 0,
            **({"reasoning_effort": effort} if effort else {}),
        }
        timeout = httpx2.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))
        with _as_model_errors(seconds):
            # not by `chat.completions.create`, which compares the whole body with type hints: 1 ms of processor time
            answer = await self.openai.post(
                "/chat/completions", body=body, cast_to=httpx2.Response, options={"timeout": timeout}
            )
        earlier = answer.extensions[_EARLIER]
        price = partial(self.price, requested=request.model)
        return read_completion(answer.content, request.model, price, earlier, partial=request.partial)

    async def embed(self, texts: Sequence[str], model: str, dimensions: int | None, seconds: float) -> bytes:
        """The body of one answer of `/v1/embeddings`.

        Raises:
            ModelError: `too_long` where the server refuses these texts, as it may for their length or their number.
        """
        with _as_model_errors(seconds, refused={400, 413, 422}):
            raw = await self.openai.embeddings.with_raw_response.create(
                model=model,
                input=list(texts),
                dimensions=dimensions or openai.omit,
                encoding_format="float",
                timeout=httpx2.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds)),
            )
        return raw.content

    def price(self, tokens: Tokens, model: str, requested: str = "") -> float | None:
        """See `price_of`."""
        return price_of(self._settings, tokens, model, requested)

    def context(self, model: str) -> int | None:
        """Tokens of prompt and answer together, as configured or stated in a refusal; None when unknown."""
        return self._settings.model_context or self._limiter.dialects.contexts.get(self._key(model))

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return points_here(self._settings.openai_base_url)

    def report_form(self, model: str) -> ReportForm | None:
        """The form in which this model gave a report last."""
        return self._limiter.dialects.forms.get(self._key(model))

    def learn_report_form(self, model: str, form: ReportForm) -> None:
        """Remember that form for the process."""
        self._limiter.dialects.forms[self._key(model)] = form

    def _key(self, model: str) -> tuple[str, str]:
        return self._settings.openai_base_url, model

    def adaptations(self, model: str) -> list[str]:
        """Names of the adaptations that this model needs, as `doctor` shows them."""
        dialect = self._limiter.dialects.of(self._settings.openai_base_url, model)
        return [adaptation.name for adaptation in dialect.adaptations]

    async def aclose(self) -> None:
        """Close the connections for good."""
        if "openai" in self.__dict__:
            await self.openai.close()


async def _keep_key_alone(key: str, request: httpx2.Request) -> None:
    """Take out of a request what the library adds from `OPENAI_CUSTOM_HEADERS`, `OPENAI_ORG_ID` and the like."""
    for name in set(request.headers):
        if name not in _PLAIN_HEADERS and not name.startswith("x-stainless-"):  # which the library reads itself
            del request.headers[name]
    request.headers["authorization"] = f"Bearer {key}"


class _RetryingClient(httpx2.AsyncClient):
    """Sends a request when a slot is free, in the server's dialect, and retries once.

    The slot is held until the answer is read, or its stream ends. The seconds of a request (its
    read timeout) begin with the slot, since waiting for one is not the server's fault.
    """

    def __init__(self, limiter: ModelCallLimiter, server: str, **options: Any) -> None:
        super().__init__(**options)
        self._limiter, self._server = limiter, server
        self._clients = ClientPool(partial(httpx2.AsyncClient, **options))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()
        await super().aclose()

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """The answer; after a refused feature, or reasoning alone, that of a changed request."""
        slots = self._limiter.slots()
        await slots.acquire()
        with ExitStack() as held:
            held.callback(slots.release)
            await self._clients.close_idle()
            client = held.enter_context(self._clients.lent())
            send = partial(client.send, **{**options, "stream": True, "follow_redirects": False})
            seconds = request.extensions.get("timeout", {}).get("read")
            try:
                async with asyncio.timeout(seconds) as deadline:
                    until = deadline.when() or math.inf
                    response = await self._in_dialect(request, stream, send, until)
            except TimeoutError:
                raise httpx2.ReadTimeout("no whole answer in time", request=request) from None
            if not response.is_closed:
                response.stream = _SlotStream(response.stream, held.pop_all().close)
            return response

    async def _in_dialect(self, request: httpx2.Request, stream: bool, send: _Send, until: float) -> httpx2.Response:
        body = json.loads(request.content) if request.content else {}
        dialects, model = self._limiter.dialects, body.get("model")
        known = dialect = dialects.of(self._server, model)
        earlier: list[bytes] = []
        while True:
            adapted = request
            if (changed := dialect.adapted(body)) != body:
                headers = {n: v for n, v in request.headers.items() if n != "content-length"}
                adapted = httpx2.Request(
                    request.method, request.url,
                    headers=headers, json=changed, extensions=request.extensions,
                )  # fmt: skip
            response = await self._retried(adapted, stream, send, until)
            response.extensions[_EARLIER] = earlier
            if not response.is_closed:  # a stream that has begun
                break
            further = dialect.next_for(body, response.status_code, response.content)
            if further is None:
                break
            if response.is_success:
                earlier.append(response.content)
            dialect = further
        if response.is_success and dialect is not known:
            dialects.learn(self._server, model, dialect)
        if response.is_error and response.status_code not in {404, 429} and is_too_long(response.content):
            if (context := stated_context(response.content)) is not None:
                dialects.contexts[self._server, str(model)] = context
            raise _UnusableResponse("too_long", "the question does not fit the model's context", request, "")
        return response

    async def _retried(self, request: httpx2.Request, stream: bool, send: _Send, until: float) -> httpx2.Response:
        """The answer; once more after a dropped connection, 408, 409, 429 or 5xx, if that fits."""
        now = asyncio.get_running_loop().time
        try:
            response = await self._once(request, stream, send)
        except _DISCONNECTED:
            pause = _PAUSE_SECONDS
            if now() + pause >= until:
                raise
        else:
            pause = _pause(response)
            if now() + pause >= until or pause == math.inf:
                return response
        await asyncio.sleep(pause)
        return await self._once(request, stream, send)

    async def _once(self, request: httpx2.Request, stream: bool, send: _Send) -> httpx2.Response:
        """The answer, read unless it is a stream; an error in a 200 becomes the status it means."""
        response = await self._follow(request, send)
        whole = response.headers.get("content-type", "").startswith("application/json")
        if stream and response.is_success and not whole:
            return response
        try:
            async with aclosing(response.aiter_bytes()) as chunks:
                response._content = await limits.read_all_async(chunks)
        except (limits.TooLarge, httpx2.DecodingError) as error:
            large = isinstance(error, limits.TooLarge)
            what = limits.TOO_LARGE if large else "the answer cannot be decoded"
            raise _UnusableResponse("malformed", what, request) from None
        finally:
            await response.aclose()
        if response.is_success and (meant := status_of(response.content)):
            response.status_code = meant
        if response.is_success and not object_of(response.content):
            raise _UnusableResponse("malformed", "the answer is no JSON object", request)
        return response

    async def _follow(self, request: httpx2.Request, send: _Send) -> httpx2.Response:
        """The answer after redirects within the server; bodies of redirects are not read."""
        for _ in range(limits.REDIRECTS + 1):
            response = await self._connected(request, send)
            following = response.next_request
            if following is None:
                return response
            await response.aclose()
            if not same_server(str(request.url), str(following.url)):
                raise _UnusableResponse("unreachable", "it redirects to another host", request)
            request = following
        what = f"it redirects more than {limits.REDIRECTS} times"
        raise _UnusableResponse("unreachable", what, request)

    async def _connected(self, request: httpx2.Request, send: _Send) -> httpx2.Response:
        """The answer's head; a kept connection that turns out dead is replaced by the next."""
        while True:
            request.extensions = {**request.extensions, "trace": (trace := limits.Connecting())}
            try:
                return await send(request)
            except _DISCONNECTED:
                if trace.fresh:
                    raise


class _UnusableResponse(httpx2.RequestError):
    """An answer that cannot be read, a redirect, or a question that is too long, with our `meaning`."""

    def __init__(
        self, reason: str, detail: str, request: httpx2.Request, remedy: str = "; check `OPENAI_BASE_URL`"
    ) -> None:
        super().__init__(detail, request=request)
        self.meaning = ModelError(reason, detail + remedy)


class _SlotStream(httpx2.AsyncByteStream):
    """A streamed body that calls `free` once it has ended or is closed."""

    def __init__(self, body: Any, free: Callable[[], None]) -> None:
        self._body, self._free = body, free

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._body:
            yield chunk
        self._free()

    async def aclose(self) -> None:
        self._free()
        await self._body.aclose()


def _pause(response: httpx2.Response) -> float:
    """Seconds until the request may be sent again; infinite: a retry would not help."""
    status, headers = response.status_code, response.headers
    permanent = status < 500 and status not in {408, 409, 429}
    unpaid = status == 429 and b"insufficient_quota" in response.content
    unfit = status >= 500 and (is_too_long(response.content) or has_no_tools(response.content))
    if permanent or unpaid or unfit or headers.get("x-should-retry") == "false":
        return math.inf
    wait = limits.wait_of(headers)
    return _PAUSE_SECONDS if wait is None else wait


def price_of(models: ModelSettings, tokens: Tokens, model: str, requested: str = "") -> float | None:
    """Price of a model's tokens in USD, from the settings or the list prices; None when unknown.

    A model of this machine that has neither costs nothing. A server may call its model by another
    name than the one that was `requested`.
    """
    if model == STAND_IN:
        return 0.0
    stated = models.stated_prices
    if (each := next((stated[name] for name in (requested, model, "*") if name in stated), None)) is not None:
        return (tokens.prompt_tokens * each[0] + tokens.completion_tokens * each[1]) / 1_000_000
    try:
        return _list_price(model, tokens.prompt_tokens, tokens.cached, tokens.completion_tokens)
    except (LookupError, ValueError):
        return 0.0 if points_here(models.openai_base_url) else None


@lru_cache(maxsize=1_000)  # 2 ms each, and the estimates of many questions at once are the same few
def _list_price(model: str, read: int, cached: int, written: int) -> float:
    used = genai_prices.Usage(input_tokens=read, cache_read_tokens=cached, output_tokens=written)
    return float(genai_prices.calc_price(used, model, provider_id="openai").total_price)


class RunTokens(Protocol):
    """The tokens that a run of an agent used, as pydantic-ai counts them."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int


def price_of_run(models: ModelSettings, usage: RunTokens) -> float | None:
    """Price in USD of a run of the report writer or a chat; None when the model's price is unknown."""
    tokens = Tokens.model_validate(
        {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        }
    )
    return price_of(models, tokens, models.agent_model)


@contextmanager
def _as_model_errors(seconds: float, refused: Collection[int] = ()) -> Iterator[None]:
    """Raises our errors for the library's; `refused` are the statuses that mean `too_long`."""
    try:
        yield
    except openai.APITimeoutError:
        raise ModelError("timeout", f"no answer within {seconds:g} s") from None
    except (openai.OpenAIError, httpx2.InvalidURL) as error:
        if isinstance(error, openai.APIStatusError) and error.status_code in refused:
            raise ModelError("too_long", f"HTTP {error.status_code}; the server refuses the texts") from None
        raise _model_error(error) from None


def _model_error(error: openai.OpenAIError | httpx2.InvalidURL) -> ModelError:
    """The `ModelError` for an error of the library; it repeats no text of the server."""
    if isinstance(error.__cause__, _UnusableResponse):
        return error.__cause__.meaning
    if not isinstance(error, openai.APIStatusError):
        return ModelError("unreachable", "no connection; check `OPENAI_BASE_URL`")
    status = f"HTTP {error.status_code}"
    if error.status_code in {401, 403}:
        return ModelError("unauthorized", f"{status}; check `OPENAI_API_KEY`")
    unpaid = error.status_code == 429 and "insufficient_quota" in error.response.text
    if error.status_code == 402 or unpaid:
        return ModelError("quota", f"{status}; the account's quota is used up")
    if error.status_code == 429:
        return ModelError("rate_limited", f"{status}; lower `LISTENPOST_MODEL_CONCURRENCY`")
    if error.status_code == 400 and error.code == "content_filter":
        return ModelError("filtered", f"{status}; the server's content filter stopped the question")
    if error.status_code == 404:
        return ModelError("http_error", f"{status}; check `OPENAI_BASE_URL` and the model's name")
    return ModelError("http_error", status)
