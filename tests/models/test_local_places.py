"""Texts that do not name the thing, in a place of the thing: comments, reviews, communities."""

from __future__ import annotations

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.models.local.judge import LocalJudge
from api.models.local.word_vectors import vectors
from api.sources.imported.detection import read_collected
from tests.replay import DATA

pytestmark = pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")
PHONE = Question("Galaxy Z Fold 7")
TITLE = "21 Tips for the Samsung Galaxy Z Fold 7"
# Comments of the file that are about the video, its maker, other viewers or another phone, by the
# guideline in docs/labelling.md.
ASIDE = frozenset(
    "0412199b 065c5194 07c7ed42 0baa438f 0f64bc04 0fb2ca66 100db6ff"
    " 12353b3c 123c7334 1360db54 141914b3 14e0978b 1a63a5a0 1dca417b".split()
)


def kept(question: Question, *texts: str, title: str = "", place: str = "", thread: str = "") -> list[bool]:
    """Whether the judge keeps each text."""
    items = [
        Item(key=f"items:{at}", id=str(at), source="items", title=title, body=text, place=place or None, thread=thread)
        for at, text in enumerate(texts)
    ]
    return [verdict.relevant for verdict in LocalJudge().verdicts(question, items, "items")]


def test_a_comment_under_a_title_about_it_is_about_it() -> None:
    """Whether the title is its place, or its own as that of a comment."""
    texts = (
        "The hinge creaks since last week and dust gets under the screen.",
        "Mine arrived today",
        "Does it get warm?",
    )
    assert kept(PHONE, *texts, place=TITLE) == [True] * 3
    assert kept(PHONE, *texts, title=TITLE, place="comment") == [True] * 3
    assert kept(PHONE, *texts, title=TITLE, thread="lemmy:1") == [True] * 3
    assert kept(PHONE, *texts, place="21 Tips for a quiet kitchen") == [False] * 3


def test_a_comment_that_speaks_of_the_video_is_not() -> None:
    """Thanks and praise, nor what is said to other viewers; what else it says counts."""
    texts = ("Great video, thanks!", "Subscribed. Your channel deserves more viewers.", "@some_one get well, bro")
    assert kept(PHONE, *texts, place=TITLE) == [False] * 3
    assert kept(PHONE, "Thanks for the video. It gets warm while charging.", place=TITLE) == [True]


def test_a_comment_on_a_person_or_another_model_is_not() -> None:
    """`this guy` points at nobody's phone; another model counts where it is compared with what is pointed at."""
    texts = ("What will he say? This guy likes every maker.", "Best purchase I ever made was the fold 4")
    assert kept(PHONE, *texts, place=TITLE) == [False] * 2
    assert kept(PHONE, "It is lighter than my fold 4", place=TITLE) == [True]
    # many words alone say nothing of it
    assert kept(PHONE, "Crude jokes, loud music, shaky pictures, silly hats", place=TITLE) == [False]


def test_a_title_about_two_things_says_less() -> None:
    """What a comment there speaks of is not known."""
    text = "My screen has a better colour."
    assert kept(PHONE, text, place=TITLE) == [True]
    assert kept(PHONE, text, place="Galaxy Z Fold 7 vs Pixel 10 Pro Fold") == [False]


def test_a_review_of_a_product_need_not_name_it() -> None:
    """Its place is the product."""
    robot = Question("Roborock Q5")
    texts = ("It gets stuck under the sofa.", "Arrived with a cracked bin and a missing brush, sent it back.")
    assert kept(robot, *texts, title="Meh", place="Roborock Q5") == [True] * 2
    assert kept(robot, *texts, place="Roborock Q5") == [True] * 2
    assert kept(robot, *texts, title="Meh", place="amazon.com") == [False] * 2
    # the place of another aspect than the one asked about says nothing
    assert kept(Question("Roborock Q5 battery"), "Love the app", place="Roborock") == [False]


def test_a_file_can_be_said_to_be_about_a_product() -> None:
    """Then all of it stands there, and where it was found before is kept."""
    data = b'{"title": "Meh", "body": "It gets stuck under the sofa.", "place": "a shop"}\n'
    (item,) = read_collected(data, product="Roborock Q5").items
    assert (item.place, item.places) == ("Roborock Q5", ("Roborock Q5", "a shop"))
    verdict = LocalJudge().verdicts(Question("Roborock Q5"), [item], "items")[0]
    assert verdict.relevant
    assert verdict.reason == "stands in a place of Roborock Q5"


def test_real_comments_under_videos_about_a_phone() -> None:
    """Of 46 comments about the phone at least 42 are kept, of 14 others at most 7.

    The rule was chosen with these in view; docs/local-judge.md has figures of comments apart.
    """
    path = DATA / "opinions" / "folding_phone_comments.jsonl"
    if not path.is_file():
        pytest.skip(f"no comments in `{path}`; set LISTENPOST_TEST_DATA")
    items = read_collected(path.read_bytes()).items
    verdicts = LocalJudge().verdicts(PHONE, items, "items")
    kept_ids = {item.id for item, verdict in zip(items, verdicts, strict=True) if verdict.relevant}
    assert len(kept_ids - ASIDE) >= 42
    assert len(kept_ids & ASIDE) <= 7
