"""Webhooks, Slack and files, with a server on this machine."""

from __future__ import annotations

import hmac
import json
import stat
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from api.core.addresses import is_public
from api.errors import UsageError
from api.features.watches.notification import Message
from api.features.watches.watch import CHATS, Target, target_of
from api.features.watches.watch_run import Delivery
from api.notifications.delivery import BACKOFF, refusal_of
from tests.loopback import HANG, Loopback, Reply
from tests.notifications.certificates import Authority
from tests.notifications.kit import Pauses, sent


async def test_webhook_knows_who_sent_what_and_when() -> None:
    """The body is signed with the time and the watch's secret; the id of the run is beside it."""
    with Loopback(lambda asked: Reply(204, b"")) as server:
        delivery = await sent(f"{server.url}/hook?token=x")
    (asked,) = server.asked
    moment, _, digest = asked.headers["listenpost-signature"].partition(",v1=")
    signed = f"{moment.removeprefix('t=')}.{asked.body}".encode()

    assert delivery.at is not None
    assert delivery == Delivery(target="webhook:127.0.0.1", delivered=True, tries=1, at=delivery.at)
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


@pytest.mark.parametrize(
    ("kind", "query", "body"),
    [
        ("discord", "", {"content": "Ember: 1 new <post>", "allowed_mentions": {"parse": []}}),
        (
            "telegram",
            "?chat_id=-100",
            {"chat_id": "-100", "text": "Ember: 1 new <post>", "link_preview_options": {"is_disabled": True}},
        ),
    ],
)
async def test_a_chat_gets_text(kind: str, query: str, body: object) -> None:
    """In the form of each; a mention calls nobody."""
    with Loopback(lambda asked: Reply(200, "ok")) as server:
        assert (await sent(f"{kind}:{server.url}/T/B{query}")).delivered
    (asked,) = server.asked
    assert json.loads(asked.body) == body


async def test_a_topic_of_ntfy_gets_plain_text() -> None:
    """The body is the message."""
    with Loopback(lambda asked: Reply(200, "{}")) as server:
        assert (await sent(f"ntfy:{server.url}/topic")).delivered
    (asked,) = server.asked
    assert (asked.path, asked.body) == ("/topic", "Ember: 1 new <post>")
    assert asked.headers["content-type"].startswith("text/plain")


def test_texts_fit_their_chats_and_make_no_links() -> None:
    """The longest legal text is cut at each chat's limit; brackets of strangers are no Markdown."""
    long = Message("run1", "\\[free](https://bad.example)\n" + "é" * 9_000, b"{}")
    bodies = {kind: long.for_chat(target_of(f"{kind}:https://a.example?chat_id=1", files=False)) for kind in CHATS}

    assert len(json.loads(bodies["discord"])["content"]) <= 2_000
    assert len(json.loads(bodies["telegram"])["text"]) <= 4_096
    assert len(bodies["ntfy"]) <= 4_000
    assert bodies["ntfy"].decode().endswith("é")
    card = json.loads(bodies["teams"])["attachments"][0]["content"]
    assert card["body"][0]["text"].startswith("\\\\\\[free\\](https://bad.example)\n\né")
    assert json.loads(bodies["discord"])["content"].startswith("\\\\\\[free\\](https://bad.example)\né")


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("https://discord.com/api/webhooks/1/x", "discord"),
        ("https://hooks.slack.com/services/T/B/x", "slack"),
        ("https://prod-1.westus.logic.azure.com/workflows/x", "teams"),
        ("https://ntfy.sh/topic", "ntfy"),
        ("https://notdiscord.com/hook", "webhook"),
        ("https://hooks.example/x", "webhook"),
        ("webhook:https://prod-1.westus.logic.azure.com/workflows/x", "webhook"),
    ],
)
def test_a_chat_is_known_by_its_server(address: str, kind: str) -> None:
    """Whoever pastes what the chat shows need not know a word for it."""
    assert target_of(address, files=False).kind == kind


