"""Watches that are due share what is asked; whoever reads one cannot tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from api.bootstrap.background_work import watching_of
from api.bootstrap.stream_work import notifier_of_streams
from api.core.items import Item
from api.features.watches.watch_run import WatchRun
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.watch_requests import URL

ALL = ["reddit", "youtube", "amazon", "hackernews", "stackexchange", "github", "lemmy", "discourse"]
WATCH = {"query": "plaud.ai", "depth": "quick", "every": "daily 08:00", "sources": ALL}
# ids and clock times, and what is computed from them
VARYING = frozenset(
    "id watch_id report_id trace_id created_at due_at generated_at since until at timings timings_ms".split()
)


def bare(value: Any) -> Any:
    """Everything but ids and clock times."""
    if isinstance(value, Mapping):
        return {name: bare(held) for name, held in value.items() if name not in VARYING}
    return [bare(held) for held in value] if isinstance(value, list) else value


async def added(served: Served, key: str, **more: Any) -> str:
    """The id of a new watch of this key, which is due."""
    answer = await served.client.post(URL, json=WATCH | more, headers={"Authorization": f"Bearer {key}"})
    mark: str = answer.json()["id"]
    return mark


async def due(served: Served) -> Sequence[WatchRun]:
    """The runs of all that is due."""
    return [run async for _, run in watching_of(served.app_context).run_due()]


async def readable(served: Served, key: str, mark: str) -> dict[str, Any]:
    """All that a key can read of its watch and its run."""
    headers = {"Authorization": f"Bearer {key}"}
    texts: dict[str, Any] = {}
    for name in (
        f"{URL}/{mark}",
        f"{URL}/{mark}/runs",
        f"{URL}/{mark}/trend",
        "/v1/analyses",
        "/v1/stats",
        "/v1/usage",
    ):
        texts[name.replace(mark, "ID")] = (await served.client.get(name, headers=headers)).json()
    report = texts[f"{URL}/ID/runs"]["runs"][0]["report_id"]
    texts["report"] = (await served.client.get(f"/v1/analyses/{report}", headers=headers)).json()
    return bare(texts)  # type: ignore[no-any-return]


async def test_nobody_can_tell_what_others_watch(opening: Opening, tmp_path: Any) -> None:
    """A watch reads the same with an identical watch of another key before it and without; nothing is asked twice."""
    seen, asked = [], []
    for others in (False, True):
        url = f"sqlite:///{tmp_path / f'{others}.db'}"
        async with opening(keys="a,b", DATABASE_URL=url, PAGE_TTL="86400") as served:
            # whatever was watched before, a process has its tokens and knows the servers' versions
            await added(served, "a", query="Oura")
            if others:
                await added(served, "a")
            await due(served)
            mark = await added(served, "b")
            served.sandbox.forget()
            await due(served)
            seen.append(await readable(served, "b", mark))
            asked.append(Counter(entry.upstream for entry in served.sandbox.log))

    assert seen[0] == seen[1]
    assert seen[0]["report"]["items"]
    assert all(source["upstream_calls"] for source in seen[0]["report"]["sources"].values())
    assert set(ALL) <= set(asked[0])
    assert asked[1] == {"openai": 1}  # who writes the report is asked for each


async def test_questions_of_people_share_nothing_with_watches(opening: Opening) -> None:
    """Whoever asks by hand, or runs a watch by hand, asks as if nobody watched."""
    async with opening(keys="a,b", token="b") as served:
        await added(served, "a", sources=["hackernews"])
        await due(served)
        mark = await added(served, "b", sources=["hackernews"])
        before = len(served.sandbox.requests("hackernews"))
        await served.client.post(f"{URL}/{mark}/run")
        asked = len(served.sandbox.requests("hackernews")) - before
    assert asked > 1


@pytest.mark.parametrize("more", [{"exclude": ["battery"]}, {"about": "the recorder; not the company"}])
async def test_what_one_leaves_out_the_other_keeps(opening: Opening, more: dict[str, Any], tmp_path: Any) -> None:
    """Exclusions and descriptions of one key change nothing of another's report."""
    seen = []
    for others in (False, True):
        url = f"sqlite:///{tmp_path / f'{others}.db'}"
        async with opening(keys="a,b", DATABASE_URL=url, PAGE_TTL="86400") as served:
            if others:
                await added(served, "a", sources=["reddit", "hackernews"], **more)
                await due(served)
            mark = await added(served, "b", sources=["reddit", "hackernews"])
            await due(served)
            seen.append(await readable(served, "b", mark))
    assert seen[0] == seen[1]


async def test_a_post_of_a_stream_is_judged_once_for_one_sense(opening: Opening) -> None:
    """By a model, for all tenants who describe the product alike: each gets the same verdict, at the same cost."""
    body = "The Ember mug leaks after a week"
    post = Item(key="bluesky:at://did:plc:a/app.bsky.feed.post/1", id="1", source="bluesky", title="", body=body)
    async with opening(keys="a,b,c") as served:
        for key, about in (("a", "the heated mug"), ("b", "the heated mug"), ("c", "the travel mug")):
            await added(served, key, query="Ember mug", about=about, as_it_happens=True)
        notifier = notifier_of_streams(served.app_context)
        watches = sorted(await served.app_context.store.streamed_watches(None), key=lambda watch: watch.about)
        gated = [await notifier.judge(watch, [post]) for watch in watches]
        asked = sum(entry.endpoint == "judge" for entry in served.sandbox.requests("openai"))

    assert [watch.about for watch in watches] == ["the heated mug", "the heated mug", "the travel mug"]
    assert len({watch.tenant for watch in watches}) == 3
    assert gated[0] == gated[1]
    assert gated[0].usage.input_tokens
    assert asked == 2
