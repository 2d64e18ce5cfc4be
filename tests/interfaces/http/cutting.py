"""A TCP proxy that cuts a stream in the middle, as a network that fails does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Cutter:
    """Passes everything on; the first `cuts` connections that carry `marker` end behind it."""

    target: tuple[str, int]
    marker: bytes
    cuts: int
    url: str = ""
    made: int = 0
    """Cuts so far."""
    streams: int = 0
    """Answers that were streams of events."""
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def serve(self, listener: socket.socket) -> None:
        """Until the listener is closed."""
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with closing(client), closing(socket.create_connection(self.target)) as server:
            asking = threading.Thread(target=self._ask, args=(client, server), daemon=True)
            asking.start()
            with suppress(OSError):
                while data := server.recv(65536):
                    self.streams += data.count(b"text/event-stream")
                    client.sendall(data)
                    if self.marker in data and self._may_cut():
                        break
            for end in (client, server):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            asking.join()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _may_cut(self) -> bool:
        with self._turn:
            if self.made == self.cuts:
                return False
            self.made += 1
            return True


@contextmanager
def cutting(url: str, marker: bytes, cuts: int = 1) -> Iterator[Cutter]:
    """The proxy before the server at `url`."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cutter = Cutter((host, int(port)), marker, cuts)
        cutter.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=cutter.serve, args=(listener,), daemon=True).start()
        yield cutter
