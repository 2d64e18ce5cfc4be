"""`api.analyze` and `api.fetch`, called as programs and notebooks call them."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import typing
from importlib.metadata import version
from typing import Any, assert_type

import pytest

import api
from api import Fetched, Report
from api.core.domain import Question
from api.errors import ConfigurationError, NotFound, UsageError
from api.services.product import Ask
from tests.interfaces.command import inside
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import kit, posts, providing


async def test_a_report_is_one_call() -> None:
    """Without keys it is made of sample data, and says so; nothing but the answer is left over."""
    report = assert_type(await api.analyze("plaud.ai", depth="quick"), Report)

    assert (report.decision, report.sample, report.depth) == ("full_report", True, "quick")
    assert report.findings
    assert {key.partition(":")[0] for key in report.findings[0].cites} <= set(report.sources)


async def test_a_report_is_judged_again_without_a_source() -> None:
    """As something else; the former report stays as it is."""
    place = FakeSource(posts(6))
    with providing(kit(place, judge=FakeJudge(["0", "1", "2"]))):
        report = await api.analyze("ember mug", sources=["reddit"])
        asked = len(place.plans)
        again = assert_type(await api.ask_again(report, about="a cup", not_about=["a game"]), Report)
        with pytest.raises(NotFound, match="no sense 2"):
            await api.ask_again(report, sense=2)

    assert (again.about, again.not_about) == ("a cup", ("game",))
    assert len(place.plans) == asked
    assert again.id != report.id
    assert {item.key for item in again.items} == {item.key for item in report.items}


async def test_one_source_is_one_call() -> None:
    """What was kept, typed, with what judging took."""
    answer = assert_type(await api.fetch("reddit", "plaud.ai", limit=3), Fetched)

    assert (answer.source, answer.outcome, answer.attempts[0].limit) == ("reddit", "ok", 3)
    assert answer.usage.requests == len(answer.attempts)
    assert answer.items[0].title


@pytest.mark.parametrize("sources", [["reddit"], ("reddit",), "reddit"])
async def test_the_arguments_are_those_of_every_door(sources: Any) -> None:
    """All of `Ask`, under the names that the command line has."""
    judge = FakeJudge(["0", "1", "2", "3", "4", "5"])
    place, other = FakeSource(posts(9)), FakeSource(posts(9, "amazon"), "amazon")
    words: dict[str, Any] = {
        "depth": "deep", "since": "year", "limit": 4, "about": "a cup",
        "not_about": ["a game"], "aim": "mention",
    }  # fmt: skip
    with providing(kit(place, other, judge=judge)):
        report = await api.analyze("ember mug", sources=sources, **words)
        answer = await api.fetch("reddit", "ember mug", **words)

    assert (report.about, report.depth, list(report.sources)) == ("a cup", "deep", ["reddit"])
    assert {(plan.limit, plan.window) for plan in place.plans} == {(4, "year")}
    assert set(judge.questions) == {Question("ember mug", "a cup", ("game",), "mention")}
    assert [item.score for item in answer.items] == [None] * 4
    assert other.plans == []


_SHARED = ("depth", "sources", "since", "limit", "about", "not_about", "aim")


def test_the_defaults_are_those_of_every_door() -> None:
    """What is not said is what `Ask` and the command line take."""
    plain = Ask("x")
    signature = inspect.signature(api.analyze).parameters

    defaults = [signature[name].default for name in _SHARED]
    assert defaults == [getattr(plain, name) for name in _SHARED]
    assert inspect.signature(api.fetch).parameters["depth"].default == "quick"
    assert typing.get_type_hints(api.analyze)["return"] is Report
    assert typing.get_type_hints(api.fetch)["return"] is Fetched


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"depth": "fast"}, "there is no depth `fast`; there are `quick`, `standard`, `deep`"),
        ({"depth": None}, "there is no depth `None`"),
        ({"since": "decade"}, "there is no `since` `decade`; there are `day`, `week`"),
        ({"sources": ["redit"]}, "there is no source `redit`; there are `reddit`"),
        ({"limit": 0}, "`limit` must lie between 1 and 500, not 0"),
        ({"limit": 2.5}, "`limit` must be a whole number from 1 to 500, not float"),
        ({"limit": "5"}, "`limit` must be a whole number from 1 to 500, not str"),
        ({"limit": True}, "`limit` must be a whole number from 1 to 500, not bool"),
        ({"sources": 5}, "`sources` must be a list of names, not int"),
        ({"sources": [5]}, "there is no source `5`; there are `reddit`"),
        ({"query": ["plaud.ai", "Notion"]}, "`query` must be text, not list"),
        ({"query": 5}, "`query` must be text, not int"),
        ({"query": b"plaud.ai"}, "`query` must be text, not bytes"),
        ({"query": None}, "`query` must be text, not NoneType"),
        ({"about": 5}, "`about` must be text, not int"),
        ({"not_about": "a game"}, "`not_about` must be a list of texts, not str"),
        ({"not_about": [5]}, "`not_about` must be a list of texts, not int"),
        ({"aim": "all"}, "there is no aim `all`; there are `about`, `mention`"),
    ],
)
async def test_what_makes_no_sense_is_named(wrong: dict[str, Any], message: str) -> None:
    """Before anything is asked."""
    place = FakeSource(posts(3))
    with providing(kit(place)), pytest.raises(UsageError) as caught:
        await api.analyze(**{"query": "ember mug", **wrong})

    assert str(caught.value).startswith(message)
    assert place.plans == []


async def test_one_source_takes_no_bytes() -> None:
    """Python would write them as text that nobody typed."""
    place = FakeSource(posts(3))
    with providing(kit(place)), pytest.raises(UsageError, match="`query` must be text, not bytes"):
        await api.fetch("reddit", b"plaud.ai")  # type: ignore[arg-type]

    assert place.plans == []


async def test_none_stands_for_the_default() -> None:
    """All sources, no words to tell it by."""
    with providing(kit(FakeSource(posts(3)), FakeSource(posts(3, "amazon"), "amazon"))):
        report = await api.analyze("ember mug", depth="quick", sources=None, about=None)
        answer = await api.fetch("reddit", "ember mug", about=None)

    assert (list(report.sources), report.about) == (["reddit", "amazon"], "")
    assert answer.outcome == "ok"


async def test_a_query_that_names_nothing() -> None:
    """A report says so by its decision; one source has nothing to say it with."""
    with providing(kit(FakeSource(posts(3)))):
        assert (await api.analyze("hello")).decision == "clarify"
        with pytest.raises(UsageError, match="Say which product"):
            await api.fetch("reddit", "hello")


async def test_a_wrong_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable's name."""
    monkeypatch.setenv("LISTENPOST_JUDGE", "oracle")

    with pytest.raises(ConfigurationError, match="LISTENPOST_JUDGE"):
        await api.analyze("plaud.ai")


def test_loops_come_and_go() -> None:
    """`asyncio.run` once for each question, and what else runs in the loop goes on."""

    async def main() -> tuple[str, str]:
        mine = asyncio.create_task(asyncio.sleep(0, "mine"))
        answer = await api.fetch("reddit", "plaud.ai")
        return answer.outcome, await mine

    assert [asyncio.run(main()) for _ in range(2)] == [("ok", "mine")] * 2


def test_they_are_seen_where_people_look() -> None:
    """In `dir(api)` and `help(api)`, with what they take."""
    page = pydoc.plain(pydoc.render_doc(api))

    for name in ("analyze", "fetch", "relevance_filter"):
        assert name in dir(api)
        assert f"async {name}(" in page
    assert "about: what it is, to tell it from its namesakes" in page
    assert "UsageError: an unknown source" in page


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_that_of_the_package(option: str) -> None:
    """On stdout, and in Python."""
    done = inside(option)

    assert (done.code, done.out, done.err) == (0, f"listenpost {version('listenpost')}\n", "")
    assert api.__version__ == version("listenpost")
