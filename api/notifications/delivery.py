"""Delivery of notifications: webhooks (signed JSON, chats), e-mail, a file; each is tried again where that may help.

A webhook is never sent to an address within our own network, unless the settings allow that.
"""

from __future__ import annotations

import asyncio
import email.message
import smtplib
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.charset import QP, Charset
from email.header import Header
from email.utils import format_datetime
from pathlib import Path
from ssl import SSLCertVerificationError, SSLContext, SSLError

import httpx

from api.core.addresses import is_public
from api.core.http_limits import MAX_PORT, connection_failure, tls_context
from api.core.text import clean, cut, one_line
from api.core.work import Defect, translated
from api.errors import ListenpostError
from api.features.analyses.api_keys import LOCAL
from api.features.watches.notification import Message, signature
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import Delivery, Failure
from api.settings import MailSettings


class Undelivered(Exception):
    """A message did not arrive: `failure` for programs, the words, with what helps, for people."""

    def __init__(self, failure: Failure, reason: str, *, again: bool = False) -> None:
        """`again`: another try may succeed."""
        super().__init__(reason)
        self.failure, self.reason, self.again = failure, reason, again


def client_tls(load: Callable[..., SSLContext] = httpx.create_ssl_context) -> SSLContext:
    """TLS context with the certificates of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else certifi's.

    Raises:
        Undelivered: the file cannot be read as certificates.
    """
    try:
        return tls_context(load)
    except OSError as error:
        words = "no certificates can be read; correct or unset `SSL_CERT_FILE`"
        raise Undelivered("not_configured", words) from error


def mail_tls() -> SSLContext:
    """TLS context for SMTP, apart from that for HTTPS; raises `Undelivered`."""
    return client_tls(_load_for_mail)


def _load_for_mail(trust_env: bool) -> SSLContext:
    # A context of its own: httpcore writes `http/1.1` as ALPN protocol into the one it uses, and a
    # mail server that reads ALPN refuses such a connection (RFC 7301, section 3.2).
    return httpx.create_ssl_context(trust_env=trust_env)


SECONDS = 10.0
"""Limit in seconds for one try of a webhook, from the DNS look-up to the status of the answer."""
# Statuses below 500 after which another try may succeed.
_TRANSIENT = frozenset({408, 425, 429})
_HERE = "its address is within this network; `LISTENPOST_NOTIFY_PRIVATE=true` allows that"


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Posts messages, each over a connection of its own."""

    private: bool = False
    """Addresses within our own network may be receivers, too."""
    seconds: float = SECONDS
    server: str = ""
    """Address of this server for links in messages to people; empty: no links."""

    async def post(self, watch: Watch, target: Target, message: Message, number: int) -> None:
        """Try once; `number`, from 0, chooses among the addresses that a name has.

        A receiver gets the run's id in the body and in `Listenpost-Run`: the same, sent again, is
        the same run.

        Raises:
            Undelivered: it did not arrive.
        """
        body = message.body if target.kind == "webhook" else message.for_chat(target, self.server)
        form = "text/plain; charset=utf-8" if target.kind == "ntfy" else "application/json"
        headers = {"Content-Type": form, "User-Agent": "listenpost"}
        if target.kind == "webhook":
            signed = signature(watch.secret, int(time.time()), body)
            headers |= {"Listenpost-Run": message.run_id, "Listenpost-Signature": signed}
        try:
            async with asyncio.timeout(self.seconds):
                status = await self._status(httpx.URL(target.address), headers, body, number)
        except (TimeoutError, httpx.TimeoutException) as error:
            words = f"no answer in {self.seconds:g} s"
            raise Undelivered("timed_out", words, again=True) from error
        except (OSError, httpx.HTTPError) as error:
            if _is_tls(error):
                words = "it has no trusted certificate for its name, or speaks no TLS"
                raise Undelivered("insecure", words) from error
            words = f"no connection ({connection_failure(error)})"
            raise Undelivered("unreachable", words, again=True) from error
        except (httpx.InvalidURL, UnicodeError) as error:  # the latter of a name that is too long
            raise Undelivered("no_address", "its address is none") from error
        if 300 <= status < 400:
            words = f"it answered {status}, and redirects are not followed"
            raise Undelivered("refused", words)
        if status >= 500 or status in _TRANSIENT:
            raise Undelivered("unavailable", f"it answered {status}", again=True)
        if status >= 400:
            raise Undelivered("refused", f"it answered {status}")

    async def _status(self, url: httpx.URL, headers: dict[str, str], body: bytes, number: int) -> int:
        """What a server answers, of which no more is read.

        It is asked at the address that was looked at, since its name may mean another one by now;
        its certificate is checked for the name.
        """
        name = url.raw_host.decode("ascii")
        if (url.port or 0) > MAX_PORT:
            raise httpx.InvalidURL(f"a port above {MAX_PORT}")
        entries = await asyncio.get_running_loop().getaddrinfo(name, url.port or 443, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        if refusal := refusal_of(url.scheme, addresses, private=self.private):
            raise refusal
        there = url.copy_with(host=addresses[number % len(addresses)])
        headers["Host"] = url.netloc.decode("ascii")
        async with (
            # no proxy, to which the address would mean nothing
            httpx.AsyncClient(timeout=self.seconds, trust_env=False, verify=client_tls()) as client,
            client.stream("POST", there, content=body, headers=headers, extensions={"sni_hostname": name}) as response,
        ):
            return response.status_code


def refusal_of(scheme: str, addresses: Sequence[str], *, private: bool) -> Undelivered | None:
    """Why these addresses of a receiver are refused; None when they are allowed.

    Addresses of our own network are refused unless they are allowed (`private`), others without `https`.
    """
    public = all(map(is_public, addresses))
    if not (private or public):
        return Undelivered("not_allowed", _HERE)
    if public and scheme != "https":
        return Undelivered("insecure", "its address begins with `http:`; write `https:`")
    return None


def _is_tls(error: BaseException) -> bool:
    """Whether an encrypted connection failed for being one, which no other try mends."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, SSLError):
        cause = cause.__cause__ or cause.__context__  # httpcore raises some "from None"
    return cause is not None


