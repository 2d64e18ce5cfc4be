"""The OpenAPI document: complete, and true of the server that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.faces.web.conftest import Served
from tests.faces.web.process import threaded
from tests.faces.web.test_access import KEYED, OPEN, named

KEY = "key-of-a-test"
HEADERS = {"Authorization": f"Bearer {KEY}"}
MAY_BE_REFUSED: list[Any] = [positive_data_acceptance]
"""Text of the right type may still be small talk, and a cursor of the right length none of ours."""
ROUTES = [
    *((method, named(path)) for method, path, _ in KEYED),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a key, on sample data, small enough to be asked often."""
    folder: Path = tmp_path_factory.mktemp("served")
    variables = {
        "XDG_DATA_HOME": str(folder),
        "LISTENPOST_MODE": "sandbox",
        "LISTENPOST_API_KEYS": KEY,
        "LISTENPOST_LIMIT_REQUESTS_PER_MINUTE": "0",
        "LISTENPOST_QUICK_LIMIT": "2",
    }
    with threaded(variables) as address:
        yield address


@pytest.fixture
def schema(server: str) -> BaseSchema:
    """What the server says of itself."""
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


# the server runs in a thread of this process and draws random numbers, which hypothesis takes for
# the strategy's own
@pytest.mark.filterwarnings(
    "ignore:Do not use the `random` module:hypothesis.errors.HypothesisDeprecationWarning"
)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_answer_is_as_documented(
    schema: BaseSchema, method: str, path: str, mode: GenerationMode
) -> None:
    """No 5xx, no status or content that the document does not have, no shape that differs."""
    operation = schema[path][method]

    @settings(max_examples=8, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Case[Any]) -> None:
        if isinstance(case.body, dict) and case.body.get("depth") in {"standard", "deep"}:
            case.body["depth"] = "quick"
        case.call_and_validate(headers=HEADERS, timeout=30, excluded_checks=MAY_BE_REFUSED)

    with suppress(Unsatisfiable):  # a route without parameters has no wrong request
        check()


def test_the_routes_above_are_all_there_are(schema: BaseSchema) -> None:
    """A new one is tested like the others."""
    found = {(method.upper(), path) for path in schema for method in schema[path]}

    assert found == set(ROUTES)


async def document(served: Served) -> dict[str, Any]:
    """The OpenAPI document."""
    found: dict[str, Any] = (await served.client.get("/openapi.json")).json()
    return found


async def test_every_route_and_error_has_an_example(served: Served) -> None:
    """A body, and an error of the one shape for every status beyond 399."""
    paths = (await document(served))["paths"]

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


async def test_bodies_have_examples(served: Served) -> None:
    """One that can be sent as it is."""
    schemas = (await document(served))["components"]["schemas"]

    for name in ("AnalysisRequest", "FetchRequest", "RelevanceRequest"):
        assert schemas[name]["examples"], name
        assert schemas[name]["additionalProperties"] is False


async def test_keyed_routes_say_so(served: Served) -> None:
    """A scheme on each of them, and 401, 403 and 429 where requests are counted."""
    paths = (await document(served))["paths"]

    assert paths.keys() - set(OPEN)
    for path, methods in paths.items():
        for one in methods.values():
            keyed = path not in OPEN
            assert ("security" in one) == keyed, path
            assert ("401" in one["responses"]) == keyed, path
            assert ("429" in one["responses"]) == path.startswith("/v1/"), path
