"""A watch: its question, its schedule and its receivers.

A schedule is `mon 08:00`, `mon,thu 08:00`, `daily 08:00`, `hourly` or `every 15 min`.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from types import MappingProxyType
from typing import Literal, get_args
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from api.choices import MAX_RECEIVERS, Only
from api.core.text import clean, cut, one_line, web_url
from api.errors import UsageError
from api.services.product import QuestionOptions, compared_products, question_of
from api.settings.value_types import is_mail_address

MOST_WATCHES = 100
"""Watches of one tenant at most."""
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""Names of the days as written in schedules, in the order of `datetime.weekday`."""
_MOST = timedelta(days=31)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMS = "`mon 08:00`, `mon,thu 08:00`, `daily 08:00`, `hourly` or `every 15 min`"
# Days and a time of day: `mon,thu 08:00`.
_CLOCK = re.compile(r"(?P<days>daily|[a-z]{3}(?:,[a-z]{3})*) (?P<hour>\d{1,2}):(?P<minute>\d\d)")
# A number of minutes, hours or days: `every 15 min`.
_INTERVAL = re.compile(r"every (?P<number>\d{1,5}) ?(?P<unit>min|minutes?|h|hours?|days?)")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Days of the week and a time of day, or an interval."""

    days: frozenset[int] = frozenset()
    """Weekdays, 0 is Monday; empty when the schedule has an interval."""
    at: time = time()
    interval: timedelta = timedelta()


def schedule_of(text: str) -> Schedule:
    """Parse the words of a schedule.

    Raises:
        UsageError: they are none of the forms, or an interval is below a minute or above 31 days.
    """
    words = ",".join(part.strip() for part in " ".join(text.lower().split()).split(","))
    if words == "hourly":
        return Schedule(interval=timedelta(hours=1))
    if match := _CLOCK.fullmatch(words):
        names = DAYS if match["days"] == "daily" else match["days"].split(",")
        hour, minute = int(match["hour"]), int(match["minute"])
        if set(names) <= set(DAYS) and hour < 24 and minute < 60:
            return Schedule(frozenset(map(DAYS.index, names)), time(hour, minute))
    if match := _INTERVAL.fullmatch(words):
        unit = {"m": "minutes", "h": "hours", "d": "days"}[match["unit"][0]]
        interval = timedelta(**{unit: int(match["number"])})
        if timedelta() < interval <= _MOST:
            return Schedule(interval=interval)
        wrong = f"`{words}` is no interval from 1 min to {_MOST.days} days"
        raise UsageError(wrong, field="every")
    raise UsageError(f"“{words[:40]}” is no schedule; write {_FORMS}", field="every")


def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone “{name[:40]}”; write one such as `Europe/Berlin` or `UTC`",
            field="tz",
        ) from None


def next_after(schedule: Schedule, moment: datetime, zone: tzinfo) -> datetime:
    """The first moment after this one at which it is due, aware UTC.

    A time of day that the clock skips is the first moment after the gap; one that comes twice is
    the first of both. Intervals count from midnight UTC of a fixed day, so they do not drift.
    """
    if schedule.interval:
        return moment - (moment - _EPOCH) % schedule.interval + schedule.interval
    first = moment.astimezone(zone).date()
    dates = (first + timedelta(days=ahead) for ahead in range(9))  # a week, and one left out
    return min(
        due
        for date in dates
        if date.weekday() in schedule.days and (due := _instant(datetime.combine(date, schedule.at), zone)) > moment
    )


def digest_after(watch: Watch, target: Target, moment: datetime) -> datetime:
    """The first time after this moment at which a receiver gets its digest, by UTC where the zone is unknown here."""
    try:
        zone: tzinfo = zone_of(watch.zone)
    except UsageError:
        zone = UTC
    return next_after(digest_schedule(target.digest), moment, zone)


def next_digest(watch: Watch, moment: datetime) -> datetime | None:
    """The next time after this moment when any receiver gets a digest; None when none gets digests."""
    return min((digest_after(watch, target, moment) for target in watch.notify if target.digest), default=None)


def length_of(schedule: Schedule, moment: datetime, zone: ZoneInfo) -> timedelta:
    """Time between the next two times that it is due."""
    following = next_after(schedule, moment, zone)
    return next_after(schedule, following, zone) - following


def runs_a_week(schedule: Schedule) -> float:
    """Number of times that it is due in a week; below 1 for an interval longer than a week."""
    return timedelta(weeks=1) / schedule.interval if schedule.interval else len(schedule.days)


def _instant(local: datetime, zone: tzinfo) -> datetime:
    """The first UTC moment at which a clock in this zone shows this local time or a later one."""
    before = local.replace(tzinfo=zone).astimezone(UTC)
    if before.astimezone(zone).replace(tzinfo=None) == local:
        return before
    # skipped: by the offset of after the gap this is before it, by that of before it is after it
    low, high = local.replace(tzinfo=zone, fold=1).astimezone(UTC), before
    skipped = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=1) // 2)
        if middle.astimezone(zone).utcoffset() == skipped:
            low = middle
        else:
            high = middle
    return high


ChatKind = Literal["slack", "discord", "teams", "telegram", "ntfy"]
Kind = Literal["webhook", "mail", "file"] | ChatKind
TargetOnly = Literal[Only, "unusual"]
CHATS: Mapping[ChatKind, tuple[str, ...]] = MappingProxyType({
    "slack": ("hooks.slack.com",), "discord": ("discord.com", "discordapp.com"),
    "teams": ("webhook.office.com", "logic.azure.com", "api.powerplatform.com"),
    "telegram": ("api.telegram.org",), "ntfy": ("ntfy.sh",),
})  # fmt: skip
"""Chats that take text, and the servers by which an address is known to be of one."""
_LONGEST_NAME = 100
_RULES = "`only complaints` or `only unusual`, then perhaps `digest 08:00` or `digest mon 08:00`"
# The rule of a receiver: `only unusual digest mon 08:00`.
_RULE = re.compile(
    rf"(?:only (?P<only>{'|'.join(get_args(TargetOnly))})(?: |$))?"
    r"(?:digest (?P<digest>(?:[a-z,]+ )?\d{1,2}:\d\d))?"
)
# A path, which may hold spaces, and a rule behind it, right or wrong: `file:a b.jsonl only unusual`; a file's name goes
# on with a dot or a slash: `file:the only one.jsonl`.
_RULED_PATH = re.compile(r"\A(?P<path>.+?) (?P<rule>(?:only|digest) [^./]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Target:
    """A receiver of notifications, a webhook, a chat, e-mail or a file, with its rule."""

    kind: Kind
    address: str = field(repr=False)
    """A URL, which may hold a secret, an address of e-mail, or a path."""
    only: TargetOnly | None = None
    """News the receiver is notified of, by kind, or `unusual` changes; None: every run with news."""
    digest: str = ""
    """`08:00` or `mon 08:00`: when it gets a digest of everything new since the last one; empty: at once."""

    @property
    def rule(self) -> str:
        """Text of its rule as `with_rule` reads it; empty when it has none."""
        only = f"only {self.only}" if self.only else ""
        return " ".join(filter(None, (only, self.digest and f"digest {self.digest}")))

    @property
    def described(self) -> str:
        """The receiver without secrets, with its rule."""
        return f"{self.shown} {self.rule}".strip()

    @property
    def shown(self) -> str:
        """Kind and server on one line, without secret parts; for mail and files the whole address."""
        whole = self.kind in {"mail", "file"}
        public = self.address if whole else urlsplit(self.address).hostname
        return f"{self.kind}:{one_line(clean(public))}"


def digest_schedule(words: str) -> Schedule:
    """The times of `08:00`, on each day, or of `mon 08:00`; raises `UsageError`."""
    return schedule_of(words if " " in words else f"daily {words}")


def with_rule(target: Target, words: str) -> Target:
    """The receiver with the rule of these words: `only complaints`, `only unusual`, `digest 08:00`, or none.

    Raises:
        UsageError: they are no rule.
    """
    match = _RULE.fullmatch(" ".join(words.lower().split()))
    if match is None:
        raise UsageError(f"“{one_line(clean(words))[:40]}” is no rule of a receiver; write {_RULES}", field="notify")
    if match["digest"]:
        try:
            digest_schedule(match["digest"])
        except UsageError:
            raise UsageError(
                f"“{match['digest'][:40]}” is no time of a digest; write {_RULES}", field="notify"
            ) from None
    only = next((each for each in get_args(TargetOnly) if each == match["only"]), None)
    return replace(target, only=only, digest=match["digest"] or "")


def target_of(text: str, *, files: bool) -> Target:
    """The receiver of an address, which a rule may follow: `mailto:ann@example.org only complaints digest 08:00`.

    Raises:
        UsageError: it is no address, or what follows is no rule.
    """
    address, _, rule = text.strip().partition(" ")
    if address.startswith("file:"):
        match = _RULED_PATH.fullmatch(text.strip())
        address, rule = (match["path"], match["rule"]) if match else (text.strip(), "")
    return with_rule(_address_of(address, files=files), rule)


def _address_of(text: str, *, files: bool) -> Target:
    """`https://...`, `slack:https://...` or another of `CHATS`, `mailto:ADDRESS`, or, where allowed, `file:PATH`.

    An address of a chat's own server needs no prefix; `webhook:https://...` is none of a chat, whatever its server.

    Raises:
        UsageError: it is none of these.
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "file" and files and rest:
        return Target("file", rest)
    if kind.lower() == "mailto" and is_mail_address(rest):
        return Target("mail", rest)
    named = next((name for name in CHATS if name == kind.lower()), None)
    signed = kind.lower() == "webhook"
    address = web_url(rest if named or signed else text.strip())
    if not address or urlsplit(address).username is not None:
        forms = f"`https://...`, {', '.join(f'`{name}:https://...`' for name in CHATS)}, `mailto:ann@example.org`"
        forms += " or `file:PATH`" if files else ""
        wrong = f"a notification goes to {forms}, and no URL holds a user"
        raise UsageError(wrong, field="notify")
    url = urlsplit(address)
    host = f".{url.hostname}"
    known = (name for name, hosts in CHATS.items() if any(host.endswith(f".{own}") for own in hosts))
    chat: Kind = "webhook" if signed else named or next(known, None) or "webhook"
    if chat == "telegram" and not parse_qs(url.query).get("chat_id"):
        wrong = "an address of Telegram is `telegram:https://api.telegram.org/botTOKEN/sendMessage?chat_id=CHAT`"
        raise UsageError(wrong, field="notify")
    return Target(chat, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(QuestionOptions):
    """One tenant's question that is asked on a schedule."""

    id: str
    tenant: str
    name: str
    """Name given by the tenant, unique among its watches."""
    every: str
    zone: str = "UTC"
    only: Only | None = None
    """Kind of news that it notifies of; None: every new post."""
    notify: tuple[Target, ...] = ()
    secret: str = field(repr=False)
    """Secret that signs webhook messages and links to posts."""
    tell_first: bool = False
    """Whether it also notifies of its first run."""
    as_it_happens: bool = False
    """Whether it also notifies of posts of streams when they appear, in addition to its schedule."""
    notes: tuple[str, ...] = ()
    """What happened on a day: `2026-11-20 Version 2.1`; a mark in its picture over time."""
    paused: bool = False
    created_at: datetime
    due_at: datetime
    began_at: datetime | None = None
    """When its first run asked; posts written before that are not new."""
    feed: str | None = field(default=None, repr=False)
    """Digest of the token that reads its feed; None when it has no feed."""

    @property
    def follows_streams(self) -> bool:
        """Whether posts of streams are judged: it notifies as it happens and is not paused."""
        return self.as_it_happens and not self.paused

    @property
    def rule(self) -> str:
        """A digest of what decides whether a post is one of its: verdicts and counts by another are void."""
        deciding: list[object] = [asdict(self.question), sorted(self.sources), self.sandbox]
        left_out = [sorted(self.exclude), sorted(self.exclude_authors), sorted(self.exclude_sites)]
        if any(left_out):  # without them the digest stays that of runs stored by older programs
            deciding += left_out
        return hashlib.sha256(json.dumps(deciding).encode()).hexdigest()[:16]

    @property
    def is_signed(self) -> bool:
        """Whether it has a webhook, whose receiver needs the secret to check signatures."""
        return any(target.kind == "webhook" for target in self.notify)

    @property
    def schedule(self) -> Schedule:
        """Weekdays and times parsed from `every`."""
        return schedule_of(self.every)


def check_watch(watch: Watch) -> None:
    """Refuse one that could never run.

    Raises:
        UsageError: its name, question, schedule or zone makes no sense, or it has too many receivers.
    """
    if not 0 < len(watch.name) <= _LONGEST_NAME or watch.name != one_line(clean(watch.name)):
        wrong = f"the name of a watch is one line of 1 to {_LONGEST_NAME} characters"
        raise UsageError(wrong, field="name")
    question_of(watch)
    watch.blocklist  # noqa: B018 - what it raises
    schedule_of(watch.every)
    zone_of(watch.zone)
    dated_notes(watch.notes)
    if len(watch.notify) > MAX_RECEIVERS:
        wrong = f"a watch has {MAX_RECEIVERS} receivers at most, not {len(watch.notify)}"
        raise UsageError(wrong, field="notify")


def dated_notes(notes: Sequence[str]) -> list[tuple[date, str]]:
    """Day and words of notes, oldest first; `UsageError` where one is not a day and words on one line."""
    dated = []
    for note in notes:
        day, _, text = note.strip().partition(" ")
        try:
            dated.append((date.fromisoformat(day), one_line(clean(text))))
        except ValueError:
            dated.append((date.min, ""))
        if not dated[-1][1]:
            wrong = f"“{one_line(clean(note))[:40]}” is no note of a day; write one such as `2026-11-20 Version 2.1`"
            raise UsageError(wrong, field="notes")
    return sorted(dated)


def check_one_product(watch: Watch) -> None:
    """Refuse a question that compares products; raises `UsageError`."""
    if products := compared_products(watch):
        raise UsageError(f"a watch is of one product, not of {' and '.join(products)}: add one for each", field="query")


def new_watch(tenant: str, query: str, every: str, now: datetime) -> Watch:
    """A new watch, named after its query and due at once; the caller sets other fields by `replace`."""
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
    """Default name of a watch, made from its query."""
    return cut(one_line(clean(query)), _LONGEST_NAME)
