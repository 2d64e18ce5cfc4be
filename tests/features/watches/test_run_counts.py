"""What a run counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.features.watches.made import BEGUN, about, count, heard

BATTERY = "I hate the battery of the Ember."


def test_posts_since_the_run_before_and_what_new_ones_speak_of() -> None:
    """Posts of other times, and undated ones, are no volume; all that is new is spoken of."""
    made = [
        *heard(BATTERY, "I love the battery of the Ember.", "My Ember is blue.", sentiment=-1),
        *heard("Undated words", key="reddit:u", created_at=None),
        *heard("Next week", key="reddit:n", days=9),
    ]
    found = count(about("Ember", made))
    source = found.counts.sources["reddit"]
    assert (source.posts, source.fresh, source.graded, source.capped) == (3, 5, 3, False)
    assert source.undated == 1
    assert source.tallies["mentions:battery"] == 2
    assert source.tallies["complaint:battery"] == 1
    assert source.tallies["sounds_negative:"] == 3
    assert found.keys["complaint", "battery"] == ("reddit:Ember0",)
    assert found.counts.seconds == 7 * 24 * 3600


def test_source_that_says_nothing_is_in_no_count() -> None:
    """One that failed, and one whose posts went unjudged."""
    unjudged: dict[str, Any] = {"gate": {"status": "degraded", "reason": "timeout", "model": None}}
    sources = {"lemmy": {"outcome": "timed_out"}, "reddit": unjudged, "hn": {"capped": True}}
    found = count(about("Ember", heard("I like it."), sources))
    assert {name: source.capped for name, source in found.counts.sources.items()} == {"hn": True}


def test_new_post_shows_the_words_that_tell_most() -> None:
    """A complaint's before others; by its grade it may complain of nothing that is known."""
    both = "I love the price of the Ember. I hate the battery of the Ember."
    made = [*heard(both, "Mine is blue."), *heard("Sad.", key="reddit:s", sentiment=-1)]
    first, second, third = count(about("Ember", made)).new
    assert "battery" in first.passage
    assert (first.complains, second.complains, third.complains) == (True, False, True)
    assert second.passage == ""


def test_grades_of_made_up_posts_count_for_nothing() -> None:
    """A stand-in has guessed them."""
    found = count(about("Ember", heard("Sad.", sentiment=-1), sample=True))
    assert found.counts.sources["reddit"].graded == 0
    assert not found.new[0].complains


def test_aspects_do_not_depend_on_the_titles_of_a_week() -> None:
    """Words that mean one only beside others count where the question says those."""
    drivers = [post | {"title": "My Ember taxi"} for post in heard("I hate the Ember drivers.")]
    said = replace(BEGUN, about="a taxi")
    assert count(about("Ember", drivers)).counts.sources["reddit"].tallies == {}
    tallies = count(about("Ember", drivers, about="a taxi"), said).counts.sources["reddit"].tallies
    assert "mentions:drivers" in tallies
