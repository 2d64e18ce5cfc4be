"""Copies of one post."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.domain import Grade, Verdict
from api.core.items import Assessed, Comment, Item
from api.pipeline.evidence.duplicates import canonical_url, copies_among, distinct

STORY = "The lid of my kettle cracked after three weeks and the shop sent a new one at once"
OTHER = "Why does the blue lamp flicker whenever the fridge next to it starts to hum at night"


def assessed(key: str, title: str = "", grade: Grade | None = None, **fields: Any) -> Assessed:
    """An item the gate kept."""
    source, _, name = key.partition(":")
    item = Item(key=key, id=name, source=source, title=title or f"{name} on its own", **fields)
    return Assessed(item, Verdict(True), grade)


def keys(found: tuple[Assessed, ...]) -> list[str]:
    """The keys in order."""
    return [one.item.key for one in found]


def test_crossposts_are_one_item_with_all_places() -> None:
    """
    Three posts of one link, one marked as a crosspost, count once and list three places.
    """
    link = "https://news.example/kettle?utm_source=x"
    first = assessed("reddit:a", "Kettle news", place="mugs", link=link)
    second = assessed("reddit:b", "Look at this", place="tea", crosspost_parent="reddit:a")
    third = assessed("reddit:c", "Boiling", place="home", link="http://www.news.example/kettle/")

    found = distinct([third, second, first], similarity=92)

    assert keys(found.kept) == ["reddit:a"]
    assert found.kept[0].item.places == ("mugs", "tea", "home")
    assert [(one.dropped_by, one.reason) for one in found.copies] == [
        ("duplicate", "copy of reddit:a"), ("duplicate", "copy of reddit:a"),
    ]  # fmt: skip


def test_crossposts_of_an_unseen_post_are_one() -> None:
    """
    Two crossposts of a post that was not found are copies of each other.
    """
    posts = [assessed(f"reddit:{name}", crosspost_parent="reddit:gone") for name in "ab"]

    assert keys(distinct(posts, similarity=92).kept) == ["reddit:a"]


def test_the_same_text_is_a_copy_until_switched_off() -> None:
    """
    A repost with other punctuation is a copy; at similarity 0 text is not compared.
    """
    posts = [
        assessed("reddit:a", "Cracked lid", body=STORY),
        assessed("reddit:b", "Cracked lid!", body=STORY + " …"),
        assessed("reddit:c", "Cracked lid", body=OTHER),
    ]

    assert keys(distinct(posts, similarity=92).kept) == ["reddit:b", "reddit:c"]
    assert len(distinct(posts, similarity=0).kept) == 3


LONG = f"{STORY}. {OTHER}. {STORY} as before"


@pytest.mark.parametrize(
    ("one", "other", "copies"),
    [
        ({"title": "Lamp 2 review"}, {"title": "Lamp 3 review"}, False),
        ({"title": "Lamp review", "url": "https://a.example/1"},
         {"title": "Lamp review", "url": "https://a.example/2"}, False),
        ({"title": "Lamp review", "url": "https://a.example/1"}, {"title": "Lamp review"}, False),
        ({"title": "Lamp review"}, {"title": "lamp  REVIEW!"}, True),
        ({"title": "Lamp review"}, {"title": "Lamp reviews"}, False),
        ({"title": "Lamp", "body": "It hums"}, {"title": "Lamp", "body": "It hums"}, True),
        ({"title": "Lamp", "body": "It hums"}, {"title": "Lamp", "body": "It buzzes"}, False),
        ({"title": "Lamp", "body": ""}, {"title": "", "body": ""}, False),
        ({"title": "Tea time", "body": STORY * 9}, {"title": "On lids", "body": STORY * 9}, False),
        ({"title": "Kettle 1", "body": STORY}, {"title": "Kettle 2", "body": STORY}, False),
        ({"title": "Why I DO like it", "body": LONG},
         {"title": "Why I DIDN'T like it", "body": LONG}, False),
        ({"title": "Like it", "body": LONG}, {"title": "Like it", "body": f"{LONG} not"}, False),
        ({"title": "Note Pro review", "body": LONG},
         {"title": "NotePin review", "body": LONG}, False),
        ({"title": "Lamp vs A", "body": LONG}, {"title": "Lamp vs B", "body": LONG}, False),
        ({"title": "Pixel 9a", "body": LONG}, {"title": "Pixel 8a", "body": LONG}, False),
        ({"title": "Lamp", "body": LONG}, {"title": "Lamp", "body": f"Edit: thanks! {LONG}"}, True),
        ({"title": "Kettle", "body": LONG.replace("flicker", "flickers")},
         {"title": "Kettle", "body": LONG}, True),
        ({"title": "Kettle", "body": LONG.replace("fridge", "bridge")},
         {"title": "Kettle", "body": LONG}, False),
        ({"title": "Lamp", "body": LONG}, {"title": "Lamp", "body": f"{LONG} and {OTHER}"}, False),
        ({"title": "Lamp beats kettle", "body": LONG},
         {"title": "Kettle beats lamp", "body": LONG}, False),
        ({"title": "Lamp", "body": LONG},
         {"title": "Lamp", "body": LONG + " so, to it" * 40}, False),
    ],
)  # fmt: skip
def test_what_only_looks_alike_stays(one: dict[str, Any], other: dict[str, Any], copies: bool) -> None:
    """Other numbers, names, negations and titles over boilerplate are no copies; a typo is."""
    found = distinct([assessed("youtube:a", **one), assessed("youtube:b", **other)], similarity=92)

    assert bool(found.copies) is copies


def test_the_poorer_copy_does_not_win() -> None:
    """One percent more relevant is no reason to lose votes and comments."""
    poor = replace(assessed("reddit:a", "Kettle", body=STORY, engagement={"votes": 1}), relevance=0.96)
    rich = replace(
        assessed("reddit:b", "Kettle", body=STORY, engagement={"votes": 90}, comments=(Comment(id="c", body="Same"),)),
        relevance=0.95,
    )

    assert keys(distinct([poor, rich], similarity=92).kept) == ["reddit:b"]


@pytest.mark.parametrize(
    ("title", "other", "one_post"),
    [
        ("My kettle broke", "My kettle just broke", True),
        ("Kettle lid cracked [xpost]", "Kettle lid cracked", True),
        ("Note review", "Note Pro review", False),
        ("Kettle 2 broke", "Kettle 3 broke", False),
        ("My kettle broke", "Anyone else?", False),
    ],
)
def test_one_text_under_nearly_one_title_is_one_post(title: str, other: str, one_post: bool) -> None:
    """As people post it to two communities, without marking it as a crosspost."""
    text = "The lid cracked after three weeks, and the shop was kind"
    posts = [assessed("reddit:a", title, body=text), assessed("reddit:b", other, body=text)]
    items = [entry.item for entry in posts]

    assert (len(distinct(posts, similarity=92).kept) == 1) is one_post
    assert (copies_among(items[1:], items[:1], 92) == {"reddit:b"}) is one_post


def test_reviews_that_name_their_product_s_page_stay_apart() -> None:
    """
    A person's own items may all have the address of the product: it identifies none of them.
    """
    reviews = [assessed(f"items:{n}", f"Review {n}", url="https://shop.example/dp/B0X") for n in range(119)]

    assert len(distinct(reviews, similarity=92).kept) == 119


def test_a_post_about_a_video_is_not_the_video() -> None:
    """
    A linked page merges posts of one source, never a post with what it links to.
    """
    video = assessed("youtube:v", url="https://video.example/watch?v=1")
    post = assessed("reddit:p", link="https://video.example/watch?v=1")

    assert len(distinct([video, post], similarity=92).kept) == 2


def test_the_best_fields_are_kept() -> None:
    """
    The best graded original stays and takes text, address, comments and notes, no date or votes.
    """
    early, late = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)
    best = assessed(
        "reddit:b", grade=Grade(5), created_at=late, engagement={"votes": None, "views": 3},
        comments=(Comment(id="1", body="yes"),), notes=("x",), crosspost_parent="reddit:a",
    )  # fmt: skip
    poor = assessed(
        "reddit:a", grade=Grade(3, defaulted=True), created_at=early, body="the text",
        url="https://r.example/a", engagement={"votes": 7, "views": None}, place="mugs",
        comments=(Comment(id="1", body="yes"), Comment(id="2", body="no")), notes=("y", "x"),
    )  # fmt: skip
    foreign = assessed(
        "youtube:c", crosspost_parent="reddit:a", engagement={"votes": 99},
        comments=(Comment(id="3", body="far"),),
    )  # fmt: skip

    (kept,) = distinct([poor, foreign, best], similarity=92).kept

    assert (kept.item.key, kept.grade) == ("reddit:b", Grade(5))
    assert (kept.item.body, kept.item.url) == ("the text", "https://r.example/a")
    assert kept.item.created_at == late
    assert kept.item.engagement == {"votes": None, "views": 3}
    assert [comment.id for comment in kept.item.comments] == ["1", "2"]
    assert (kept.item.places, kept.item.notes) == (("mugs",), ("x", "y"))


def test_a_comment_is_one_voice() -> None:
    """
    A comment that was found by itself stands under nothing else; of its replies, which its post
    lists too, each stands under it alone. Another source's comment of that name is another.
    """
    reply, other = Comment(id="r", body="So do I"), Comment(id="o", body="I do not")
    hit = Comment(id="h", body="I like it")
    post = assessed("lemmy:p", comments=(hit, other, reply))
    found = assessed("lemmy:h", body="I like it", thread="lemmy:p", comments=(reply,))
    foreign = assessed("reddit:x", comments=(hit,))

    kept = distinct([post, found, foreign], similarity=92).kept
    later = distinct([post], similarity=92, known=[found]).kept

    read = {entry.item.key: [comment.id for comment in entry.item.comments] for entry in kept}
    assert read == {"lemmy:h": ["r"], "lemmy:p": ["o"], "reddit:x": ["h"]}
    assert [comment.id for comment in later[0].item.comments] == ["o", "r"]


def test_the_same_key_twice_is_no_copy() -> None:
    """
    An item that two queries found is one item; nothing is dropped, the better knowledge stays.
    """
    plain = assessed("reddit:a")
    graded = replace(plain, grade=Grade(4))

    found = distinct([plain, graded, plain], similarity=92)

    assert (found.kept, found.copies) == ((graded,), ())


def test_a_real_grade_beats_a_default() -> None:
    """
    Of two copies the graded one stays, however low, since a default knows nothing.
    """
    items = [
        assessed("reddit:a", grade=Grade(3, defaulted=True)),
        assessed("reddit:b", grade=Grade(2)),
    ]
    linked = [replace(one, item=one.item.edited(link="https://x.example/y")) for one in items]

    assert keys(distinct(linked, similarity=92).kept) == ["reddit:b"]


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://www.A.example/x/?utm_source=1&b=2&a=1#top", "a.example/x?a=1&b=2"),
        ("http://user@old.a.example/x", "a.example/x"),
        ("https://shop.example/dp/B0X/ref=sr_1_1?keywords=k", "shop.example/dp/B0X?keywords=k"),
        ("https://m.co/x", "m.co/x"),
        ("https://a.example/", ""),
        ("http://[broken", ""),
        ("", ""),
    ],
)
def test_addresses_lose_what_does_not_identify(url: str, canonical: str) -> None:
    """Tracking parts, scheme and www go; a home page identifies nothing."""
    assert canonical_url(url) == canonical
