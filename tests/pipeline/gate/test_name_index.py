"""Which of many names a text holds, as the gate spells them."""

from __future__ import annotations

import pytest

from api.core.words import split_words
from api.pipeline.gate.name_index import NameIndex, is_findable
from api.pipeline.gate.name_matches import MODEL, best, name_of, sightings

NAMES = (
    ("plaud", "plaud.ai", ""),
    ("fold", "Galaxy Z Fold 7", ""),
    ("things", "Things", "the planning app"),
    ("c#", "C#", "the programming language"),
    ("mi", "小米手机", ""),
    ("red", "Red Dead Redemption 2", "the western game by Rockstar"),
    ("ember", "Ember mug", "keeps coffee warm"),
)


def index() -> NameIndex[str]:
    """All of `NAMES`."""
    made: NameIndex[str] = NameIndex()
    for name in NAMES:
        made.add(*name)
    return made


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Is PlaudAI worth it?", ["plaud"]),
        ("My #plaud broke", ["plaud"]),
        ("applauding the plauditsai", []),
        ("Z Fold7 hinge", ["fold"]),
        ("The fold of my shirt, 7 times", []),
        ("All the things I own", []),
        ("Things is the planning app that I kept", ["things"]),
        ("C# beats Java as a language", ["c#"]),
        ("vitamin C", []),
        ("我的小米手机很好", ["mi"]),
        ("RDR2 is a western", ["red"]),
        ("rdr2 by night", []),
        ("Ember keeps my coffee hot", ["ember"]),
        ("An ember glowed", []),
        ("EmberMug and plaud.ai on one desk", ["plaud", "ember"]),
    ],
)
def test_names_in_a_text(text: str, keys: list[str]) -> None:
    """Every spelling, on whole words; what may be meant otherwise only beside a word of its description."""
    assert index().find(text) == keys


def test_a_removed_name_is_not_found() -> None:
    """And a key that is added again has its new name alone."""
    names = index()
    names.remove("plaud")
    names.remove("never added")
    names.add("mi", "Xiaomi")

    assert (names.find("plaud.ai"), names.find("小米手机"), names.find("Xiaomi")) == ([], [], ["mi"])
    assert len(names) == len(NAMES) - 1
    for key, *_ in NAMES:
        names.remove(key)
    assert (len(names), names.find("plaud.ai 小米手机 Xiaomi C# the language")) == (0, [])


def test_as_the_gate_finds_one_name() -> None:
    """A whole name is found exactly where the gate sees it written out, over texts made of parts of names."""
    parts = ("plaud", "ai", "Galaxy", "Z", "fold", "7", "note", "小米", "手机", "s", ".", "-", "#")
    texts = [f"{a}{gap}{b}{gap}{c}" for a in parts for b in parts for c in parts for gap in ("", " ")]
    names = index()
    for key, query, about in NAMES[:2]:
        name = name_of(query, about)
        for text in texts:
            seen = best(sightings(name, split_words(text), text)).strength >= MODEL
            if seen:
                assert key in names.find(text), text


@pytest.mark.parametrize(
    ("query", "about", "findable"),
    [
        ("plaud.ai", "", True),
        ("Arc", "", True),
        ("Things", "", False),
        ("Things", "the planning app", True),
        ("Things", "Things", False),
        ("X", "", False),
        ("小米", "", True),
        ("Galaxy Z Fold 7", "", True),
    ],
)
def test_a_name_that_means_many_things_needs_a_description(query: str, about: str, findable: bool) -> None:
    """One that says what it is by more than the name."""
    assert is_findable(query, about) is findable


def test_keys_of_the_same_name_share_it() -> None:
    """One that is removed or renamed leaves the others."""
    index: NameIndex[str] = NameIndex()
    for key in "abc":
        index.add(key, "Obsidian", "the notes app")
    index.remove("b")
    index.add("c", "Notion")

    assert (index.find("my Obsidian vault"), index.find("Notion"), len(index)) == (["a"], ["c"], 2)
    index.remove("a")
    assert index.find("my Obsidian vault") == []
