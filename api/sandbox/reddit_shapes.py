"""Submissions, comments and listings in the fields Reddit sends."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from api.sandbox.corpus import Post, Remark, spelled
from api.sandbox.names import handle
from api.sandbox.world import World

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_GONE = {"[deleted]", "[removed]"}

_SUBMISSION: Mapping[str, Any] = {
    "all_awardings": [], "allow_live_comments": False, "approved_at_utc": None, "approved_by": None,
    "archived": False, "author_flair_background_color": None, "author_flair_css_class": None,
    "author_flair_richtext": [], "author_flair_template_id": None, "author_flair_text": None,
    "author_flair_text_color": None, "author_flair_type": "text", "author_is_blocked": False,
    "author_patreon_flair": False, "author_premium": False, "awarders": [], "banned_at_utc": None,
    "banned_by": None, "can_gild": False, "can_mod_post": False, "category": None, "clicked": False,
    "content_categories": None, "contest_mode": False, "discussion_type": None,
    "distinguished": None,
    "downs": 0, "edited": False, "gilded": 0, "gildings": {}, "hidden": False, "hide_score": False,
    "is_created_from_ads_ui": False, "is_crosspostable": True, "is_meta": False,
    "is_original_content": False, "is_reddit_media_domain": False, "is_robot_indexable": True,
    "is_video": False, "likes": None, "link_flair_background_color": "",
    "link_flair_css_class": None,
    "link_flair_richtext": [], "link_flair_text": None, "link_flair_text_color": "dark",
    "link_flair_type": "text", "locked": False, "media": None, "media_embed": {},
    "media_only": False,
    "mod_note": None, "mod_reason_by": None, "mod_reason_title": None, "mod_reports": [],
    "no_follow": False, "num_crossposts": 0, "num_reports": None, "over_18": False, "pinned": False,
    "pwls": 6, "quarantine": False, "removal_reason": None, "removed_by": None,
    "removed_by_category": None, "report_reasons": None, "saved": False, "secure_media": None,
    "secure_media_embed": {}, "send_replies": True, "spoiler": False, "stickied": False,
    "subreddit_type": "public", "suggested_sort": None, "thumbnail_height": None,
    "thumbnail_width": None, "top_awarded_type": None, "total_awards_received": 0,
    "treatment_tags": [], "user_reports": [], "view_count": None, "visited": False, "wls": 6,
}  # fmt: skip
_COMMENT: Mapping[str, Any] = {
    "all_awardings": [], "approved_at_utc": None, "approved_by": None, "archived": False,
    "associated_award": None, "author_flair_background_color": None, "author_flair_css_class": None,
    "author_flair_richtext": [], "author_flair_template_id": None, "author_flair_text": None,
    "author_flair_text_color": None, "author_flair_type": "text", "author_is_blocked": False,
    "author_patreon_flair": False, "author_premium": False, "awarders": [], "banned_at_utc": None,
    "banned_by": None, "can_gild": False, "can_mod_post": False, "collapsed": False,
    "collapsed_because_crowd_control": None, "collapsed_reason": None,
    "collapsed_reason_code": None,
    "comment_type": None, "controversiality": 0, "distinguished": None, "downs": 0, "edited": False,
    "gilded": 0, "gildings": {}, "likes": None, "locked": False, "mod_note": None,
    "mod_reason_by": None, "mod_reason_title": None, "mod_reports": [], "no_follow": True,
    "num_reports": None, "removal_reason": None, "report_reasons": None, "saved": False,
    "score_hidden": False, "send_replies": True, "stickied": False, "subreddit_type": "public",
    "top_awarded_type": None, "total_awards_received": 0, "treatment_tags": [],
    "unrepliable_reason": None, "user_reports": [],
}  # fmt: skip


def listing(children: Sequence[Mapping[str, Any]], after: str | None = None) -> dict[str, Any]:
    """A page of things."""
    data = {
        "after": after,
        "dist": len(children),
        "modhash": None,
        "geo_filter": "",
        "before": None,
    }
    return {"kind": "Listing", "data": {**data, "children": list(children)}}


def permalink(post: Post) -> str:
    """Its path on the site."""
    slug = re.sub(r"\W+", "_", post.title.casefold()).strip("_")[:50].rstrip("_") or "_"
    return f"/r/{post.place}/comments/{post.id}/{slug}/"


def _html(text: str) -> str | None:
    if not text:
        return None
    lines = "".join(
        f"<p>{html.escape(line, False)}</p>\n" for line in text.split("\n") if line.strip()
    )
    return f'<!-- SC_OFF --><div class="md">{lines}</div><!-- SC_ON -->'


def _user(deleted: bool, *parts: object) -> dict[str, Any]:
    if deleted:
        return {"author": "[deleted]"}
    name = handle("reddit", *parts)
    return {"author": name, "author_fullname": f"t2_{spelled(_BASE36, 8, name)}"}


def _subreddit(place: str) -> dict[str, Any]:
    return {
        "subreddit": place,
        "subreddit_id": f"t5_{spelled(_BASE36, 5, place)}",
        "subreddit_name_prefixed": f"r/{place}",
    }


def submission(world: World, post: Post) -> dict[str, Any]:
    """One t3, its crosspost parent inside when it has one."""
    parent = world.post("reddit", post.crosspost_parent)
    data = {
        **_SUBMISSION,
        **_subreddit(post.place),
        **_user(post.deleted, post.id),
        **_target(post, parent),
        "id": post.id,
        "name": f"t3_{post.id}",
        "title": post.title,
        "selftext": post.body,
        "selftext_html": _html(post.body),
        "permalink": permalink(post),
        "created": world.created(post.age_days),
        "created_utc": world.created(post.age_days),
        "score": post.votes,
        "ups": max(post.votes, 0),
        "upvote_ratio": round(0.5 + min(max(post.votes, 0), 1000) / 2100, 2)
        if post.votes > 0
        else 0.4,
        "num_comments": len(post.comments),
        "subreddit_subscribers": 900 + int(spelled("0123456789", 6, post.place)),
    }
    if post.body == "[removed]":
        data |= {"removed_by_category": "moderator", "is_robot_indexable": False}
    elif post.deleted and post.body == "[deleted]":
        data |= {"removed_by_category": "deleted", "is_robot_indexable": False}
    if parent is not None:
        data |= {
            "crosspost_parent": f"t3_{parent.id}",
            "crosspost_parent_list": [submission(world, parent)["data"]],
        }
    return {"kind": "t3", "data": data}


def _target(post: Post, parent: Post | None) -> dict[str, Any]:
    """What kind of post it is and where it points."""
    if parent is not None:
        url, domain = permalink(parent), f"self.{parent.place}"
        return {
            "is_self": False,
            "url": url,
            "url_overridden_by_dest": url,
            "domain": domain,
            "thumbnail": "default",
        }
    if post.link:
        domain = urlsplit(post.link).netloc
        return {
            "is_self": False, "url": post.link, "url_overridden_by_dest": post.link,
            "domain": domain,
            "post_hint": "link", "thumbnail": "default",
        }  # fmt: skip
    url = f"https://www.reddit.com{permalink(post)}"
    return {"is_self": True, "url": url, "domain": f"self.{post.place}", "thumbnail": "self"}


def comment(world: World, post: Post, remark: Remark, parent: str, depth: int) -> dict[str, Any]:
    """One t1 without replies."""
    gone = remark.deleted or remark.body in _GONE
    return {
        "kind": "t1",
        "data": {
            **_COMMENT,
            **_subreddit(post.place),
            **_user(gone, post.id, remark.id),
            "id": remark.id,
            "name": f"t1_{remark.id}",
            "link_id": f"t3_{post.id}",
            "parent_id": parent,
            "body": remark.body if remark.body in _GONE or not gone else "[deleted]",
            "body_html": _html(remark.body),
            "created": world.created(remark.age_days),
            "created_utc": world.created(remark.age_days),
            "score": remark.votes,
            "ups": remark.votes,
            "depth": depth,
            "is_submitter": False,
            "permalink": f"{permalink(post)}{remark.id}/",
            "replies": "",
        },
    }


def more(post: Post, remarks: Sequence[Remark], parent: str, depth: int) -> dict[str, Any]:
    """The node that stands for comments left out."""
    ids = [remark.id for remark in remarks]
    return {
        "kind": "more",
        "data": {
            "count": len(ids), "name": f"t1_{ids[0]}", "id": ids[0], "parent_id": parent,
            "depth": depth,
            "children": ids,
        },
    }  # fmt: skip


def escaped(value: Any) -> Any:
    """Every text as Reddit sends it without `raw_json=1`: `<`, `>` and `&` as entities."""
    if isinstance(value, str):
        return html.escape(value, quote=False)
    if isinstance(value, dict):
        return {key: escaped(inner) for key, inner in value.items()}
    return [escaped(inner) for inner in value] if isinstance(value, list) else value
