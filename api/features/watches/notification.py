"""Message of a run: text for people and chats, JSON for programs; posts are only quoted."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.text import clean, cut, one_line, quantity, utc_minute, web_url
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import NEWS, NewPost, RunCounts, WatchRun

SHOWN, DIGEST_SHOWN = 10, 30  # new posts in a text, and in one of a digest; the JSON has them all
DIGEST_POSTS = 1_000
"""Most new posts in the JSON of a digest, those of the oldest runs first; `more` counts the others."""
# Characters of a title in a text.
_TITLE = 120
LINK_LIFETIME = timedelta(days=14)
"""Lifetime of a post's link after its run."""
# signs by which Markdown makes a link or a picture, and the one that takes their meaning away
_LINK = re.compile(r"[\\\[\]]")
# the name of a setting: `REDDIT_CLIENT_ID`
_SETTING = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


def _unlinked(text: str) -> str:
    """The text in which Markdown finds no link but plain addresses."""
    return _LINK.sub(r"\\\g<0>", text)


@dataclass(frozen=True, slots=True)
class Message:
    """One message about a run, about the runs of a digest, or as a trial."""

    run_id: str  # the same whenever the same run is sent again
    text: str  # its first line is the result
    body: bytes  # the JSON document, in UTF-8
    linked: Callable[[str], str] | None = field(default=None, compare=False)
    """Returns the text with links below each post, for the address of a server."""

    def text_for(self, server: str) -> str:
        """Text for a person, with links when the server's address is known."""
        return self.linked(server) if server and self.linked is not None else self.text

    def for_chat(self, target: Target, server: str = "") -> bytes:
        """The body for a chat, within its limit; quoted text can neither mention anybody nor hide a link."""
        text = self.text_for(server)
        match target.kind:
            case "discord":
                document: Any = {"content": cut(_unlinked(text), 2_000), "allowed_mentions": {"parse": []}}
            case "teams":
                plain = {"type": "TextBlock", "wrap": True, "text": _unlinked(text).replace("\n", "\n\n")}
                card = {"type": "AdaptiveCard", "version": "1.4", "body": [plain]}
                kind = "application/vnd.microsoft.card.adaptive"
                document = {"type": "message", "attachments": [{"contentType": kind, "content": card}]}
            case "telegram":
                chat = parse_qs(urlsplit(target.address).query)["chat_id"][0]
                document = {"chat_id": chat, "text": cut(text, 4_096), "link_preview_options": {"is_disabled": True}}
            case "ntfy":  # a longer text would become an attachment
                return text.encode()[:4_000].decode(errors="ignore").encode()
            case _:
                document = {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
        return json.dumps(document).encode()


def run_message(watch: Watch, run: WatchRun, places: SourceLabels) -> Message:
    """The message of a run. It goes to people outside, so it names no setting that this server lacks."""
    run = without_settings(run)
    return _message(watch, "watch.run", run, places, {"run": _published(run)})


def digest_message(watch: Watch, runs: Sequence[WatchRun], receiver: str, places: SourceLabels) -> Message:
    """One message about `runs`, which are given oldest first.

    Its id is computed from watch, `receiver` and runs, so that a second try has the same.
    """
    runs = list(_with_fewer_posts([without_settings(run) for run in runs]))
    digest = hashlib.sha256(" ".join((watch.id, receiver, *(run.id for run in runs))).encode()).hexdigest()[:32]
    first, last = runs[0], runs[-1]
    posts = {post.key: post for run in runs for post in run.new}
    gathered = first.model_copy(update={
        "id": digest, "state": "changed", "report_id": None, "new": tuple(posts.values()),
        "counts": RunCounts(since=first.counts.since if first.counts else first.created_at, until=last.created_at,
                            sources={}),
        "unusual": tuple(change for run in runs for change in run.unusual),
        "questions": tuple(question for run in runs for question in run.questions),
        "new_aspects": tuple(dict.fromkeys(aspect for run in runs for aspect in run.new_aspects)),
        "gaps": tuple({gap.source: gap for run in runs for gap in run.gaps}.values()),
        "more": sum(run.more for run in runs), "unjudged": sum(run.unjudged for run in runs),
    })  # fmt: skip
    return _message(watch, "watch.digest", gathered, places, {"runs": [_published(run) for run in runs]}, runs)


def _message(
    watch: Watch,
    kind: str,
    run: WatchRun,
    places: SourceLabels,
    content: Mapping[str, Any],
    parts: Sequence[WatchRun] = (),
) -> Message:
    text = run_text(watch, run, places, parts=parts)
    about = {"id": watch.id, "name": watch.name, "query": watch.query, "about": watch.about}
    document = {"type": kind, "id": run.id, "watch": about, "text": text, **content}
    return Message(run.id, text, json.dumps(document).encode(), partial(run_text, watch, run, places, parts=parts))


def _with_fewer_posts(runs: Sequence[WatchRun]) -> Iterator[WatchRun]:
    left = DIGEST_POSTS
    for run in runs:
        yield run.model_copy(update={"new": run.new[:left], "more": run.more + len(run.new[left:])})
        left = max(0, left - len(run.new))


def _published(run: WatchRun) -> dict[str, Any]:
    return run.model_dump(mode="json", exclude={"deliveries", "news"})


def without_settings(run: WatchRun) -> WatchRun:
    """The run with reasons that name no setting of this server."""
    gaps = tuple(
        gap.model_copy(update={"reason": OUTCOME_REASONS[gap.outcome]}) if _SETTING.search(gap.reason or "") else gap
        for gap in run.gaps
    )
    reason = "a setting is missing or wrong" if _SETTING.search(run.reason or "") else run.reason
    return run.model_copy(update={"gaps": gaps, "reason": reason})


def trial_message(watch: Watch, run_id: str) -> Message:
    """A message that tests the delivery."""
    text = f"{watch.name}: a trial of `listenpost watch notify-test`; nothing has changed."
    document = {"type": "watch.test", "id": run_id, "watch": {"id": watch.id}, "text": text}
    return Message(run_id, text, json.dumps(document).encode())


def signature(secret: str, moment: int, body: bytes) -> str:
    """The header that receivers verify: `t=SECONDS,v1=HEX`, the HMAC-SHA256 of `SECONDS.BODY`."""
    digest = hmac.new(secret.encode(), b"%d." % moment + body, hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def correction_path(watch: Watch, report_id: str, key: str, until: int) -> str:
    """Below a server's address, the link that stars a post, marks it as read or as not about the product."""
    sign = correction_signature(watch, report_id, key, until)
    return f"/corrections/{watch.id}/{report_id}?{urlencode({'item': key, 'until': until, 'sign': sign})}"


def correction_signature(watch: Watch, report_id: str, key: str, until: int) -> str:
    """HMAC-SHA256 by the watch's secret; `until` is in Unix seconds.

    It begins with a word, so that it is never one of `signature`, whose text begins with a number.
    """
    signed = json.dumps(["correction", watch.id, report_id, key, until])
    return hmac.new(watch.secret.encode(), signed.encode(), hashlib.sha256).hexdigest()


def headline(watch: Watch, run: WatchRun) -> str:
    """The name of the watch and the result of the run."""
    sample = " (made-up sample data)" if run.sample else ""
    return f"{watch.name}{sample}: {result_of(watch, run)}"


def result_of(watch: Watch, run: WatchRun, dated: Callable[[datetime], str] = utc_minute) -> str:
    """The result of the run in a phrase; `dated` formats the times in it."""
    noun = f"new {NEWS[watch.only].noun}"
    since = "" if run.counts is None else f" since {dated(run.counts.since)}"
    match run.state:
        case "failed":
            return f"the run failed: {one_line(run.reason or 'unknown reason')}"
        case "not_asked":
            return f"no source answered: {one_line(run.reason or 'unknown reason')}"
        case "baseline":
            written = since.replace("since", "written since")
            if run.as_it_happens:
                words = f"{quantity(run.kept, 'post')} in the archive, the feeds and the last hours of the streams"
                return f"{words}; from now on there is a message for {noun}s as they come"
            words = f"the first run found {quantity(run.kept, 'post')}{written} or without a date"
            return f"{words}; later runs report {noun}s"
        case "nothing":
            usual = " and nothing unusual" if run.looked_at else ""
            return f"no {noun}s{usual}{since}"
        case _:
            parts = [quantity(len(run.new) + run.more, noun)] if run.new else []
            parts += [quantity(len(run.unusual), "unusual change")] if run.unusual else []
            return " and ".join(parts) + since


def run_text(
    watch: Watch, run: WatchRun, places: SourceLabels, server: str = "", parts: Sequence[WatchRun] = ()
) -> str:
    """A run as text for a person; one line when nothing is new.

    With the address of a `server` each post has a link by which whoever reads the text stars it, marks it as read or
    corrects it.
    """
    most = DIGEST_SHOWN if parts else SHOWN
    origins = {post.key: part for part in parts or (run,) for post in part.new}

    def origin(post: NewPost) -> str:
        day = f", {post.created_at:%Y-%m-%d}" if post.created_at else ""
        return f"{title_in(places, post.source)}{day}"

    def address(post: NewPost) -> list[str]:
        url = "" if run.sample else web_url(post.url)  # sample posts cannot be opened
        return [f"  {url}"] if url else []

    gaps = one_line(
        ", ".join(f"{title_in(places, gap.source)} ({gap.reason or OUTCOME_REASONS[gap.outcome]})" for gap in run.gaps)
    )
    lines = [headline(watch, run)]
    if run.state in {"failed", "not_asked", "nothing"}:
        return lines[0] + (f"; no answer: {gaps}" if gaps and run.state == "nothing" else "")
    lines += [f"Unusual: {change.text}" for change in run.unusual]
    if run.new_aspects:
        lines.append(f"Mentioned for the first time: {', '.join(run.new_aspects)}.")
    posts = {post.key: post for post in run.new}
    for question in run.questions:
        first = posts[question.cites[0]]
        also = f", and {quantity(len(question.cites) - 1, 'other')}" if question.cites[1:] else ""
        words = one_line(clean(question.text))
        lines.append(f"Asked for the first time: “{words}” ({origin(first)}{also})")
        lines += address(first)
    cited = {key for change in run.unusual for key in change.cites}
    for post in sorted(run.new, key=lambda post: post.key not in cited)[:most]:
        title, passage = cut(one_line(clean(post.title)), _TITLE), one_line(clean(post.passage))
        quoted = f"“{passage}”" if passage else ""
        lines.append(f"- {title or quoted or post.key} ({origin(post)})")
        if title and quoted:
            lines.append(f"  {quoted}")
        lines += address(post)
        origin_run = origins[post.key]
        if server and origin_run.report_id:
            until = int((origin_run.created_at + LINK_LIFETIME).timestamp())
            link = f"{server}{correction_path(watch, origin_run.report_id, post.key, until)}"
            lines.append(f"  Star, mark as read, not about it: {link}")
    if (more := len(run.new) + run.more - most) > 0:
        place = ", all in the inbox" if parts else ", all in the archive" if run.as_it_happens else ""
        lines.append(f"- and {more} more{place}")
    if run.unjudged:
        words = "with the name: too many came, or the model refused them"
        lines.append(f"Not judged: {quantity(run.unjudged, 'further post')} {words}")
    if gaps:
        lines.append(f"No answer, so nothing is known of: {gaps}.")
    if run.report_id:
        lines.append(f"Report: {run.report_id}")
    return "\n".join(lines)
