"""Prompts with a label from the Langfuse project; the package's prompt when the project has none."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import cached_property
from http import HTTPStatus
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BaseModel, PositiveInt, StrictStr, ValidationError

from api.core import http_limits as limits
from api.core.addresses import points_here
from api.core.prompts import NAMES, Prompt, PromptName, packaged
from api.core.text import clean
from api.core.work import SharedTasks
from api.errors import ConfigurationError, construction_failures_as
from api.langfuse.tracing.masking import basic
from api.settings import TracingSettings

_log = logging.getLogger("api.langfuse.tracing")
_KEYS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class _Version(BaseModel):
    prompt: StrictStr
    version: PositiveInt


class _Unusable(Exception):
    """Langfuse has no usable prompt; the message says why."""


class _Unread(Exception):
    """The prompt could not be read; the message says why."""


class LangfusePrompts:
    """Reads all prompts when one is needed, and again after `prompt_ttl` seconds; implements `Prompts`.

    Belongs to one event loop. Nobody waits longer than `prompt_timeout`; after a failure the last
    prompts that were read stay in use for `prompt_ttl`.
    """

    def __init__(
        self,
        settings: TracingSettings,
        linked: Callable[[Prompt], AbstractContextManager[None]] = lambda prompt: nullcontext(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`linked` is entered around calls with a prompt; `clock` counts seconds."""
        self._settings, self._linked, self._clock = settings, linked, clock
        self._reading: SharedTasks[None, None] = SharedTasks()
        self._until: float | None = None
        self._prompts = {name: packaged(name) for name in NAMES}
        self._faults: dict[PromptName, str] = {}

    @asynccontextmanager
    async def using(self, name: PromptName) -> AsyncIterator[Prompt]:
        """See `Prompts.using`."""
        await self._refresh()
        prompt = self._prompts[name]
        with self._linked(prompt):
            yield prompt

    async def status(self) -> str:
        """Versions in use, and why some are the package's, for `listenpost doctor`."""
        await self._refresh()
        prompts = self._prompts.values()
        used = [f"{prompt.name} {prompt.version}" for prompt in prompts if prompt.version]
        label = f"prompts labelled `{self._settings.prompt_label}`: {', '.join(used) or 'none'}"
        return "; ".join([label, *self._lines()])

    async def aclose(self) -> None:
        """Close the connections to Langfuse, if any was opened."""
        if "_client" in self.__dict__:
            await self._client.aclose()

    async def _refresh(self) -> None:
        if self._until is None or self._clock() >= self._until:
            await self._reading.share(None, lambda _: self._read_all())

    async def _read_all(self) -> None:
        """Read every prompt; log the faults unless they are the same as last time."""
        faults = await asyncio.gather(*map(self._replace, NAMES))
        self._until = self._clock() + self._settings.prompt_ttl
        before = self._faults
        self._faults = {name: why for name, why in zip(NAMES, faults, strict=True) if why}
        if self._faults and self._faults != before:
            _log.warning("prompts of Langfuse: %s", "; ".join(self._lines()))

    async def _replace(self, name: PromptName) -> str | None:
        try:
            status, body = await self._answer(packaged(name).title)
            if status == HTTPStatus.NOT_FOUND:
                raise _Unusable(f"no version has the label `{self._settings.prompt_label}`")
            if status in _KEYS:
                raise _Unread("`LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY` are refused")
            if status != HTTPStatus.OK:
                raise _Unread(f"HTTP {status}")
            answer = _Version.model_validate_json(body)
            prompt = Prompt(name, clean(answer.prompt), answer.version)
            if flaw := prompt.flaw():
                raise _Unusable(f"version {answer.version}: {flaw}")
            self._prompts[name] = prompt
            return None
        except ValidationError as error:
            # JSON of another kind is Langfuse's, no JSON is that of something before it
            unread = error.errors()[0]["type"] == "json_invalid"
            why = "the answer is no JSON" if unread else "it is no text prompt"
        except (_Unusable, _Unread) as error:
            unread, why = isinstance(error, _Unread), str(error)
        if not unread:
            self._prompts[name] = packaged(name)
        version = self._prompts[name].version
        used = "the package's file is" if version is None else "what was read before is"
        return f"{why}; {used} used"

    async def _answer(self, title: str) -> tuple[int, bytes]:
        seconds, root = self._settings.prompt_timeout, self._settings.langfuse_base_url
        url = f"/api/public/v2/prompts/{quote(title, safe='')}"
        label = {"label": self._settings.prompt_label}
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream("GET", url, params=label) as response,
            ):
                packing = response.headers.get("content-encoding", "")
                body = await limits.read_all_async(limits.unpacked(response.aiter_raw(), packing))
                return response.status_code, body
        except (TimeoutError, httpx.TimeoutException):
            raise _Unread(f"no answer within {seconds:g} s") from None
        except ConfigurationError as error:
            raise _Unread(str(error)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _Unread(limits.no_connection(error, root)) from None
        except (limits.TooLarge, limits.Unpackable) as error:
            raise _Unusable(str(error)) from None

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        settings = self._settings
        try:  # a wrong port fails deep in the library
            _ = urlsplit(settings.langfuse_base_url).port
        except ValueError:
            raise ConfigurationError("`LANGFUSE_BASE_URL` is not a URL") from None
        trust_env = not points_here(settings.langfuse_base_url)
        with construction_failures_as(ConfigurationError):
            return httpx.AsyncClient(
                base_url=settings.langfuse_base_url.rstrip("/"),
                headers={"Authorization": basic(settings), "Accept-Encoding": limits.PACKINGS},
                timeout=settings.prompt_timeout, trust_env=trust_env,
                verify=limits.tls_context(httpx.create_ssl_context, trust_env),
            )  # fmt: skip

    def _lines(self) -> list[str]:
        named: dict[str, list[str]] = {}
        for name in NAMES:
            if name in self._faults:
                named.setdefault(self._faults[name], []).append(f"`{packaged(name).title}`")
        return [f"{', '.join(names)}: {fault}" for fault, names in named.items()]
