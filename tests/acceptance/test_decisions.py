"""Each kind of answer, from the sandbox, with what it cost in the request log."""

from __future__ import annotations

from typing import Any

from api.sandbox.server import Sandbox
from api.services.product import Product
from tests.acceptance.conftest import analyzed
from tests.interfaces.command import inside

ACID = "flamenco vs classical guitarist pricing"
UPSTREAMS = ("reddit", "youtube", "amazon")


def _words(report: dict[str, Any]) -> int:
    said = [report["summary"], *(finding["text"] for finding in report["findings"])]
    return sum(len(text.split()) for text in said)


async def test_a_popular_product_gets_a_full_report_and_a_rare_one_a_short_one(
    built: Product,
) -> None:
    """The short report has its disclaimer and fewer words than the full one."""
    full, short = await analyzed(built, "plaud.ai"), await analyzed(built, "Tidbyt")

    assert full["decision"] == "full_report"
    assert short["decision"] == "short_report"
    assert short["disclaimer"].startswith("Only ")
    assert short["disclaimer"].endswith("not a comprehensive answer.")
    assert _words(short) < _words(full)


async def test_a_name_nobody_mentions_is_insufficient(built: Product, sandbox: Sandbox) -> None:
    """Nothing found is said, with suggestions and no report call."""
    report = await analyzed(built, "Zorvexolin Q9")

    assert report["decision"] == "insufficient_data"
    assert report["suggestions"]
    assert not report["findings"]
    assert not sandbox.requests("openai", "agent")


async def test_a_page_of_lookalikes_is_insufficient(built: Product, sandbox: Sandbox) -> None:
    """Forty posts about building guitars do not answer what a guitarist costs: no report call."""
    report = await analyzed(built, ACID)

    assert sum(one["fetched"] for one in report["sources"].values()) >= 20
    assert report["decision"] == "insufficient_data"
    assert 150 <= len(report["explanation_text"].split()) <= 250
    assert report["suggestions"]
    assert not report["findings"]
    assert not sandbox.requests("openai", "agent")


async def test_small_talk_costs_nothing(built: Product, sandbox: Sandbox) -> None:
    """The message "hey this is a test message" is answered with guidance and no request at all."""
    report = await analyzed(built, "hey this is a test message")

    assert report["decision"] == "clarify"
    assert report["explanation_text"]
    assert not [entry for entry in sandbox.log if entry.upstream in {*UPSTREAMS, "openai"}]


async def test_a_model_endpoint_that_is_down_leaves_items_unjudged(built: Product, sandbox: Sandbox) -> None:
    """No gate, grader or writer: items are listed, nothing is claimed, and each gate says why."""
    sandbox.fault("openai=500")

    report = await analyzed(built, "plaud.ai")

    assert report["decision"] == "unjudged"
    assert report["items"]
    assert not report["findings"]
    assert {one["gate"]["status"] for one in report["sources"].values()} == {"degraded"}
    assert all(one["gate"]["reason"] for one in report["sources"].values())


async def test_a_description_reaches_whoever_judges(built: Product) -> None:
    """The same name described otherwise is another question: chances are others."""
    plain = await analyzed(built, "Bolt")
    described = await analyzed(built, "Bolt", about="the ride-hailing app")

    chances = [{item["key"]: item["explanation"] for item in report["items"]} for report in (plain, described)]
    assert chances[0] != chances[1]


async def test_variants_of_a_name_keep_the_same_items(built: Product) -> None:
    """`plaud.ai` and `plaud ai` are one name."""
    dotted, spaced = await analyzed(built, "plaud.ai"), await analyzed(built, "plaud ai")

    assert [item["key"] for item in dotted["items"]] == [item["key"] for item in spaced["items"]]


async def test_one_source_down_does_not_hurt_the_others(built: Product, sandbox: Sandbox) -> None:
    """A block page is an outcome and a sentence, and the report comes from the rest."""
    sandbox.fault("amazon=captcha")

    report = await analyzed(built, "plaud.ai")

    assert report["sources"]["amazon"]["outcome"] == "blocked"
    assert "Amazon could not be asked" in report["coverage"]
    assert report["decision"] == "full_report"


def test_no_source_to_ask_is_exit_code_four(sandbox: Sandbox) -> None:
    """All sources blocked: exit 4, one JSON object, no explanation call."""
    env = dict(sandbox.environment)
    for fault in ("reddit=403html", "youtube=search_quota", "amazon=captcha"):
        sandbox.fault(fault)

    ended = inside("analyze", "plaud.ai", "--format", "json", env=env)

    assert ended.code == 4
    assert ended.json["decision"] == "insufficient_data"
    assert not sandbox.requests("openai")
