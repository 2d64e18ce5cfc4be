"""Every error this package raises on purpose, so that a caller can choose what to catch.

    ListenpostError
    ├── UsageError                what was asked makes no sense            invalid_request
    ├── ConfigurationError        a setting is unknown, malformed, missing  configuration
    ├── StoreUnavailable          the database cannot be used               store_unavailable
    ├── AccessDenied              no key, or one that is not valid          unauthorized
    ├── Forbidden                 without keys, and not from this machine   forbidden
    ├── LimitReached              a key's requests, analyses or cost        limit_reached
    ├── NotFound                  nothing of that id is yours               not_found
    ├── Conflict                  it was used for, or became, another thing conflict
    ├── ModelError                a model server gave no usable answer      model_<reason>
    ├── LangfuseError             Langfuse could not be set up              langfuse_failed
    └── SourceError               a source could not be asked
        ├── NotConfigured         its key or provider is not set            not_configured
        ├── NotAsked              it takes no query like that               not_asked
        ├── Refused               key wrong, revoked or restricted          refused
        ├── RateLimited           too fast; `retry_at` when known           rate_limited
        ├── QuotaExhausted        the day's calls are gone; `retry_at`      quota_exhausted
        ├── Blocked               captcha, login wall or 403 page           blocked
        ├── TimedOut              no answer within the deadline             timed_out
        ├── Unreachable           no connection, or 5xx                     unreachable
        └── Broken                an answer that is not what was promised   broken

Messages name the thing and the remedy; they never hold keys, bodies or URLs with a query string.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import ClassVar


class ListenpostError(Exception):
    """Base of all: `code` for machines, `status` for HTTP, the message for people."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    @property
    def public(self) -> str:
        """What a caller on another machine may read; a fault of ours says no more than that."""
        return "internal error" if type(self) is ListenpostError else str(self)


class UsageError(ListenpostError):
    """The request itself is wrong; the message says what to change."""

    code, status = "invalid_request", 422

    def __init__(self, detail: str = "", *, field: str | None = None) -> None:
        """`field`: what it is about, as requests and forms call it; None: no single one."""
        super().__init__(detail)
        self.field = field


class ConfigurationError(ListenpostError):
    """A setting is unknown, malformed or missing; the message names it."""

    code, status = "configuration", 500


class StoreUnavailable(ListenpostError):
    """The database cannot be used; the message names its variable, never its password."""

    code, status = "store_unavailable", 503

    def __init__(self, detail: str, public: str = "the database cannot be used") -> None:
        """Keep the words for others, which name no place of this machine, apart."""
        super().__init__(detail)
        self._public = public

    @property
    def public(self) -> str:
        """Without the place and the variable, which are nobody's business but the owner's."""
        return self._public


class AccessDenied(ListenpostError):
    """No API key, or one that is not valid."""

    code, status = "unauthorized", 401


class Forbidden(ListenpostError):
    """Without API keys only this machine may call, by a name that is its own."""

    code, status = "forbidden", 403


class LimitReached(ListenpostError):
    """A key's limit of requests, analyses or cost is reached; `retry_after` is in seconds."""

    code, status = "limit_reached", 429

    def __init__(self, detail: str, retry_after: int) -> None:
        """Keep the wait apart from the words."""
        super().__init__(f"{detail}; try again in {_wait(retry_after)}")
        self.retry_after = retry_after


def _wait(seconds: int) -> str:
    """`59 s`, `12 min`, `18 h`; never shorter than it is."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{-(-seconds // size)} {unit}"
    return f"{seconds} s"


class NotFound(ListenpostError):
    """Nothing of that id is the caller's."""

    code, status = "not_found", 404


class Conflict(ListenpostError):
    """A key or event of another request, or an analysis that was cancelled or has no report."""

    code, status = "conflict", 409

    def __init__(self, detail: str, retry_after: int | None = None) -> None:
        """`retry_after`: seconds until it may be over, where it is over by itself."""
        super().__init__(detail)
        self.retry_after = retry_after


class ModelError(ListenpostError):
    """A model server gave no usable answer; `reason` is a code of `services/reasons.py`."""

    code, status = "model_unavailable", 503

    def __init__(self, reason: str, detail: str = "") -> None:
        """Keep the reason code apart from the words."""
        super().__init__(f"model: {reason}" + (f" ({detail})" if detail else ""))
        self.reason, self.detail = reason, detail


