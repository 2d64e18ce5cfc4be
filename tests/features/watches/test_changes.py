"""What is called unusual, and what is not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from api.features.watches.new_posts import POSTS, Keys
from api.features.watches.unusual_changes import marked_changes, measurements_of, new_aspects
from api.features.watches.watch_run import Change, RunCounts, SourceCount
from tests.features.comparisons.made import PLACES
from tests.features.watches.made import of, week

QUIET = [week(number, reddit=of(number % 3 + 4)) for number in range(6)]
BATTERY = {"mentions:battery": 1, "complaint:battery": 1}
CALM = [week(number, reddit=of(12, BATTERY)) for number in range(6)]


def changes(now: RunCounts, past: Sequence[RunCounts], keys: Keys | None = None) -> tuple[Change, ...]:
    """By these counts."""
    return marked_changes(measurements_of(now, past), keys or {}, PLACES)


def test_more_posts_than_usual() -> None:
    """With how many are usual, and the posts."""
    keys: Keys = {(POSTS, "reddit"): ("reddit:1",)}
    (change,) = changes(week(6, reddit=of(20)), QUIET, keys)
    assert (change.more, change.count, change.past, change.cites) == (True, 20, 30, ("reddit:1",))
    assert (change.of, change.past_of) == (None, None)
    assert change.text == ("Reddit: 20 posts in this time, more than usual: 1 to 11 (95 %, by 30 in 6 runs before).")


def test_fewer_posts_than_usual() -> None:
    """Where at least five were to be expected; of a source at its limit nobody knows."""
    past = [week(number, reddit=of(20 + number)) for number in range(6)]
    (change,) = changes(week(6, reddit=of(3)), past)
    assert not change.more
    assert change.text.startswith("Reddit: 3 posts in this time, fewer than usual: ")
    assert changes(week(6, reddit=of(3, capped=True)), past) == ()
    assert changes(week(6, reddit=of(0)), [week(n, reddit=of(3)) for n in range(9)]) == ()


def test_source_at_its_limit_has_at_least_that_many() -> None:
    """And is no past for others."""
    (change,) = changes(week(6, reddit=of(25, capped=True)), QUIET)
    assert change.text.startswith("Reddit: at least 25 posts")
    assert changes(week(6, reddit=of(25)), [week(n, reddit=of(5, capped=True)) for n in range(9)]) == ()


def test_gap_is_no_drop() -> None:
    """Neither in the run that knows nothing, nor later."""
    past = [*QUIET, week(6)]
    assert changes(week(7), past) == ()
    assert changes(week(7, reddit=of(5)), past) == ()
    (look,) = measurements_of(week(7, reddit=of(5)), past)
    assert look.past == 30


def test_times_of_unequal_length_are_compared_by_rate() -> None:
    """Three weeks at once, after the machine was off, hold three times as much."""
    long = week(6, reddit=of(16))
    long = long.model_copy(update={"until": week(8).until})
    assert changes(long, QUIET) == ()
    assert changes(week(6, reddit=of(16)), QUIET) != ()


def test_wave_that_came_before_is_not_unusual() -> None:
    """One earlier run had as many."""
    assert changes(week(7, reddit=of(20)), [*QUIET, week(6, reddit=of(21))]) == ()


def test_short_run_is_no_wave() -> None:
    """One by hand, a minute after another, or with one post in it; or in the same second."""
    minute = week(6, reddit=of(1, {"mentions:battery": 1, "complaint:battery": 1}))
    minute = minute.model_copy(update={"until": minute.since.replace(minute=1)})
    instant = minute.model_copy(update={"until": minute.since})
    assert len(changes(week(7, reddit=of(20)), [*QUIET, minute, instant])) == 1
    now = week(7, reddit=of(12, {"mentions:battery": 9, "complaint:battery": 9}))
    (change,) = changes(now, [*CALM, minute])
    assert change.measure == "complaint"
    assert all(look.measure != POSTS for look in measurements_of(instant, CALM))


def test_too_little_past_says_nothing() -> None:
    """Three runs and seven days."""
    now = week(6, reddit=of(90))
    assert measurements_of(now, QUIET[:2]) == []
    hours = [counts.model_copy(update={"until": counts.since.replace(hour=9)}) for counts in QUIET]
    assert measurements_of(now, hours) == []
    assert len(measurements_of(now, QUIET[:3])) == 1
    assert measurements_of(now, [week(0, reddit=of(5)), week(1), week(2)]) == []


def test_rise_of_one_complaint() -> None:
    """It alone: that the aspect is spoken of more goes without saying."""
    now = week(6, reddit=of(12, {"mentions:battery": 9, "complaint:battery": 9}))
    (change,) = changes(now, CALM)
    assert (change.measure, change.subject, change.more) == ("complaint", "battery", True)
    assert (change.count, change.of, change.past, change.past_of) == (9, 12, 6, 72)
    assert change.text == (
        "Battery: complained of in 9 of 12 new posts, before in 6 of 72 (67 percentage points more, 95 %: 37 to 83)."
    )


def test_less_of_a_feeling() -> None:
    """Of the graded posts; without a grade now there is nothing to compare."""
    past = [week(n, reddit=of(20, {"sounds_negative:": 15}, graded=20)) for n in range(6)]
    (change,) = changes(week(6, reddit=of(20, graded=20)), past)
    assert change.text.startswith("Sounding negative: none of 20 new posts, before in 90 of 120 (75 ")
    assert "percentage points less" in change.text
    assert changes(week(6, reddit=of(20)), past) == ()


def test_less_spoken_of_is_no_change() -> None:
    """Something else is spoken of more; that there are fewer complaints is one."""
    past = [week(n, reddit=of(20, {"mentions:price": 15, "complaint:price": 15})) for n in range(6)]
    assert changes(week(6, reddit=of(20, {"complaint:price": 15})), past) == ()
    (change,) = changes(week(6, reddit=of(20, {"mentions:price": 15})), past)
    assert (change.measure, change.more) == ("complaint", False)


def test_only_sources_that_answered_now_are_the_past_of_a_share() -> None:
    """Where one that always complains is away, complaints are not fewer."""
    angry = of(20, {"complaint:battery": 15})
    past = [week(n, reddit=angry, lemmy=of(20)) for n in range(6)]
    assert changes(week(6, lemmy=of(20)), past) == ()
    assert changes(week(6, reddit=of(20), lemmy=of(20)), past) != ()


def test_source_that_is_new_changes_no_share() -> None:
    """One that always complains raises complaints by being there; in its own past it does not."""
    angry, calm = of(20, {"complaint:battery": 18}), of(20)
    past = [week(n, reddit=calm) for n in range(6)]
    now = week(9, reddit=calm, lemmy=angry)
    assert changes(now, past) == ()
    joined = [*past[:4], *(week(n, reddit=calm, lemmy=angry) for n in (6, 7))]
    assert changes(now, joined) == ()
    settled = [*past[:2], *(week(n, reddit=calm, lemmy=angry) for n in range(6))]
    look = next(look for look in measurements_of(now, settled) if look.subject == "battery")
    assert (look.count, look.past, look.past_weight) == (18, 6 * 18, 6 * 40)


def test_source_that_comes_back_changes_no_share() -> None:
    """Runs that did not hear it are no past of a share, but of the others' volume."""
    angry, calm = of(20, {"complaint:battery": 18}), of(20)
    past = [week(n, reddit=calm, **({} if n in {1, 3} else {"lemmy": angry})) for n in range(6)]
    assert changes(week(6, reddit=calm, lemmy=angry), past) == ()
    looks = measurements_of(week(6, reddit=calm, lemmy=angry), past)
    assert {look.subject: len(look.before) for look in looks} == {
        "reddit": 6, "lemmy": 4, "battery": 4,
    }  # fmt: skip


