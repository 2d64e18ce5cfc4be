"""Every number of an answer, recomputed from its items with code of this file's own."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from api.services.product import Product
from tests.acceptance.conftest import analyzed
from tests.interfaces.command import inside

PRODUCTS = ("plaud.ai", "Oura", "小米", "Oura Ring 4")
SHORT = "Tidbyt"
UPSTREAMS = {"reddit", "youtube", "amazon"}
Answer = dict[str, Any]


@pytest.fixture(scope="module", params=PRODUCTS)
def answer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    """One product's full report in standard."""
    with Sandbox.start() as sandbox:
        env = {**sandbox.environment, "HOME": str(tmp_path_factory.mktemp("home"))}
        found: Answer = inside("analyze", request.param, "--format", "json", env=env).json
    assert found["decision"] == "full_report"
    return found


def _of(entries: list[Answer], source: str) -> list[Answer]:
    return [entry for entry in entries if entry["key"].split(":")[0] == source]


def _everything(answer: Answer) -> list[Answer]:
    return [*answer["items"], *answer["dropped"]]


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _interval(part: int, whole: int) -> tuple[float, float]:
    """The shares p for which part / whole lies 1.96 standard errors of p away: a quadratic."""
    z2, p = 1.959963984540054**2, part / whole
    a, b, c = 1 + z2 / whole, -(2 * p + z2 / whole), p * p
    root = (b * b - 4 * a * c) ** 0.5
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def test_what_was_fetched_and_kept(answer: Answer) -> None:
    """Fetched, kept and yield of each source are its entries in `items` and `dropped`."""
    assert set(answer["figures"]["sources"]) == set(answer["sources"]) == UPSTREAMS
    for name, figure in answer["figures"]["sources"].items():
        told = answer["sources"][name]
        keys = {entry["key"] for entry in _of(_everything(answer), name)}
        passed = {one["key"] for one in _of(_everything(answer), name) if one["verdict"]}
        limits = [attempt["limit"] for attempt in told["attempts"]]
        gone = {entry["key"] for entry in told["dropped"]}
        assert figure == {
            "fetched": len(keys),
            "relevant": len(passed),
            "kept": len(passed),
            "in_report": len(_of(answer["items"], name)),
            "yield_ratio": told["yield_ratio"],
            "refetched": len(limits) > 1,
        }
        assert (told["fetched"], told["kept"]) == (len(keys), len(passed))
        unfit = {entry["key"] for entry in told["dropped"] if entry["dropped_by"] == "unfit"}
        assert told["yield_ratio"] == pytest.approx(len(passed) / len(keys - unfit))
        assert told["refetched"] == (len(limits) > 1)
        assert gone == keys - passed
        assert sum(attempt["new"] for attempt in told["attempts"]) == len(keys)
        assert sum(attempt["relevant"] for attempt in told["attempts"]) == len(passed)
        assert told["refetch_gain"] == sum(one["relevant"] for one in told["attempts"][1:])


def test_coverage_says_the_same_counts(answer: Answer) -> None:
    """Each sentence of the coverage has its source's kept and fetched items."""
    for name, label in (("reddit", "Reddit"), ("youtube", "YouTube"), ("amazon", "Amazon")):
        mine = _of(_everything(answer), name)
        passed = sum(one["verdict"] for one in mine)
        assert f"{label}: {passed} of {len(mine)} results were about it" in answer["coverage"]


def test_sentiment(answer: Answer) -> None:
    """Counts, shares and Wilson intervals come from the items' own sentiment."""
    felt = [one["sentiment"] for one in answer["items"] if one["sentiment"] is not None]
    figure = answer["figures"]["sentiment"]
    people, repeated = figure["n"], figure.get("repeated", 0)
    assert people + repeated == len(felt) > 0
    assert figure["ungraded"] == len(answer["items"]) - len(felt)
    assert sum(figure["shares"].values()) == pytest.approx(1.0)
    for name, value in (("positive", 1), ("neutral", 0), ("negative", -1)):
        many = figure[name]
        assert felt.count(value) - repeated <= many <= felt.count(value)
        assert figure["shares"][name] == pytest.approx(many / people)
        assert figure["wilson95"][name] == pytest.approx(_interval(many, people), abs=1e-9)


