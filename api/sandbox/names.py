"""Made-up people: handles that belong to nobody."""

from __future__ import annotations

from api.sandbox.corpus import spelled

_FIRST = (
    "amber", "brisk", "cedar", "dapper", "eager", "fuzzy", "gentle", "hazel", "idle", "jolly",
    "kind",
    "lucid", "mellow", "noble", "olive", "plain", "quiet", "rusty", "sunny", "tidy", "umber",
    "vivid",
    "witty", "young",
)  # fmt: skip
_SECOND = (
    "acorn", "badger", "candle", "dune", "ember", "ferry", "gravel", "harbor", "island", "juniper",
    "kettle", "lantern", "meadow", "nickel", "otter", "pebble", "quill", "river", "spoon", "teapot",
    "upland", "velvet", "walnut", "zephyr",
)  # fmt: skip
_DIGITS = "0123456789"


def handle(*parts: object) -> str:
    """A user name, the same for the same parts."""
    first = _FIRST[int(spelled(_DIGITS, 6, "first", *parts)) % len(_FIRST)]
    second = _SECOND[int(spelled(_DIGITS, 6, "second", *parts)) % len(_SECOND)]
    return f"{first}_{second}_{spelled(_DIGITS, 3, *parts)}"


def shopper(*parts: object) -> str:
    """A display name as shoppers have them, often the default one."""
    name = handle(*parts).split("_")
    return "Amazon Customer" if name[2] < "250" else f"{name[0].title()} {name[1][0].upper()}."
