"""A Langfuse project in a sandbox, what tests do to it, and transports that lose answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
from pydantic import SecretStr

from api.langfuse.dashboards.apply_plan import Plan, Step, carry_out, check, plan_apply, plan_remove, plan_settling
from api.langfuse.dashboards.dashboard_client import ProjectState, Server, read_rows, read_stock, read_versions
from api.langfuse.dashboards.definitions import Definition, Definitions, Kind, load, mark_of
from api.sandbox.server import Sandbox
from api.sandbox.world import LoggedRequest
from api.settings import TracingSettings

FEW = {
    "score.run_yield", "score.decision", "dataset.relevance", "gate.yield", "gate.decisions",
    "gate.latency", "reports.count", "dashboard.gate", "dashboard.reports",
}  # fmt: skip
KEYS = ("pk-lf-sandbox", "sk-lf-sandbox")


def settings_for(url: str) -> TracingSettings:
    """Settings whose Langfuse is at this address."""
    return TracingSettings(langfuse_public_key=KEYS[0], langfuse_secret_key=SecretStr(KEYS[1]), langfuse_base_url=url)


def few() -> Definitions:
    """Some of each kind: what happens to them happens to all."""
    definitions = load()
    parts = [
        replace(part, body={**part.body, "definition": {"widgets": places}})
        if (places := [e for e in _places(part) if e["widgetId"] in FEW])
        else part
        for part in definitions.parts
        if part.mark in FEW
    ]
    prompts = definitions.prompts[:2]
    return Definitions(tuple(parts), prompts)


def _places(part: Definition) -> list[dict[str, Any]]:
    return list(part.body.get("definition", {}).get("widgets", ()))


@dataclass
class Project:
    """The sandbox's project, as this package and as somebody else sees it."""

    sandbox: Sandbox
    transport: httpx.BaseTransport | None = None
    pauses: list[float] = field(default_factory=list)

    def server(self) -> Server:
        """A client that waits without waiting."""
        return Server(settings_for(self.sandbox.url), transport=self.transport, pause=self.pauses.append)

    def plan(self, definitions: Definitions | None = None) -> Plan:
        """What would be done."""
        wanted = definitions or few()
        return plan_apply(wanted, self.stock(wanted))

    def stock(self, wanted: Definitions | None = None) -> ProjectState:
        """What there is, with the wanted prompts."""
        with closing(self.server()) as server:
            return read_stock(server, wanted.prompts if wanted else ())

    def apply(self, definitions: Definitions | None = None) -> list[Step]:
        """What `apply` did."""
        wanted = definitions or few()
        check(wanted)
        return self.begun(wanted)(lambda: None)

    def begun(self, wanted: Definitions) -> Callable[[Callable[[], object]], list[Step]]:
        """A run that has read; what it returns does the rest, and calls back after each step."""
        stock = self.stock(wanted)

        def rest(meanwhile: Callable[[], object]) -> list[Step]:
            steps: list[Step] = []

            def done(step: Step, reason: str | None) -> None:
                steps.append(step)
                meanwhile()

            with closing(self.server()) as server:
                if made := carry_out(server, plan_apply(wanted, stock), done):
                    carry_out(server, plan_settling(server, wanted, stock, made), done)
            return steps

        return rest

    def remove(self) -> list[Step]:
        """What `remove` did."""
        server = self.server()
        try:
            versions = {p.title: read_versions(server, p.title) for p in few().prompts}
            plan = plan_remove(read_stock(server, ()), versions)
        finally:
            server.close()
        return self._done(plan)

    def _done(self, plan: Plan) -> list[Step]:
        steps: list[Step] = []
        server = self.server()
        try:
            carry_out(server, plan, lambda step, reason: None if reason else steps.append(step))
        finally:
            server.close()
        return steps

    def rows(self, kind: Kind) -> list[Mapping[str, Any]]:
        """Everything of one kind that is there, the oldest first."""
        server = Server(settings_for(self.sandbox.url))
        try:
            return list(read_rows(server, kind))
        finally:
            server.close()

    def row(self, kind: Kind, mark: str) -> Mapping[str, Any]:
        """The only one with this mark."""
        (row,) = [row for row in self.rows(kind) if mark_of(row["description"]) == mark]
        return row

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """What somebody else does by the API."""
        url = f"{self.sandbox.url}/api/public{path}"
        answer = httpx.request(method, url, json=body, params=query or None, auth=KEYS)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def writes(self) -> list[LoggedRequest]:
        """Every request that wrote, since the log was emptied."""
        return [entry for entry in self.sandbox.requests("langfuse") if entry.method != "GET"]


class Losing(httpx.BaseTransport):
    """Loses the answer to one POST, or the POST itself; or answers with a `status` of its own."""

    def __init__(self, path: str, number: int = 1, *, arrives: bool = True, status: int | None = None) -> None:
        """The `number`th POST to a path that ends so."""
        self._inner, self._path = httpx.HTTPTransport(), path
        self._left, self._arrives, self._status = number, arrives, status

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Hand it on, unless it is to be lost."""
        if request.method == "POST" and request.url.path.endswith(self._path):
            self._left -= 1
            if self._left == 0:
                if self._arrives:
                    self._inner.handle_request(request).read()
                if self._status is not None:
                    return httpx.Response(self._status, json={"message": "refused"})
                raise httpx.ReadTimeout("no answer", request=request)
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Close its connections; another client may use it after that."""
        self._inner.close()