class LangfuseError(ListenpostError):
    """Langfuse did not do what setting it up needs; the message says what to do.

    Args:
        detail: what happened and the remedy.
        http: the status it answered with, if it answered.
        unsure: what was asked may have been done all the same.
        wait: seconds until it takes requests again, when it says.
    """

    code, status = "langfuse_failed", 502

    def __init__(
        self,
        detail: str,
        *,
        http: int | None = None,
        unsure: bool = False,
        wait: float | None = None,
    ) -> None:
        """Keep what decides about going on apart from the words."""
        super().__init__(detail)
        self.http, self.unsure, self.wait = http, unsure, wait


class SourceError(ListenpostError):
    """One source could not be asked; the others go on.

    Args:
        source: its name in `SOURCES`.
        detail: what happened, in a few words, without secrets.
        retry_at: aware UTC time from which asking again makes sense, when the source says.
    """

    code, status = "source_error", 502
    remedy: ClassVar[str] = "try again later"

    def __init__(self, source: str, detail: str = "", *, retry_at: datetime | None = None) -> None:
        """Build the message a person reads."""
        self.source, self.detail, self.retry_at = source, detail, retry_at
        super().__init__(f"{source}: {detail or self.code.replace('_', ' ')}; {self.remedy}")

    @property
    def reason(self) -> str:
        """The message for where the source and the outcome stand beside it."""
        return f"{self.detail}; {self.remedy}" if self.detail else self.remedy


class NotConfigured(SourceError):
    """Its key or provider is not set."""

    code, status = "not_configured", 503
    remedy = "set its variables, see `listenpost doctor`"


class NotAsked(SourceError):
    """It takes no query like that, so nothing was sent."""

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
    """No answer within the deadline."""

    code, status = "timed_out", 504
    remedy = "raise `LISTENPOST_SOURCE_TIMEOUT` or try again later"


class Unreachable(SourceError):
    """No connection, or the server failed (5xx)."""

    code, status = "unreachable", 502


class Broken(SourceError):
    """The answer is not what the interface promises."""

    code, status = "broken", 502
    remedy = "report it with the `trace_id`"


@contextmanager
def building(failed: Callable[[str], ListenpostError]) -> Iterator[None]:
    """Around a library's constructor: what it raises becomes `failed(detail)`; ours pass.

    Libraries read variables of the environment by themselves, and what they raise over a malformed
    one may be of any class. The detail names the variables in question, never a value.
    """
    try:
        yield
    except ListenpostError:
        raise
    except Exception as error:
        names = ", ".join(f"`{name}`" for name in suspects(error))
        remedy = f"correct or unset {names}" if names else "no variable is known that explains it"
        detail = f"its client cannot be built ({type(error).__name__}); {remedy}"
        raise failed(detail) from (None if names else error)


def suspects(error: BaseException) -> list[str]:
    """Variables over which a client may have failed, by what the error says; else every proxy's.

    Of those that are set, each by its name alone: a value may hold a password.
    """
    text, values = str(error), {name: value for name, value in os.environ.items() if value}
    # it may name the variable: `OTEL_ATTRIBUTE_COUNT_LIMIT must be a non-negative integer`
    named: list[str] = re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", text)
    if known := [name for name in named if name in values]:
        return known
    # or quote the value of one of its own: `could not convert string to float: 'abc'`
    own = [name for name in values if name.upper().startswith(_OWN)]
    if quoted := [name for name in own if repr(values[name]) in text]:
        return quoted
    tls_files = [name for name in _TLS_FILES if name in values]
    # or a path: `Could not find a suitable TLS CA certificate bundle, invalid path: /nowhere`
    if pathed := [name for name in tls_files if values[name] in text]:
        return pathed
    from ssl import SSLError  # a client that failed has it loaded, help has not

    if isinstance(error, (*_NO_FILE, SSLError)) or "certificate" in text.lower():
        return [name for name in tls_files if not os.path.exists(values[name])] or tls_files
    proxies = [name for name in values if name.lower().endswith("_proxy")]
    if "SOCKS" in text:  # a proxy whose package is not installed
        return [name for name in proxies if values[name].lower().startswith("socks")]
    return proxies


_OWN = ("LANGFUSE_", "OTEL_", "OPENAI_", "PRAWCORE_")
_TLS_FILES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "HTTPLIB2_CA_CERTS",
    "SSLKEYLOGFILE",
)  # fmt: skip
_NO_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
