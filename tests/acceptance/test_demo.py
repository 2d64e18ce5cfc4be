"""The main job from an empty environment, offline."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import pytest

from api.sandbox import corpus
from api.services.product import Product
from tests.acceptance.conftest import analyzed
from tests.interfaces.command import inside

SOURCES = {"reddit", "youtube", "amazon"}
PRODUCTS: list[dict[str, Any]] = json.loads(
    resources.files("api.sandbox").joinpath("data/products.json").read_text("utf-8")
)
POPULAR = [one for one in PRODUCTS if one["slug"] not in {"tidbyt", "guitar"}]


def test_analyze_without_a_key_is_a_report_that_says_sample_data() -> None:
    """An empty environment gives a cited report about plaud.ai, marked as sample data."""
    ended = inside("analyze", "plaud.ai", "--format", "json")

    report = ended.json
    kept = {item["key"] for item in report["items"]}
    assert ended.code == 0
    assert report["sample"] is True
    assert "Sample data" in ended.err
    assert set(report["sources"]) == SOURCES
    assert len(report["findings"]) >= 3
    assert all(finding["cites"] and kept >= set(finding["cites"]) for finding in report["findings"])


def test_the_report_a_person_reads_shows_every_source_and_its_gate() -> None:
    """The text report says sample data and shows fetched, kept, yield and refetched per source."""
    ended = inside("analyze", "plaud.ai")

    assert ended.code == 0
    assert "SAMPLE DATA" in ended.out
    for name in ("Reddit", "YouTube", "Amazon"):
        assert any(line.startswith(name) and "%" in line for line in ended.out.splitlines())


async def test_cited_items_are_about_the_product(built: Product, capsys: pytest.CaptureFixture[str]) -> None:
    """Over the popular products at least 85 % of the cited items are labelled relevant."""
    right = total = 0
    lines = []
    for product in POPULAR:
        report = await analyzed(built, product["query"])
        labels = corpus.labels(product["slug"])
        titles = {item["key"]: item["title"] for item in report["items"]}
        cited = {key for finding in report["findings"] for key in finding["cites"]}
        misses = [key for key in cited if not labels.get(key, {}).get("relevant")]
        right, total = right + len(cited) - len(misses), total + len(cited)
        lines.append(f"{product['query']}: {len(cited) - len(misses)} of {len(cited)} cited")
        lines += [f"  miss: {titles[key]}" for key in misses]
    with capsys.disabled():
        print("\nprecision of cited items, per product:", *lines, sep="\n  ")
        print(f"  over all: {right / total:.2f}")

    assert total >= 2 * len(POPULAR)
    assert right / total >= 0.85
