"""Every error this package raises on purpose: what happened, `code`, and who must act.

    ListenpostError
    ├── UsageError           invalid_request     caller: change the request
    ├── ConfigurationError   configuration       operator: correct the setting that it names
    │   └── MissingExtra     missing_extra       operator: run the command that it names
    ├── StoreUnavailable     store_unavailable   operator: make the database reachable
    ├── AccessDenied         unauthorized        caller: send a valid API key
    ├── Forbidden            forbidden           caller: call from this machine, or get a key
    ├── LimitReached         limit_reached       caller: wait `retry_after` seconds
    ├── NotFound             not_found           caller: use an id of its own
    ├── Conflict             conflict            caller: use another key, or wait `retry_after` s
    ├── ModelError           model_unavailable   operator: see its `reason` in docs/errors.md
    ├── LangfuseError        langfuse_failed     operator: do what the message says
    └── SourceError          source_error        nobody: the other sources go on
        ├── NotConfigured    not_configured      operator: set its key or provider
        │   └── NotInstalled     not_configured      operator: run the command that it names
        ├── NotAsked         not_asked           caller: use other words
        ├── Refused          refused             operator: check the key
        ├── RateLimited      rate_limited        caller: wait until `retry_at`
        ├── QuotaExhausted   quota_exhausted     caller: wait until `retry_at`
        ├── Blocked          blocked             operator: ask less often, or another provider
        ├── TimedOut         timed_out           operator: raise the timeout, if it stays slow
        ├── Unreachable      unreachable         nobody: try again later
        └── Broken           broken              developer: the answer is not in the known format

Messages name the thing and the remedy; they never hold keys, bodies or URLs with a query string.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from types import MappingProxyType
from typing import ClassVar


class ListenpostError(Exception):
    """Base of all: `code` for machines, `status` for HTTP, the message for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    @property
    def public(self) -> str:
        """The message for a caller on another machine; a defect is only an `internal error`."""
        return "internal error" if type(self) is ListenpostError else str(self)


class UsageError(ListenpostError):
    """The request is wrong; `field` is the one at fault, None when it is no single one."""

    code, status = "invalid_request", 422

    def __init__(self, detail: str = "", *, field: str | None = None) -> None:
        super().__init__(detail)
        self.field = field


class ConfigurationError(ListenpostError):
    """A setting is unknown, malformed or missing; the message names it."""

    code, status = "configuration", 500


EXTRAS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "reddit": ("praw", "prawcore"),
    "youtube": ("googleapiclient", "httplib2"),
    "serve": ("fastapi", "jinja2", "prometheus_client", "ag_ui"),
    "mcp": ("mcp", "mcp_types"),
    "langfuse": ("langfuse",),
    "postgres": ("psycopg",),
    "durable": ("dbos",),
    "search": ("usearch",),
})  # fmt: skip
"""The modules of each extra that the base installation does not have; see docs/deploy.md."""


class MissingExtra(ConfigurationError):
    """A package of an extra is not installed; the message holds the command that installs it."""

    code, status = "missing_extra", 503

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(f"`{module}` is not installed; {install_command(extra)} installs it")
        self.extra = extra


def install_command(extra: str) -> str:
    """The command that installs an extra, in backticks."""
    return f"`pip install 'listenpost[{extra}]'`"


def missing_module(extra: str) -> str:
    """A module of the named extra that is not installed; empty when all are, or when the extra does not exist."""
    return next((module for module in EXTRAS.get(extra, ()) if find_spec(module) is None), "")


@contextmanager
def extras_named() -> Iterator[None]:
    """Raise `MissingExtra` for a module that cannot be found because its extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        for extra, modules in EXTRAS.items():
            if module in modules:
                raise MissingExtra(extra, module) from None
        raise


class StoreUnavailable(ListenpostError):
    """The database cannot be used; `public` names neither its variable nor a path."""

    code, status = "store_unavailable", 503

    def __init__(self, detail: str, public: str = "the database cannot be used") -> None:
        super().__init__(detail)
        self._public = public

    @property
    def public(self) -> str:
        """The message for a caller on another machine."""
        return self._public


class AccessDenied(ListenpostError):
    """The API key is missing or invalid."""

    code, status = "unauthorized", 401


class Forbidden(ListenpostError):
    """No API keys are configured, and the call does not come from this machine by its own name."""

    code, status = "forbidden", 403


class LimitReached(ListenpostError):
    """A key's limit of requests, analyses or cost is reached; `retry_after` is in seconds."""

    code, status = "limit_reached", 429

    def __init__(self, detail: str, retry_after: int) -> None:
        # rounded up to `18 h`, `12 min` or `59 s`: a caller who waits that long is not refused
        units = (("h", 3600), ("min", 60))
        fits = ((unit, size) for unit, size in units if retry_after >= 2 * size)
        unit, size = next(fits, ("s", 1))
        super().__init__(f"{detail}; try again in {-(-retry_after // size)} {unit}")
        self.retry_after = retry_after


class NotFound(ListenpostError):
    """Nothing with that id belongs to the caller."""

    code, status = "not_found", 404


class Conflict(ListenpostError):
    """A key or event of another request, or an analysis without a report; `retry_after` in s."""

    code, status = "conflict", 409

    def __init__(self, detail: str, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class ModelError(ListenpostError):
    """A model server gave no usable answer; `reason` is one of `MODEL_REASONS`."""

    code, status = "model_unavailable", 503

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"model: {reason}" + (f" ({detail})" if detail else ""))
        self.reason, self.detail = reason, detail


