"""Posts, their ids and their labels."""

from __future__ import annotations

import re
from pathlib import Path

from api.sandbox import corpus
from api.sandbox.site_search import Index
from tests.sandbox.conftest import LAMPS, reddit_row

SHAPES = {"reddit": r"1[0-9a-z]{6}", "youtube": r"[\w-]{11}", "amazon": r"B0[0-9A-Z]{8}"}


def test_ids_have_the_shape_of_their_source() -> None:
    """Every shipped post has a native id of its source's own shape, and no two share one."""
    posts = corpus.load()

    assert all(re.fullmatch(SHAPES[post.source], post.id) for post in posts)
    assert len({post.key for post in posts}) == len(posts) > 500


def test_ids_come_from_the_text_alone() -> None:
    """Another number and order give the same id, another word another one."""
    first = corpus.posts([reddit_row(1, "a"), reddit_row(2, "b")])
    second = corpus.posts([reddit_row(8, "b"), reddit_row(9, "a"), reddit_row(10, "c")])

    assert {post.id for post in first} < {post.id for post in second}


def test_equal_texts_are_still_two_posts() -> None:
    """A repost of the same words gets an id of its own."""
    first, second = corpus.posts([reddit_row(1, "a"), reddit_row(2, "a")])

    assert first.id != second.id


def test_a_crosspost_knows_its_parent() -> None:
    """`crosspost_of` becomes the parent's native id."""
    posts = corpus.posts(LAMPS[:3])

    assert posts[2].crosspost_parent == posts[0].id
    assert posts[0].crosspost_parent is None


def test_every_shipped_post_has_one_label(root: Path) -> None:
    """Labels and posts match one to one, and each product has both kinds on each source."""
    slugs = [file.stem for file in (root / "api/sandbox/data/posts").glob("*.jsonl")]
    for slug in slugs:
        posts, labels = corpus.load(slug), corpus.labels(slug)
        assert {post.key for post in posts} == set(labels)
    assert len(slugs) >= 10


def test_the_servers_never_read_labels(root: Path) -> None:
    """Nothing in the sandbox but `corpus.labels` opens the labels or the list of products."""
    files = list((root / "api/sandbox").glob("*.py"))
    assert len(files) > 10
    for file in files:
        text = file.read_text("utf-8")
        assert "products.json" not in text
        if file.name != "corpus.py":
            assert "labels(" not in text, file.name


def test_search_finds_little_that_is_relevant_at_first_and_more_below() -> None:
    """Under half of the first five are about the product, and the next five hold more that are."""
    shelves = {s: [p for p in corpus.load() if p.source == s and not p.sponsored] for s in SHAPES}
    first = second = asked = 0
    for slug, query in (("plaud", "plaud.ai"), ("oura", "Oura"), ("ember", "Ember mug")):
        own = {key for key, label in corpus.labels(slug).items() if label["relevant"]}
        for shelf in shelves.values():
            found = [post.key in own for post in Index(shelf).search(query)]
            first, second, asked = first + sum(found[:5]), second + sum(found[5:10]), asked + 5

    assert 0.15 < first / asked < 0.5
    assert second > first / 2