def append(path: Path, message: Message) -> None:
    """Append one line of JSON to a file that only its owner may read.

    Raises:
        Undelivered: it cannot be written.
    """
    try:
        with suppress(FileExistsError):
            path.touch(mode=0o600, exist_ok=False)
        with path.open("ab") as file:
            file.write(message.body + b"\n")
    except OSError as error:
        raise Undelivered("unwritable", f"it cannot be written: {error.strerror}") from error


MAIL_SECONDS = 30.0
"""Limit in seconds for one try; some mail servers delay their greeting by ten."""
_PORTS = {"starttls": 587, "implicit": 465, "none": 25}
_SUBJECT = 150
_LOGIN = "check `LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
_TLS = "check `LISTENPOST_SMTP_TLS` and `LISTENPOST_SMTP_PORT`"


@dataclass(frozen=True, slots=True)
class MailSender:
    """Sends e-mail, each over a connection of its own."""

    settings: MailSettings
    seconds: float = MAIL_SECONDS
    server: str = ""
    """Address of this server for links in a message; empty: no links."""

    async def deliver(self, watch: Watch, address: str, message: Message) -> None:
        """Try once to deliver the message by mail.

        Raises:
            Undelivered: the server did not take it, or could not be asked.
        """
        settings = self.settings
        if settings.host is None or settings.sender is None:
            words = "no e-mail is sent; set `LISTENPOST_SMTP_HOST` and `LISTENPOST_SMTP_FROM`"
            raise Undelivered("not_configured", words)
        if not settings.allows(address, keyed=watch.tenant != LOCAL.id):
            raise Undelivered("not_allowed", settings.refusal)
        mail = mail_of(watch, settings.sender, address, message, datetime.now(UTC), self.server)
        servers: list[smtplib.SMTP] = []
        try:
            async with asyncio.timeout(self.seconds):
                await asyncio.to_thread(self._submit, settings.host, settings.sender, address, mail, servers)
        except TimeoutError as error:
            words = f"no answer of the mail server in {self.seconds:g} s"
            raise Undelivered("timed_out", words, again=True) from error
        finally:  # where nobody waits any more, the thread ends with its connection
            for server in servers:
                if server.sock is not None:
                    with suppress(OSError):
                        server.sock.shutdown(socket.SHUT_RDWR)

    def _submit(
        self,
        host: str,
        sender: str,
        address: str,
        mail: email.message.Message,
        servers: list[smtplib.SMTP],
    ) -> None:
        """Hand it to the server, on a thread; `servers` gets it as soon as it has greeted.

        It is greeted by the sender's domain: this machine's name is nobody's business.
        """
        settings, domain = self.settings, sender.partition("@")[2]
        port = settings.port or _PORTS[settings.tls]
        with _typed():
            server = (
                smtplib.SMTP_SSL(host, port, domain, timeout=self.seconds, context=mail_tls())
                if settings.tls == "implicit"
                else smtplib.SMTP(host, port, domain, timeout=self.seconds)
            )
            with closing(server):
                servers.append(server)
                if settings.tls == "starttls":
                    server.starttls(context=mail_tls())
                if settings.user and settings.password:
                    server.login(settings.user, settings.password.get_secret_value())
                # not `send_message`, which puts a bracket before a line that begins with "From"
                server.sendmail(sender, [address], mail.as_string())
                with suppress(OSError):  # it has the message
                    server.quit()