class LangfuseError(ListenpostError):
    """Langfuse failed, perhaps after doing what was requested (`maybe_done`).

    `retry_after`: seconds until it takes requests again, None when it does not say.
    """

    code, status = "langfuse_failed", 502

    def __init__(
        self,
        detail: str,
        *,
        http_status: int | None = None,
        maybe_done: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.http_status, self.maybe_done, self.retry_after = http_status, maybe_done, retry_after


class SourceError(ListenpostError):
    """One source could not be asked; `detail` says in a few words what happened, without secrets.

    `retry_at`: aware UTC time from which asking again makes sense, when the source says.
    """

    code, status = "source_error", 502
    remedy: ClassVar[str] = "try again later"

    def __init__(self, source: str, detail: str = "", *, retry_at: datetime | None = None) -> None:
        self.source, self.detail, self.retry_at = source, detail, retry_at
        super().__init__(f"{source}: {detail or self.code.replace('_', ' ')}; {self.remedy}")

    @property
    def reason(self) -> str:
        """The message without source and code, for places that show both beside it."""
        return f"{self.detail}; {self.remedy}" if self.detail else self.remedy


class NotConfigured(SourceError):
    """The source's key or provider is not set."""

    code, status = "not_configured", 503
    remedy = "set its variables, see `listenpost doctor`"


class NotInstalled(NotConfigured):
    """The package of the source's client is not installed; the detail holds the command that installs it."""

    remedy = "see `listenpost doctor`"


class NotAsked(SourceError):
    """The source's search does not accept such a query, so nothing was sent."""

    code, status = "not_asked", 422
    remedy = "ask in other words"


class Refused(SourceError):
    """The key is wrong, revoked or restricted (401, 403 with JSON)."""

    code, status = "refused", 502
    remedy = "check the key, see `listenpost doctor`"


class RateLimited(SourceError):
    """Too many requests for now; `retry_at` says until when, if the source does."""

    code, status = "rate_limited", 503
    remedy = "wait and ask again"


class QuotaExhausted(SourceError):
    """The day's calls are used up; `retry_at` is when they return."""

    code, status = "quota_exhausted", 503
    remedy = "wait for the reset or use another project's key"


class Blocked(SourceError):
    """A captcha, a login wall or a 403 page answered instead of the data."""

    code, status = "blocked", 502
    remedy = "ask less often or use another provider"


class TimedOut(SourceError):
    """A source or model gave no answer within its deadline in seconds."""

    code, status = "timed_out", 504
    remedy = "raise `LISTENPOST_SOURCE_TIMEOUT` or try again later"


class Unreachable(SourceError):
    """The connection failed, or the server answered with 5xx."""

    code, status = "unreachable", 502


class Broken(SourceError):
    """The answer is not what the interface promises."""

    code, status = "broken", 502
    remedy = "report it with the `trace_id`"


@contextmanager
def construction_failures_as(failure: Callable[[str], ListenpostError]) -> Iterator[None]:
    """Raise `failure(detail)`, naming variables, for what a library's constructor raises."""
    try:
        yield
    except ListenpostError:
        raise
    # libraries read environment variables by themselves and raise any class over a malformed one
    except Exception as error:
        names = ", ".join(f"`{name}`" for name in suspect_variables(error))
        remedy = f"correct or unset {names}" if names else "no variable is known that explains it"
        detail = f"its client cannot be built ({type(error).__name__}); {remedy}"
        raise failure(detail) from (None if names else error)


def suspect_variables(error: BaseException) -> list[str]:
    """Names of set environment variables that may explain an error; never values."""
    text, values = str(error), {name: value for name, value in os.environ.items() if value}
    # it may name the variable: `OTEL_ATTRIBUTE_COUNT_LIMIT must be a non-negative integer`
    named: list[str] = re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", text)
    if known := [name for name in named if name in values]:
        return known
    # or quote the value of one of its own: `could not convert string to float: 'abc'`
    own = [name for name in values if name.upper().startswith(_LIBRARY_PREFIXES)]
    if quoted := [name for name in own if repr(values[name]) in text]:
        return quoted
    tls_files = [name for name in _TLS_FILES if name in values]
    # or a path: `Could not find a suitable TLS CA certificate bundle, invalid path: /nowhere`
    if by_path := [name for name in tls_files if values[name] in text]:
        return by_path
    from ssl import SSLError  # a client that failed has it loaded; the help of a command has not

    if isinstance(error, (*_FILE_ERRORS, SSLError)) or "certificate" in text.lower():
        return [name for name in tls_files if not os.path.exists(values[name])] or tls_files
    proxies = [name for name in values if name.lower().endswith("_proxy")]
    if "SOCKS" in text:  # the package for this kind of proxy is not installed
        return [name for name in proxies if values[name].lower().startswith("socks")]
    return proxies


# prefixes of the variables that Langfuse, OpenTelemetry, openai and prawcore read by themselves
_LIBRARY_PREFIXES = ("LANGFUSE_", "OTEL_", "OPENAI_", "PRAWCORE_")
# what OpenSSL, requests, curl and httplib2 read
_TLS_FILES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTPLIB2_CA_CERTS",
    "SSLKEYLOGFILE",
)  # fmt: skip
_FILE_ERRORS = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