def test_timeline(answer: Answer) -> None:
    """Days, weeks from Monday past 31 days, months past 60 weeks; UTC; the undated apart."""
    figure = answer["figures"]["timeline"]
    dated = [_moment(one["created_at"]).date() for one in answer["items"] if one["created_at"]]
    past = _moment(answer["created_at"]).date() - min(dated)
    unit = "day" if past <= timedelta(31) else "week" if past <= timedelta(420) else "month"
    counts: dict[date, int] = defaultdict(int)
    for day in dated:
        year, week, _ = day.isocalendar()
        start = {
            "day": day,
            "week": date.fromisocalendar(year, week, 1),
            "month": day.replace(day=1),
        }
        counts[start[unit]] += 1
    assert figure["unit"] == unit
    assert figure["undated"] == len(answer["items"]) - len(dated)
    points = {date.fromisoformat(point["start"]): point["count"] for point in figure["points"]}
    assert list(points) == sorted(points)
    assert {start: count for start, count in points.items() if count} == counts
    steps = {(b - a).days for a, b in pairwise(points)}
    assert steps <= {"day": {1}, "week": {7}, "month": {28, 29, 30, 31}}[unit]


def test_aspects(answer: Answer) -> None:
    """Each aspect's count, feelings and cites are the items that name it, best ranked first."""
    told = {one["aspect"]: one for one in answer["figures"]["aspects"]}
    assert len(told) == len(answer["figures"]["aspects"])
    assert set(told) == {name.casefold() for one in answer["items"] for name in one["aspects"]}
    for name, figure in told.items():
        named = [one for one in answer["items"] if name in [each.casefold() for each in one["aspects"]]]
        alike = len(answer["items"]) - answer["figures"]["authors"]["people"]
        for field, posts in (
            ("count", len(named)),
            ("positive", sum(one["sentiment"] == 1 for one in named)),
            ("negative", sum(one["sentiment"] == -1 for one in named)),
        ):
            assert posts - alike <= figure[field] <= posts
        assert figure["cites"] == [one["key"] for one in sorted(named, key=lambda x: x["rank"])]
    sizes = [one["count"] for one in answer["figures"]["aspects"]]
    assert sizes == sorted(sizes, reverse=True)


