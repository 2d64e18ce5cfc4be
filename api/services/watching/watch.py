"""A watch: what is asked, when, and who hears of what has changed."""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from api.errors import UsageError
from api.services.question.accepting import question_of
from api.services.text import clean, cut, one_line, web_url
from api.services.watching.schedule import Schedule, schedule_of, zone_of
from api.settings import DepthName
from api.settings.addresses import is_mail_address

Only = Literal["complaints"]
Kind = Literal["webhook", "slack", "mail", "file"]
MOST_TARGETS = 5
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Target:
    """Where it is told."""

    kind: Kind
    address: str = field(repr=False)
    """A URL, which may hold a secret, an address of e-mail, or a path."""

    @property
    def shown(self) -> str:
        """On one line its kind and server, without what may be secret; of others the whole."""
        whole = self.kind in {"mail", "file"}
        public = self.address if whole else urlsplit(self.address).hostname
        return f"{self.kind}:{one_line(clean(public))}"


def target_of(text: str, *, files: bool) -> Target:
    """`https://...`, `slack:https://...`, `mailto:ADDRESS`, or, where allowed, `file:PATH`.

    Raises:
        UsageError: it is none of these.
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "file" and files and rest:
        return Target("file", rest)
    if kind.lower() == "mailto" and is_mail_address(rest):
        return Target("mail", rest)
    address = web_url(rest if kind == "slack" else text.strip())
    if not address or urlsplit(address).username is not None:
        forms = "`https://...`, `slack:https://...`, `mailto:ann@example.org`"
        forms += " or `file:PATH`" if files else ""
        wrong = f"a notification goes to {forms}, and no URL holds a user"
        raise UsageError(wrong, field="notify")
    return Target("slack" if kind == "slack" else "webhook", address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One question of one tenant, asked again and again."""

    id: str
    tenant: str
    name: str
    """By which its tenant calls it; no two of a tenant have the same."""
    query: str
    about: str = ""
    sources: tuple[str, ...] = ()
    """Empty: those of the settings."""
    depth: DepthName = "standard"
    limit: int | None = None
    sandbox: bool = False
    every: str
    zone: str = "UTC"
    only: Only | None = None
    """What is told; None: every new post."""
    notify: tuple[Target, ...] = ()
    secret: str = field(repr=False)
    """With which what a webhook gets is signed."""
    tell_first: bool = False
    """Its first run is told, too."""
    paused: bool = False
    created_at: datetime
    due_at: datetime
    began_at: datetime | None = None
    """When its first run asked; what was written before is no news."""
    feed: str | None = field(default=None, repr=False)
    """Digest of the token that reads its feed; None: it has none."""

    @property
    def rule(self) -> str:
        """A digest of what decides whether a post is one of its: verdicts by another are void."""
        deciding = json.dumps([self.query, self.about, sorted(self.sources), self.sandbox])
        return hashlib.sha256(deciding.encode()).hexdigest()[:16]

    @property
    def is_signed(self) -> bool:
        """What is told of it is signed with its secret, which somebody needs to know."""
        return any(target.kind == "webhook" for target in self.notify)

    @property
    def schedule(self) -> Schedule:
        """When it is due."""
        return schedule_of(self.every)


def check_watch(watch: Watch) -> None:
    """Refuse one that could never run.

    Raises:
        UsageError: its name, question, schedule or zone makes no sense, or too many are to be told.
    """
    if not 0 < len(watch.name) <= _LONGEST_NAME or watch.name != one_line(clean(watch.name)):
        wrong = f"the name of a watch is one line of 1 to {_LONGEST_NAME} characters"
        raise UsageError(wrong, field="name")
    question_of(watch.query, watch.about)
    schedule_of(watch.every)
    zone_of(watch.zone)
    if len(watch.notify) > MOST_TARGETS:
        wrong = f"a watch tells {MOST_TARGETS} at most, not {len(watch.notify)}"
        raise UsageError(wrong, field="notify")


def new_watch(tenant: str, query: str, every: str, now: datetime) -> Watch:
    """A watch that is called as it asks, and is due at once; the rest is `replace`d into it."""
    name = name_of_query(query)
    return Watch(
        id=uuid.uuid4().hex,
        tenant=tenant,
        name=name,
        query=query,
        every=every,
        secret=f"whsec_{secrets.token_urlsafe(24)}",
        created_at=now,
        due_at=now,
    )


def name_of_query(query: str) -> str:
    """What a watch is called that was given no name."""
    return cut(one_line(clean(query)), _LONGEST_NAME)


def chosen(watches: Sequence[Watch], name: str) -> Watch | None:
    """The watch of this name or id, or the only one whose id begins so."""
    exact = [watch for watch in watches if name in {watch.name, watch.id}]
    begun = [watch for watch in watches if name and watch.id.startswith(name)]
    fitting = exact or begun
    return fitting[0] if len(fitting) == 1 else None
