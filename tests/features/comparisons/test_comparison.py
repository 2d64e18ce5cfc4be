"""From reports to a comparison."""

from __future__ import annotations

from api.core.work import Failure
from api.features.comparisons.comparison import VERSION, Comparison
from tests.features.comparisons.made import about, compared, posts

HATED, LOVED = "I hate the battery of the {}.", "I love the battery of the {}."


def test_a_finding_shows_the_words_of_each_side() -> None:
    """Verbatim, with counts out of counts; who is not spoken of is said, too."""
    ember = about("Ember", posts("Ember", HATED.format("Ember"), LOVED.format("Ember"), "It is a mug."))
    ohom = about("Ohom", posts("Ohom", HATED.format("Ohom"), "It is a cup."))
    yeti = about("Yeti", posts("Yeti", "It is a cup."))
    comparison = compared(ember, ohom, yeti, depth="quick", since="week", limit=7)
    (finding,) = comparison.findings

    assert finding.text == (
        "Battery: spoken of in 2 of 3 posts about Ember (1 praising, 1 complaining), in 1 of 2 "
        "about Ohom (1 complaining), in none of 1 about Yeti."
    )
    assert [(side.query, side.count, side.of) for side in finding.sides] == [
        ("Ember", 2, 3), ("Ohom", 1, 2), ("Yeti", 0, 1),
    ]  # fmt: skip
    assert [passage.passage for passage in finding.sides[1].evidence] == [HATED.format("Ohom")]
    assert [item.key for item in comparison.items] == [
        "reddit:Ember0",
        "reddit:Ember1",
        "reddit:Ohom0",
    ]
    assert (comparison.version, comparison.depth, comparison.since, comparison.limit) == (
        VERSION,
        "quick",
        "week",
        7,
    )


def test_a_post_about_two_counts_for_both() -> None:
    """It is listed once with both, cited or not."""
    both = posts("Both", "I hate the battery of the Ember. The Ohom is a cup.")
    ember = about("Ember", [*both, *posts("Ember", HATED.format("Ember"))])
    ohom = about("Ohom", [*posts("Ohom", "It is a cup."), *both])
    comparison = compared(ember, ohom)

    assert [standing.posts for standing in comparison.products] == [2, 2]
    assert [(item.key, item.products) for item in comparison.items] == [
        ("reddit:Both0", ("Ember", "Ohom")), ("reddit:Ember0", ("Ember",)),
    ]  # fmt: skip
    quiet = posts("Both", "The Ohom is beside the Ember.")
    silent = compared(about("Ember", quiet), about("Ohom", quiet))
    assert (silent.findings, [item.key for item in silent.items]) == ((), ["reddit:Both0"])


def test_costs_add_up_and_an_unknown_one_stays_unknown() -> None:
    """Those of what failed nobody knows; it has no report."""
    spent = {"usd": 0.25, "tokens": 10, "upstream_calls": 3}
    ember, ohom = about("Ember", [], cost=spent), about("Ohom", [], cost=spent)
    cost = compared(ember, ohom, Failure("x", "no")).cost
    assert (cost.usd, cost.tokens, cost.upstream_calls) == (0.5, 20, 6)
    assert compared(ember, about("Ohom", [])).cost.usd is None


def test_one_product_alone_is_compared_with_nothing() -> None:
    """Its counts stand; there are no findings."""
    comparison = compared(about("Ember", posts("Ember", *[HATED.format("Ember")] * 4)), about("Ohom", []))
    assert comparison.products[0].aspects[0].count == 4
    assert (comparison.looked_at, comparison.findings, comparison.items) == (0, (), ())


def test_it_survives_its_json() -> None:
    """With the ends that there are not."""
    comparison = compared(
        about("Ember", posts("Ember", *["It is a mug."] * 9)),
        about("Ohom", posts("Ohom", "A cup.", place="lemmy"), {"reddit": {}}),
    )
    assert comparison.contrasts
    assert Comparison.model_validate_json(comparison.model_dump_json()) == comparison