def test_posts_of_a_source_that_is_not_counted_are_not_cited() -> None:
    """Their keys begin with it."""
    now = week(6, reddit=of(12, {"complaint:battery": 9}), lemmy=of(3, {"complaint:battery": 3}))
    keys: Keys = {("complaint", "battery"): ("reddit:1", "lemmy:1")}
    (change,) = changes(now, CALM, keys)
    assert (change.count, change.cites) == (9, ("reddit:1",))


def test_source_with_too_little_past_has_no_usual_volume() -> None:
    """However long the watch is: three runs of an hour say nothing of a week."""
    hours = [
        week(n, reddit=of(5), lemmy=of(1)).model_copy(update={"until": week(n).since.replace(hour=9)}) for n in range(3)
    ]
    looks = measurements_of(week(9, reddit=of(5), lemmy=of(90)), [*hours, *QUIET])
    assert [look.subject for look in looks] == ["reddit"]


def test_rise_from_nothing() -> None:
    """Five posts where there never were any."""
    (change,) = changes(week(6, reddit=of(5)), [week(number, reddit=of(0)) for number in range(6)])
    assert (change.past, change.usual) == (0, (0, 1))
    assert changes(week(6, reddit=of(4)), [week(number, reddit=of(0)) for number in range(6)]) == ()


