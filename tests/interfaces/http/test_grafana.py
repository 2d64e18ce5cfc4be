"""The Grafana dashboard draws what a server exposes, all of it, and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.interfaces.http.conftest import QUESTION, Served

# a series and its matchers: `listenpost_feedback_total{rating="up"}`
SERIES = re.compile(r"(listenpost_\w+)(?:\{([^}]*)\})?")
# what is summed, by which labels: `sum by (source, reason) (increase(...))`
SUMMED = re.compile(r"sum(?: by \(([\w, ]+)\))? \(increase\((listenpost_\w+)(?:\{[^}]*\})?\[\$window\]\)\)")


@pytest.fixture(scope="module")
def board(root: Path) -> dict[str, Any]:
    """The file."""
    read: dict[str, Any] = json.loads((root / "docs" / "grafana-listenpost.json").read_text("utf-8"))
    return read


def charts(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its panels that draw something."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each PromQL expression with its legend."""
    for panel in charts(board):
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


async def exposed(served: Served) -> dict[str, set[str]]:
    """Series with their labels, once there was an analysis, an outage and a thumb."""
    posted = await served.client.post("/v1/analyses", json=QUESTION)
    rated = await served.client.post(f"{posted.headers['location']}/feedback", json={"rating": "up"})
    assert rated.status_code == 201
    served.sandbox.fault("openai.judge=500")
    await served.client.post("/v1/analyses", json={**QUESTION, "query": "ember mug"})
    page = (await served.client.get("/metrics")).text
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


async def test_every_series_and_label_is_exposed(board: dict[str, Any], served: Served) -> None:
    """Also those of legends and matchers, which would otherwise be silently empty."""
    there = await exposed(served)
    for expression, legend in expressions(board):
        kept: list[set[str]] = []
        for names, series in SUMMED.findall(expression):
            assert series in there, expression
            labels = {name.strip() for name in names.split(",") if name.strip()}
            assert labels <= there[series], expression
            kept.append(labels - {"le"})
        for series, matchers in SERIES.findall(expression):
            assert set(re.findall(r"(\w+)[=!]", matchers)) <= there[series], expression
        assert len(kept) == len(SERIES.findall(expression)) > 0, expression
        assert all(labels == kept[0] for labels in kept), "a division of other series"
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) == kept[0], legend


async def test_everything_exposed_is_drawn(board: dict[str, Any], served: Served) -> None:
    """A counter that nobody looks at is none that anybody keeps true."""
    drawn = {series for text, _ in expressions(board) for series, _ in SERIES.findall(text)}
    undrawn = {
        name for name in await exposed(served) if name not in drawn and not name.endswith(("_bucket", "_sum", "_count"))
    }

    assert undrawn == set()


def test_it_can_be_imported(board: dict[str, Any]) -> None:
    """A data source to choose, ids and letters of their own, and panels that do not overlap."""
    ids = [panel["id"] for panel in board["panels"]]
    fields = [
        (x, y)
        for panel in board["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert {"datasource", "window"} == {each["name"] for each in board["templating"]["list"]}
    assert len(ids) == len(set(ids))
    assert len(fields) == len(set(fields))
    assert max(x for x, _ in fields) < 24
    for panel in charts(board):
        letters = [target["refId"] for target in panel["targets"]]
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert len(letters) == len(set(letters))
    for expression, _ in expressions(board):
        assert expression.count("(") == expression.count(")"), expression
