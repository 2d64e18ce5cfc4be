"""A report in other formats: what strangers wrote stays text, whatever reads it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import LOCAL
from api.interfaces.http.analysis_routes import preferred
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared.claim_layout import claims_of
from api.interfaces.shared.csv_export import cell, report_csv
from api.interfaces.shared.requests import AnalysisRequest
from api.reports.report import Finding, Passage, Quote, Report
from tests.interfaces.http.conftest import QUESTION, Served
from tests.interfaces.http.hostile_report import Tags, hostile


@pytest.fixture
async def address(served: Served) -> str:
    """Where a report can be read."""
    return (await served.client.post("/v1/analyses", json=QUESTION)).headers["location"]


@pytest.fixture
async def report(served: Served, address: str) -> dict[str, Any]:
    """A report as if its items were real: those of the sample data have no address."""
    found: dict[str, Any] = (await served.client.get(address)).json()
    return found | {"sample": False}


async def test_formats_by_name_and_by_accept(served: Served, address: str) -> None:
    """The name wins; what nobody knows is JSON."""
    for name, accept, media in (
        (None, "*/*", "application/json"),
        (None, "text/html,application/xhtml+xml;q=0.9", "text/html"),
        (None, "text/markdown", "text/markdown"),
        (None, "image/png, text/csv;q=0.1", "text/csv"),
        ("json", "text/html", "application/json"),
        ("html", "application/json", "text/html"),
    ):
        query = {} if name is None else {"format": name}
        answer = await served.client.get(address, params=query, headers={"Accept": accept})
        assert answer.headers["content-type"].partition(";")[0] == media, (name, accept)
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_page_may_load_and_run_nothing(served: Served, address: str) -> None:
    """By its headers, and by itself once it is saved; its one style is the one that is allowed."""
    answer = await served.client.get(address, params={"format": "html"})
    policy = answer.headers["content-security-policy"]
    page = Tags(answer.text)
    style = re.search(r"<style>(.*)</style>", answer.text, re.S)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()

    assert policy.startswith("default-src 'none'")
    assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    metas = {meta.get("http-equiv"): meta.get("content") for meta in page.named("meta")}
    assert str(metas["Content-Security-Policy"]) in policy
    assert {tag for tag, _ in page.tags} & {"script", "img", "iframe", "link", "form"} == set()


async def test_the_page_shows_sources_with_their_share(report: dict[str, Any]) -> None:
    """Percent where it tells posts apart, a badge where it is low, texts that open, citations that lead."""
    for at, item in enumerate(report["items"]):
        item["relevance"] = 1 - at / 100
    report["items"][0]["relevance"], report["items"][0]["low_relevance"] = 0.505, True
    html = report_html(Report.model_validate(report))
    page = Tags(html)
    shares = [one for one in page.named("span") if one.get("class") == "share"]

    assert len(page.named("li")) >= len(report["items"])
    assert {one["title"] for one in shares} == {"Relative relevance among returned sources"}
    assert f">{round(0.505 * 100)} %</span>" in html
    assert html.count("Low relevance") == sum(one["low_relevance"] for one in report["items"])
    assert len(page.named("details")) >= len(report["items"])
    ids = {str(one.get("id")) for one in page.named("li") if one.get("id")}
    cites = {str(one["href"]) for one in page.named("a") if one.get("class") == "cite"}
    assert cites
    assert {cite.removeprefix("#") for cite in cites} <= ids
    assert ":target" in html
    for item in report["items"]:
        item["relevance"] = 0.75
    assert "75 %</span>" not in report_html(Report.model_validate(report))
    for claim in chain(*claims_of(Report.model_validate(report))):
        assert (claim.name or claim.finding.text) in "".join(page.words)
        assert claim.words in "".join(page.words)


async def test_strangers_cannot_write_the_page(report: dict[str, Any]) -> None:
    """The same tags as without them, no attribute of theirs, and only web links."""
    # a short summary, or one that counts the claims, has no heading
    report["summary"] = "It warms. " * 99
    plain, evil = (Tags(report_html(Report.model_validate(each))) for each in (report, hostile(report)))
    # words that a claim quotes stand there alone; a text of no known source has no label
    harmless = {"a", "p", "li", "br", "blockquote", "mark", "q", "small"}

    assert {tag for tag, _ in evil.tags} <= {tag for tag, _ in plain.tags}
    for tag, attributes in evil.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        href = attributes.get("href") or "#"
        assert href.startswith(("#", "https://", "http://")), href
    counts = [sorted(tag for tag, _ in page.tags if tag not in harmless) for page in (plain, evil)]
    assert counts[0] == counts[1]
    assert "\x1b" not in report_html(Report.model_validate(hostile(report)))


async def test_what_is_quoted_on_the_page_cites_nothing(report: dict[str, Any]) -> None:
    """Neither under a finding nor by itself: a number in it would pass for a source of ours."""
    whole = Report.model_validate(report)
    key = whole.items[0].key
    finding = Finding.resting("Warm.", "other", [Passage(key, "Warm [2] “mug”")], "counted")
    quotes = (Quote("Cold [3] “cup”", key, ""),)
    page = report_html(whole.model_copy(update={"findings": (finding,), "quotes": quotes}))

    assert "<q>Warm (2) ‘mug’</q>" in page
    assert "<blockquote><q>Cold (3) ‘cup’</q>" in page


async def test_the_page_of_a_report_without_anything(served: Served) -> None:
    """Guidance is a page too."""
    address = (await served.client.post("/v1/analyses", json={"query": "hi"})).headers["location"]
    page = (await served.client.get(address, params={"format": "html"})).text

    assert "names nothing to look for" in page
    assert "<h2>Sources" not in page


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("http://evil.example";"x")',
        "\t=1+1",
        "-1+2",
        "+1",
        "@SUM(A1)",
        "＝1+1",
        "\r\n=1",
        " =1",
        "'=1",
        "%0a=1",
        "|cmd",
    ],
)
def test_no_cell_is_a_formula(text: str) -> None:
    """Whatever a spreadsheet takes for the start of one."""
    written = str(cell(text))

    assert written.startswith("'")
    assert not written.lstrip("'").startswith(("\t", "\r"))


@pytest.mark.parametrize("start", ["so; ", "so;", 'so;"', "so\n", 'so\n  "', "so;\n;\n", "so;\u3000"])
@pytest.mark.parametrize("formula", ["=1+1", "@SUM(A1)", "-1+2", "+A1", "＝1"])
def test_no_part_of_a_cell_is_a_formula(start: str, formula: str) -> None:
    """A spreadsheet whose separator is `;` begins a cell there, and one at each line."""
    assert f"'{formula}" in str(cell(start + formula))


@pytest.mark.parametrize("sign", ["\n", "\n\t", "; ", ";'", "\r\n", "\n;"])
def test_time_of_a_cell(sign: str) -> None:
    """A run of signs that begin cells takes time in proportion to its length."""
    began = time.process_time()
    cell(f"so{sign * 50_000}=1+1")
    assert time.process_time() - began < 2


@pytest.mark.parametrize("value", ["fine ;-)", "so; and - well", "a;b"])
def test_signs_that_begin_no_formula_stay(value: str) -> None:
    """Such as a smile."""
    assert cell(value) == value


@pytest.mark.parametrize("value", [-1, 0.5, True, None, "plain", "a=b", "1-2"])
def test_what_is_no_formula_stays(value: object) -> None:
    """Numbers of ours and ordinary words."""
    assert cell(value) == ("" if value is None else value)


async def test_the_table_holds_every_item(report: dict[str, Any], tmp_path: Path) -> None:
    """Kept ones first, then dropped ones; JSON stays as it was."""
    report["items"][0]["title"] = "=1+1"
    report["items"][0]["body"] = 'two\nlines, "quoted"'
    report["items"][0]["engagement"] = {"votes": 12, "stars": 4.5, "comments": None}
    report["items"][0]["comments"] = [
        {"id": str(n), "body": text, "url": "", "created_at": None, "engagement": {}}
        for n, text in enumerate(("so", "-1"))
    ]
    report["items"][0]["aspects"] = ["battery", "price"]
    table = report_csv(Report.model_validate(report))
    rows = list(csv.DictReader(io.StringIO(table.removeprefix("\ufeff"), newline="")))

    assert table.startswith("\ufeffrank,")
    shown = {name: rows[0][name] for name in ("engagement", "stars", "comments", "aspects")}
    assert shown == {
        "engagement": "votes 12, stars 4.5", "stars": "4.5", "comments": "so\n\n'-1", "aspects": "battery, price",
    }  # fmt: skip
    cited = [key for finding in report["findings"][:1] for key in finding["cites"]]
    assert {row["key"] for row in rows if "1" in row["findings"].split(", ")} == set(cited)
    assert None not in rows[-1]
    assert len(rows) == len(report["items"]) + len(report["dropped"])
    assert rows[0]["title"] == "'=1+1"
    assert rows[0]["body"] == 'two\nlines, "quoted"'
    assert rows[0]["key"] == report["items"][0]["key"]
    assert rows[-1]["dropped_by"] == report["dropped"][-1]["dropped_by"]


async def test_the_table_is_a_file(served: Served, address: str) -> None:
    """With a name that is the analysis's."""
    answer = await served.client.get(address, params={"format": "csv"})

    assert f'filename="analysis-{address.rpartition("/")[2]}.csv"' in (answer.headers["content-disposition"])