def mail_of(
    watch: Watch, sender: str, address: str, message: Message, moment: datetime, server: str = ""
) -> email.message.Message:
    """The e-mail of a message; a run has the same `Message-ID` however often it is sent.

    No word of a stranger begins a header or is one: the subject is one line, and encoded where it
    may be read as what it is not. (`EmailMessage` loses blanks between encoded words.)
    """
    words = cut(one_line(clean(message.text.partition("\n")[0])), _SUBJECT)
    script = "us-ascii" if words.isascii() and "=?" not in words else "utf-8"
    text = Charset("utf-8")
    text.body_encoding = QP
    mail = email.message.Message()
    mail.set_payload(clean(message.text_for(server)) + "\n", text)
    mail["From"] = f"Listenpost <{sender}>"
    mail["To"] = address
    mail["Subject"] = Header(words, script, header_name="Subject").encode()
    mail["Date"] = format_datetime(moment)
    mail["Message-ID"] = f"<{message.run_id}@{sender.partition('@')[2]}>"
    # RFC 2919's domain for lists that nobody administers
    mail["List-Id"] = f"<{watch.id}.listenpost.localhost>"
    mail["Auto-Submitted"] = "auto-generated"
    mail["Listenpost-Run"] = message.run_id
    return mail


@contextmanager
def _typed() -> Iterator[None]:
    """What smtplib and ssl raise, in our words: the server's may hold anything.

    Raises:
        Undelivered: the work within failed.
        TimeoutError: the server said nothing.
    """
    try:
        yield
    except smtplib.SMTPRecipientsRefused as error:
        ((code, _),) = error.recipients.values()
        raise _refused("refused the recipient", code) from error
    except smtplib.SMTPSenderRefused as error:
        words = "refused the sender; check `LISTENPOST_SMTP_FROM`"
        raise _refused(words, error.smtp_code) from error
    except smtplib.SMTPAuthenticationError as error:
        if error.smtp_code < 500:
            raise _refused("could not check the password", error.smtp_code) from error
        words = f"the mail server refused user or password ({error.smtp_code}); {_LOGIN}"
        raise Undelivered("unauthorized", words) from error
    except smtplib.SMTPResponseException as error:
        raise _refused("refused the message", error.smtp_code) from error
    except smtplib.SMTPServerDisconnected as error:
        words = "the mail server hung up"
        raise Undelivered("unreachable", words, again=True) from error
    except smtplib.SMTPException as error:  # it offers neither STARTTLS nor a login that is known
        words = f"the mail server offers no such encryption or login; {_TLS}, {_LOGIN}"
        raise Undelivered("insecure", words) from error
    except SSLCertVerificationError as error:
        words = "the mail server has no trusted certificate for its name"
        raise Undelivered("insecure", words) from error
    except SSLError as error:
        raise Undelivered("insecure", f"the mail server speaks no TLS there; {_TLS}") from error
    except TimeoutError:
        raise
    except OSError as error:
        words = f"no connection to the mail server ({connection_failure(error)})"
        raise Undelivered("unreachable", words, again=True) from error


def _refused(words: str, code: int) -> Undelivered:
    """Failure for a reply: a code 4xx means that another try may succeed (RFC 5321)."""
    if not 400 <= code < 600:
        words = "what answers there speaks no SMTP; check `LISTENPOST_SMTP_HOST` and its port"
        return Undelivered("unreachable", words)
    what, _, remedy = words.partition("; ")
    reason = f"the mail server {what} ({code}){f'; {remedy}' if remedy else ''}"
    return Undelivered("unavailable" if code < 500 else "refused", reason, again=code < 500)


TRIES = 3
BACKOFF = (1.0, 4.0)
"""Seconds before the second and the third try."""


@dataclass(frozen=True, slots=True)
class Notifier:
    """Sends messages; a failure is a value, so that it can be kept with the run."""

    webhooks: Webhooks
    mail: MailSender
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        """Deliver in at most three tries; a permanent failure is tried once."""
        failure: Undelivered | None = None
        number = 0
        for number in range(TRIES):
            if number:
                await self.pause(BACKOFF[number - 1])
            failure = await self._try(watch, target, message, number)
            if failure is None or not failure.again:
                break
        return Delivery(
            target=target.shown,
            delivered=failure is None,
            tries=number + 1,
            failure=failure and failure.failure,
            reason=failure.reason if failure else "",
            at=datetime.now(UTC),
        )

    async def _try(self, watch: Watch, target: Target, message: Message, number: int) -> Undelivered | None:
        """Try once and return why it failed, or None when it arrived."""
        match target.kind:
            case "file":
                trying: Awaitable[None] = asyncio.to_thread(append, Path(target.address), message)
            case "mail":
                trying = self.mail.deliver(watch, target.address, message)
            case _:
                trying = self.webhooks.post(watch, target, message, number)
        try:
            await translated(trying, f"sending to a receiver by {target.kind}", Defect, (Undelivered,))
        except Undelivered as failure:
            return failure
        except ListenpostError as error:
            return Undelivered("internal", error.public)
        return None