def test_places_and_engagement(answer: Answer) -> None:
    """Places count items; each measure has its own n, middle and maximum, within one source."""
    places: dict[tuple[str, str], int] = defaultdict(int)
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in answer["items"]:
        if one["place"]:
            places[one["source"], one["place"]] += 1
        for measure, value in one["engagement"].items():
            if value is not None:
                values[one["source"], measure].append(value)
    told = answer["figures"]["places"]
    assert {(one["source"], one["place"]): one["count"] for one in told} == places
    assert len(told) == len(places)
    figures = {
        (source, measure): figure
        for source, measures in answer["figures"]["engagement"].items()
        for measure, figure in measures.items()
    }
    assert set(figures) == set(values)
    for where, many in values.items():
        many.sort()
        middle = (many[(len(many) - 1) // 2] + many[len(many) // 2]) / 2
        assert figures[where] == {
            "n": len(many),
            "median": pytest.approx(middle),
            "max": many[-1],
        }


def _assert_totals(answer: Answer) -> None:
    graded = [one for one in _everything(answer) if one["score"] is not None]
    scored = [one for one in graded if one["dropped_by"] != "duplicate"]
    cutoff = 3
    survived = [one for one in scored if one["score"] >= cutoff and one["dropped_by"] is None]
    assert len({one["key"] for one in _everything(answer)}) == len(_everything(answer))
    assert (answer["total_scored"], answer["total_survived"]) == (len(scored), len(survived))
    assert len(survived) == len(answer["items"])
    assert all(one["score"] < cutoff for one in scored if one["dropped_by"] == "cutoff")
    counted = re.search(r"(\d+) of (\d+) posts .* graded (\d) of 5", answer["decision_rationale"])
    assert counted is not None
    assert [int(number) for number in counted.groups()] == [len(survived), len(scored), cutoff]


def test_totals_and_rationale(answer: Answer) -> None:
    """The totals are the graded entries, and the rationale repeats them."""
    _assert_totals(answer)
    assert answer["decision_rationale"].endswith("say enough, graded 3 of 5 or better")
    assert answer["disclaimer"] is None


@pytest.mark.parametrize("depth", ["quick", "standard", "deep"])
@pytest.mark.parametrize("query", ["plaud.ai", "Ember mug", SHORT, "What annoys people about Notion?"])
async def test_a_number_has_one_value_everywhere(built: Product, query: str, depth: str) -> None:
    """A source's counts are those of its figures, and people are never more than posts and comments."""
    answer = await analyzed(built, query, depth=depth)
    items = {item["key"]: item for item in answer["items"]}
    figures = answer["figures"]
    for name, figure in figures["sources"].items():
        told = answer["sources"][name]
        for field in ("fetched", "kept", "yield_ratio", "refetched"):
            assert figure[field] == told[field], (name, field)
        assert figure["in_report"] == len(_of(answer["items"], name))
        assert figure["in_report"] <= figure["relevant"] <= figure["kept"] <= figure["fetched"]
    felt, authors = figures["sentiment"], figures.get("authors", {"people": 0, "most": 0, "unnamed": 0})
    assert felt["n"] + felt["ungraded"] + felt.get("repeated", 0) == len(items)
    assert felt["positive"] + felt["neutral"] + felt["negative"] == felt["n"] <= authors["people"] + authors["unnamed"]
    assert authors["people"] + max(authors["most"] - 1, 0) + authors["unnamed"] <= len(items)
    for finding in answer["findings"]:
        words = {(passage["key"], passage["comment_id"]) for passage in finding["evidence"]}
        people = finding["people"]
        assert set(people) == {items[key]["source"] for key in finding["cites"]}
        for source, count in people.items():
            assert 1 <= count <= sum(items[key]["source"] == source for key, _ in words)
    for aspect in figures["aspects"]:
        assert aspect["count"] <= len(aspect["cites"])


async def test_a_short_report_says_its_counts(built: Product) -> None:
    """Rationale, disclaimer and the note on the dropped of a short report are its entries."""
    answer = await analyzed(built, SHORT)

    assert answer["decision"] == "short_report"
    _assert_totals(answer)
    numbers = [int(number) for number in re.findall(r"\d+", answer["disclaimer"])]
    stopped = sum(one["dropped_by"] == "gate" for one in answer["dropped"])
    assert numbers[:2] == [answer["total_survived"], answer["total_scored"] + stopped]
    _assert_dropped(answer)


def _assert_dropped(answer: Answer) -> None:
    (note,) = [text for text in answer["quality_notes"] if "dropped" in text] or [""]
    stages = Counter(entry["dropped_by"] for entry in answer["dropped"])
    parts = list(stages.values()) if len(stages) > 1 else []
    total = [len(answer["dropped"])] if stages else []
    numbers = [int(number) for number in re.findall(r"\d+", note)]
    assert sorted(numbers) == sorted([*total, *parts])


def test_the_note_on_the_dropped(answer: Answer) -> None:
    """Its total, and its parts where there are several, are counts of `dropped`."""
    assert answer["dropped"]
    _assert_dropped(answer)


async def test_upstream_calls_are_those_of_the_log(built: Product, sandbox: Sandbox) -> None:
    """The cost and the sources count each request that reached an upstream, once."""
    answer = await analyzed(built, "plaud.ai")

    sent = [entry.upstream for entry in sandbox.log if entry.upstream in UPSTREAMS]
    assert answer["cost"]["upstream_calls"] == len(sent) > 0
    for name in UPSTREAMS:
        assert answer["sources"][name]["upstream_calls"] == sent.count(name)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [] if value is None else [str(value)]


def _digits(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


def test_words_hold_no_number_of_their_own(answer: Answer) -> None:
    """Digits in a finding stand in what it cites, or count that; the summary's in any or all."""
    items = {one["key"]: " ".join(_texts(one)) for one in answer["items"]}
    asked = _digits(answer["query"]) | {str(len(items))}
    cited: set[str] = set()
    assert answer["findings"]
    for finding in answer["findings"]:
        assert finding["cites"]
        shown = set[str]().union(*(_digits(items[key]) for key in finding["cites"]))
        shown |= {str(len(finding["cites"]))}
        assert _digits(finding["text"]) <= shown | asked
        cited |= shown
    assert _digits(answer["summary"]) <= cited | asked
