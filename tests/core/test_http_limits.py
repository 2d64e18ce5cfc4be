"""What every client of a server agrees on: waits, this machine, sizes and redirects."""

from __future__ import annotations

import gzip
import ssl
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.addresses import is_this_machine, points_here, same_server
from api.core.http_limits import (
    LONGEST_WAIT,
    MAX_BYTES,
    Connecting,
    TooLarge,
    Unpackable,
    no_connection,
    read_all,
    read_all_async,
    retry_at,
    tls_context,
    unpacked,
    wait_of,
)
from tests.loopback import packed_zeros

NOW = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
"""1790000000 seconds since 1970."""
WAITS = [
    ({"retry-after": "1e9"}, LONGEST_WAIT),
    ({"retry-after": "7"}, 7),
    ({"retry-after": "1.5"}, 1.5),
    ({"retry-after": " 2 "}, 2),
    ({"retry-after": "0"}, 0),
    ({"retry-after": "172800"}, LONGEST_WAIT),
    ({"retry-after": "1790000090"}, 90),
    ({"retry-after": "1790000090000"}, 90),
    ({"retry-after": "1789999990"}, 0),
    ({"retry-after": "-5"}, 0),
    ({"retry-after": "9" * 30}, LONGEST_WAIT),
    ({"retry-after": "9" * 5_000}, LONGEST_WAIT),
    ({"retry-after": "1e400"}, LONGEST_WAIT),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "soon"}, None),
    ({"retry-after": ""}, None),
    ({"retry-after": "²"}, None),
    ({"retry-after": "Mon, 21 Sep 2026 14:14:50 GMT"}, 90),
    ({"retry-after": "Mon, 21 Sep 2026 16:14:50 +0200"}, 90),
    ({"retry-after": "Mon, 21 Sep 2026 14:14:50"}, 90),
    ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0),
    ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, LONGEST_WAIT),
    ({"retry-after": "Mon, 21 Sep 2026 14:14:50 +99999999999999999999"}, None),
    ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
    ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
    ({"retry-after": "7", "x-ratelimit-reset": "42"}, 7),
    ({"x-ratelimit-reset": "42.5"}, 42.5),
    ({"x-ratelimit-reset": "1790000042"}, 42),
    ({"x-ratelimit-requests-reset": "42"}, 42),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
