"""Kinds of plausible sentences that a passage does not carry, and sound ones beside them."""

from __future__ import annotations

from typing import NamedTuple

from api.core.items import Item
from api.reports.exhibits import Dossier, Exhibit
from tests.services.kit import assessed


class Pair(NamedTuple):
    """A sentence about the Ember mug, the passage it is said to rest on, and the item's title."""

    kind: str
    sentence: str
    passage: str
    item: str = "Ember mug after a year"


UNSUPPORTED = (
    Pair("praise on a complaint", "Owners praise the battery.", "The battery is awful."),
    Pair("complaint on praise", "Owners complain about the lid.", "The lid is excellent."),
    Pair("another product", "The app crashes.", "My old Nextmug crashed, its app was awful."),
    Pair("a rival's failure", "Support is slow.", "Garmin support is painfully slow."),
    Pair("question as fact", "The lid leaks.", "Does the lid leak?"),
    Pair("wish as fact", "It has a louder alarm.", "I wish it had a louder alarm."),
    Pair("irony as praise", "Owners love the update.", "Great, another update that I love."),
    Pair("hearsay as fact", "The battery lasts two days.", "They say the battery lasts two days."),
    Pair("condition as fact", "The coating peels.", "If the coating peels I will return it."),
    Pair("a cause nobody names", "The battery died because of the cold.", "The battery died."),
    Pair("more people", "Everyone complains about the app.", "The app is awful."),
    Pair("more certainty", "The app always crashes.", "The app crashes."),
    Pair("another number", "It holds heat for 90 minutes.", "It holds heat for 60 minutes."),
    Pair("the subject without the statement", "The battery lasts long.", "I charge the battery."),
    Pair("a denial dropped", "The lid closes tightly.", "The lid never closes tightly."),
    Pair("a denial added", "It does not keep coffee warm.", "It keeps coffee warm."),
    Pair(
        "a comparison turned round",
        "The Nextmug is quieter than the Ember mug.",
        "The Ember mug is quieter than the Nextmug.",
    ),
    Pair("a detail made up", "The lid is made of steel.", "The lid is fine."),
    Pair("one side of two", "Owners love the mug.", "I love the mug, but the battery is awful."),
    Pair("nobody told as all", "Nobody likes the price.", "I dislike the price."),
    Pair("fact told as a wish", "Owners ask for a lid.", "The lid came in the box."),
    Pair("the messenger", "Owners praise the mug.", "Great video, thanks."),
    Pair("nothing at all", "The battery lasts.", ""),
    Pair("a number changed", "The battery lasts 80 minutes.", "The battery lasts 60 minutes."),
    Pair("a unit changed", "The battery lasts two days.", "The battery lasts two hours."),
    Pair("intensity raised", "The lid is terrible.", "The lid is a bit loose."),
    Pair("a nuisance as a disaster", "The app is awful.", "The app is a little slow."),
    Pair("some as all owners", "Owners agree that the lid leaks.", "The lid leaks."),
    Pair(
        "fixed as broken",
        "The battery drains overnight.",
        "The battery drained overnight, then the new firmware sorted it.",
    ),
    Pair("a rival's merit", "The lid seals well.", "Unlike this one, the Yeti lid seals well."),
    Pair("two versions mixed", "The Ember mug 2 leaks.", "The Ember mug 1 leaks."),
    Pair(
        "a sale as the price",
        "The mug costs 99 dollars.",
        "The mug was 99 dollars in the sale, usually 149.",
    ),
    Pair("irony", "The battery is brilliant.", "Brilliant battery, dead by nine in the morning."),
    Pair("rhetorical question", "The price is fair.", "Who on earth calls this price fair?"),
    Pair("a double denial", "The lid is not safe.", "I would not say the lid is not safe."),
    Pair(
        "an exception dropped",
        "It keeps coffee warm.",
        "It keeps coffee warm unless the room is cold.",
    ),
    Pair("faint praise as love", "Owners love the app.", "The app is okay I guess."),
    Pair("owning as liking", "Owners like the mug.", "I bought the mug last week."),
    Pair("a wish for less", "Owners want more notifications.", "I want fewer notifications."),
    Pair("a made-up place", "The mug leaks at the base.", "The mug leaks at the lid."),
)
"""What the local support check refuses; the last 17 were written after its rules."""
ONLY_A_MODEL = (
    Pair(
        "a negation flipped",
        "The app works without an account.",
        "The app does not work without an account.",
    ),
    Pair("a number in words changed", "Charging takes three hours.", "Charging takes two hours."),
    Pair("a part as the whole", "The mug is bad.", "The app is bad."),
    Pair("once as a rule", "The app keeps crashing.", "The app crashed once."),
    Pair("the past as the present", "The app crashes.", "The app crashed until the update fixed it."),
    Pair("a plan as done", "Owners returned the mug.", "I am thinking about returning the mug."),
    Pair("another person's", "The mug burned an owner.", "My kettle burned me."),
    Pair(
        "a sequence as a cause",
        "The update broke the battery.",
        "The battery died after the update.",
    ),
    Pair(
        "cause and effect swapped",
        "The heat comes from the noise.",
        "The noise comes from the heat.",
    ),
    Pair("who did it swapped", "Support refused owners a refund.", "I refused a refund from support."),
    Pair(
        "a seller's claim as experience",
        "Owners say it keeps coffee hot all day.",
        "The box says it keeps coffee hot all day.",
    ),
    Pair(
        "at most as at least",
        "It stays warm for at least 60 minutes.",
        "It stays warm for at most 60 minutes.",
    ),
    Pair("a recommendation turned round", "Owners recommend the mug.", "I can't recommend the mug."),
    Pair(
        "a subset of users",
        "Owners find the app confusing.",
        "My grandmother found the app confusing.",
    ),
    Pair("a similar word", "The coating is sticky.", "The coating sticks well to the steel."),
)
"""What it lets by: docs/keyless.md says why of each kind."""
SUPPORTED = (
    Pair("praise", "Owners praise the battery.", "The battery is excellent."),
    Pair("complaint", "Owners complain about the app.", "The app is awful and crashes."),
    Pair("complaint in other words", "The app is terrible.", "The app is awful."),
    Pair("fact", "The lid is sold separately.", "The lid is sold separately, by the way."),
    Pair("number", "It holds heat for 60 minutes.", "It holds heat for 60 minutes."),
    Pair("wish", "Owners wish for a louder alarm.", "I wish it had a louder alarm."),
    Pair("demand", "Users want an offline mode.", "Please add an offline mode."),
    Pair("question", "People ask whether the lid leaks.", "Does the lid leak?"),
    Pair("hearsay as such", "They say the battery lasts.", "They say the battery lasts."),
    Pair("denial", "The lid never closes.", "The lid never closes properly."),
    Pair("denied complaint", "Owners have no complaints.", "I have no complaints."),
    Pair("cause", "It died because of the cold.", "It died because of the cold."),
    Pair("certainty", "The app always crashes.", "The app always crashes on me."),
    Pair("comparison", "It is quieter than the old one.", "It is quieter than the old one."),
    Pair("plural", "The batteries died.", "The battery died after a month."),
    Pair("the name", "The Ember mug keeps coffee warm.", "It keeps coffee warm."),
    Pair("ending", "The coating peeled.", "The coating peels."),
    Pair("aspect", "The charging coaster broke.", "The charging coaster broke."),
    Pair("scope", "Everyone in the office hates the app.", "Everyone in the office hates the app."),
    Pair("love", "Owners love the mug.", "I love this mug."),
    Pair("theme", "Battery: “The battery dies”", "It stands on the charger."),
    Pair(
        "summary",
        "Most said: “The battery dies”, “The app opens”.",
        "The battery is small. The app opens.",
    ),
)


def exhibits_of(*items: Item) -> tuple[Exhibit, ...]:
    """Items as exhibits."""
    return Dossier().show(assessed(item) for item in items)
