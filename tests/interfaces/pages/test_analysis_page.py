"""An analysis on the page: while it runs, as a report, as evidence, and as files."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import LOCAL
from api.services.product import Ask
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.hostile_report import Tags
from tests.interfaces.pages.visiting import QUICK, assert_harmless, csrf, finished, poisoned, submit


async def test_lanes_say_how_far_each_place_is(served: Served) -> None:
    """Live, and on a page that is loaded meanwhile; then there is the report."""
    served.sandbox.latency("openai.judge=1s")
    place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
    running = (await served.client.get(place)).text
    stream = (await served.client.get(f"{place}/live")).text
    after = (await served.client.get(place)).text

    assert '<meta http-equiv="refresh" content="3">' in running
    assert f'data-live="{place}/live"' in running
    frames = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    shown = [frame["html"] for frame in frames if frame]
    for words in ("asked for", "found", "about it", "so it is asked again", "searched twice"):
        assert any(words in html for html in shown), words
    assert [title for title in ("Reddit", "YouTube", "Amazon") if title in shown[0]] == [
        "Reddit", "YouTube", "Amazon",
    ]  # fmt: skip
    assert stream.rstrip().endswith("id: over")
    assert 'class="claims"' in after


async def test_one_that_runs_can_be_cancelled(served: Served) -> None:
    """By a form of ours; the page then says why there is no report."""
    served.sandbox.latency("openai.judge=60s")
    place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
    answer = await submit(served.client, f"{place}/cancel")
    after = (await served.client.get(place)).text

    assert (answer.status_code, answer.headers["location"]) == (303, place)
    assert "There is no report: cancelled." in after


async def test_one_that_another_process_works_on_is_waited_for(served: Served) -> None:
    """Without lanes, since its moments are heard there; what it came to is shown here."""
    name = "<script>alert(1)</script>"
    await served.app_context.store.begin("local", "a" * 32, name)
    running = (await served.client.get(f"/analyses/{'a' * 32}")).text
    stream, _ = await asyncio.gather(
        served.client.get(f"/analyses/{'a' * 32}/live"),
        served.app_context.store.fail("local", "a" * 32, name),
    )
    after = (await served.client.get(f"/analyses/{'a' * 32}")).text

    assert "another process works on it" in running
    assert "event: over" in stream.text
    assert "There is no report" in after
    for page in (running, after):
        assert "<script>alert" not in page
        assert "<h1>&lt;script&gt;" in page


async def test_a_report_begins_with_its_claims(served: Served) -> None:
    """Below the way to the rest; then figures and how it was made, and beside them the cited posts."""
    report = await finished(served)
    page = (await served.client.get(f"/analyses/{report.id}")).text

    order = [
        page.index(words)
        for words in (
            "Evidence: ", 'class="claims"', '<h2 id="figures">', "<summary>About this report",
            report.decision_rationale,
            'id="source-',
        )
    ]  # fmt: skip
    assert order == sorted(order)
    assert f'<a href="/analyses/{report.id}/evidence?place=reddit">Reddit</a>' in page
    tags = Tags(page)
    ids = {f"#{each['id']}" for each in tags.named("li") if each.get("id")}
    cites = {each["href"] for each in tags.named("a") if each.get("class") == "cite"}
    assert cites
    assert cites <= ids
    for finding in report.findings:
        for passage in finding.evidence[:1]:
            words = passage.passage.split()[0]
            assert words in "".join(re.findall(r"<mark>(.*?)</mark>", page, re.S))


async def test_evidence_is_narrowed_by_what_is_looked_for(served: Served) -> None:
    """By place, by who dropped it, by language and by words; all of it on the server."""
    report = await finished(served)
    first, *others = report.dropped
    sure = (first.model_copy(update={"probability": 0.123}), *others)
    await served.app_context.store.finish("local", report.model_copy(update={"dropped": sure}))
    place = f"/analyses/{report.id}/evidence"
    whole, reddit, gate, words, none = [
        (await served.client.get(place, params=query)).text
        for query in (
            {}, {"place": "reddit"}, {"stage": "gate"}, {"text": report.dropped[0].title},
            {"text": "nobody wrote this"},
        )
    ]  # fmt: skip
    kept, dropped = len(report.items), len(report.dropped)
    of_reddit = sum(item.source == "reddit" for item in report.items)
    by_gate = sum(item.dropped_by == "gate" for item in report.dropped)

    assert f"Kept: {kept} of {kept}" in whole
    assert f"Dropped: {dropped} of {dropped}" in whole
    assert f"Kept: {of_reddit} of {kept}" in reddit
    assert f"Kept: 0 of {kept}" in gate
    assert f"Dropped: {by_gate} of {dropped}" in gate
    assert re.search(rf"Dropped: [1-9]\d* of {dropped}", words)
    assert f"Dropped: 0 of {dropped}" in none
    assert "12 % likely to be about it" in whole


@pytest.mark.parametrize(
    ("form", "media", "ending"),
    [
        ("html", "text/html", "html"),
        ("markdown", "text/markdown", "md"),
        ("csv", "text/csv", "csv"),
        ("json", "application/json", "json"),
    ],
)
async def test_a_report_is_taken_along(served: Served, form: str, media: str, ending: str) -> None:
    """As the API gives it, but as a file."""
    report = await finished(served)
    answer = await served.client.get(f"/analyses/{report.id}/export/{form}")
    api = await served.client.get(f"/v1/analyses/{report.id}", params={"format": form})

    assert answer.headers["content-type"].startswith(media)
    name = f'attachment; filename="analysis-{report.id}.{ending}"'
    assert answer.headers["content-disposition"] == name
    assert answer.content == api.content


async def test_strangers_cannot_write_the_pages(served: Served) -> None:
    """Report and evidence: no element and no attribute of theirs, and only web links."""
    report = await poisoned(served)
    for path in (f"/analyses/{report.id}", f"/analyses/{report.id}/evidence"):
        assert_harmless(await served.client.get(path))


async def test_what_is_not_there_is_a_page_too(served: Served) -> None:
    """And so is a form that is not ours."""
    missing = await served.client.get("/analyses/nothing")
    unlike = await served.client.get("/analyses/a%00b/export/xml")
    form = await served.client.get("/analyses/nothing/export/xml")
    evidence = await served.client.get("/analyses/nothing/evidence")
    stream = await served.client.get("/analyses/nothing/live")
    forged = await served.client.post("/ask", data={**QUICK, "csrf": "guessed"})

    answers = (missing, unlike, form, evidence, stream, forged)
    assert [answer.status_code for answer in answers] == [404, 404, 404, 404, 404, 403]
    for answer in answers:
        assert answer.headers["content-type"].startswith("text/html")
    assert "no such analysis" in missing.text
    assert "no longer valid" in forged.text


async def test_evidence_of_one_that_runs_is_not_there_yet(served: Served) -> None:
    """It says that it runs; the page itself shows its lanes."""
    served.sandbox.latency("openai=2s")
    task = await served.app_context.runner.join(LOCAL, Ask("plaud.ai", "quick"))
    assert isinstance(task, AnalysisTask)
    answer = await served.client.get(f"/analyses/{task.id}/evidence")
    task.cancel()
    await task.ended()

    assert answer.status_code == 409
    assert "holds no report yet" in answer.text


async def test_the_style_and_the_script_are_kept_by_browsers(served: Served) -> None:
    """Under the address that a page names; another version has another address."""
    page = (await served.client.get("/")).text
    for name in re.findall(r'"(/static/[^"]+)"', page):
        first = await served.client.get(name)
        again = await served.client.get(name, headers={"If-None-Match": first.headers["etag"]})
        assert "immutable" in first.headers["cache-control"]
        assert (first.status_code, again.status_code) == (200, 304)
        assert await csrf(served.client) not in first.text
    assert (await served.client.get("/static/page.py")).status_code == 404
