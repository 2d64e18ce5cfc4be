"""OTLP's protobuf, read as far as a server must to take a span; opentelemetry is tracing's."""

from __future__ import annotations

from collections.abc import Iterator

_TRACE, _SPAN = 16, 8
"""Bytes of the ids."""


def spans_of(body: bytes) -> int:
    """How many spans an `ExportTraceServiceRequest` holds.

    Raises:
        ValueError: it is none, or a span lacks an id or its name.
    """
    count = 0
    for resource in _values(body, 1):
        for scope in _values(resource, 2):
            for span in _values(scope, 2):
                trace, own, name = (next(_values(span, field), b"") for field in (1, 2, 5))
                if (len(trace), len(own)) != (_TRACE, _SPAN) or not name:
                    raise ValueError("a span has a trace id, an id and a name")
                count += 1
    return count


def _values(message: bytes, field: int) -> Iterator[bytes]:
    """Those of one field that have a length: texts, bytes and messages."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 2:
                size, at = _varint(message, at)
                if tag >> 3 == field and at + size <= len(message):
                    yield message[at : at + size]
                at += size
            case 5:
                at += 4
            case _:
                raise ValueError("no such wire type")
    if at > len(message):
        raise ValueError("the message is cut off")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and where it ends."""
    number = 0
    for count, byte in enumerate(message[at : at + 10]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return number, at + count + 1
    raise ValueError("a number does not end")
