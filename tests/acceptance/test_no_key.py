"""Nothing set at all: who is asked, what it costs, and what is said when nobody can be reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.sources import SOURCES
from api.sources.lemmy import version_of
from tests.interfaces.command import inside, process
from tests.sources.json_emulators import Lemmy1Emulator

PLACES = {"hackernews", "stackexchange", "github", "lemmy"}
NOTHING = {"LISTENPOST_MODE": "", "LISTENPOST_SOURCES": ""}
"""What a fresh machine has: the tests' own defaults are taken back."""
ADDRESSES = ("HACKERNEWS_URL", "STACKEXCHANGE_URL", "GITHUB_URL", "LEMMY_URL")
DEAD = "http://127.0.0.1:1"


SITES = ("superuser", "softwarerecs", "hardwarerecs")
"""The sites of Stack Exchange that are asked unless a person names others."""


@pytest.fixture(scope="module")
def scattered() -> Iterator[Sandbox]:
    """Places full of posts in which the words of `Glow Lamp` stand apart, each with a comment."""
    places = dict.fromkeys((*PLACES, "discourse"), ("a/b",)) | {"stackexchange": SITES}
    posts = [
        {
            "source": name, "place": place, "title": f"My Glow {number} Lamp", "age_days": 1,
            "body": "The Glow light, a good Lamp.", "comments": [{"body": "Mine hums"}],
        }
        for name, named in places.items()
        for place in named
        for number in range(60)
    ]  # fmt: skip
    with Sandbox.start(posts, options=Options.endless()) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def upstream() -> Iterator[Sandbox]:
    """All places, on this machine."""
    with Sandbox.start() as sandbox:
        yield sandbox


def test_four_places_answer_who_has_set_nothing(upstream: Sandbox) -> None:
    """They are asked, the rest is one line, and there is a report."""
    upstream.forget()
    env = NOTHING | dict.fromkeys(ADDRESSES, upstream.url)
    ended = inside("analyze", "obsidian", "--format", "json", env=env)
    report = ended.json

    assert ended.code == 0
    assert report["sample"] is False
    assert report["decision"] in {"full_report", "short_report"}
    asked = {name for name, source in report["sources"].items() if source["outcome"] == "ok"}
    assert asked == PLACES
    assert {entry.upstream for entry in upstream.log} == PLACES
    unset = "Reddit, YouTube, Amazon and Discourse could not be asked: not configured."
    assert unset in report["coverage"]


def test_searches_are_counted(upstream: Sandbox) -> None:
    """At standard, refetch included: one each, one per site, and two of Lemmy."""
    upstream.forget()
    env = NOTHING | dict.fromkeys(ADDRESSES, upstream.url)
    report = inside("analyze", "obsidian", "--about", "a volcanic stone", "--format", "json", env=env).json
    searches = Counter(entry.upstream for entry in upstream.log if entry.endpoint == "search")

    assert searches == {"hackernews": 1, "stackexchange": 3, "github": 1, "lemmy": 2}
    assert any(report["sources"][name]["refetched"] for name in PLACES)
    comments = Counter(entry.upstream for entry in upstream.log if entry.endpoint == "comments")
    assert comments["github"] <= 5


@pytest.mark.parametrize("depth", ["standard", "deep"])
@pytest.mark.parametrize("name", [*sorted(PLACES), "discourse"])
def test_no_more_is_asked_than_was_estimated(
    scattered: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, depth: str
) -> None:
    """Also where the phrase finds nothing, its words do, and all that they find is kept."""
    monkeypatch.chdir(tmp_path)
    scattered.forget()
    version_of.cache_clear()
    keys = {key: scattered.environment[key] for key in (*ADDRESSES, "DISCOURSE_FORUMS")}
    words = ("analyze", "Glow Lamp", "--source", name, "--depth", depth, "--format", "json")
    told = inside(*words, "--estimate", env=NOTHING | keys).json
    report = inside(*words, env=NOTHING | keys).json
    counts = Counter(entry.endpoint for entry in scattered.log)
    low, high = (told[bound]["upstream_calls"] for bound in ("minimum", "maximum"))

    assert low <= counts.total() == report["cost"]["upstream_calls"] <= high
    assert report["sources"][name]["kept"] == report["sources"][name]["fetched"] >= 10
    parts = {"stackexchange": 3, "lemmy": 2}.get(name, 1)
    assert counts["search"] == parts * (1 if name == "lemmy" else 2)  # which knows no phrases


