"""The encoding of a text file: by its mark, by its zeros, as UTF-8, else by its letters.

`charset-normalizer`, imported here alone, tells scripts apart; Western and Central European letters, which it takes for
each other, are told apart by small words that have such a letter.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from functools import cache

import regex
from charset_normalizer import from_bytes

from api.core.words import stop_words, words
from api.errors import UsageError

# the mark of UTF-32 begins with that of UTF-16
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
# what Python can decode and no text file is written in: names of hosts, escapes within programs, mail
_NOT_OF_FILES = ("idna", "punycode", "unicode-escape", "raw-unicode-escape", "hz", "utf-7")
# names that ask for a mark, which is looked for anyway; without one files of Windows have the low byte first
_UNMARKED = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}
# encodings of one script, which the library cannot tell apart
_LATIN = ("cp1252", "cp1250", "cp1254", "mac_roman")
_OTHERS = ("gb18030", "cp932", "big5", "euc_kr", "euc_jp", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256")
_LATIN_LANGUAGES = "de fr es pt it nl sv da no fi pl cs sk hu hr sl ro tr".split()
# bytes of lines with other letters than ASCII by which an encoding is recognised
_MOST_BYTES = 100_000
# how much smoother (share of odd signs), or likelier by its letters, the best must be than the second
_SMOOTHER, _LIKELIER = 0.04, 0.1
# a sign within or before a word, as in `f¸r` and `pó³ dnia`, a ligature, or a capital within a small word: `itÕs`
_ODD = regex.compile(
    r"(?<=\p{L})[^\p{L}\p{M}\p{N}\s\p{P}]|[^\p{L}\p{M}\p{N}\s\p{P}\p{Sc}+](?=\p{L})"
    r"|(?<=\p{L})[\p{P}--['’.,:;\-–—/&…*_@\"!?()\[\]#]](?=\p{L})|[\p{Lm}\ufb01\ufb02]|(?<=\p{Ll})\p{Lu}(?=\p{Ll})",
    regex.V1,
)
# typographic signs, which each of the encodings has elsewhere
_TYPOGRAPHIC = regex.compile(r"(?<=\p{L})’(?=\p{L})|[“”„–—…]|(?<=\d ?)€|€(?= ?\d)")
_ALPHABETS = tuple(map(frozenset, """
äöüß àâæçéèêëîïôœùûüÿ áéíñóúü áâãàçéêíóôõúü àèéìíîòóùú éëïóöüèáç åäöé æøåéòô ąćęłńóśźż áčďéěíňóřšťúůýž
áäčďéíľňóôšťúýž áéíóöőúüű čćđšž ăâîșțşţ çğıöşüâî áðéíóúýþæö äöõüšž àçéèíïóòúü
""".split()))  # fmt: skip
"""Letters beside ASCII's of German, French, Spanish, Portuguese, Italian, Dutch, Swedish, Danish, Polish, Czech,
Slovak, Hungarian, Croatian, Romanian, Turkish, Icelandic, Estonian and Catalan."""
_FOREIGN = regex.compile(r"[^\x00-\x7f]")


class UnreadableFile(UsageError):
    """A file cannot be read, or not in the encoding that was named.

    The message is a predicate without a subject: the caller puts the path before it.
    """


def encoding_of(head: bytes, named: str = "") -> tuple[str, int]:
    """The encoding of a file that begins so, and the length of its byte order mark.

    Without a mark it is the one that is `named`, by `named_encoding`; raises `UnreadableFile` where nothing is named
    and none is likelier than all others.
    """
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            return name, len(mark)
    if named:
        return named, 0
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if max(even, odd) > len(head) // 5 and min(even, odd) <= len(head) // 50:
        return ("utf-16-le" if odd > even else "utf-16-be"), 0
    # a head may be cut within a character, which this leaves out
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(head)
    wrong = text.count("\ufffd")
    foreign = sum(not sign.isascii() for sign in text) - wrong
    # a damaged byte among many good letters is no other encoding, and JSON is UTF-8 but for much that is wrong
    is_json = text.lstrip()[:1] in {"{", "["}
    if wrong <= foreign // 10 or (is_json and wrong <= max(foreign, 3)):
        return "utf-8", 0
    return _recognised(head), 0


def named_encoding(name: str) -> str:
    """The encoding that a person names, as Python calls it; raises `UnreadableFile`."""
    try:
        known = codecs.lookup(name).name
        "a".encode(known)  # refuses what is no encoding of texts, such as `zip`
        if known in _NOT_OF_FILES:
            raise LookupError
    except (LookupError, ValueError):
        raise UnreadableFile(f"`--encoding {name[:40]}`: unknown encoding; try `cp1251`, `gbk`") from None
    return _UNMARKED.get(known, known)


def _recognised(head: bytes) -> str:
    """The likeliest encoding of a text that is not UTF-8."""
    whole = head[: head.rfind(b"\n") + 1] or head  # the last line may be cut within a character
    foreign = b"\n".join(line for line in whole.split(b"\n") if not line.isascii()) or head
    if len(foreign) > _MOST_BYTES:
        foreign = foreign[: foreign.rfind(b"\n", 0, _MOST_BYTES) + 1] or foreign[:_MOST_BYTES]
    best: dict[str, tuple[float, float]] = {}
    for match in from_bytes(foreign, cp_isolation=[*_LATIN, *_OTHERS]):
        family = "latin" if match.encoding in _LATIN else match.encoding
        best[family] = min(best.get(family, (2.0, 0.0)), (match.chaos, -match.coherence))
    ranked = sorted(best.items(), key=lambda pair: pair[1])
    if not ranked:
        raise _unsure(())
    (first, (chaos, coherence)), *others = ranked
    rivals = [
        family for family, (odd, likely) in others if odd - chaos < _SMOOTHER and (likely - coherence < _LIKELIER)
    ]
    if rivals:
        raise _unsure(["cp1252" if name == "latin" else name for name in (first, *rivals)])
    return _latin(foreign) if first == "latin" else first


def _latin(foreign: bytes) -> str:
    """The one of `_LATIN` whose text has more known words, and fewer signs where letters belong, than the others."""
    texts: dict[str, str] = {}  # never empty: in `mac_roman` every byte has a meaning
    for name in _LATIN:
        text = foreign.decode(name, "replace")
        if "\ufffd" not in text and text not in texts.values():
            texts[name] = text
    scores = {name: _plausibility(text) for name, text in texts.items()}
    first, *others = sorted(scores, key=lambda name: -scores[name])
    if scores[first] < 0:  # letters of none of these languages
        raise _unsure(())
    if others and scores[others[0]] == scores[first]:
        raise _unsure([name for name in scores if scores[name] == scores[first]])
    return first


def _plausibility(text: str) -> int:
    """Points for known words and typographic signs, minus those for odd signs and letters of no one language."""
    points = sum(word in _foreign_words() for word in words(text)) + len(_TYPOGRAPHIC.findall(text))
    points -= 2 * len(_ODD.findall(text))
    lines = [[sign for sign in line.lower() if sign.isalpha() and not sign.isascii()] for line in text.split("\n")]
    points -= 2 * sum(map(_unfit_letters, lines))
    return points - _unfit_letters({sign for letters in lines for sign in letters})


def _unfit_letters(letters: Collection[str]) -> int:
    """Number of the letters that the best fitting alphabet does not have."""
    return min(sum(sign not in alphabet for sign in letters) for alphabet in _ALPHABETS)


@cache
def _foreign_words() -> frozenset[str]:
    """Small words of European languages with a letter that is not ASCII's."""
    listed = (word for language in _LATIN_LANGUAGES for word in stop_words(language))
    return frozenset(word for word in listed if _FOREIGN.search(word))


def _unsure(likely: Sequence[str]) -> UnreadableFile:
    which = ", ".join(f"`{name}`" for name in likely[:4])
    may_be = f" (it may be {which})" if which else ""
    return UnreadableFile(f"is no UTF-8, and its encoding cannot be told{may_be}; name it with `--encoding`")
