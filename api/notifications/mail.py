"""E-mail: one message in plain text, through the server of the settings."""

from __future__ import annotations

import asyncio
import email.message
import smtplib
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.charset import QP, Charset
from email.header import Header
from email.utils import format_datetime
from ssl import SSLCertVerificationError, SSLError

from api.core.text import clean, cut, one_line
from api.features.watches.notification import Message
from api.features.watches.watch import Watch
from api.notifications.delivery import Undelivered, mail_tls
from api.settings import MailSettings

SECONDS = 30.0
"""For one try; some servers greet a stranger after ten."""
_PORTS = {"starttls": 587, "implicit": 465, "none": 25}
_SUBJECT = 150
_LOGIN = "check `LISTENPOST_SMTP_USER` and `LISTENPOST_SMTP_PASSWORD`"
_TLS = "check `LISTENPOST_SMTP_TLS` and `LISTENPOST_SMTP_PORT`"


@dataclass(frozen=True, slots=True)
class MailRoom:
    """Sends e-mail, each over a connection of its own."""

    settings: MailSettings
    seconds: float = SECONDS

    async def deliver(self, watch: Watch, address: str, message: Message) -> None:
        """Try once.

        Raises:
            Undelivered: the server did not take it, or could not be asked.
        """
        settings = self.settings
        if settings.host is None or settings.sender is None:
            words = "no e-mail is sent; set `LISTENPOST_SMTP_HOST` and `LISTENPOST_SMTP_FROM`"
            raise Undelivered("not_configured", words)
        if not settings.allows(address):
            raise Undelivered("not_allowed", "`LISTENPOST_SMTP_TO` does not name it")
        mail = mail_of(watch, settings.sender, address, message, datetime.now(UTC))
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


def mail_of(watch: Watch, sender: str, address: str, message: Message, moment: datetime) -> email.message.Message:
    """The e-mail; one run is one message, however often it is sent, by its `Message-ID`.

    No word of a stranger begins a header or is one: the subject is one line, and encoded where it
    may be read as what it is not. (`EmailMessage` loses blanks between encoded words.)
    """
    words = cut(one_line(clean(message.text.partition("\n")[0])), _SUBJECT)
    script = "us-ascii" if words.isascii() and "=?" not in words else "utf-8"
    text = Charset("utf-8")
    text.body_encoding = QP
    mail = email.message.Message()
    mail.set_payload(clean(message.text) + "\n", text)
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
        words = f"no connection to the mail server ({type(error).__name__})"
        raise Undelivered("unreachable", words, again=True) from error


def _refused(words: str, code: int) -> Undelivered:
    """By a reply: of 4xx the server says that another try may succeed (RFC 5321)."""
    if not 400 <= code < 600:
        words = "what answers there speaks no SMTP; check `LISTENPOST_SMTP_HOST` and its port"
        return Undelivered("unreachable", words)
    what, _, remedy = words.partition("; ")
    reason = f"the mail server {what} ({code}){f'; {remedy}' if remedy else ''}"
    return Undelivered("unavailable" if code < 500 else "refused", reason, again=code < 500)
