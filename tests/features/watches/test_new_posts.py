"""What is new to a watch: each post once."""

from __future__ import annotations

from dataclasses import replace

from api.features.watches.new_posts import NewPosts
from api.reports.report import Report
from tests.features.watches.made import BEGUN, WATCH, about, heard, sift
from tests.store.made import dropped

LONG = (
    "The battery of this Ember is empty after two hours, although the maker promises eight, and "
    "the shop will not take it back since the box is open. I wrote to them and got no answer."
)


def keys(found: NewPosts) -> list[str]:
    """Of what is new."""
    return [item.key for item in found.new]


def test_known_post_is_not_new_however_it_was_edited() -> None:
    """By its key."""
    first = sift(about("Ember", heard("I like it.")))
    again = about("Ember", heard("EDIT: I do not like it any more."))
    assert keys(first) == ["reddit:Ember0"]
    assert sift(again, BEGUN, first).new == ()
    assert sift(again, BEGUN, first).counted != ()


def test_copy_elsewhere_is_not_new_and_not_counted() -> None:
    """The same words in another place, also with words that change nothing."""
    first = sift(about("Ember", heard(LONG)))
    elsewhere = heard(LONG + " Thanks.", place="lemmy")
    copied = sift(about("Ember", elsewhere), BEGUN, first)
    assert (copied.new, copied.counted) == ((), ())
    assert [known.key for known in copied.learnt] == ["lemmy:Ember0"]


def test_crosspost_is_not_new() -> None:
    """Its words may be others; and its own key is known from then on."""
    first = sift(about("Ember", heard("I like it.")))
    crossposted = heard("x-post", key="reddit:x", crosspost_parent="reddit:Ember0")
    assert sift(about("Ember", crossposted), BEGUN, first).new == ()
    copy = replace(BEGUN, name="other")
    alone = sift(about("Ember", crossposted), copy)
    assert keys(alone) == ["reddit:x"]
    assert sift(about("Ember", heard("I like it.")), BEGUN, alone).new == ()


def test_link_to_the_same_page_is_a_copy() -> None:
    """Whoever posted it."""
    first = sift(about("Ember", heard("See", link="https://example.org/mugs?utm_source=a")))
    again = heard("Measurement", key="reddit:y", link="https://example.org/mugs")
    assert sift(about("Ember", again), BEGUN, first).new == ()


def test_what_was_dropped_stays_dropped_until_the_rule_changes() -> None:
    """A judge that thinks again is no news; one that was asked something else is."""
    judged = {**dropped("reddit:Ember0"), "dropped_by": "gate"}
    first = sift(about("Ember", [], {"reddit": {}}, dropped=[judged]))
    kept = about("Ember", heard("I like it."))
    same = sift(kept, BEGUN, first)
    assert (same.new, same.counted) == ((), ())
    assert keys(sift(kept, replace(BEGUN, about="a cup that heats"), first)) == ["reddit:Ember0"]


def test_told_post_stays_told_when_the_rule_changes() -> None:
    """And one that was kept is not dropped by a later judge."""
    first = sift(about("Ember", heard("I like it.")))
    out = sift(about("Ember", [], {"reddit": {}}, dropped=[dropped("reddit:Ember0")]), BEGUN, first)
    assert out.learnt == ()
    changed = replace(BEGUN, about="a cup")
    assert sift(about("Ember", heard("I like it.")), changed, first, out).new == ()


def test_merged_copy_is_known_by_its_key() -> None:
    """The report dropped it as a duplicate; another reason, such as no words, says nothing."""
    copy = {**dropped("lemmy:z", "copy of reddit:Ember0"), "dropped_by": "duplicate"}
    removed = {**dropped("lemmy:q", "removed"), "dropped_by": "unfit"}
    first = sift(about("Ember", heard("I like it."), dropped=[copy, removed]))
    assert [known.key for known in first.learnt] == ["reddit:Ember0", "lemmy:z"]
    later = about("Ember", heard("Other words", key="lemmy:z", place="lemmy"))
    assert sift(later, BEGUN, first).new == ()


def test_what_is_older_than_the_watch_is_no_news_but_known() -> None:
    """Unless nobody knows how old it is; to the first run everything is new."""
    old, undated = heard("Old", days=-20), heard("Undated", key="reddit:u", created_at=None)
    assert keys(sift(about("Ember", [*old, *undated]))) == ["reddit:u"]
    assert len(sift(about("Ember", old)).learnt) == 1
    assert keys(sift(about("Ember", old), WATCH)) == ["reddit:Ember0"]


def test_unjudged_post_is_neither_new_nor_known() -> None:
    """The next run judges it."""
    unjudged: Report = about("Ember", heard("I like it.", verdict=None, judge=None))
    assert sift(unjudged) == NewPosts((), (), ())
