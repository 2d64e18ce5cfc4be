"""A reverse proxy that serves a server below a path, which it removes, as `proxy_pass http://127.0.0.1:8420/;` does."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit


@contextmanager
def below(path: str, server: str) -> Iterator[str]:
    """The address that leads to this server; what does not begin with the path is not found."""
    target = urlsplit(server)

    class Exchange(StreamRequestHandler):
        """One request of one connection, and its answer as it comes."""

        def handle(self) -> None:
            method, asked, version = self.rfile.readline().decode().split(" ")
            lines = list(iter(self.rfile.readline, b"\r\n"))
            if not f"{asked}/".startswith((f"{path}/", f"{path}?")):
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            headers = [line for line in lines if not line.lower().startswith(b"connection:")]
            lengths = [int(line[15:]) for line in headers if line.lower().startswith(b"content-length:")]
            rest = "/" + asked.removeprefix(path).lstrip("/")
            head = f"{method} {rest} {version}".encode() + b"".join(headers) + b"connection: close\r\n\r\n"
            with socket.create_connection((target.hostname, target.port)) as upstream, suppress(ConnectionError):
                upstream.sendall(head + self.rfile.read(*lengths or [0]))
                while True:  # until the server has answered, or who asked has gone
                    ready, _, _ = select.select([upstream, self.connection], [], [])
                    if self.connection in ready or not (piece := upstream.recv(65_536)):
                        return
                    self.wfile.write(piece)

    class Proxy(ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

    with Proxy(("127.0.0.1", 0), Exchange) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_address[1]}{path}"
        proxy.shutdown()
        thread.join()
