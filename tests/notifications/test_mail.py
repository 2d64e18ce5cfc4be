"""E-mail, with a server on this machine that speaks SMTP."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from api.features.watches.notification import Message
from api.features.watches.watch_run import Delivery
from api.notifications.delivery import BACKOFF
from api.settings import MailSettings
from tests.notifications.certificates import Authority
from tests.notifications.kit import MESSAGE, Pauses, sent
from tests.notifications.mail_server import MailServer

ANN = "mailto:ann@example.org"
PASSWORD = "sesame-42"


def settings(server: MailServer, **more: Any) -> MailSettings:
    """Of this server."""
    given = {"host": "127.0.0.1", "port": server.port, "tls": "none", "sender": "lp@example.com"}
    return MailSettings(**{**given, **more})


async def mailed(server: MailServer, message: Message = MESSAGE, to: str = ANN, **more: Any) -> Delivery:
    """What came of a message."""
    return await sent(to, message, mail=settings(server, **more))


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """One that is trusted, beside no other."""
    made = Authority.made(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


async def test_mail_says_what_a_run_says() -> None:
    """From the settings' sender, as a machine's message of a list, in plain text."""
    text = "Ember: 2 new posts — “yes”\n- Größe\n  https://a.example/" + "x" * 1_000 + "\nFrom me"
    with MailServer() as server:
        delivery = await mailed(server, Message("run1", text, b"{}"))
    (mail,) = server.mails
    assert (delivery.target, delivery.delivered, delivery.tries) == (
        "mail:ann@example.org",
        True,
        1,
    )
    assert (mail["From"], mail["To"]) == ("Listenpost <lp@example.com>", "ann@example.org")
    assert mail["Subject"] == "Ember: 2 new posts — “yes”"
    assert mail["Message-ID"] == "<run1@example.com>"
    assert mail["List-Id"] == "<w1.listenpost.localhost>"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Listenpost-Run"] == "run1"
    assert mail["Date"]
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n") == text + "\n"
    assert server.commands[0] == "ehlo example.com"
    assert server.commands[-1] == "quit"


@pytest.mark.parametrize(
    "subject",
    [
        "Наушники плауд и ещё: 2 new posts and 1 unusual change since 2026-11-23 07:00Z",
        "小米手环: 1 new post",
        "ä ö " * 30 + "ä",
        "😀" * 40,
        "word " * 25 + "word",
        "=?utf-8?q?x?=",
    ],
)
async def test_subject_is_read_as_it_was_written(subject: str) -> None:
    """In any script, to the last blank."""
    with MailServer() as server:
        await mailed(server, Message("run1", f"{subject}\nmore", b""))
    assert [mail["Subject"] for mail in server.mails] == [subject]


async def test_message_sent_again_is_the_same_message() -> None:
    """To whoever reads it, by its id."""
    with MailServer() as server:
        for _ in range(2):
            await mailed(server)
    assert [mail["Message-ID"] for mail in server.mails] == ["<run1@example.com>"] * 2


@pytest.mark.parametrize(
    "title",
    [
        "Ember\r\nBcc: eve@example.net",
        "Ember\nBcc: eve@example.net\n\nbody",
        "Ember\r.\rRCPT TO:<eve@example.net>",
        "Ember\x00\x1b[31m\u202e\ud800 Bcc",
        "Ember " + "=?utf-8?q?=0D=0ABcc:_eve@example.net?=" * 9,
        "Ember " + "ä" * 5_000,
        "",
    ],
)
async def test_no_title_is_a_header_or_a_command(title: str) -> None:
    """Whatever stands in it, there is one receiver, and no header that is not ours."""
    with MailServer() as server:
        assert (await mailed(server, Message("run1", f"{title}\n.\nQUIT\n", b""))).delivered
    (mail,) = server.mails
    assert sorted(mail.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "List-Id", "Auto-Submitted",
         "Listenpost-Run", "Content-Type", "Content-Transfer-Encoding", "MIME-Version"]
    )  # fmt: skip
    assert len(mail["Subject"]) <= 150
    assert mail.get_content().endswith(".\r\nQUIT\r\n")
    assert [words for words in server.commands if words.startswith("rcpt")] == ["rcpt TO:<ann@example.org>"]


async def test_user_and_password_are_sent_encrypted(authority: Authority) -> None:
    """By STARTTLS, or at once; the certificate is checked for the server's name."""
    for tls, implicit in (("starttls", False), ("implicit", True)):
        context = authority.server("localhost")
        with MailServer(login=f"ann:{PASSWORD}", tls=context, implicit=implicit) as server:
            login: dict[str, Any] = {"tls": tls, "user": "ann", "password": PASSWORD}
            taken = await mailed(server, host="localhost", **login)
            other = await mailed(server, **login)
        assert (taken.delivered, taken.reason) == (True, "")
        assert (other.failure, other.tries) == ("insecure", 1)
        assert other.reason == "the mail server has no trusted certificate for its name"
        assert len(server.mails) == 1