def test_wait_is_read_one_way(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, decimals, dates and times; absurd is a day, past is now, unreadable is nothing."""
    assert wait_of(headers, NOW) == seconds
    assert retry_at(headers, NOW) == (None if seconds is None else NOW + timedelta(seconds=seconds))


@given(st.text() | st.floats().map(str) | st.integers().map(str))
def test_no_header_is_a_crash(text: str) -> None:
    """Whatever a server writes is a wait within a day, or none."""
    seconds = wait_of({"retry-after": text, "retry-after-ms": text})

    assert seconds is None or 0 <= seconds <= LONGEST_WAIT


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("localhost.", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("", False),
        ("0.0.0.0", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("::2", False),
        ("localho\u017ft", False),
    ],
)
def test_who_is_this_machine(host: str, here: bool) -> None:
    """The loopback range and `localhost` in every spelling, and nobody else."""
    bracketed = f"[{host}]" if ":" in host.strip("[]") and "[" not in host else host

    assert is_this_machine(host) is here
    assert points_here(f"http://{bracketed}:8080/v1") is here


@pytest.mark.parametrize("url", ["http://[::1", "localhost/v1", "nothing", ""])
def test_an_address_that_is_none_points_nowhere(url: str) -> None:
    """What cannot be read, or names no server, is not this machine."""
    assert not points_here(url)


@pytest.mark.parametrize(
    ("second", "same"),
    [
        ("https://shop.example/other?x=1", True),
        ("https://SHOP.example:443/", True),
        ("http://shop.example/", False),
        ("https://shop.example:8443/", False),
        ("https://www.shop.example/", False),
        ("https://shop.example.evil/", False),
        ("https://shop.example@evil.example/", False),
        ("https://shop.example:port/", False),
    ],
)
def test_a_server_is_scheme_host_and_port(second: str, same: bool) -> None:
    """A redirect may lead to another path, never to another server."""
    assert same_server("https://shop.example/s?k=mug", second) is same


async def arriving(*chunks: bytes) -> AsyncIterator[bytes]:
    """A body as it comes from a socket."""
    for chunk in chunks:
        yield chunk


async def test_unpacking_is_counted_while_it_happens() -> None:
    """Of 200 MB in 200 KB no more is unpacked than what is over the limit, in small pieces."""
    pieces: list[int] = []

    async def counted() -> AsyncIterator[bytes]:
        async for piece in unpacked(arriving(packed_zeros(200)), "gzip"):
            pieces.append(len(piece))
            yield piece

    with pytest.raises(TooLarge):
        await read_all_async(counted())

    assert max(pieces) <= 65_536
    assert sum(pieces) <= MAX_BYTES + 65_536


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("", b"plain"),
        ("identity", b"plain"),
        ("gzip", gzip.compress(b"plain")),
        (" X-GZIP ", gzip.compress(b"plain") + b"more"),
        ("deflate", zlib.compress(b"plain")),
    ],
)
async def test_a_packed_body_is_unpacked(packing: str, body: bytes) -> None:
    """By the header, byte for byte; what follows the end is not looked at."""
    chunks = [body[at : at + 1] for at in range(len(body))]

    assert await read_all_async(unpacked(arriving(*chunks, b""), packing)) == b"plain"


@pytest.mark.parametrize(
    ("packing", "body"),
    [
        ("gzip", b"plain"),
        ("gzip", gzip.compress(b"plain")[:-9]),
        ("br", b"plain"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"plain"))),
    ],
)
async def test_what_cannot_be_unpacked_is_said(packing: str, body: bytes) -> None:
    """Wrong bytes, a missing end and packings that were not asked for are one error."""
    with pytest.raises(Unpackable):
        await read_all_async(unpacked(arriving(body), packing))


async def test_an_empty_body_needs_no_packing() -> None:
    """A server may say that nothing is packed."""
    assert await read_all_async(unpacked(arriving(b""), "gzip")) == b""


async def test_a_body_has_an_end() -> None:
    """A body of the limit is read whole; one byte more is refused."""
    fits = (bytes(MAX_BYTES - 1), b"x")

    assert len(read_all(fits)) == len(await read_all_async(arriving(*fits))) == MAX_BYTES
    with pytest.raises(TooLarge):
        read_all((*fits, b"x"))
    with pytest.raises(TooLarge):
        await read_all_async(arriving(*fits, b"x"))


CERTIFICATES = "/nowhere/certificates.pem"


@pytest.mark.parametrize(
    ("variables", "error", "url", "why"),
    [
        (
            {},
            ConnectionRefusedError(),
            "https://a.invalid",
            "no connection (it was refused)",
        ),
        (
            {"HTTPS_PROXY": "http://user:secret@proxy"},
            ConnectionRefusedError(),
            "https://a.invalid",
            "no connection (it was refused); check `HTTPS_PROXY`",
        ),
        (
            {"HTTPS_PROXY": "http://proxy"},
            ConnectionRefusedError(),
            "http://localhost:1",
            "no connection (it was refused)",
        ),
        (
            {"HTTPS_PROXY": "http://proxy", "ALL_PROXY": "socks5://proxy"},
            ValueError("Missing dependencies for SOCKS support."),
            "https://a.invalid",
            "no connection (ValueError); check `ALL_PROXY`",
        ),
        (
            {"REQUESTS_CA_BUNDLE": CERTIFICATES, "HTTPS_PROXY": "http://proxy"},
            OSError(f"Could not find a TLS CA certificate bundle, invalid path: {CERTIFICATES}"),
            "https://a.invalid",
            "no connection (OSError); check `REQUESTS_CA_BUNDLE`",
        ),
        (
            {"SSL_CERT_FILE": CERTIFICATES},
            FileNotFoundError(2, "No such file or directory"),
            "https://a.invalid",
            "no connection (FileNotFoundError); check `SSL_CERT_FILE`",
        ),
        (
            {"SSLKEYLOGFILE": "/nowhere/keys", "HTTPS_PROXY": "http://proxy"},
            FileNotFoundError(2, "No such file or directory"),
            "https://a.invalid",
            "no connection (FileNotFoundError); check `SSLKEYLOGFILE`",
        ),
        (
            {"PRAWCORE_TIMEOUT": "abc"},
            ValueError("invalid literal for int() with base 10: 'abc'"),
            "https://a.invalid",
            "no connection (ValueError); check `PRAWCORE_TIMEOUT`",
        ),
        (
            {"HTTPLIB2_CA_CERTS": CERTIFICATES},
            RuntimeError("Environment variable HTTPLIB2_CA_CERTS not a valid file"),
            "https://a.invalid",
            "no connection (RuntimeError); check `HTTPLIB2_CA_CERTS`",
        ),
    ],
)
def test_the_variable_that_may_be_at_fault_is_named(
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    error: Exception,
    url: str,
    why: str,
) -> None:
    """By what the error says, by its name alone, and none for a server on this machine."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("HTTPLIB2_CA_CERTS", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert no_connection(error, url) == why


async def test_a_connection_of_its_own_is_noted() -> None:
    """Only then is it certain that no kept connection had died."""
    connecting = Connecting()

    await connecting("http11.send_request_headers.started", {})
    assert not connecting.fresh
    await connecting("connection.connect_tcp.started", {})
    await connecting("http11.send_request_headers.started", {})
    assert connecting.fresh


def test_certificates_are_loaded_once_for_each_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Again when the environment names other ones, and not by it for a server on this machine."""
    loaded: list[bool] = []

    def load(trust_env: bool) -> ssl.SSLContext:
        loaded.append(trust_env)
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    first, local = tls_context(load), tls_context(load, trust_env=False)
    assert tls_context(load) is first is not local

    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/other.pem")
    assert tls_context(load) is not first
    assert tls_context(load, trust_env=False) is local
    assert loaded == [True, False, True]
