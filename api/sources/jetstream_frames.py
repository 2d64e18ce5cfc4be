"""Frames of Jetstream, in either of its two envelopes, as events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from api.sources.item_fields import as_dict, as_time

COLLECTION = "app.bsky.feed.post"
Version = Literal["v2", "v1"]
_SUBSCRIPTION = "network.bsky.jetstream.subscribeEvents#"
# the beginning of a frame with a post in it, as the servers write it; other spellings are read as JSON
_HEADS: Mapping[Version, re.Pattern[bytes]] = {
    "v2": re.compile(
        rb'\{"\$type":"message","payload":\{"\$type":"network\.bsky\.jetstream\.subscribeEvents#commit",'
        rb'"seq":(?P<seq>\d{1,18}),"did":"did:[^"\\]{1,300}","time":"(?P<time>[\dT:.Z-]{20,40})"'
    ),
    "v1": re.compile(rb'\{"did":"did:[^"\\]{1,300}","time_us":(?P<us>\d{1,17}),(?:"cursor":\d{1,18},)?"kind":"commit"'),
}
# what such a frame begins with
BEGINNINGS: Mapping[Version, bytes] = {
    "v2": b'{"$type":"message","payload":{"$type":"network.bsky.jetstream.subscribeEvents#commit","seq":',
    "v1": b'{"did":"did:',
}
# a frame without it deletes a post, or is about an account; inside of a text its quotes are escaped
RECORD = b'"record":'
_DID = re.compile(r"did:[a-z]{1,20}:[A-Za-z0-9._:%-]{1,250}")
_RKEY = re.compile(r"[A-Za-z0-9._:~-]{1,512}")


@dataclass(frozen=True, slots=True)
class PostWritten:
    """A post that was created, or the new text of one that was edited."""

    uri: str
    did: str
    at: datetime
    """When the server saw it, aware UTC; the author's own time is in the record."""
    record: Mapping[str, Any]
    updated: bool = False


@dataclass(frozen=True, slots=True)
class PostDeleted:
    """A post that its author deleted."""

    uri: str
    did: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AccountChanged:
    """An account whose posts are to be hidden (`active` is false), or are back."""

    did: str
    active: bool
    at: datetime
    status: str = ""
    """`deleted`, `takendown`, `suspended` or `deactivated`; empty when the account is active."""


@dataclass(frozen=True, slots=True)
class Position:
    """Position up to which a server was read, from which the next connection begins."""

    cursor: int
    at: datetime
    root: str
    """Root of the server; at another server the time is used as cursor."""


@dataclass(frozen=True, slots=True)
class ServerNotice:
    """What a server says about the stream, such as `OutdatedCursor`: it begins later than was wished."""

    name: str
    message: str = ""


Event = PostWritten | PostDeleted | AccountChanged | ServerNotice | Position


class MalformedFrame(ValueError):
    """A frame that is no event of Jetstream."""


class StreamFault(Exception):
    """The last frame of a stream: a server's reason to end it, such as `ConsumerTooSlow`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it was read; `event` is None for one that does not matter here."""

    event: PostWritten | PostDeleted | AccountChanged | ServerNotice | None = None
    cursor: int | None = None
    at: datetime | None = None


def read_frame(frame: bytes) -> Frame:
    """An envelope of either version; raises `MalformedFrame`, or `StreamFault` for the server's last word."""
    try:
        envelope = json.loads(frame)
    except (ValueError, RecursionError) as error:
        raise MalformedFrame("no JSON") from error
    if not isinstance(envelope, dict):
        raise MalformedFrame("no object")
    kind = envelope.get("$type")
    if kind == "error":
        raise StreamFault(short_word(envelope.get("error")) or "error")
    if kind == "message":
        payload = as_dict(envelope.get("payload"))
        name = str(payload.get("$type")).removeprefix(_SUBSCRIPTION)
        if name == "info":
            return Frame(ServerNotice(short_word(payload.get("name")), str(payload.get("message") or "")[:300]))
        cursor, at = payload.get("seq"), as_time(str(payload.get("time")))
        return _known(payload, name, payload, cursor, at)
    if kind is None and "kind" in envelope:
        cursor = envelope.get("time_us")
        at = as_time(cursor / 1e6) if isinstance(cursor, int) else None
        commit = as_dict(envelope.get("commit"))
        return _known(envelope, str(envelope["kind"]), commit, cursor, at)
    if isinstance(kind, str):  # a kind of frame that came later
        return Frame()
    raise MalformedFrame("an unknown envelope")


def _known(
    envelope: Mapping[str, Any], name: str, commit: Mapping[str, Any], cursor: object, at: datetime | None
) -> Frame:
    if name not in {"commit", "account"}:
        return Frame()
    did = envelope.get("did")
    if at is None or type(cursor) is not int or cursor < 0 or not isinstance(did, str) or not _DID.fullmatch(did):
        raise MalformedFrame("an event without did, place or time")
    if name == "account":
        account = as_dict(envelope.get("account"))
        active = account.get("active")
        if not isinstance(active, bool):
            raise MalformedFrame("an account without its state")
        return Frame(AccountChanged(did, active, at, "" if active else short_word(account.get("status"))), cursor, at)
    operation, rkey, record = commit.get("operation"), commit.get("rkey"), commit.get("record")
    if not isinstance(rkey, str) or not _RKEY.fullmatch(rkey):
        raise MalformedFrame("a record without its key")
    if commit.get("collection") != COLLECTION:
        return Frame(None, cursor, at)
    uri = f"at://{did}/{COLLECTION}/{rkey}"
    if operation == "delete":
        return Frame(PostDeleted(uri, did, at), cursor, at)
    if operation not in ("create", "update") or not isinstance(record, dict):
        raise MalformedFrame("a post without its record")
    return Frame(PostWritten(uri, did, at, record, operation == "update"), cursor, at)


def short_word(value: object) -> str:
    """The name of an error or a state without blanks; empty for anything else."""
    return value[:40] if isinstance(value, str) and value[:40].isidentifier() else ""


def position_of(frame: bytes, version: Version, root: str) -> Position | None:
    """Position of a frame with a post, found without parsing it; None when its beginning has another form."""
    head = _HEADS[version].match(frame)
    if head is None:
        return None
    groups = head.groupdict()
    cursor = int(groups.get("seq") or groups["us"])
    at = as_time(groups["time"].decode()) if "time" in groups else as_time(cursor / 1e6)
    return None if at is None else Position(cursor, at.astimezone(UTC), root)
