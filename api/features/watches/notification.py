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
from urllib.parse import urlencode

from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.text import clean, cut, one_line, quantity, utc_minute, web_url
from api.features.watches.watch import Watch
from api.features.watches.watch_run import NewPost, WatchRun

SHOWN = 10  # new posts in a text; the JSON has them all
# Characters of a title in a text.
_TITLE = 120
LINK_LIFETIME = timedelta(days=14)
"""How long after its run a link corrects a post."""
# the name of a setting: `REDDIT_CLIENT_ID`
_SETTING = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


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

    def slack(self, server: str = "") -> bytes:
        """The body for Slack's incoming webhooks, with strangers' control sequences escaped."""
        escaped = self.text_for(server).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return json.dumps({"text": escaped}).encode()


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
            words = f"the first run found {quantity(run.kept, 'post')}{written} or without a date"
            return f"{words}; later runs report {noun}s"
        case "nothing":
            usual = " and nothing unusual" if run.looked_at else ""
            return f"no {noun}s{usual}{since}"
        case _:
            parts = [quantity(len(run.new), noun)] if run.new else []
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
        title = cut(one_line(clean(post.title)), _TITLE) or post.key
        lines.append(f"- {title} ({origin(post)})")
        if post.passage:
            lines.append(f"  “{one_line(clean(post.passage))}”")
        lines += address(post)
        if server and run.report_id:
            lines.append(f"  Not about it? {server}{correction_path(watch, run.report_id, post.key, until)}")
    if len(run.new) > SHOWN:
        lines.append(f"- and {len(run.new) - SHOWN} more")
    if gaps:
        lines.append(f"No answer, so nothing is known of: {gaps}.")
    if run.report_id:
        lines.append(f"Report: {run.report_id}")
    return "\n".join(lines)
