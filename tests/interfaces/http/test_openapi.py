"""The OpenAPI document: complete, and true of the server that serves it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from api.interfaces.http.app import ROUTERS
from tests.interfaces.http.api_keys import OPEN
from tests.interfaces.http.conftest import QUESTION, Served
from tests.interfaces.http.process import threaded

KEY = "key-of-a-test"
MAY_BE_REFUSED = "positive_data_acceptance"
"""No schema can say what is small talk, which item has a text in no field, or which cursor is ours.
422 is the right answer then, and a schema that allowed less would refuse what can be answered."""
SECONDS = 900
"""That the whole of it may take; it takes half of that."""
BOUNDARIES = "/v1/(analyses|relevance|watches/[^/]+)$"
"""Routes whose boundaries are tried by day: bodies, parameters, and methods that are not there."""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--phases", "examples,fuzzing,stateful", "--max-examples", "2"), ""),
        pytest.param(
            ("--phases", "coverage", "--include-path-regex", BOUNDARIES), BOUNDARIES, marks=pytest.mark.nightly
        ),
        pytest.param(("--max-examples", "10"), "", marks=pytest.mark.nightly),
    ],
    ids=["few examples", "boundaries of some routes", "everything"],
)
def test_schemathesis_finds_nothing(tmp_path: Path, words: tuple[str, ...], part: str) -> None:
    """Every route and check: no 5xx, no status, shape or `Allow` that the document does not have.

    The server has a key, sample data, and depths small enough to be asked often.
    """
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{tmp_path}/listenpost.db",
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_API_KEYS": KEY,
        "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE": "0",
        **{f"LISTENPOST_{depth}_LIMIT": "2" for depth in ("QUICK", "STANDARD", "DEEP")},
    }
    program = Path(sys.executable).with_name("st")
    with threaded(variables) as address:
        httpx.get(f"{address}/openapi.json", timeout=120)  # the program waits 10 s for it, a busy machine takes longer
        ended = subprocess.run(
            [program, "--no-color", "run", f"{address}/openapi.json",
             "--header", f"Authorization: Bearer {KEY}", "--checks", "all",
             "--exclude-checks", MAY_BE_REFUSED, "--seed", "1", *words],
            capture_output=True, text=True, cwd=tmp_path, timeout=SECONDS,
        )  # fmt: skip

    own = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    routes = sum(route.include_in_schema and bool(re.search(part, route.path)) for route in own)
    assert ended.returncode == 0, ended.stdout
    assert f"Tested: {routes}\n" in ended.stdout


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The OpenAPI document, which takes a second to make."""
    folder: Path = tmp_path_factory.mktemp("document")
    with threaded({"LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db"}) as address:
        found: dict[str, Any] = httpx.get(f"{address}/openapi.json", timeout=60).json()
    return found


def test_every_route_and_error_has_an_example(document: dict[str, Any]) -> None:
    """A body, and an error of the one shape for every status beyond 399."""
    paths = document["paths"]

    assert len(paths) > 5
    for path, methods in paths.items():
        for method, one in methods.items():
            assert one["summary"], (method, path)
            assert "500" in one["responses"], (method, path)
            for status, answer in one["responses"].items():
                if int(status) >= 400:
                    example = answer["content"]["application/json"]["example"]
                    assert list(example["error"]) == ["code", "message", "trace_id"]
            if "requestBody" in one:
                assert "413" in one["responses"]


def test_examples_of_refusals_fit_their_routes(document: dict[str, Any]) -> None:
    """422 names something that the route takes, 404 what it would give."""
    whole = document
    schemas, user = whole["components"]["schemas"], "X-Listenpost-User"
    for path, methods in whole["paths"].items():
        for one in methods.values():
            examples = {
                status: answer["content"]["application/json"]["example"]["error"]["message"]
                for status, answer in one["responses"].items()
                if int(status) >= 400
            }
            body = json.dumps(one.get("requestBody", {}))
            taken = {parameter["name"] for parameter in one.get("parameters", [])} | {user}
            for name in re.findall(r"schemas/(\w+)", body):
                taken |= schemas[name]["properties"].keys()
            if "422" in examples:
                assert examples["422"].split("`")[1] in taken, path
            if "404" in examples:
                assert ("chat session" in examples["404"]) == path.startswith("/v1/chat"), path
            assert ("408" in examples) == bool(body != "{}"), path
    assert "`POST /mcp`" in whole["info"]["description"]
    assert "405" in whole["info"]["description"]


def test_bodies_have_examples(document: dict[str, Any]) -> None:
    """One that can be sent as it is."""
    schemas = document["components"]["schemas"]

    for name in ("AnalysisRequest", "FetchRequest", "RelevanceRequest"):
        assert schemas[name]["examples"], name
        assert schemas[name]["additionalProperties"] is False


def test_keyed_routes_say_so(document: dict[str, Any]) -> None:
    """A scheme on each of them, and 401, 403 and 429 where requests are counted."""
    paths = document["paths"]

    assert paths.keys() - set(OPEN)
    for path, methods in paths.items():
        for one in methods.values():
            keyed = path not in OPEN
            assert ("security" in one) == keyed, path
            assert ("401" in one["responses"]) == keyed, path
            assert ("429" in one["responses"]) == path.startswith("/v1/"), path


def told(stream: str) -> set[tuple[str, frozenset[str]]]:
    """What a stream says: the kind and the fields of each event."""
    events = set()
    for block in filter(None, stream.split("\n\n")):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
        data = {} if lines["data"] == "[DONE]" else json.loads(lines["data"])
        kind = lines.get("event") or data.get("type", lines["data"])
        events.add((kind, frozenset((*lines, *data))))
    return events


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/analyses", QUESTION), ("/v1/chat", {"message": "plaud.ai battery"})],
)
async def test_streams_are_as_their_examples(
    served: Served, document: dict[str, Any], path: str, body: dict[str, str]
) -> None:
    """Each event of an example has the fields that the server sends with it."""
    content = document["paths"][path]["post"]["responses"]["200"]["content"]
    headers = {"Accept": "text/event-stream"}
    sent = (await served.client.post(path, json=body, headers=headers)).text

    example = content["text/event-stream"]["example"]
    assert told(example) <= told(sent)
    assert len(told(example)) > 3


def test_operations_have_names(document: dict[str, Any]) -> None:
    """Names that a person would choose, for whoever generates a client."""
    paths = document["paths"]
    names = [one["operationId"] for methods in paths.values() for one in methods.values()]

    assert len(names) == len(set(names))
    assert {"create_analysis", "list_analyses", "get_analysis", "delete_analysis", "chat"} <= {*names}
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", name) for name in names), names


def test_no_object_is_bare(document: dict[str, Any]) -> None:
    """Each has fields, or a type for what it holds."""

    def bare(schema: object, place: str) -> list[str]:
        if isinstance(schema, list):
            return [each for at, part in enumerate(schema) for each in bare(part, f"{place}/{at}")]
        if not isinstance(schema, dict):
            return []
        known = schema.get("properties") or schema.get("additionalProperties") not in (None, True)
        found = [place] if schema.get("type") == "object" and not known else []
        return found + [each for name in schema for each in bare(schema[name], f"{place}/{name}")]

    assert bare(document["components"]["schemas"], "") == []


def test_no_schema_has_a_list_of_its_own_name(document: dict[str, Any]) -> None:
    """A generated Python client would use one variable for the object and for the list in it."""
    doubled = [
        name
        for name, schema in document["components"]["schemas"].items()
        if schema.get("properties", {}).get(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(), {}).get("type") == "array"
    ]

    assert doubled == []