def test_a_whole_analysis_of_lemmy_1_0() -> None:
    """By the interface of that version alone: posts and comments are searched, kept and read."""
    with Lemmy1Emulator() as modern:
        env = NOTHING | {"LEMMY_URL": modern.server.url}
        ended = inside("analyze", "mug", "--source", "lemmy", "--format", "json", env=env)
        paths = {asked.path for asked in modern.server.asked}

    assert ended.code == 0
    assert ended.json["decision"] in {"full_report", "short_report"}
    assert {bool(item.get("thread")) for item in ended.json["items"]} == {True, False}
    assert paths == {"/nodeinfo/2.1", "/api/v4/search", "/api/v4/comment/list"}


def test_nobody_reached_is_no_report_and_names_the_sandbox() -> None:
    """Every place refuses the connection: exit code 4, why, and where a report can be seen."""
    ended = process("analyze", "obsidian", env=NOTHING | dict.fromkeys(ADDRESSES, DEAD))

    assert ended.code == 4
    assert "unreachable" in ended.out or "no connection" in ended.out
    assert "--sandbox" in ended.out
    assert "everyday word" not in ended.out  # advice on a question that nobody was asked
    assert "Traceback" not in ended.err
    unset = [line for line in ended.err.splitlines() if "onfigured" in line]
    assert unset == ["Not configured: Reddit, YouTube, Amazon, Discourse; see `listenpost doctor`"]


def test_the_only_place_says_what_it_needs() -> None:
    """What is asked for by name and is not configured names its variables."""
    ended = inside("analyze", "obsidian", "--source", "reddit", env=NOTHING)

    assert ended.code == 4
    assert "Reddit: not configured: " in ended.err
    assert "`REDDIT_CLIENT_ID`" in ended.err


def test_a_chat_without_a_place_does_not_say_that_nothing_is_there() -> None:
    """It was not searched, which is another thing, and has an exit code of its own."""
    ended = inside("chat", "obsidian", env=NOTHING | dict.fromkeys(ADDRESSES, DEAD))

    assert ended.code == 4
    assert "“obsidian” was not searched for. " in ended.out
    assert "find relevant" not in ended.out


def test_a_flag_is_enough_for_the_sample_world() -> None:
    """`--sandbox` asks nobody else, whatever is set."""
    env = NOTHING | dict.fromkeys(ADDRESSES, DEAD) | {"LISTENPOST_MODE": "live"}
    ended = inside("analyze", "plaud.ai", "--sandbox", "--format", "json", env=env)

    assert ended.code == 0
    assert ended.json["sample"] is True
    assert len(ended.json["sources"]) == 8


def test_a_name_that_is_too_short_for_a_forum(upstream: Sandbox) -> None:
    """It is not asked, says what would help, and the others are."""
    upstream.forget()
    env = NOTHING | {name: upstream.environment[name] for name in (*ADDRESSES, "DISCOURSE_FORUMS")}
    alone = inside("fetch", "discourse", "hp", env=env)
    ended = inside("analyze", "hp", env=env)
    why = "forums search for words of 3 characters or more; ask with a longer name"

    assert alone.code == 4
    assert f"Discourse: its search takes no such query: {why}" in alone.err
    assert "Discourse         0         0      -  -         -" in alone.out
    assert not upstream.requests("discourse")
    assert ended.code == 3
    assert "Hacker News: nothing was found" in ended.err
    told = " ".join(ended.out.split())
    assert "Hacker News, Stack Exchange, GitHub and Lemmy were asked and found nothing" in told
    assert f"Discourse was not asked: {why}" in told


@pytest.mark.parametrize("name", SOURCES)
def test_a_failure_names_its_place_once(name: str) -> None:
    """As people call it; its name as a setting's value says nothing more."""
    keys = {"REDDIT_CLIENT_ID": "i", "REDDIT_CLIENT_SECRET": "s", "YOUTUBE_API_KEY": "k"}
    keys |= {"AMAZON_PROVIDER": "html"}
    env = NOTHING | keys | {spec.address: DEAD for spec in SOURCES.values()}
    ended = inside("fetch", name, "obsidian", env=env)

    assert ended.code == 4
    assert f"{SOURCES[name].title}: unreachable: no connection (" in ended.err
    assert "try again later" in ended.out
    assert f"{name}:" not in ended.out + ended.err
