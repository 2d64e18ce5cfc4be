"""Names whose sign tells them from a word: where a text holds them."""

from __future__ import annotations

import pytest

from api.core.words import split_words
from api.pipeline.gate.name_matches import everyday_parts, is_community_of, name_of, sightings

FOUND = {
    "C#": "I learn C#. | CSharp jobs | c-sharp and c sharp | C#/F# interop | (C#)",
    "C++": "Why C++? | C++17 ranges | modern cpp | c plus plus | cplusplus",
    ".NET": ".NET 9 is out | upgrade to .net core | ASP.NET pages | dotnet run | Dot Net developer",
    "AT&T": "AT&T raised prices | my at&t bill | AT & T store | ATT fiber | at and t",
    "H&M": "H&M returns | an h&m dress | H & M sale | h and m haul | (H&M)",
    "R": "plots in R | R is slow here | an R package | I switched to R. Then | (R)",
}
ABSENT = {
    "C#": "vitamin C | C++ | the key of C | plan C # 4 | F# only",
    "C++": "vitamin C | a C+ in maths | C# | grade C ++ | C",
    ".NET": "fishing net | example.net | net income | the .network | internet",
    "AT&T": "at the T station | at T | data&training | atta | T&A",
    "H&M": "H or M | HM the Queen | 5 h & 10 m | AH&MA | ham",
    "R": "R&D spend | PG-R rated | our r | J.R.R. Tolkien | Toys'R'Us",
}
CASES = [
    (query, text, expected)
    for expected, table in ((True, FOUND), (False, ABSENT))
    for query, texts in table.items()
    for text in texts.split(" | ")
]


def test_the_table_has_sixty_texts() -> None:
    """Ten a name, half of them with another meaning."""
    assert len(CASES) == 60


@pytest.mark.parametrize(("query", "text", "expected"), CASES)
def test_a_sign_tells_a_name_from_a_word(query: str, text: str, expected: bool) -> None:
    """In any usual spelling, and never by its letters alone."""
    for asked in {query, query.lower()}:
        assert bool(sightings(name_of(asked), split_words(text), text)) is expected


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("C#", "r/csharp"),
        ("C++", "r/cpp"),
        (".NET", "r/dotnet"),
        ("AT&T", "r/ATT"),
        ("H&M", "r/HM"),
    ],
)
def test_its_community_is_spelled_without_the_sign(query: str, place: str) -> None:
    """The name of a community holds letters only."""
    assert is_community_of(name_of(query), place)


def test_a_sighting_covers_its_words() -> None:
    """From the first letter of the name on."""
    text = "My AT&T bill"
    (found,) = sightings(name_of("AT&T"), split_words(text), text)
    assert (found.at, found.size, found.start) == (1, 2, 3)


def test_a_single_letter_is_an_everyday_word() -> None:
    """Its description must bear out what it means; `AT&T` means one thing."""
    assert [everyday_parts(name_of(query)) for query in ("R", "C#", "AT&T", ".NET")] == [1, 1, 0, 0]


def test_a_long_name_keeps_its_plain_form() -> None:
    """`Disney+` is known by its letters."""
    text = "Disney has it"
    assert sightings(name_of("Disney+"), split_words(text), text)
