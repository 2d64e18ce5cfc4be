"""The query gate, operators and names."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from api.core.words import canonical, content_words
from api.pipeline.question.query_screen import (
    OPERATOR_FIELDS,
    SOURCE_OPERATOR_FIELDS,
    is_small_talk,
    screen_query,
    without_operators,
)

SOURCES = (
    "reddit", "youtube", "amazon", "items", "hackernews", "stackexchange", "github", "lemmy",
    "discourse",
)  # fmt: skip
OWN = [field for fields in SOURCE_OPERATOR_FIELDS.values() for field in fields]
PIECES = st.sampled_from(
    [*(f"{field}:" for field in [*OPERATOR_FIELDS, *OWN]), "@potter", "#mugs", " l ",
     *"()[]{}\"'*?~^\\|&-+!:/<>= ", "&&", "AND", "OR", "NOT",
     "created:>2020", "mug", "C++", "R&D", "Spider-Man", "plaud.ai", "小米", "x", "2", "“", "”"]
)  # fmt: skip
QUERIES = st.lists(PIECES, max_size=12).map("".join) | st.lists(PIECES, max_size=8).map(" ".join)


@pytest.mark.parametrize(
    "query",
    [
        "HP", "X", "小米", "اپل", "plaud.ai", "monday", "C++", "Notion", "Oura ring battery", "R1",
        "3M", "what do people say about the ember mug", "The Who", "hey.com", "Hello Kitty",
        "你好小米", "is microsoft good", "Nothing", "what is the ring like", "X vs Y",
        "what about On", "café ☕ 小米", "McDonald's \"best\" {x} \\n", "AC/DC", "دیجی‌کالا", "it",
        "acme site:evil.com author:me created:>2020", "1Password", "what about IT", "HP IS OK",
    ],
)  # fmt: skip
def test_names_pass(query: str) -> None:
    """However short, ambiguous or foreign a name is, it may be asked, and nothing is said."""
    screened = screen_query(query)

    assert (screened.ok, screened.guidance) == (True, "")


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("", "Nothing was asked"),
        (" \n\t\x00", "Nothing was asked"),
        ("???", "no word"),
        ("☕", "no word"),
        ("\u200b", "Nothing was asked"),
        ("aaaaaaa", "no word"),
        ("site:evil.com author:me", "search operators only"),
        ('title:"foo bar"', "search operators only"),
        ("-cheap", "search operators only"),
        ("site:a OR site:b", "search operators only"),
        ("(NOT)", "search operators only"),
        ("mug " * 200, "at most 500 characters"),
        ("hey", "Hello!"),
        ("heyyyy", "Hello!"),
        ("hey this is a test message", "Hello!"),
        ("hey site:evil.com", "Hello!"),
        ("great!", "Hello!"),
        ("hello how are you", "Hello!"),
        ("how are you", "Hello!"),
        ("HOW ARE YOU", "Hello!"),
        ("I think I'm here", "Hello!"),
        ("what’s up", "Hello!"),
        ("thanks a lot", "Hello!"),
        ("Hola, ¿qué tal?", "Hello!"),
        ("bonjour comment ça va", "Hello!"),
        ("hallo wie geht es dir", "Hello!"),
        ("привет как дела", "Hello!"),
        ("Merhaba nasılsın", "Hello!"),
        ("مرحبا كيف حالك", "Hello!"),
        ("سلام", "Hello!"),
        ("你好吗？", "Hello!"),
        ("こんにちは！", "Hello!"),
        ("안녕하세요", "Hello!"),
    ],
)
def test_what_cannot_be_searched_gets_guidance(query: str, hint: str) -> None:
    """Nothing, noise, operators and small talk are answered with what to write instead."""
    screened = screen_query(query)

    assert not screened.ok
    assert hint in screened.guidance


def test_what_nobody_sees_is_no_part_of_a_question() -> None:
    """
    A pasted name with zero width, BOM or soft hyphen inside is the name.
    """
    pasted = "\ufeffpla\u200bud no\u00adte"

    assert screen_query(pasted).query == without_operators(pasted, "reddit") == "plaud note"
    assert not screen_query("\u200b\u2060").ok


def test_the_sizes_are_the_callers() -> None:
    """Length and the number of lone stop words are arguments, and the query comes back clean."""
    assert screen_query(" standing\x00\n desk ").query == "standing desk"
    assert not screen_query("standing desk", longest=5).ok
    assert screen_query("how are you", stop_words_alone=4).ok
    assert is_small_talk("who is it")
    assert not is_small_talk("who is it", alone=4)
    assert content_words("What is the Ring's battery, the battery?") == ("ring's", "battery")


@pytest.mark.parametrize(
    ("query", "reddit", "youtube", "amazon"),
    [
        ("acme site:evil.com author:me created:>2020", "acme", "acme", "acme"),
        ('C++ plaud.ai "two words"', 'C++ plaud.ai "two words"', 'C++ plaud.ai "two words"',
         "C++ plaud.ai two words"),
        ("Spider-Man R&D Disney+", "Spider-Man R&D Disney+", "Spider-Man R&D Disney+",
         "Spider-Man R&D Disney+"),
        ("mug -ember --x", "mug", "mug", "mug"),
        ("-20C jacket - warm", "20C jacket warm", "20C jacket warm", "20C jacket warm"),
        ("(a OR b) AND NOT c*", "a or b and not c", "(a or b) and not c*", "a or b and not c"),
        ('title:"foo bar" subreddit:(a b) mug', "mug", "mug", "mug"),
        ("nsfw:yes|INTITLE:x mug|cup", "mug cup", "mug cup", "mug cup"),
        ("say “hi” \"odd", 'say "hi" odd', 'say "hi" odd', "say hi odd"),
        ("movie title: Dune", "movie title Dune", "movie title Dune", "movie title Dune"),
        ("AC/DC /r/mugs foo~2 x^3", "AC/DC r/mugs foo x", "AC/DC /r/mugs foo~2 x^3",
         "AC DC r mugs foo 2 x 3"),
        ("https://www.plaud.ai/note", "plaud.ai/note", "plaud.ai/note", "plaud.ai note"),
        ("Re:Zero really?", "Re Zero really", "Re:Zero really?", "Re Zero really"),
        ("+mug !cup a&&b", "mug cup a b", "mug cup a b", "mug cup a b"),
        ("café ☕ 小米", "café ☕ 小米", "café ☕ 小米", "café 小米"),
        ("McDonald’s", "McDonald's", "McDonald's", "McDonald's"),
    ],
)  # fmt: skip
def test_operators_are_disarmed(query: str, reddit: str, youtube: str, amazon: str) -> None:
    """Each source loses what it would obey and keeps names as they are written."""
    assert [without_operators(query, source) for source in SOURCES[:3]] == [reddit, youtube, amazon]


@pytest.mark.parametrize(
    ("query", "hackernews", "stackexchange", "github", "lemmy", "discourse"),
    [
        ("mug repo:a/b is:issue -label:x", "mug repo:a/b is:issue", "mug repo:a/b", "mug",
         "mug repo:a/b is:issue", "mug repo:a/b is:issue"),
        ("mug user:12 score:3", "mug user:12 score:3", "mug", "mug score:3", "mug user:12 score:3",
         "mug score:3"),
        ("mug order:latest category:tea after:2026-01-01", "mug order:latest category:tea",
         "mug order:latest category:tea", "mug order:latest category:tea",
         "mug order:latest category:tea", "mug"),
        ("@potter #mugs mug l", "@potter #mugs mug l", "@potter #mugs mug l", "potter #mugs mug l",
         "potter #mugs mug l", "potter mugs mug"),
        ("[tag] (mug OR cup*) status: what", "[tag] (mug or cup*) status: what",
         "tag (mug or cup) status: what", "[tag] mug or cup* status what",
         "[tag] (mug or cup*) status: what", "[tag] (mug or cup*) status what"),
        ('C# AT&T "plaud.ai" t-mobile', 'C# AT&T "plaud.ai" t-mobile',
         'C# AT&T "plaud.ai" t-mobile', 'C# AT&T "plaud.ai" t-mobile', "C# AT&T plaud.ai t-mobile",
         'C# AT&T "plaud.ai" t-mobile'),
        ('-"for parts" mug', "mug", "mug", "mug", "mug", "mug"),
    ],
)  # fmt: skip
def test_operators_of_places_without_a_key(
    query: str, hackernews: str, stackexchange: str, github: str, lemmy: str, discourse: str
) -> None:
    """Each loses what it alone would obey; where nothing obeys a word, it stays."""
    expected = [hackernews, stackexchange, github, lemmy, discourse]

    assert [without_operators(query, source) for source in SOURCES[4:]] == expected


@given(QUERIES, st.sampled_from(SOURCES))
def test_nothing_armed_is_left(query: str, source: str) -> None:
    """Whatever is combined, no operator survives, and a second pass changes nothing."""
    plain = without_operators(query, source)

    assert without_operators(plain, source) == plain
    assert not regex.search(rf"(?i)(?<!\w)(?:{'|'.join(OPERATOR_FIELDS)}):\S", plain)
    assert not regex.search(r'(?<![^\s("])-\S|\||&&', plain)
    assert not regex.search(r"(?<!\S)(?:AND|OR|NOT)(?!\S)", plain)
    assert plain.count('"') % 2 == 0
    for field in SOURCE_OPERATOR_FIELDS.get(source, ()):
        assert not regex.search(rf"(?i)(?<!\w){field}:\S", plain)
    if source == "discourse":
        assert not regex.search(r"(?<!\S)(?:[@#]\S|[ltr](?!\S))", plain)
    if source in {"lemmy", "amazon"}:
        assert '"' not in plain
    if source == "reddit":
        assert not regex.search(r"[][(){}\\*?:~^!]", plain)


@pytest.mark.parametrize(
    "variants",
    [
        ("plaud.ai", "plaud ai", "PLAUD.AI", '"plaud.ai"', "Plaud-AI", "“plaud.ai”", "#plaudai"),
        ("McDonald's", "McDonald’s", "mcdonalds"),
        ("L'Oréal", "L’Oreal™", "loreal"),
        ("Wi-Fi", "Wi‑Fi", "wifi", "ＷｉＦｉ"),
        ("Straße", "STRASSE"),
        ("اپل", "ا‌پل", "اپَل"),
    ],
)
def test_variants_of_a_name_are_one(variants: tuple[str, ...]) -> None:
    """Case, width, quotes, dots, hyphens and optional diacritics do not tell names apart."""
    assert len({canonical(name) for name in variants}) == 1


def test_different_names_stay_different() -> None:
    """Signs that carry meaning, and marks that make another letter, are kept."""
    names = ("C", "C++", "C#", "R&D", "RD", "かく", "がく", "и", "й", "小米", "大米")

    assert len({canonical(name) for name in names}) == len(names)
    assert canonical("???") == ""
