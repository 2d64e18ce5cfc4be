"""The message of a run: text for people and Slack, JSON for programs; of a post only a quote."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.text import clean, cut, one_line, quantity, utc_minute, web_url
from api.features.watches.watch import Target, Watch
from api.features.watches.watch_run import NewPost, WatchRun

SHOWN = 10  # new posts in a text; the JSON has them all
# Characters of a title in a text.
_TITLE = 120
LINK_LIFETIME = timedelta(days=14)
"""How long after its run a link corrects a post."""
# signs by which Markdown makes a link or a picture, and the one that takes their meaning away
_LINK = re.compile(r"[\\\[\]]")
# the name of a setting: `REDDIT_CLIENT_ID`
_SETTING = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


def _unlinked(text: str) -> str:
    """The text in which Markdown finds no link but plain addresses."""
    return _LINK.sub(r"\\\g<0>", text)


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent about one run."""

    run_id: str  # the same whenever the same run is sent again
    text: str  # its first line is the result
    body: bytes  # the JSON document, in UTF-8
    linked: Callable[[str], str] | None = field(default=None, compare=False)
    """The text with a link below each post that corrects it, by the address of a server."""

    def text_for(self, server: str) -> str:
        """What a person gets; with links where the server's address is known."""
        return self.linked(server) if server and self.linked is not None else self.text

    def for_chat(self, target: Target, server: str = "") -> bytes:
        """The body that a chat takes, within its limit; nothing that a stranger wrote calls anybody or hides a link."""
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
    """The message of a run, for people outside, who are not told what this server's settings lack."""
    run = without_settings(run)
    text = run_text(watch, run, places)
    about = {"id": watch.id, "name": watch.name, "query": watch.query, "about": watch.about}
    document = {
        "type": "watch.run",
        "id": run.id,
        "watch": about,
        "text": text,
        "run": run.model_dump(mode="json", exclude={"deliveries", "news"}),
    }
    return Message(run.id, text, json.dumps(document).encode(), partial(run_text, watch, run, places))


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
    """Below a server's address, the link that marks one post of a report as not about the product."""
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
    noun = "new complaint" if watch.only else "new post"
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
                return f"{words}; from now on {noun}s are told as they come"
            words = f"the first run found {quantity(run.kept, 'post')}{written} or without a date"
            return f"{words}; later runs report {noun}s"
        case "nothing":
            usual = " and nothing unusual" if run.looked_at else ""
            return f"no {noun}s{usual}{since}"
        case _:
            parts = [quantity(len(run.new) + run.more, noun)] if run.new else []
            parts += [quantity(len(run.unusual), "unusual change")] if run.unusual else []
            return " and ".join(parts) + since


def run_text(watch: Watch, run: WatchRun, places: SourceLabels, server: str = "") -> str:
    """A run for a person; one line when nothing is new.

    With the address of a `server` each post has a link by which whoever reads the text corrects it.
    """
    until = int((run.created_at + LINK_LIFETIME).timestamp())

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
    for post in sorted(run.new, key=lambda post: post.key not in cited)[:SHOWN]:
        title, passage = cut(one_line(clean(post.title)), _TITLE), one_line(clean(post.passage))
        quoted = f"“{passage}”" if passage else ""
        lines.append(f"- {title or quoted or post.key} ({origin(post)})")
        if title and quoted:
            lines.append(f"  {quoted}")
        lines += address(post)
        if server and run.report_id:
            lines.append(f"  Not about it? {server}{correction_path(watch, run.report_id, post.key, until)}")
    if (more := len(run.new) + run.more - SHOWN) > 0:
        lines.append(f"- and {more} more" + (", all in the archive" if run.as_it_happens else ""))
    if run.unjudged:
        words = "with the name: too many came, or the model refused them"
        lines.append(f"Not judged: {quantity(run.unjudged, 'further post')} {words}")
    if gaps:
        lines.append(f"No answer, so nothing is known of: {gaps}.")
    if run.report_id:
        lines.append(f"Report: {run.report_id}")
    return "\n".join(lines)
