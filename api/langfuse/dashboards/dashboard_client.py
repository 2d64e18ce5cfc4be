"""A small client of Langfuse's public API, and what it reads of a project before changing it.

The SDK repeats a POST that failed, which can create a thing twice, and rejects unknown fields. This
client sends a POST once, and ignores fields that it does not need.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from api.core.addresses import points_here
from api.core.http_limits import no_connection, wait_of
from api.core.prompts import Prompt
from api.core.text import clean, cut, one_line
from api.errors import ConfigurationError, LangfuseError, ListenpostError
from api.langfuse.dashboards.definitions import COMMITTED, LABEL, Kind
from api.langfuse.tracing.masking import ScoreClient
from api.settings import TracingSettings

_SECONDS = 20.0  # timeout of a request
# Seconds to wait if the server does not say how long, and most that one run waits in all.
_WAIT, _MAX_WAIT = 10.0, 180.0
# Rows of a page (the server's limit), pages that are read, and characters of a server's message.
_PAGE, _PAGES, _WORDS = 100, 200, 300


class Server:
    """One Langfuse server with the keys of one project."""

    def __init__(
        self, settings: TracingSettings, *, transport: httpx.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
        notice: Callable[[str], None] = lambda line: None,
    ) -> None:  # fmt: skip
        """`notice` gets a line for the first `pause` that the server asks for."""
        secret, public = settings.langfuse_secret_key, settings.langfuse_public_key
        if not (public and secret):
            raise ConfigurationError(
                "set `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`, and `LANGFUSE_BASE_URL` "
                "unless it is Langfuse's cloud in the EU; see docs/langfuse.md"
            )
        self._root = settings.langfuse_base_url.rstrip("/")
        self._http = ScoreClient(
            auth=(public, secret.get_secret_value()), timeout=_SECONDS, transport=transport,
            trust_env=not points_here(self._root),
        )  # fmt: skip
        self._pause, self._notice, self._wait_left = pause, notice, _MAX_WAIT
        self._waited = False

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self._root).netloc.rpartition("@")[2] or "LANGFUSE_BASE_URL"

    @property
    def address(self) -> str:
        """URL for people, without user and password."""
        return urlsplit(self._root)._replace(netloc=self.host).geturl()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of a path below `/api/public`."""
        return self._body(self._send("GET", path, query=query))

    def find(self, path: str, **query: Any) -> Mapping[str, Any] | None:
        """The JSON object at a path; None when the server answers 404."""
        try:
            row = self.get(path, **query)
        except LangfuseError as error:
            if error.http_status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return row if isinstance(row, Mapping) else None

    def pages(self, path: str, **query: Any) -> list[Mapping[str, Any]]:
        """Every row of a list; entries that are not objects are skipped."""
        rows: list[Mapping[str, Any]] = []
        for page in range(1, _PAGES + 1):
            answer = self.get(path, page=page, limit=_PAGE, **query)
            listed = answer.get("data") if isinstance(answer, Mapping) else None
            if not isinstance(listed, list):
                raise self._no_langfuse()
            rows += [row for row in listed if isinstance(row, Mapping)]
            meta = answer.get("meta")
            last = meta.get("totalPages") if isinstance(meta, Mapping) else None
            if not listed or page >= (last if isinstance(last, int) else 1):
                break
        return rows

    def post(self, path: str, body: Mapping[str, Any], title: str) -> Mapping[str, Any]:
        """Create something (`title` in messages); sent once, so a failure may be `maybe_done`."""
        made = self._body(self._send("POST", path, body, title=title))
        return made if isinstance(made, Mapping) else {}

    def patch(self, path: str, body: Mapping[str, Any], title: str) -> None:
        """Change the object at `path`; `title` names it in messages."""
        self._send("PATCH", path, body, title=title)

    def delete(self, path: str, title: str, **query: Any) -> None:
        """Delete something, if it is there."""
        try:
            self._send("DELETE", path, query=query, title=title)
        except LangfuseError as error:
            if error.http_status != HTTPStatus.NOT_FOUND:
                raise

    def wait(self, seconds: float) -> None:
        """Wait as the server asks; raises `LangfuseError` beyond what one run waits in all."""
        if seconds > self._wait_left:
            raise LangfuseError(
                f"Langfuse at `{self.host}` allows no more requests for {seconds:.0f} s; run this "
                "again then: what is done stays",
                http_status=HTTPStatus.TOO_MANY_REQUESTS,
            )
        self._wait_left -= seconds
        if not self._waited:
            self._notice(f"Langfuse's rate limit is reached: waiting {seconds:.0f} s; later waits are not announced")
        self._waited = True
        self._pause(seconds)

    def close(self) -> None:
        """Close the connections to Langfuse."""
        self._http.close()

    def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *,
        query: Mapping[str, Any] | None = None, title: str = "",
    ) -> httpx.Response:  # fmt: skip
        """A successful answer; only a POST is not sent again after the wait that a 429 asks for."""
        url, server = f"{self._root}/api/public{path}", f"Langfuse at `{self.host}`"
        while True:
            try:
                response = self._http.request(method, url, json=body, params=query or None)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise LangfuseError(
                    f"{server} cannot be reached: {no_connection(error, url)}; check "
                    "`LANGFUSE_BASE_URL` and the network"
                ) from None
            except httpx.RequestError as error:
                raise LangfuseError(
                    f"{server} broke off ({type(error).__name__}); run this again: what is done "
                    "stays, and nothing is made twice",
                    maybe_done=True,
                ) from None
            except httpx.InvalidURL:
                message = "`LANGFUSE_BASE_URL` is no address; write `https://HOST`"
                raise ConfigurationError(message) from None
            if response.is_success:
                return response
            failure = self._failure(response, title or f"`{method} {path}`")
            wait = failure.retry_after if isinstance(failure, LangfuseError) else None
            if method == "POST" or wait is None:
                raise failure
            self.wait(wait)

    def _failure(self, response: httpx.Response, title: str) -> ListenpostError:
        """The error for an answer that is no success, with the remedy."""
        status, words = response.status_code, _words(response)
        detail = f": {words}" if words else ""

        def configuration(text: str) -> ConfigurationError:
            return ConfigurationError(f"Langfuse at `{self.host}` {text}")

        def failure(text: str, **more: Any) -> LangfuseError:
            return LangfuseError(f"Langfuse at `{self.host}` {text}", http_status=status, **more)

        if status == HTTPStatus.UNAUTHORIZED:
            return configuration(
                "refuses the keys; check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`, and that "
                "`LANGFUSE_BASE_URL` is the server they are of"
            )
        if status == HTTPStatus.FORBIDDEN:
            return configuration(
                "does not allow this to the keys; take the keys of a project, not of an "
                "organisation (Project settings > API keys)"
            )
        if status == HTTPStatus.NOT_FOUND and words is None:
            return configuration(
                f"does not know {title}; it is older than 4.59 (update it), or `LANGFUSE_BASE_URL` is no Langfuse"
            )
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            wait = wait_of(response.headers)
            text = "allows no more requests for now; run this again in a minute: what is done stays"
            return failure(text, retry_after=_WAIT if wait is None else wait)
        if response.is_redirect:
            text = "sends requests elsewhere; set `LANGFUSE_BASE_URL` to the address itself"
            return configuration(text)
        if response.is_server_error:
            text = "run this again: what is done stays, and nothing is made twice"
            return failure(f"failed (HTTP {status}); {text}", maybe_done=True)
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            return failure(
                f"answers {title} with HTTP {status}{detail}; somebody may have changed it meanwhile: run this again"
            )
        text = "report this with the server's version"
        return failure(f"refuses {title} (HTTP {status}){detail}; {text}")

    def _body(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise self._no_langfuse() from None

    def _no_langfuse(self) -> ConfigurationError:
        message = f"what answers at `{self.host}` is no Langfuse; check `LANGFUSE_BASE_URL`"
        return ConfigurationError(message)


def _words(response: httpx.Response) -> str | None:
    """The message of an error; None when the answer is not JSON, so that it is not from the API."""
    try:
        body = response.json()
    except ValueError:
        return None
    if not isinstance(body, Mapping):
        return ""
    details = body.get("details")
    field = details.get("field") if isinstance(details, Mapping) else None
    words = f"{body.get('message') or ''}" + (f" (`{field}`)" if field else "")
    return cut(one_line(clean(words)), _WORDS)


Row = Mapping[str, Any]
OLDEST = (4, 59)  # the first version with dashboards and scores as this package sends them
PATHS: Mapping[Kind, str] = {
    Kind.SCORE: "/score-configs", Kind.DATASET: "/v2/datasets",
    Kind.WIDGET: "/unstable/dashboard-widgets", Kind.DASHBOARD: "/unstable/dashboards",
}  # fmt: skip
PROMPTS = "/v2/prompts"


@dataclass(frozen=True, slots=True)
class Project:
    """The project that the keys belong to."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """The version of one prompt that has our label, and whether any version is in production."""

    text: str | None = None  # of the version with our label; None: there is none
    labels: tuple[str, ...] = ()  # of that version
    in_production: bool = False  # whether any version is


@dataclass(frozen=True, slots=True)
class ProjectState:
    """Everything in the project, whoever created it."""

    project: Project
    rows: Mapping[Kind, tuple[Row, ...]]  # the oldest first
    prompts: Mapping[str, Pushed]


def read_stock(server: Server, prompts: Iterable[Prompt]) -> ProjectState:
    """Everything in the project; raises `ConfigurationError` or `LangfuseError`."""
    project = read_project(server)
    return ProjectState(
        project,
        {kind: read_rows(server, kind) for kind in Kind},
        {prompt.title: read_prompt(server, prompt.title) for prompt in prompts},
    )


def read_project(server: Server) -> Project:
    """The project of the keys; raises as `read_stock`, also for an old server."""
    health = server.get("/health")
    version = health.get("version") if isinstance(health, Mapping) else None
    numbers = re.match(r"v?(\d+)\.(\d+)", str(version))  # `4.59.0`, `v4.59.0-rc.1`
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise ConfigurationError(
            f"Langfuse at `{server.host}` has version {numbers[0]}; dashboards need "
            f"{OLDEST[0]}.{OLDEST[1]} or newer: update the server"
        )
    projects = server.get("/projects")
    rows = projects.get("data") if isinstance(projects, Mapping) else None
    first = rows[0] if isinstance(rows, list) and rows else None
    if not isinstance(first, Mapping) or not first.get("id"):
        raise ConfigurationError(
            f"the keys belong to no project of Langfuse at `{server.host}`; make keys in the "
            "project's settings and set `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
        )
    return Project(str(first["id"]), str(first.get("name") or first["id"]))


def read_rows(server: Server, kind: Kind) -> tuple[Row, ...]:
    """All rows of a kind, the oldest first."""
    rows = server.pages(PATHS[kind])
    return tuple(sorted(rows, key=lambda row: (str(row.get("createdAt")), str(row.get("id")))))


def read_prompt(server: Server, name: str) -> Pushed:
    """The state of a prompt."""
    path = prompt_path(name)
    ours = server.find(path, label=LABEL)
    if ours is not None:
        text, labels = ours.get("prompt"), map(str, ours.get("labels") or ())
        return Pushed(text if isinstance(text, str) else None, tuple(labels), True)
    return Pushed(in_production=server.find(path, label="production") is not None)


def read_versions(server: Server, name: str) -> list[int]:
    """Numbers of the versions that this package pushed."""
    rows = server.pages(PROMPTS, name=name)
    numbers = [number for row in rows if row.get("name") == name for number in row["versions"]]
    versions = ((number, server.find(prompt_path(name), version=number)) for number in numbers)
    return [number for number, row in versions if row and row.get("commitMessage") == COMMITTED]


def prompt_path(name: str) -> str:
    """Path of a prompt, with the slash of a folder escaped as part of its name."""
    return f"{PROMPTS}/{quote(name, safe='')}"
