"""Telling others, over a server on this machine."""

from __future__ import annotations

import hmac
import json
import stat
import time
from hashlib import sha256
from pathlib import Path

import pytest

from api.notifying import BACKOFF, Notifier, is_public
from api.services.watching.run import Delivery
from api.services.watching.telling import Message
from api.services.watching.watch import target_of
from tests.loopback import HANG, Loopback, Reply
from tests.services.watching.made import WATCH

MESSAGE = Message("run1", "Ember: 1 new <post>", b'{"id": "run1"}')


class Pauses(list[float]):
    """Waits for nothing, and remembers for how long."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


async def sent(words: str, *, private: bool = True, pauses: Pauses | None = None) -> Delivery:
    """To this target."""
    notifier = Notifier(private, Pauses() if pauses is None else pauses, seconds=2)
    return await notifier.send(WATCH, target_of(words, files=True), MESSAGE)


async def test_webhook_knows_who_sent_what_and_when() -> None:
    """The body is signed with the time and the watch's secret; the id of the run is beside it."""
    with Loopback(lambda asked: Reply(204, b"")) as server:
        delivery = await sent(f"{server.url}/hook?token=x")
    (asked,) = server.asked
    moment, _, digest = asked.headers["listenpost-signature"].partition(",v1=")
    signed = f"{moment.removeprefix('t=')}.{asked.body}".encode()

    assert delivery == Delivery(target="webhook:127.0.0.1", delivered=True, tries=1)
    assert (asked.path, asked.query, asked.body) == ("/hook", {"token": "x"}, '{"id": "run1"}')
    assert hmac.new(b"secret", signed, sha256).hexdigest() == digest
    assert 0 < int(moment.removeprefix("t=")) <= time.time()
    assert asked.headers["listenpost-run"] == "run1"
    assert asked.headers["content-type"] == "application/json"


async def test_slack_gets_text() -> None:
    """Unsigned: whoever has the address may write there."""
    with Loopback(lambda asked: Reply(200, "ok")) as server:
        assert (await sent(f"slack:{server.url}/T/B")).delivered
    (asked,) = server.asked
    assert json.loads(asked.body) == {"text": "Ember: 1 new &lt;post&gt;"}
    assert "listenpost-signature" not in asked.headers


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_what_may_pass_is_tried_three_times(status: int) -> None:
    """With longer and longer pauses; the third may succeed."""
    for good in (3, 9):
        answers, pauses = iter([status] * (good - 1) + [200] * 9), Pauses()
        with Loopback(lambda asked: Reply(next(answers))) as server:  # noqa: B023 - ends within
            delivery = await sent(server.url + "/hook", pauses=pauses)
        assert (delivery.delivered, delivery.tries, len(server.asked)) == (good == 3, 3, 3)
        assert pauses == list(BACKOFF)
    assert delivery.reason == f"it answered {status}"


@pytest.mark.parametrize("status", [400, 403, 404, 410])
async def test_what_stays_is_tried_once(status: int) -> None:
    """A receiver that refuses it will refuse it again."""
    with Loopback(lambda asked: Reply(status)) as server:
        delivery = await sent(server.url + "/hook")
    assert (delivery.delivered, delivery.tries) == (False, 1)
    assert delivery.reason == f"it answered {status}"


async def test_redirects_are_not_followed() -> None:
    """What is signed for one server is no other's business."""
    with Loopback(lambda asked: Reply(307, headers={"location": "/other"})) as server:
        delivery = await sent(server.url + "/hook")
    assert (len(server.asked), delivery.tries) == (1, 1)
    assert delivery.reason == "it answered 307, and redirects are not followed"


async def test_no_address_within_this_network() -> None:
    """Unless a setting allows it; the server hears nothing."""
    with Loopback(lambda asked: Reply()) as server:
        delivery = await sent(server.url + "/hook", private=False)
    assert (delivery.delivered, delivery.tries, server.asked) == (False, 1, [])
    assert "`LISTENPOST_NOTIFY_PRIVATE=true`" in delivery.reason


async def test_each_address_of_a_name_is_tried() -> None:
    """`localhost` may be IPv6 first, where nobody listens; the server hears the name."""
    with Loopback(lambda asked: Reply()) as server:
        delivery = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
    assert delivery.delivered
    assert server.asked[-1].headers["host"].startswith("localhost:")


async def test_nobody_there() -> None:
    """A closed port, a name that is none, and a server that says nothing."""
    with Loopback(lambda asked: HANG) as server:
        notifier = Notifier(True, Pauses(), seconds=0.05)
        silent = await notifier.send(WATCH, target_of(server.url, files=False), MESSAGE)
    closed = await sent(server.url)
    unknown = await sent("https://nobody.example/hook")
    endless = await sent(f"https://{'x' * 70}.example/hook")
    assert (endless.tries, endless.reason) == (1, "its address is none")
    assert silent.reason == "no answer in 0.05 s"
    assert closed.reason == "no connection (ConnectError)"
    assert unknown.reason == "no connection (gaierror)"
    assert [each.tries for each in (silent, closed, unknown)] == [3, 3, 3]


async def test_file_gets_a_line_a_run(tmp_path: Path) -> None:
    """Its owner's alone; a folder that is not there is said at once."""
    path = tmp_path / "heard.jsonl"
    for _ in range(2):
        assert await sent(f"file:{path}") == Delivery(
            target=f"file:{path}", delivered=True, tries=1
        )
    assert path.read_text() == '{"id": "run1"}\n' * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    missing = await sent(f"file:{tmp_path / 'none' / 'x'}")
    assert (missing.tries, missing.reason) == (1, "it cannot be written: No such file or directory")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("10.1.2.3", False),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("2002:a00:1::", False),
    ],
)
def test_what_is_public(address: str, public: bool) -> None:
    """Nothing that leads back into a network, in whatever dress."""
    assert is_public(address) is public
