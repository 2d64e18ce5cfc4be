"""The differences between a stored report and its items judged again."""

from __future__ import annotations

from typing import Any

from api.reports.replay import Replay, replay_of
from api.reports.report import Report
from tests.store.made import dropped, finding, item, report, typed


def stored(id_: str, kept: str, out: str = "", findings: tuple[dict[str, Any], ...] = (), **more: Any) -> Report:
    """A report that keeps and drops these items, a letter each."""
    items = [item(f"reddit:{key}", people={}) for key in kept]
    lost = [dropped(f"reddit:{key}", "names no mug") for key in out]
    return typed(report(id_, *items, out=lost, **more) | {"findings": list(findings)})


def claimed(text: str, keys: str, kind: str = "complaint", people: int = 0) -> dict[str, Any]:
    """A claim that rests on these items."""
    made = finding(text, *(f"reddit:{key}" for key in keys)) | {"kind": kind}
    return made | ({"people": {"reddit": people}} if people else {})


def changes(answer: Replay) -> list[tuple[str, str, int, int, int | None]]:
    """Each claim with what became of it, its posts before and now, and its people before."""
    return [(each.change, each.text, each.posts_before, each.posts, each.people_before) for each in answer.claims]


def test_items_that_only_one_side_keeps_say_why_the_other_dropped_them() -> None:
    """With the probability of the judge of now, and what a judge sees of them."""
    before, after = stored("a", "bc", "de"), stored("b", "cd", "be")

    answer = replay_of(before, after)

    assert [each.key for each in answer.newly_kept] == ["reddit:d"]
    assert [each.key for each in answer.newly_dropped] == ["reddit:b"]
    kept, lost = answer.newly_kept[0], answer.newly_dropped[0]
    assert (kept.dropped_by, kept.reason, kept.passage) == ("gate", "names no mug", "Body d")
    assert (lost.dropped_by, lost.reason, lost.passage) == ("gate", "names no mug", "Body b")
    assert lost.probability == after.dropped[0].probability
    assert (answer.judged_twice, answer.same_verdicts, answer.agreement) == (4, 2, 0.5)
    assert (answer.before.kept, answer.after.kept, answer.beginnings) == (2, 2, 2)
    assert answer.report_id == "a"


def test_claims_are_the_same_by_kind_and_posts() -> None:
    """Whatever words they are in; of one kind and half of the smaller one's posts."""
    before = stored(
        "a", "bcdef", findings=(
            claimed("It breaks.", "bcd", people=2), claimed("It is loved.", "ef", "praise"), claimed("It leaks.", "ef"),
        ),
    )  # fmt: skip
    after = stored(
        "b", "bcdef", findings=(
            claimed("Three say that it broke.", "bc"), claimed("It leaks.", "b"), claimed("It is loud.", "ef", "other"),
        ),
    )  # fmt: skip

    assert changes(replay_of(before, after)) == [
        ("appears", "It is loud.", 0, 2, None),
        ("disappears", "It is loved.", 2, 0, None),
        ("stays", "Three say that it broke.", 3, 2, 2),
        ("stays", "It leaks.", 2, 1, None),
    ]


def test_what_no_judge_saw_again_is_counted() -> None:
    """Copies, what is nobody's words, what was left out as asked, and what was deleted since."""
    out = [
        dropped("reddit:c") | {"dropped_by": "duplicate", "reason": "copy of reddit:b"},
        dropped("reddit:d", "removed") | {"dropped_by": "unfit", "verdict": None},
        dropped("reddit:e", "shop") | {"dropped_by": "excluded", "verdict": None},
    ]
    before = typed(report("a", item("reddit:b"), out=out))
    before = before.model_copy(
        update={"sources": {"reddit": before.sources["reddit"].model_copy(update={"fetched": 6})}}
    )
    after = typed(report("b", item("reddit:b"), out=out[1:]))

    answer = replay_of(before, after)

    assert answer.not_judged == {"deleted": 2, "copy": 1, "unfit": 1, "excluded": 1}
    assert (answer.judged_twice, answer.beginnings) == (1, 0)


def test_a_judge_that_failed_agrees_with_nobody() -> None:
    """Its items pass without a verdict, and the sources are named."""
    before, after = stored("a", "b"), stored("b", "b")
    opened = after.sources["reddit"].model_copy(
        update={"gate": after.sources["reddit"].gate.model_copy(update={"status": "degraded", "model": None})}
    )
    unjudged = after.items[0].model_copy(update={"verdict": None, "judge": None})
    after = after.model_copy(update={"items": (unjudged,), "sources": {"reddit": opened}})

    answer = replay_of(before, after)

    assert (answer.judged_twice, answer.agreement, answer.unjudged) == (0, None, ("reddit",))
