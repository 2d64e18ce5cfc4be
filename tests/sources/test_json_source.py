"""What the places without a key share: phrases, failures, pace, markup."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.errors import Blocked, Broken, QuotaExhausted, RateLimited, Refused, SourceError, Unreachable
from api.sources.json_source import ask_each, interleaved, reply_failure, with_phrase
from api.sources.markup import MAX_LENGTH, words_of_html, words_of_markdown
from api.sources.searched_source import Page
from api.sources.web_client import Limit, Pace, Reply, host_of, pace_of

PHRASES = [
    ("plaud.ai", "plaud.ai", '"plaud.ai"'),
    ("Kindle Scribe", "kindle scribe battery", '"kindle scribe" battery'),
    ("Notion", "Notion", "Notion"),
    ("Kindle Scribe", "e-ink tablets", "e-ink tablets"),
    ("R&D", "BR&DY", "BR&DY"),
    ("Kindle Scribe", '"Kindle" Scribe', '"Kindle" Scribe'),
    ("", "what is new", "what is new"),
    ("a.b", "axb a.b a.b", 'axb "a.b" a.b'),
]


@pytest.mark.parametrize(("name", "query", "sent"), PHRASES)
def test_a_name_is_sent_as_a_phrase(name: str, query: str, sent: str) -> None:
    """Only where quotes say more than the words, and only the name."""
    assert with_phrase(FetchPlan(query, 5, name=name)).query == sent


FAILURES: list[tuple[int, str, type[SourceError] | None]] = [
    (200, "{}", None),
    (200, "<html>One moment</html>", Blocked),
    (200, "", Broken),
    (200, '{"hits": [', Broken),
    (200, "[" * 100_000, Broken),
    (204, "", Broken),
    (400, "{}", Broken),
    (401, "{}", Refused),
    (402, "{}", QuotaExhausted),
    (403, "{}", Refused),
    (403, "<h1>Forbidden</h1>", Blocked),
    (404, "<h1>no</h1>", Broken),
    (408, "<h1>slow</h1>", Unreachable),
    (429, "<h1>slow down</h1>", RateLimited),
    (500, "{}", Unreachable),
    (502, "<h1>Bad gateway</h1>", Unreachable),
]


@pytest.mark.parametrize(("status", "body", "expected"), FAILURES)
def test_a_failure_has_one_meaning(status: int, body: str, expected: type[SourceError] | None) -> None:
    """By status and kind of body, whatever the place; a page instead of data is a wall."""
    failure = reply_failure("hackernews", Reply(status, {}, body))

    assert (type(failure) if failure else None) is expected


async def answer_of(part: str) -> str:
    """Capitals; what begins with `x` cannot be reached."""
    if part.startswith("x"):
        raise Unreachable("discourse", f"no {part}")
    return part.upper()


async def test_parts_that_fail_are_told_apart() -> None:
    """The others answer; when none does, the first failure is the answer."""
    answers, failures = await ask_each(("a", "xb", "c"), answer_of)

    assert answers == {"a": "A", "c": "C"}
    assert list(failures) == ["xb"]
    with pytest.raises(Unreachable, match="no xb"):
        await ask_each(("xb", "xa"), answer_of)


def test_rankings_take_turns() -> None:
    """The first of each, then the second; what was nothing keeps its place."""
    a, b, c = (Item(key=key, id=key, source="lemmy", title=key) for key in "abc")

    assert interleaved([(a, None), (), (b, c)], "next", {}) == Page((a, b, None, c), "next")


def test_nothing_beside_a_failure_is_a_failure() -> None:
    """Something beside it is a page with a note, good for this fetch alone."""
    failures = {"posts": Unreachable("lemmy", "HTTP 500")}
    item = Item(key="a", id="a", source="lemmy", title="a")

    page = interleaved([(item,)], None, failures)
    assert page == Page((item,), None, ("posts not searched: HTTP 500",), partial=True)
    assert interleaved([()], None, {}) == Page(())
    with pytest.raises(Unreachable):
        interleaved([()], None, failures)


@pytest.mark.parametrize(
    ("address", "host"),
    [("https://lemmy.world/c/mugs", "lemmy.world"), ("http://h:80/x", "h"), ("http://[::1", "")],
)
def test_the_host_of_an_address(address: str, host: str) -> None:
    """Without port and path; nothing where there is none."""
    assert host_of(address) == host


async def test_a_pace_sends_nothing_beyond_the_limit() -> None:
    """The third of two an hour is refused, with the time at which one is free again."""
    pace = Pace("hackernews", (Limit(2, 3_600), Limit(1_000, 1)))
    await pace.turn()
    await pace.turn()

    assert pace.left == 0
    with pytest.raises(RateLimited) as caught:
        await pace.turn()
    at = caught.value.retry_at
    assert at is not None
    assert timedelta(minutes=59) < at - datetime.now(UTC) <= timedelta(hours=1)


async def test_a_short_wait_is_waited() -> None:
    """Two in a fraction of a second: the third goes out a moment later, none is lost."""
    pace = Pace("discourse", (Limit(2, 0.05),))

    async with asyncio.timeout(60):
        await asyncio.gather(*(pace.turn() for _ in range(6)))

    assert pace.left <= 2


async def test_who_would_wait_too_long_behind_others_is_told_at_once() -> None:
    """With one in two seconds the third would wait four, though each turn is two from the last."""
    pace = Pace("discourse", (Limit(1, 2),))
    await pace.turn()
    second = asyncio.create_task(pace.turn())
    await asyncio.sleep(0)

    with pytest.raises(RateLimited):
        await pace.turn()
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)


async def test_who_gives_up_waiting_takes_no_turn() -> None:
    """A cancelled caller leaves its moment to the next one."""
    pace = Pace("discourse", (Limit(1, 2),))
    await pace.turn()
    for _ in range(5):
        waiting = asyncio.create_task(pace.turn())
        await asyncio.sleep(0)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def test_a_word_of_the_server_holds_for_who_is_waiting() -> None:
    """Of those that wait for their turn none is sent after it."""
    pace = Pace("discourse", (Limit(1, 0.05),))
    await pace.turn()
    waiting = asyncio.create_task(pace.turn())
    await asyncio.sleep(0)
    pace.pause(datetime.now(UTC) + timedelta(minutes=5))

    with pytest.raises(RateLimited):
        await waiting


async def test_after_a_pause_the_limit_holds() -> None:
    """Those whose turn came within it do not go all at once when it ends."""
    pace, moments = Pace("discourse", (Limit(1, 0.05),)), list[float]()

    async def sent() -> None:
        await pace.turn()
        moments.append(asyncio.get_running_loop().time())

    first = asyncio.gather(*(sent() for _ in range(4)))
    await asyncio.sleep(0)
    pace.pause(datetime.now(UTC) + timedelta(seconds=0.3))
    await first

    assert all(after - before > 0.02 for before, after in pairwise(moments))


async def test_event_loops_share_a_pace() -> None:
    """Four threads, each with its own loop, send no more than the limit between them."""
    pace = Pace("github", (Limit(100, 3_600),))

    async def some() -> list[BaseException | None]:
        return await asyncio.gather(*(pace.turn() for _ in range(50)), return_exceptions=True)

    turns = await asyncio.gather(*(asyncio.to_thread(asyncio.run, some()) for _ in range(4)))

    assert sum(turn is None for each in turns for turn in each) == 100


async def test_on_this_machine_no_strangers_limits_hold() -> None:
    """What a loopback server asks for is obeyed all the same."""
    pace = pace_of("github", "http://127.0.0.1:4010 searches", Limit(1, 3_600))
    for _ in range(3):
        await pace.turn()
    pace.pause(datetime.now(UTC) + timedelta(minutes=5))

    assert pace.left == 0
    with pytest.raises(RateLimited):
        await pace.turn()
    pace_of.cache_clear()


async def test_what_the_server_asks_for_is_obeyed() -> None:
    """After its word nothing is sent until then; no word changes nothing."""
    pace = Pace("stackexchange", (Limit(30, 1),))
    pace.pause(None)
    await pace.turn()
    pace.pause(datetime.now(UTC) + timedelta(minutes=5))

    with pytest.raises(RateLimited, match="nothing sent"):
        await pace.turn()


HTML: list[tuple[Any, str]] = [
    ("It&#x27;s <i>fine</i><p>Really", "It's fine\n\nReally"),
    ("a &lt;b&gt; c", "a <b> c"),
    ("<blockquote>yours</blockquote>mine", "mine"),
    ('<aside class="quote"><p>theirs</p></aside><p>mine</p>', "mine"),
    ("<p>see <img src=x alt=y> it<script>x()</script>", "see it"),
    ("one<br>two<ul><li>three</ul>four", "one\ntwo\n\nthree\n\nfour"),
    ("<div>" * 2_000, ""),
    ("".join(f"<b id={n}>" for n in range(2_000)) + "<p>x" * 2_000, ""),
    ("<p><b>bold</b> x</p>" * 1_500 + "<b-x>" * 1_500, "\n\n".join(["bold x"] * 1_500)),
    (None, ""),
    (["<p>x"], ""),
]


@pytest.mark.parametrize(("html", "words"), HTML)
def test_html_is_read_as_its_authors_words(html: Any, words: str) -> None:
    """Paragraphs stay apart; what somebody else said, pictures and scripts go."""
    assert words_of_html(html) == words


MARKDOWN: list[tuple[Any, str]] = [
    ("<!-- please search first -->\nIt crashes", "It crashes"),
    ("- [ ] I searched\n- [x] latest version\n\nIt crashes", "- [x] latest version\n\nIt crashes"),
    ("![shot](https://example.org/a.png) here", "here"),
    ("<!-- never closed", ""),
    ("x" * (MAX_LENGTH + 5), "x" * MAX_LENGTH),
    (None, ""),
]


@pytest.mark.parametrize(("text", "words"), MARKDOWN)
def test_markdown_loses_its_template(text: Any, words: str) -> None:
    """Comments, boxes that nobody checked and pictures are no words."""
    assert words_of_markdown(text) == words
