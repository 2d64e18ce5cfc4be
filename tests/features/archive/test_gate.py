"""What is worth a search, and what is answered with guidance."""

from __future__ import annotations

import pytest

from api.features.archive.search import guidance_for

SEARCHED = {
    "three words": "stops charging overnight",
    "a sentence": "what did people say about the battery last month?",
    "another language": "akku hält kaum tag",
    "an id": "t3_1a",
    "a model": "v2",
    "a code": "error 0x80070057",
    "an e-mail": "me@example.org",
    "a file": "app.log",
    "a snake": "max_retries",
    "a host": "plaud.ai",
    "a name in a text": "the Ember",
    "a name in quotes": 'is "Ember" good',
    "a quotation of two words": '"sounds sure"',
    "a name in single letters": "on a Sony",
    "a name with a capital inside": "iPhone",
    "two letters of Chinese": "小米",
    "one letter of Chinese": "米",
    "Japanese": "充電",
    "Katakana": "カメラ",
    "Thai": "กาแฟ",
    "Khmer": "កាហ្វេ",
    "a known name in lower case": "ember",
    "a known name in the plural": "EMBERS!",
    "a known name with vague words": "ember thing",
    "a known name of another script": "плауд",
    "a name that only looks like nothing": "C++ 20",
    "operators around a name": '"ember" NEAR mug',
    "a rating": "4.5 stars",
    "a year": "best 2026",
}
GUIDED = {
    "nothing": "",
    "blanks": " \n\t",
    "what nobody sees": "\u200b\u00ad",
    "punctuation": "?!... --",
    "one sign over and over": "aaaaaaa",
    "operators alone": "site:reddit.com OR",
    "a word": "battery",
    "a first word with a capital": "Battery",
    "two vague words": "good stuff",
    "a question of small words": "what about it?",
    "small words and one that is none": "is it any good",
    "English small talk": "hey there, how's it going",
    "German small talk": "Guten Morgen, wie geht's",
    "Spanish small talk": "hola, buenos días",
    "French small talk": "bonjour, ça va ?",
    "Chinese small talk": "你好",
    "Japanese small talk": "こんにちは",
    "Russian small talk": "привет, как дела",
    "thanks": "thanks a lot!",
    "a test": "just testing",
    "a part of a known name": "emb",
    "a book": "word " * 20_000,
    "one token of a hundred thousand letters": "x" * 100_000,
}
KNOWN = ("ember mug", "Плауд", "小米手环")


@pytest.mark.parametrize("text", SEARCHED.values(), ids=SEARCHED)
def test_text_is_searched(text: str) -> None:
    """Three words with a meaning, or anything that names."""
    assert guidance_for(text, KNOWN, 3) == ""


@pytest.mark.parametrize("text", GUIDED.values(), ids=GUIDED)
def test_text_is_guided(text: str) -> None:
    """It says what to write instead, with an example or a limit."""
    guidance = guidance_for(text, KNOWN, 3)

    assert "for example" in guidance or "at most 500 characters" in guidance


def test_what_is_known_decides() -> None:
    """A name that nobody asked about is a word like any other."""
    assert guidance_for("ember", (), 3) != ""
    assert guidance_for("ember", ("the",), 3) != ""
    assert guidance_for("ember", ("x", "EMBER's mug"), 3) == ""


def test_least_number_of_words_is_a_setting() -> None:
    """Small talk is none with 0, either."""
    assert guidance_for("good stuff", (), 2) != "", "`good` is a word without a meaning"
    assert guidance_for("battery lid", (), 2) == ""
    assert guidance_for("battery lid", (), 3) != ""
    assert guidance_for("it", (), 0) == ""
    assert guidance_for("hello there", (), 0) != ""
