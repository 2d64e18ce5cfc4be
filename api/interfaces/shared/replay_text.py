"""A stored report and its items judged again as rows and sentences, for a terminal and a page."""

from __future__ import annotations

from collections.abc import Mapping

from api.core.text import display_title, quantity
from api.interfaces.shared import presentation
from api.interfaces.shared.presentation import source_title
from api.reports.replay import Change, NotJudged, Replay, ReplayedClaim, ReplayedItem, ReplaySide

CLAIMS: Mapping[Change, str] = {
    "appears": "Claims that appear", "disappears": "Claims that disappear", "stays": "Claims that stay",
}  # fmt: skip
"""Heading of each kind of claim, in the order in which they are shown."""
_AIMS = {"about": "posts about it", "mention": "posts that only mention it, too"}
_NOT_JUDGED: Mapping[NotJudged, tuple[str, str]] = {
    "deleted": ("was deleted by its place", "were deleted by their places"),
    "copy": ("is a copy of another", "are copies of others"),
    "unfit": ("was removed, has no text or is by no person", "were removed, have no text or are by no person"),
    "excluded": ("was left out as asked", "were left out as asked"),
}


def table(replay: Replay) -> list[tuple[str, str, str]]:
    """What, before and now, a row each: how was judged, then what came of it."""
    return [(name, _cell(name, replay.before), _cell(name, replay.after)) for name in _CELLS]


_CELLS = ("what it is", "what it is not", "what counts", "judged by", "posts kept", "claims")


def _cell(name: str, side: ReplaySide) -> str:
    cells = (
        side.about or "not said", ", ".join(side.not_about) or "not said", _AIMS[side.aim],
        ", ".join(side.judges) or "nobody", str(side.kept), str(side.claims),
    )  # fmt: skip
    return dict(zip(_CELLS, cells, strict=True))[name]


def summary(replay: Replay) -> str:
    """The differences in a sentence."""
    if not (replay.newly_kept or replay.newly_dropped):
        return "Both keep the same posts."
    kept, dropped = quantity(len(replay.newly_kept), "post"), quantity(len(replay.newly_dropped), "post")
    return f"{kept} newly kept, {dropped} newly dropped."


def notes(replay: Replay) -> list[str]:
    """Agreement of both sides and what could not be judged again, one sentence each."""
    share, sentences = replay.agreement, []
    if share is not None:
        sentences.append(
            f"The gate's verdicts agree on {replay.same_verdicts} of {quantity(replay.judged_twice, 'post')} "
            f"({round(share * 100)} %)."
        )
    if replay.unjudged:
        titles = ", ".join(map(source_title, replay.unjudged))
        sentences.append(f"The judge failed, so that posts of {titles} passed unjudged: repeat it.")
    if replay.beginnings:
        sentences.append(
            f"{quantity(replay.beginnings, 'post')} that the report had dropped "
            f"{'was' if replay.beginnings == 1 else 'were'} judged by title and beginning: no more is stored."
        )
    missing = [f"{count} {_NOT_JUDGED[why][count != 1]}" for why, count in replay.not_judged.items()]
    if missing:
        sentences.append(f"Not judged again: {'; '.join(missing)}.")
    return sentences


def claims(replay: Replay) -> list[tuple[str, list[ReplayedClaim]]]:
    """The claims below their headings; a heading without any is left out."""
    parts = [(words, [claim for claim in replay.claims if claim.change == change]) for change, words in CLAIMS.items()]
    return [(words, listed) for words, listed in parts if listed]


def counts(claim: ReplayedClaim) -> str:
    """Number of posts and comments behind a claim, now and before: `4 posts and comments; before 6, by 5 people`."""
    people = f", by {quantity(claim.people_before, 'person', 'people')}" if claim.people_before else ""
    if claim.change == "disappears":
        return f"before {_texts(claim.posts_before)}{people}"
    return _texts(claim.posts) + (f"; before {claim.posts_before}{people}" if claim.change == "stays" else "")


def _texts(count: int) -> str:
    return quantity(count, "post or comment", "posts and comments")


def title(item: ReplayedItem) -> str:
    """What an item is called in a list, on one line."""
    shown = presentation.shortened(item.title, presentation.LONGEST_TITLE)
    return display_title(shown, item.thread) if shown else "untitled"


def facts(item: ReplayedItem) -> str:
    """Place, date and probability of an item, and why one side dropped it."""
    why = f"{presentation.DROPPED.get(item.dropped_by or '', 'dropped')}: {item.reason}" if item.reason else ""
    likely = "" if item.probability is None else f"{round(item.probability * 100)} % likely to be about it"
    likely = "" if "% likely" in why else likely  # the reason says so
    day = f"{item.created_at:%Y-%m-%d}" if item.created_at else ""
    return " · ".join(filter(None, (source_title(item.source), day, likely, why)))
