"""A run in words: for a person, for a program, for Slack; never more of a post than is quoted."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.text import clean, cut, one_line, quantity, utc_minute, web_url
from api.features.watches.watch import Watch
from api.features.watches.watch_run import NewPost, WatchRun

SHOWN = 10
"""New posts in a text; a program gets them all."""
_TITLE = 120


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent of one run."""

    run_id: str
    """The same whenever the same run is sent again."""
    text: str
    """Its first line says what became of the run."""
    body: bytes
    """JSON, UTF-8."""

    @property
    def slack(self) -> bytes:
        """What Slack's incoming webhooks take: no word of a stranger is a command there."""
        escaped = self.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return json.dumps({"text": escaped}).encode()


def message_of(watch: Watch, run: WatchRun, places: SourceLabels) -> Message:
    """A run for all who are to be told."""
    text = text_of(watch, run, places)
    about = {"id": watch.id, "name": watch.name, "query": watch.query, "about": watch.about}
    document = {
        "type": "watch.run",
        "id": run.id,
        "watch": about,
        "text": text,
        "run": run.model_dump(mode="json", exclude={"deliveries", "news"}),
    }
    return Message(run.id, text, json.dumps(document).encode())


def trial_of(watch: Watch, run_id: str) -> Message:
    """What tries whether a message arrives."""
    text = f"{watch.name}: a trial of `listenpost watch notify-test`; nothing has changed."
    document = {"type": "watch.test", "id": run_id, "watch": {"id": watch.id}, "text": text}
    return Message(run_id, text, json.dumps(document).encode())


def signature(secret: str, moment: int, body: bytes) -> str:
    """The header by which a receiver knows who sent it, and when: `t=SECONDS,v1=HEX`.

    HEX is the HMAC-SHA256 of `SECONDS.BODY` with the watch's secret.
    """
    digest = hmac.new(secret.encode(), b"%d." % moment + body, hashlib.sha256)
    return f"t={moment},v1={digest.hexdigest()}"


def text_of(watch: Watch, run: WatchRun, places: SourceLabels) -> str:
    """A run for a person; one line when nothing is new."""
    return "\n".join(_lines(watch, run, places))


def headline(watch: Watch, run: WatchRun) -> str:
    """Of which watch what became, on one line."""
    sample = " (made-up sample data)" if run.sample else ""
    return f"{watch.name}{sample}: {result_of(watch, run)}"


def result_of(watch: Watch, run: WatchRun, dated: Callable[[datetime], str] = utc_minute) -> str:
    """What became of it, in a phrase; a moment in it is written as `dated` does."""
    noun = "new complaint" if watch.only else "new post"
    since = "" if run.counts is None else f" since {dated(run.counts.since)}"
    match run.state:
        case "failed":
            return f"the run failed: {one_line(run.reason or 'nobody knows why')}"
        case "not_asked":
            return f"nothing was heard: {one_line(run.reason or 'no source answered')}"
        case "baseline":
            written = since.replace("since", "written since")
            words = f"the first run found {quantity(run.kept, 'post')}{written} or without a date"
            return f"{words}; later runs tell of {noun}s"
        case "nothing":
            usual = " and nothing unusual" if run.looked_at else ""
            return f"no {noun}s{usual}{since}"
        case _:
            parts = [quantity(len(run.new), noun)] if run.new else []
            parts += [quantity(len(run.unusual), "unusual change")] if run.unusual else []
            return " and ".join(parts) + since


def _lines(watch: Watch, run: WatchRun, places: SourceLabels) -> Iterator[str]:
    gaps = ", ".join(
        f"{title_in(places, gap.source)} ({gap.reason or OUTCOME_REASONS[gap.outcome]})"
        for gap in run.gaps
    )
    silent = f"Not heard, so nothing is known of: {one_line(gaps)}." if gaps else ""
    if run.state in {"failed", "not_asked", "nothing"}:
        unheard = f"; not heard: {one_line(gaps)}" if gaps and run.state == "nothing" else ""
        yield headline(watch, run) + unheard
        return
    yield headline(watch, run)
    for change in run.unusual:
        yield f"Unusual: {change.text}"
    if run.new_aspects:
        yield f"Spoken of for the first time: {', '.join(run.new_aspects)}."
    posts = {post.key: post for post in run.new}
    for question in run.questions:
        first = posts[question.cites[0]]
        also = f", and {quantity(len(question.cites) - 1, 'other')}" if question.cites[1:] else ""
        words = one_line(clean(question.text))
        yield f"Asked for the first time: “{words}” ({_whence(first, places)}{also})"
        yield from _address(first, opens=not run.sample)
    cited = {key for change in run.unusual for key in change.cites}
    for post in sorted(run.new, key=lambda post: post.key not in cited)[:SHOWN]:
        yield from _post(post, places, opens=not run.sample)
    if len(run.new) > SHOWN:
        yield f"- and {len(run.new) - SHOWN} more"
    if silent:
        yield silent
    if run.report_id:
        yield f"Report: {run.report_id}"


def _post(post: NewPost, places: SourceLabels, *, opens: bool) -> Iterator[str]:
    """A new post; what is made up cannot be opened."""
    title = cut(one_line(clean(post.title)), _TITLE) or post.key
    yield f"- {title} ({_whence(post, places)})"
    if post.passage:
        yield f"  “{one_line(clean(post.passage))}”"
    yield from _address(post, opens=opens)


def _whence(post: NewPost, places: SourceLabels) -> str:
    """Where and on which day it was written."""
    day = f", {post.created_at:%Y-%m-%d}" if post.created_at else ""
    return f"{title_in(places, post.source)}{day}"


def _address(post: NewPost, *, opens: bool) -> Iterator[str]:
    if opens and (url := web_url(post.url)):
        yield f"  {url}"
