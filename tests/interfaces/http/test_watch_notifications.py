"""Who is told of a watch, and its feed, over a real store and real receivers."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.interfaces.http.api_keys import bearer, code
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.http.watch_requests import OURA, URL
from tests.loopback import Loopback, Reply
from tests.notifications.mail_server import MailServer

ATOM = "{http://www.w3.org/2005/Atom}"


def mailing(server: MailServer) -> dict[str, str]:
    """The settings by which a server on this machine sends mail."""
    return {
        "NOTIFY_PRIVATE": "true", "SMTP_HOST": "127.0.0.1", "SMTP_PORT": str(server.port),
        "SMTP_TLS": "none", "SMTP_FROM": "lp@example.com",
    }  # fmt: skip


async def added(served: Served, **more: Any) -> str:
    """The id of a new watch."""
    answer = await served.client.post(URL, json=OURA | {"tell_first": True} | more)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def test_trial_tries_each_kind(opening: Opening) -> None:
    """And says of each what came back."""
    with (
        Loopback(lambda asked: Reply(410 if "gone" in asked.path else 200)) as hook,
        MailServer({"RCPT": "250 OK"}) as mail,
    ):
        async with opening(**mailing(mail)) as served:
            targets = [f"{hook.url}/x", f"slack:{hook.url}/gone", "mailto:ann@example.org"]
            mark = await added(served, notify=targets)
            tried = await served.client.post(f"{URL}/{mark}/notify-test")
            nobody = await served.client.post(f"{URL}/{await added(served, name='b')}/notify-test")
    deliveries = tried.json()["deliveries"]
    assert [(d["target"], d["delivered"], d["failure"]) for d in deliveries] == [
        ("webhook:127.0.0.1", True, None),
        ("slack:127.0.0.1", False, "refused"),
        ("mail:ann@example.org", True, None),
    ]
    assert deliveries[1]["reason"] == "it answered 410"
    assert all(d["at"] for d in deliveries)
    assert [mail["Subject"] for mail in mail.mails] == [
        "Oura: a trial of `listenpost watch notify-test`; nothing has changed."
    ]
    assert (nobody.status_code, code(nobody)) == (422, "invalid_request")


async def test_each_receiver_has_its_rule(opening: Opening) -> None:
    """Shown as it was written; what it holds back is in the run, with the reason, and in the inbox."""
    with MailServer({"RCPT": "250 OK"}) as mail:
        async with opening(**mailing(mail)) as served:
            rules = ("", " only unusual", " digest mon 08:00")
            mark = await added(served, notify=[f"mailto:ann{at}@example.org{rule}" for at, rule in enumerate(rules)])
            watch = (await served.client.get(f"{URL}/{mark}")).json()
            run = (await served.client.post(f"{URL}/{mark}/run")).json()
            missed = (await served.client.get(f"{URL}/{mark}/undelivered")).json()["undelivered"]
            inbox = (await served.client.get("/v1/inbox")).json()
            wrong = await served.client.patch(f"{URL}/{mark}", json={"notify": ["mailto:ann@example.org at 08:00"]})
    assert watch["notify"] == [f"mail:ann{at}@example.org{rule}" for at, rule in enumerate(rules)]
    assert [(each["delivered"], each.get("held"), each["reason"]) for each in run["deliveries"]] == [
        (True, None, ""),
        (False, "rule", "nothing unusual in it"),
        (False, "digest", "waits for the digest of mon 08:00"),
    ]
    assert (len(mail.mails), missed, inbox["unread"]) == (1, [], len(run["new"]))
    assert (wrong.status_code, code(wrong)) == (422, "invalid_request")
    assert "is no rule of a receiver" in wrong.text


async def test_what_did_not_arrive_is_listed_and_sent_again(opening: Opening) -> None:
    """By the same id, so that the receiver sees one run; then the list is empty."""
    replies = {"RCPT": "550 no"}
    with MailServer(replies) as server:
        async with opening(**mailing(server)) as served:
            mark = await added(served, notify=["mailto:ann@example.org"])
            run = (await served.client.post(f"{URL}/{mark}/run")).json()
            (missed,) = (await served.client.get(f"{URL}/{mark}/undelivered")).json()["undelivered"]
            again = f"{URL}/{mark}/runs/{run['id']}/notify-again"
            refused = (await served.client.post(again)).json()["deliveries"]
            replies.clear()
            taken = (await served.client.post(again)).json()["deliveries"]
            idle = (await served.client.post(again)).json()["deliveries"]
            left = (await served.client.get(f"{URL}/{mark}/undelivered")).json()
            none = await served.client.post(f"{URL}/{mark}/runs/none/notify-again")
            (kept,) = (await served.client.get(f"{URL}/{mark}/runs")).json()["runs"]
    assert (missed["run_id"], missed["created_at"]) == (run["id"], run["created_at"])
    assert missed["target"] == "mail:ann@example.org"
    assert (missed["failure"], missed["tries"]) == ("refused", 1)
    assert missed["reason"] == "the mail server refused the recipient (550)"
    assert missed["at"]
    assert [(d["delivered"], d["tries"]) for d in (*refused, *taken)] == [(False, 2), (True, 3)]
    assert idle == taken == kept["deliveries"]
    assert left == {"undelivered": []}
    assert [mail["Message-ID"] for mail in server.mails] == [f"<{run['id']}@example.com>"]
    assert (none.status_code, code(none)) == (404, "not_found")


async def test_feed_is_read_by_its_address(opening: Opening) -> None:
    """Without a key, by any reader, which may keep a copy; each told run is an entry."""
    async with opening(keys="a,b", token="a") as served:
        mark = await added(served)
        empty = (await served.client.get(f"{URL}/{mark}")).json()["feed"]
        path = (await served.client.post(f"{URL}/{mark}/feed")).json()["path"]
        run = (await served.client.post(f"{URL}/{mark}/run")).json()
        await served.client.post(f"{URL}/{mark}/run")  # nothing new
        async with served.calling() as anybody:
            read = await anybody.get(path)
            copy = await anybody.get(path, headers={"If-None-Match": read.headers["etag"]})
            others = await anybody.get(f"{URL}/{mark}")
        shown = (await served.client.get(f"{URL}/{mark}")).json()
    (entry,) = ElementTree.fromstring(read.content).findall(f"{ATOM}entry")
    assert read.headers["content-type"].startswith("application/atom+xml")
    assert entry.findtext(f"{ATOM}id", "").replace("-", "") == f"urn:uuid:{run['id']}"
    assert entry.findtext(f"{ATOM}title", "").startswith("Oura: the first run found")
    assert (copy.status_code, copy.content) == (304, b"")
    assert others.status_code == 401
    assert (empty, shown["feed"]) == (False, True)
    assert path.partition("token=")[2] not in str(shown) + read.text


async def test_feed_that_is_none_looks_like_any_other(opening: Opening) -> None:
    """A wrong token, an old one, that of another watch, none at all, a deleted watch."""
    async with opening(keys="a,b", token="a") as served:
        mark, other = await added(served), await added(served, name="b")
        old = (await served.client.post(f"{URL}/{mark}/feed")).json()["path"]
        new = (await served.client.post(f"{URL}/{mark}/feed")).json()["path"]
        theirs = await served.client.post(f"{URL}/{mark}/feed", headers=bearer("b"))
        await served.client.patch(f"{URL}/{mark}", json={"paused": True})
        paused = await served.client.get(new)
        wrong = [old, f"{new}x", f"/v1/feeds/{mark}", new.replace(mark, other), "/v1/feeds/no"]
        answers = [await served.client.get(path) for path in wrong]
        closed = await served.client.delete(f"{URL}/{mark}/feed")
        answers.append(await served.client.get(new))
        last = (await served.client.post(f"{URL}/{mark}/feed")).json()["path"]
        await served.client.delete(f"{URL}/{mark}")
        answers.append(await served.client.get(last))
    assert (paused.status_code, closed.status_code, theirs.status_code) == (200, 204, 404)
    assert {answer.status_code for answer in answers} == {404}
    assert {answer.json()["error"]["message"] for answer in answers} == {"there is no such feed"}


async def test_feed_is_limited_as_looks_are(opening: Opening) -> None:
    """It does not use up what its owner may ask."""
    async with opening(keys="a", token="a", LIMIT_REQUESTS_PER_MINUTE="3") as served:
        mark = await added(served)
        path = (await served.client.post(f"{URL}/{mark}/feed")).json()["path"]
        codes = [(await served.client.get(path)).status_code for _ in range(61)]
        asking = await served.client.get(URL)
    assert 429 in codes  # a minute may end meanwhile, once
    assert codes[:30] == [200] * 30
    assert asking.status_code == 200


@pytest.mark.parametrize("address", ["mailto:ann", "mailto:a@b.example?cc=c@d.example"])
async def test_what_is_no_address_is_named(served: Served, address: str) -> None:
    """And nothing is kept."""
    answer = await served.client.post(URL, json=OURA | {"notify": [address]})
    assert (answer.status_code, code(answer)) == (422, "invalid_request")
    assert "`mailto:ann@example.org`" in answer.json()["error"]["message"]