def test_telegram_needs_a_chat() -> None:
    """A bot writes to nobody in particular otherwise."""
    for prefix in ("telegram:", ""):
        with pytest.raises(UsageError, match="chat_id=CHAT"):
            target_of(f"{prefix}https://api.telegram.org/bot1:x/sendMessage", files=False)


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_what_may_pass_is_tried_three_times(status: int) -> None:
    """With longer and longer pauses; the third may succeed."""
    for good in (3, 9):
        answers, pauses = iter([status] * (good - 1) + [200] * 9), Pauses()
        with Loopback(lambda asked: Reply(next(answers))) as server:  # noqa: B023 - ends within
            delivery = await sent(server.url + "/hook", pauses=pauses)
        assert (delivery.delivered, delivery.tries, len(server.asked)) == (good == 3, 3, 3)
        assert pauses == list(BACKOFF)
    assert (delivery.failure, delivery.reason) == ("unavailable", f"it answered {status}")


@pytest.mark.parametrize("status", [400, 403, 404, 410])
async def test_what_stays_is_tried_once(status: int) -> None:
    """A receiver that refuses it will refuse it again."""
    with Loopback(lambda asked: Reply(status)) as server:
        delivery = await sent(server.url + "/hook")
    assert (delivery.delivered, delivery.tries) == (False, 1)
    assert (delivery.failure, delivery.reason) == ("refused", f"it answered {status}")


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
    assert (delivery.failure, delivery.tries, server.asked) == ("not_allowed", 1, [])
    assert "`LISTENPOST_NOTIFY_PRIVATE=true`" in delivery.reason


async def test_each_address_of_a_name_is_tried() -> None:
    """`localhost` may be IPv6 first, where nobody listens; the server hears the name."""
    with Loopback(lambda asked: Reply()) as server:
        delivery = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
    assert delivery.delivered
    assert server.asked[-1].headers["host"].startswith("localhost:")


async def test_name_is_looked_up_once() -> None:
    """And the connection made to what was looked at: a second answer could be another address."""
    names: list[object] = []
    counting = [True]

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if counting and event == "socket.getaddrinfo":
            names.append(arguments[0])

    with Loopback(lambda asked: Reply()) as server:
        sys.addaudithook(look)  # for good, so that it is switched off below
        delivery = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
        counting.clear()
    assert delivery.delivered
    assert names == ["localhost"] * delivery.tries


async def test_nobody_there() -> None:
    """A closed port, a name that is none, and a server that says nothing."""
    with Loopback(lambda asked: HANG) as server:
        silent = await sent(server.url, seconds=0.05)
    closed = await sent(server.url)
    unknown = await sent("https://nobody.example/hook")
    endless = await sent(f"https://{'x' * 70}.example/hook")
    assert (endless.tries, endless.failure) == (1, "no_address")
    assert endless.reason == "its address is none"
    beyond = await sent(Target("webhook", "https://127.0.0.1:65536/"))
    assert (beyond.tries, beyond.failure) == (1, "no_address")
    assert (silent.failure, silent.reason) == ("timed_out", "no answer in 0.05 s")
    assert (closed.failure, closed.reason) == ("unreachable", "no connection (it was refused)")
    assert (unknown.failure, unknown.reason) == ("unreachable", "no connection (the name was not found)")
    assert [each.tries for each in (silent, closed, unknown)] == [3, 3, 3]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that is trusted, beside no other."""
    made = Authority.made(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def test_certificate_is_checked_for_the_name(authority: Authority) -> None:
    """Not for the address, which is what is connected to: that is in no certificate here."""
    with Loopback(lambda asked: Reply(), authority.server("localhost")) as server:
        named = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
        addressed = await sent(server.url + "/hook")
    assert (named.delivered, named.reason) == (True, "")
    assert (addressed.failure, addressed.tries) == ("insecure", 1)
    (asked,) = server.asked
    assert asked.headers["host"].startswith("localhost:")


@pytest.mark.parametrize("name", ["hooks.example", "127.0.0.1", "::1"])
async def test_certificate_of_another_name_is_refused(authority: Authority, name: str) -> None:
    """That of the address it has, too; nothing is sent."""
    with Loopback(lambda asked: Reply(), authority.server(name)) as server:
        delivery = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
    assert (delivery.failure, delivery.tries) == ("insecure", 1)
    assert delivery.reason == "it has no trusted certificate for its name, or speaks no TLS"
    assert server.asked == []


async def test_address_in_a_url_is_its_name(authority: Authority) -> None:
    """A certificate may be made out to it."""
    with Loopback(lambda asked: Reply(), authority.server("127.0.0.1")) as server:
        assert (await sent(server.url + "/hook")).delivered


async def test_only_who_is_trusted_signs(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authority that nobody knows is none, and a file that is not there is named."""
    with Loopback(lambda asked: Reply(), authority.server("localhost")) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        monkeypatch.delenv("SSL_CERT_FILE")
        stranger = await sent(url)
        monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
        nowhere = await sent(url)
    assert (stranger.failure, nowhere.failure) == ("insecure", "not_configured")
    assert "`SSL_CERT_FILE`" in nowhere.reason
    assert server.asked == []


