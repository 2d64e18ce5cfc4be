"""End to end: a writer's plausible sentence that its passage does not carry reaches no report."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from api.core.display_names import reason_in_words
from api.core.ports import SupportChecker
from api.interfaces.shared.markdown_report import report_markdown
from api.models.model_calls import OpenAISupport
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.local_support import LocalSupport
from api.reports.report import Finding, Passage, Report
from api.services.product import Ask, analyze
from tests.models.model_server import Reply, client_of, fails, says, serving
from tests.reports.unsupported import ONLY_A_MODEL, UNSUPPORTED, Pair
from tests.services.fakes import FakeSource
from tests.services.kit import Author, kit, post, posts

CARRIED = Pair("carried", "The handle wobbles.", "The handle wobbles a lot.")


async def written(pair: Pair, checker: SupportChecker, *, topic: str = "", alone: bool = False) -> Report:
    """The report of a writer with the pair in headline, summary and findings, a sound one beside.

    Args:
        pair: the sentence and the passage it cites.
        checker: what checks it.
        topic: another headline than the sentence.
        alone: without the sound finding.
    """
    pairs = (pair,) if alone else (CARRIED, pair)
    findings = tuple(
        Finding.resting(each.sentence, "other", (Passage(f"reddit:{number}", each.passage),), "unverified")
        for number, each in enumerate(pairs)
    )
    summary = " ".join(each.sentence for each in pairs)
    draft = DraftText(topic or pair.sentence, summary, findings, (), (), DraftFlaws())
    found = [post(number, title=each.item, body=each.passage) for number, each in enumerate(pairs)]
    product = kit(FakeSource([*found, *posts(4, start=2)]), writer=Author(draft=draft))
    return await analyze(replace(product, checker=checker), Ask("Ember mug"))


def honest(request: dict[str, Any]) -> Reply:
    """A model that calls nothing supported but the sound sentence."""
    asked = re.findall(r"\d+ sentence>(.*?)</q-", request["messages"][1]["content"])
    flags = [html.unescape(sentence) == CARRIED.sentence for sentence in asked]
    return says(json.dumps({"supported": flags}))


def shown(report: Report) -> str:
    """What a person reads, without the escapes of Markdown."""
    return html.unescape(report_markdown(report, dropped=True)).replace("\\", "")


def assert_only_the_carried(report: Report, pair: Pair) -> None:
    """The sentence is nowhere, the sound one stays, and the reader is told what went."""
    assert [(finding.text, finding.support) for finding in report.findings] == [(CARRIED.sentence, "checked")]
    assert (report.topic, report.summary) == ("Ember mug", CARRIED.sentence)
    assert pair.sentence not in report.model_dump_json()
    assert pair.sentence not in shown(report)
    assert (report.support.status, report.support.pairs, report.support.supported) == ("ok", 2, 1)
    assert [note for note in report.quality_notes if note.startswith("support check")] == [
        "support check: removed 1 of 2 passages, which say something else than their sentence",
        "support check: 1 finding that no passage carries, removed",
        "support check: the headline, which no passage carries, removed",
        "support check: 1 sentence of the summary that no passage carries, removed",
    ]


@pytest.mark.parametrize("pair", UNSUPPORTED, ids=lambda pair: pair.kind)
async def test_what_words_tell_goes_without_a_model(pair: Pair) -> None:
    """
    The local check refuses these kinds wherever a writer puts them.
    """
    assert_only_the_carried(await written(pair, LocalSupport()), pair)


@pytest.mark.parametrize("pair", [*UNSUPPORTED, *ONLY_A_MODEL], ids=lambda pair: pair.kind)
async def test_what_a_model_calls_unsupported_goes(pair: Pair) -> None:
    """
    All kinds, over a socket.
    """
    async with serving(respond=honest) as model, client_of(model) as client:
        report = await written(pair, OpenAISupport(client))

    assert_only_the_carried(report, pair)
    assert len(model.asked) == 1


async def test_a_report_of_nothing_else_becomes_themes_and_says_what_was_checked() -> None:
    """
    Not a word of the writer's is left; the check worked, and nothing passed it.
    """
    pair = UNSUPPORTED[0]

    report = await written(pair, LocalSupport(), topic="The mug", alone=True)

    assert pair.sentence not in report.model_dump_json()
    assert {finding.support for finding in report.findings} == {"counted"}
    assert (report.support.status, report.support.pairs, report.support.rate) == ("ok", 1, 0.0)


async def test_a_headline_that_a_passage_carries_stays() -> None:
    """
    It is checked like a sentence.
    """
    report = await written(UNSUPPORTED[0], LocalSupport(), topic="The handle wobbles")

    assert report.topic == "The handle wobbles"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fails(500, x_should_retry="false"), "http_error"),
        (Reply(hang=True), "timeout"),
        (Reply(drop=True), "unreachable"),
        (says("I would say yes."), "malformed"),
        (says('{"supported": [true]}'), "count_mismatch"),
        (says('{"supported": [true, true, true, true, true, true]}'), "count_mismatch"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_check_that_fails_drops_nothing_and_calls_nothing_checked(reply: Reply, reason: str) -> None:
    """
    Every finding is shown as unverified, and the report says why.
    """
    pair = UNSUPPORTED[0]
    async with serving(reply) as model, client_of(model) as client:
        report = await written(pair, OpenAISupport(client, seconds=0.2 if reply.hang else 15.0))

    assert [(finding.text, finding.support) for finding in report.findings] == [
        (CARRIED.sentence, "unverified"), (pair.sentence, "unverified"),
    ]  # fmt: skip
    assert (report.topic, report.summary) == (pair.sentence, f"{CARRIED.sentence} {pair.sentence}")
    assert (report.support.status, report.support.reason) == ("degraded", reason)
    assert report.support.rate is None
    assert f"The support check did not work ({reason_in_words(reason)}): the findings are unverified" in shown(report)
    assert shown(report).count("(unverified)") == 2


async def test_a_dead_model_drops_nothing() -> None:
    """
    Nobody listens where it was.
    """
    async with serving() as model:
        pass
    async with client_of(model) as client:
        report = await written(UNSUPPORTED[0], OpenAISupport(client))

    assert {finding.support for finding in report.findings} == {"unverified"}
    assert (report.support.status, report.support.reason) == ("degraded", "unreachable")