def test_run_at_its_limit_was_a_wave_of_that_size() -> None:
    """At least: it is no past, but what does not exceed it is no news."""
    past = [*QUIET, week(6, reddit=of(25, capped=True))]
    assert changes(week(7, reddit=of(24)), past) == ()
    assert len(changes(week(7, reddit=of(26)), past)) == 1


def test_long_run_is_set_beside_runs_in_a_row() -> None:
    """Three weeks at once are beyond no wave that lasted as long."""
    calm = [week(number, reddit=of(5)) for number in range(2, 9)]
    wave = [week(number, reddit=of(14)) for number in range(2)]
    now = week(9, reddit=of(39)).model_copy(update={"until": week(11).until})
    assert changes(now, [*calm, *wave]) == ()
    assert len(changes(now, calm)) == 1


def test_clock_that_was_set_back() -> None:
    """Of no time at all nothing is said, then or later."""
    back = week(6, reddit=of(9))
    back = back.model_copy(update={"until": back.since.replace(hour=1)})
    assert back.seconds == 0
    assert measurements_of(back, QUIET) == []
    assert changes(week(7, reddit=of(5)), [back, *QUIET]) == ()


def test_new_aspects() -> None:
    """Three new posts, and none before; only mentions name one."""
    now = week(6, reddit=of(9, {"mentions:noise": 3, "complaint:noise": 3, "mentions:size": 2}))
    assert new_aspects(now, CALM) == ("noise",)
    assert new_aspects(now, CALM[:2]) == ()
    assert new_aspects(now, [*CALM, week(7, lemmy=of(1, {"mentions:noise": 1}))]) == ()
    assert new_aspects(week(6, lemmy=of(9, {"mentions:noise": 3})), CALM) == ()


@pytest.mark.parametrize(
    ("rate", "gaps"), [(8.0, 0.25), *(pytest.param(rate, 0.0, marks=pytest.mark.nightly) for rate in (2.0, 8.0, 30.0))]
)
def test_false_alarms_of_quiet_watches(rate: float, gaps: float) -> None:
    """200 watches of three sources over eight weeks: one run in twenty at most is unusual.

    Also where a source is silent now and then, and each speaks of other things.
    """
    chance = random.Random(int(rate))
    aspects = {"battery": 0.2, "price": 0.3, "noise": 0.05, "screen": 0.1, "support": 0.15}
    sources = {"reddit": 1.0, "lemmy": 1.0, "hackernews": 3.0 if gaps else 1.0}

    def drawn(louder: float) -> SourceCount:
        number, moment = 0, chance.expovariate(rate)
        while moment < 1:
            number, moment = number + 1, moment + chance.expovariate(rate)
        tallies = {
            f"{measure}:{name}": sum(chance.random() < share * louder for _ in range(number))
            for name, share in aspects.items()
            for measure in ("mentions", "complaint")
        }
        negative = sum(chance.random() < 0.4 for _ in range(number))
        return of(number, tallies | {"sounds_negative:": negative}, graded=number)

    alarms = runs = 0
    for _ in range(200):
        past: list[RunCounts] = []
        for number in range(8):
            counts = {name: drawn(louder) for name, louder in sources.items()}
            silent = {name for name in counts if gaps and chance.random() < gaps}
            heard = {name: counts[name] for name in counts if name not in silent}
            now = week(number, **heard)
            runs += len(past) >= 3
            alarms += bool(changes(now, past))
            past.append(now)
    assert runs == 1000
    assert alarms <= 0.05 * runs
