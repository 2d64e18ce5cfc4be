"""The client of the API: what is repeated, what is waited for, and what is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from api.errors import ConfigurationError, LangfuseError
from api.langfuse.dashboards.dashboard_client import Server, read_project, read_rows
from api.langfuse.dashboards.definitions import Kind
from tests.langfuse.dashboards.kit import Project, settings_for

URL = "http://127.0.0.1:1"


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Server:
    """A client whose server is a function."""
    return Server(settings_for(URL), transport=httpx.MockTransport(answer), pause=lambda s: None)


def test_a_read_waits_as_long_as_it_is_asked_to(project: Project) -> None:
    """429 with Retry-After: the same page is asked again after it."""
    project.sandbox.fault("langfuse.widgets=429@1x2")
    project.apply()

    assert project.pauses == [7.0, 7.0]
    assert project.apply() == []


def test_waiting_is_said_once() -> None:
    """Though ninety requests in a row have to wait."""
    lines: list[str] = []
    server = Server(settings_for(URL), notice=lines.append, pause=lambda seconds: None)

    for _ in range(5):
        server.wait(1)
    server.close()

    assert lines == ["Langfuse's rate limit is reached: waiting 1 s; later waits are not announced"]


def test_a_change_waits_as_well(project: Project) -> None:
    """A PATCH can be sent again without harm."""
    project.apply()
    board = project.row(Kind.DASHBOARD, "dashboard.gate")
    project.call("PATCH", f"/unstable/dashboards/{board['id']}", {"name": "Mine"})
    project.sandbox.fault("langfuse.dashboards=429@2x1")  # the first one reads

    project.apply()

    assert project.pauses == [7.0]
    assert project.row(Kind.DASHBOARD, "dashboard.gate")["name"] == "Listenpost: the gate"


def test_a_post_that_must_wait_is_looked_for_first(project: Project) -> None:
    """After the wait the list is read again, and only what is not in it is made."""
    project.sandbox.fault("langfuse.widgets=429@2x1")  # the first one reads

    project.apply()

    assert project.pauses == [7.0]
    methods = [entry.method for entry in project.sandbox.requests("langfuse", "widgets")]
    assert methods[:4] == ["GET", "POST", "GET", "POST"]
    assert project.apply() == []


def test_patience_has_an_end(project: Project) -> None:
    """A server that always asks to wait is told about in one line."""
    project.sandbox.fault("langfuse.dashboards=429")

    with pytest.raises(LangfuseError, match=r"no more requests for 7 s; run this again then"):
        project.apply()
    assert sum(project.pauses) <= 180
    assert project.writes() == []


@pytest.mark.parametrize("status", [500, 503])
def test_a_post_that_failed_is_sent_once(project: Project, status: int) -> None:
    """It may have worked, so it is looked for and not repeated."""
    project.sandbox.fault(f"langfuse.score_configs={status}@2x1")

    with pytest.raises(LangfuseError, match=f"failed \\(HTTP {status}\\); run this again"):
        project.apply()
    assert [entry.method for entry in project.writes()] == ["POST"]
    project.sandbox.heal()
    project.apply()
    assert project.apply() == []


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ({"data": [], "meta": {}}, 0),
        ({"data": [{"id": "a", "new": {"field": 1}}, "junk", None], "meta": None}, 1),
        ({"data": [{"id": "a"}], "meta": {"totalPages": "many"}}, 1),
        ({"data": [{"id": "a"}]}, 1),
    ],
)
def test_answers_are_read_with_tolerance(page: Any, rows: int) -> None:
    """Fields that nobody knows, rows that are none and a lost count of pages are no error."""
    server = answering(lambda request: httpx.Response(200, json=page))

    assert len(read_rows(server, Kind.WIDGET)) == rows


def test_pages_end_though_the_server_counts_wrongly() -> None:
    """A page without rows is the last one."""
    numbers = list[str]()

    def page(request: httpx.Request) -> httpx.Response:
        numbers.append(request.url.params["page"])
        rows = [{"id": numbers[-1]}] if len(numbers) < 3 else []
        return httpx.Response(200, json={"data": rows, "meta": {"totalPages": 99}})

    assert len(read_rows(answering(page), Kind.WIDGET)) == 2
    assert numbers == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(200, text="<title>Welcome</title>"), "is no Langfuse"),
        (httpx.Response(302, headers={"location": "https://a.test/"}), "sends requests elsewhere"),
        (httpx.Response(200, json={"version": "4.58.9"}), "has version 4.58; dashboards need 4.59"),
        (httpx.Response(200, json={"version": "nightly"}), "the keys belong to no project"),
        (httpx.Response(200, json={"data": [{"name": "x"}]}), "the keys belong to no project"),
    ],
)  # fmt: skip
def test_what_is_no_fit_project_is_a_matter_of_configuration(answer: httpx.Response, words: str) -> None:
    """The message says what to change."""
    server = answering(lambda request: answer)

    with pytest.raises(ConfigurationError, match=words):
        read_project(server)


@pytest.mark.parametrize("base", ["http://127.0.0.1:port", "http://127.0.0.1:99999999"])
def test_an_address_that_is_none_is_told(base: str) -> None:
    """Whatever the client library raises over it."""
    server = Server(settings_for(base))

    with pytest.raises((LangfuseError, ConfigurationError), match="`LANGFUSE_BASE_URL`"):
        server.get("/health")


def test_what_a_server_says_is_one_short_line_without_keys() -> None:
    """Its words are repeated, cleaned and cut, with the field that it names."""
    body = {"message": "Dimension\n\x1b[31m" + "x" * 900, "details": {"field": "metrics[0].agg"}}
    server = answering(lambda request: httpx.Response(400, json=body))

    with pytest.raises(LangfuseError) as caught:
        server.post("/unstable/dashboard-widgets", {"name": "n"}, "widget `Yield`")

    message = str(caught.value)
    assert "refuses widget `Yield` (HTTP 400): Dimension" in message
    assert len(message) < 500
    assert not {"\n", "\x1b"} & set(message)
    assert "lf-sandbox" not in message


def test_an_address_for_people_holds_no_password() -> None:
    """What stands before the host stays away; a path is part of it."""
    server = Server(settings_for("https://user:secret@langfuse.test/base/"))

    assert (server.address, server.host) == ("https://langfuse.test/base", "langfuse.test")


def test_what_is_gone_already_needs_no_deleting() -> None:
    """A 404 of a DELETE is as good as a 200; one of a PATCH is not."""
    server = answering(lambda request: httpx.Response(404, json={"message": "not found"}))

    server.delete("/unstable/dashboards/c1", "dashboard `x`")
    with pytest.raises(LangfuseError, match="changed it meanwhile"):
        server.patch("/unstable/dashboards/c1", {"name": "n"}, "dashboard `x`")
