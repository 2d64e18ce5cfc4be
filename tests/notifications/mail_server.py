"""A loopback SMTP server that keeps what it takes, and can fail at each step."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Self, cast


@dataclass
class MailServer:
    """Serves on 127.0.0.1 while its block runs.

    `replies` says what it answers to a command (`MAIL`, `.` for the end of a message, empty as a
    greeting) instead of taking it; `hang` to which it says nothing.
    """

    replies: Mapping[str, str] = field(default_factory=dict)
    hang: str = "never"
    login: str = ""
    """`USER:PASSWORD` it asks for; empty: it offers none."""
    tls: ssl.SSLContext | None = None
    """With which it speaks after STARTTLS, or at once when `implicit`."""
    implicit: bool = False
    commands: list[str] = field(default_factory=list)
    mails: list[EmailMessage] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Session)
        self._server.mail = self
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    mail: MailServer


class _Session(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        mail = cast(_Server, self.server).mail
        try:
            self._encrypt(mail.tls if mail.implicit else None)
            self._reply("", "220 here")
            while line := self.rfile.readline().decode().strip():
                mail.commands.append(line)
                self._command(mail, line.split()[0].upper(), line)
        except OSError:  # the client went away
            return
        finally:
            for end in (self.rfile, self.wfile, self.connection):
                end.close()

    def _command(self, mail: MailServer, verb: str, words: str) -> None:
        if verb == "EHLO":
            starts, logs_in = bool(mail.tls) and not mail.implicit, bool(mail.login)
            offers = ["STARTTLS"] * starts + ["AUTH PLAIN"] * logs_in + ["SIZE"]
            self._reply(verb, "\r\n".join(["250-here", *(f"250-{o}" for o in offers), "250 OK"]))
        elif verb == "STARTTLS" and self._reply(verb, "220 go"):
            self._encrypt(mail.tls)
        elif verb == "AUTH":
            given = base64.b64decode(words.split()[-1]).decode().replace("\0", ":")
            self._reply(verb, "235 in" if given == f":{mail.login}" else f"535 no, {given}")
        elif verb == "DATA" and self._reply(verb, "354 go"):
            lines = iter(self.rfile.readline, b".\r\n")
            body = b"".join(line.removeprefix(b".") for line in lines)
            if self._reply(".", "250 mine"):
                mail.mails.append(message_from_bytes(body, policy=SMTP))
        elif verb not in {"STARTTLS", "DATA"}:
            self._reply(verb, "250 OK" if verb != "QUIT" else "221 bye")

    def _reply(self, verb: str, usual: str) -> bool:
        """Whether it was the usual one."""
        mail = cast(_Server, self.server).mail
        if verb == mail.hang:
            mail.over.wait(300)
        words = mail.replies.get(verb, usual)
        self.wfile.write(f"{words}\r\n".encode())
        return words == usual

    def _encrypt(self, context: ssl.SSLContext | None) -> None:
        if context is not None:
            self.connection = self.request = context.wrap_socket(self.request, server_side=True)
            self.rfile = self.connection.makefile("rb")
            self.wfile = self.connection.makefile("wb", 0)