@pytest.mark.parametrize(
    ("replies", "tries", "failure", "words"),
    [
        ({"": "554 go away"}, 1, "refused", "refused the message (554)"),
        ({"": "421 too busy"}, 3, "unavailable", "refused the message (421)"),
        ({"": "HTTP/1.1 400"}, 1, "unreachable", "speaks no SMTP; check `LISTENPOST_SMTP_HOST`"),
        ({"EHLO": "500 no such", "HELO": "500 what"}, 1, "refused", "refused the message (500)"),
        (
            {"MAIL": "550 no"},
            1,
            "refused",
            "refused the sender (550); check `LISTENPOST_SMTP_FROM`",
        ),
        ({"MAIL": "451 later"}, 3, "unavailable", "refused the sender (451)"),
        ({"RCPT": "550 no such ann"}, 1, "refused", "refused the recipient (550)"),
        ({"RCPT": "450 greylisted"}, 3, "unavailable", "refused the recipient (450)"),
        ({"RCPT": "421 enough"}, 3, "unavailable", "refused the recipient (421)"),
        ({"DATA": "554 no"}, 1, "refused", "refused the message (554)"),
        ({".": "554 spam"}, 1, "refused", "refused the message (554)"),
        ({".": "452 full"}, 3, "unavailable", "refused the message (452)"),
        ({"QUIT": "500 never"}, 1, None, ""),
    ],
)
async def test_each_step_may_be_refused(replies: dict[str, str], tries: int, failure: str | None, words: str) -> None:
    """What may pass is tried three times; the server's own words are shown to nobody."""
    pauses = Pauses()
    with MailServer(replies) as server:
        delivery = await sent(ANN, mail=settings(server), pauses=pauses)
    assert (delivery.failure, delivery.tries) == (failure, tries)
    assert words in delivery.reason
    assert all(reply[4:] not in delivery.reason for reply in replies.values() if reply[4:])
    assert pauses == list(BACKOFF)[: tries - 1]
    assert delivery.delivered is bool(server.mails) is (failure is None)


class DraftCleaner(Pauses):
    """Meanwhile a server changes its mind."""

    def __init__(self, replies: dict[str, str]) -> None:
        super().__init__()
        self._replies = replies

    async def __call__(self, seconds: float) -> None:
        self._replies.clear()


async def test_second_try_may_succeed() -> None:
    """As with a server that has a stranger come back later."""
    replies = {"RCPT": "450 later"}
    with MailServer(replies) as server:
        delivery = await sent(ANN, mail=settings(server), pauses=DraftCleaner(replies))
    assert (delivery.delivered, delivery.tries, len(server.mails)) == (True, 2, 1)


async def test_wrong_password_is_told_without_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither what was sent nor what the server says of it is in the reason or a log."""
    caplog.set_level(logging.DEBUG)
    with MailServer(login="ann:another") as server:
        wrong = await mailed(server, user="ann", password=PASSWORD)
    with MailServer({"AUTH": f"454 {PASSWORD}"}, login="ann:x") as server:
        later = await mailed(server, user="ann", password=PASSWORD)
    with MailServer() as server:
        unasked = await mailed(server, user="ann", password=PASSWORD)
    assert (wrong.failure, wrong.tries) == ("unauthorized", 1)
    assert wrong.reason == (
        "the mail server refused user or password (535); check `LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
    )
    assert (later.failure, later.tries) == ("unavailable", 3)
    assert (unasked.failure, unasked.tries) == ("insecure", 1)
    for delivery in (wrong, later, unasked):
        assert PASSWORD not in repr(delivery)
    assert PASSWORD not in caplog.text
    assert PASSWORD not in repr(settings(server, user="ann", password=PASSWORD))


async def test_nothing_is_sent_in_the_open(authority: Authority) -> None:
    """A server that offers no encryption, or refuses it, gets neither password nor message."""
    login: dict[str, Any] = {"tls": "starttls", "user": "ann", "password": PASSWORD}
    with MailServer(login="ann:x") as server:
        unoffered = await mailed(server, **login)
    with MailServer({"STARTTLS": "454 not now"}, tls=authority.server("localhost")) as later:
        refused = await mailed(later, **login)
    with MailServer() as plain:
        silent = await mailed(plain, tls="implicit")
    assert (unoffered.failure, unoffered.tries) == ("insecure", 1)
    assert "`LISTENPOST_SMTP_TLS`" in unoffered.reason
    assert (refused.failure, refused.tries) == ("unavailable", 3)
    assert (silent.failure, silent.tries) == ("insecure", 1)
    for each in (server, later, plain):
        assert {words.split()[0] for words in each.commands} <= {"ehlo", "STARTTLS", "quit"}


async def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port, a name that is none, one that says nothing, and no setting."""
    with MailServer(hang="RCPT") as server:
        silent = await sent(ANN, mail=settings(server), seconds=0.2)
    closed = await mailed(server)
    unknown = await mailed(server, host="nobody.example")
    unset = await sent(ANN, mail=MailSettings(host="smtp.example.org"))
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    with MailServer(tls=None) as server:
        nowhere = await mailed(server, tls="implicit")
    assert (silent.failure, silent.tries) == ("timed_out", 3)
    assert silent.reason == "no answer of the mail server in 0.2 s"
    assert (closed.failure, closed.tries) == ("unreachable", 3)
    assert closed.reason == "no connection to the mail server (it was refused)"
    assert unknown.reason == "no connection to the mail server (the name was not found)"
    assert (unset.failure, unset.tries) == ("not_configured", 1)
    assert unset.reason == ("no e-mail is sent; set `LISTENPOST_SMTP_HOST` and `LISTENPOST_SMTP_FROM`")
    assert nowhere.failure == "not_configured"


async def test_receivers_may_be_limited() -> None:
    """So that whoever has a key cannot write to everybody in the server's name."""
    with MailServer() as server:
        receivers = "ben@example.com, @Example.org"
        allowed = await mailed(server, receivers=receivers)
        other = await mailed(server, to="mailto:ann@sub.example.org", receivers=receivers)
    assert allowed.delivered
    assert (other.failure, other.tries, len(server.mails)) == ("not_allowed", 1, 1)
    assert other.reason == "`LISTENPOST_SMTP_TO` does not name it"