def test_accept_is_read_in_order() -> None:
    """The best liked that there is, of those liked alike the first."""
    assert preferred("") == preferred("*/*") == "json"
    assert preferred("text/plain, TEXT/CSV ; q=0.5, text/html") == "html"
    assert preferred("text/plain, TEXT/CSV, text/html") == "csv"


async def test_one_that_runs_has_no_page_yet(served: Served) -> None:
    """Nor has one that failed: a `format` is refused, with when to ask again or why not."""
    served.sandbox.latency("openai=2s")
    ask = AnalysisRequest.model_validate(QUESTION).ask()
    task = await served.app_context.runner.join(LOCAL, ask)
    assert isinstance(task, AnalysisTask)
    place = f"/v1/analyses/{task.id}"
    runs = [await served.client.get(place, params={"format": form}) for form in ("html", "json")]
    task.cancel()
    await task.ended()
    forms = ("csv", "markdown", "html")
    failed = [await served.client.get(place, params={"format": form}) for form in forms]
    plain = await served.client.get(place, headers={"Accept": "text/csv"})
    words = [answer.json()["error"]["message"] for answer in (runs[0], *failed)]

    assert [answer.status_code for answer in (*runs, *failed)] == [409, 200, 409, 409, 409]
    assert [answer.headers["retry-after"] for answer in runs] == ["2", "2"]
    assert words == [
        f"the analysis `{task.id}` has no html yet: it runs; try again in 2 s",
        *(f"the analysis `{task.id}` has no {form}: it failed (cancelled); ask its question again" for form in forms),
    ]
    assert not any("retry-after" in answer.headers for answer in (*failed, plain))
    assert (plain.status_code, plain.json()["state"]) == (200, "failed")