async def test_redirect_is_not_followed_by_an_encrypted_connection(authority: Authority) -> None:
    """Neither to a server that would take it, nor to one without encryption."""
    with Loopback(lambda asked: Reply()) as other:
        moved = Reply(308, headers={"location": f"{other.url}/hook"})
        with Loopback(lambda asked: moved, authority.server("localhost")) as server:
            delivery = await sent(server.url.replace("127.0.0.1", "localhost") + "/hook")
    assert (delivery.failure, delivery.tries, len(server.asked)) == ("refused", 1, 1)
    assert delivery.reason == "it answered 308, and redirects are not followed"
    assert other.asked == []


async def test_server_without_encryption_is_no_https() -> None:
    """What was meant to be secret is not sent in the open."""
    with Loopback(lambda asked: Reply()) as server:
        delivery = await sent(server.url.replace("http:", "https:"))
    assert (delivery.failure, delivery.tries, server.asked) == ("insecure", 1, [])


async def test_file_gets_a_line_a_run(tmp_path: Path) -> None:
    """Its owner's alone; a folder that is not there is said at once."""
    path = tmp_path / "heard.jsonl"
    for _ in range(2):
        delivery = await sent(f"file:{path}")
        assert (delivery.target, delivery.delivered) == (f"file:{path}", True)
    assert path.read_text() == '{"id": "run1"}\n' * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    missing = await sent(f"file:{tmp_path / 'none' / 'x'}")
    assert (missing.tries, missing.failure) == (1, "unwritable")
    odd = await sent(f"file:{tmp_path}/\0")
    assert (odd.tries, odd.failure) == (1, "internal")
    assert "the log has the details" in odd.reason
    assert missing.reason == "it cannot be written: No such file or directory"


@pytest.mark.parametrize("private", [True, False])
def test_receiver_on_the_internet_is_reached_by_https_alone(private: bool) -> None:
    """One of whose addresses none is of this network; `http` will do within it, where that is allowed."""
    refused = refusal_of("http", ["93.184.216.34"], private=private)
    assert refused is not None
    assert (refused.failure, refused.again) == ("insecure", False)
    assert str(refused) == "its address begins with `http:`; write `https:`"
    assert refusal_of("https", ["93.184.216.34", "2606:2800:220:1::1"], private=private) is None
    within = refusal_of("http", ["93.184.216.34", "10.0.0.1"], private=private)
    assert (within and within.failure) == (None if private else "not_allowed")


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
        ("192.0.0.192", False),
        ("198.18.0.1", False),
        ("203.0.113.5", False),
        ("255.255.255.255", False),
        ("::127.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("::ffff:0:10.0.0.1", False),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b::93.184.216.34", True),
        ("64:ff9b:1::93.184.216.34", False),
        ("2002:5db8:d822::", True),
        ("2001::1", False),
        ("2001:db8::1", False),
        ("3fff::1", False),
        ("fec0::1", False),
        ("5f00::1", False),
        ("ff02::1", False),
    ],
)
def test_what_is_public(address: str, public: bool) -> None:
    """Nothing that leads back into a network, in whatever dress."""
    assert is_public(address) is public
