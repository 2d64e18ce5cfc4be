"""Finds texts with a product's name in sources without a search: by bytes first, then by the gate's rules."""

from __future__ import annotations

import re
from collections.abc import Collection

import regex

from api.core.text import fold
from api.core.words import split_words
from api.pipeline.gate.name_matches import PART, Name, best, sightings


class NameFilter:
    """Whether a post names a product: first by its bytes, so that most posts are never read as JSON."""

    def __init__(self, name: Name) -> None:
        """`name` from `name_of`; its forms and initials become the byte needles."""
        self._name = name
        forms = {form for form, strength in name.forms if strength >= PART} | {name.initials} - {""}
        needles = _shortest({_needle(form) for form in _shortest(forms)})
        # two letters stand in every other address, so they are looked for only where there is nothing longer
        self._needles = [needle for needle in needles if len(needle) > 2] or needles
        self._ascii = tuple(needle.encode() for needle in self._needles if needle.isascii())
        self._other = tuple(needle for needle in self._needles if not needle.isascii())

    def __call__(self, frame: bytes) -> bool:
        """Whether the post in a frame may have the name; also true for some that do not."""
        if b"\\" in frame:
            if b"\\u" in frame or b"\\\\" in frame:  # `\u0026`, or a backslash itself
                return True
            frame = frame.replace(b"\\n", b" ").replace(b"\\t", b" ").replace(b"\\r", b" ")
        if self._name.signed:
            return regex.search(self._name.signed, frame.decode("utf-8", "replace")) is not None
        if self._ascii:
            letters = frame.translate(_LOWER, _NO_LETTERS)
            if any(needle in letters for needle in self._ascii):
                return True
        if frame.isascii() or not (self._other or _may_fold(frame)):
            return False
        words = _NO_WORD.sub("", fold(frame.decode("utf-8", "replace")))
        return any(needle in words for needle in self._needles)

    def strength(self, text: str) -> float:
        """How much of the name a text has; 0 when the gate would not accept it as a mention."""
        strength = best(sightings(self._name, split_words(text), text)).strength
        return strength if strength >= PART else 0.0


# bytes of small letters and figures; others are left out, so that `Plaud-Note` and `plaud note` are one
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(byte for byte in range(256) if not (byte < 128 and chr(byte).isalnum()))
# the first bytes of letters with accents, of which all fold to others; and of those of which some do (full width,
# mathematical), with the second byte of these
_ACCENTS = bytes([*range(0xC3, 0xCA), 0xCC, 0xCD])
_NO_LEADS = bytes({*range(256)} - {*_ACCENTS, 0xE1, 0xE2, 0xEF, 0xF0})
_NO_ACCENTS = bytes({*range(256)} - {*_ACCENTS})
_FOLDED = re.compile(rb"\xe1[\xb8-\xbb]|\xe2[\x84\x92\x93]|\xef[\xac\xbc\xbd]|\xf0\x9d")
_NO_WORD = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_LETTERS = regex.compile(r"[^\p{N}]{3,}")


def _may_fold(frame: bytes) -> bool:
    """Whether a frame has letters beyond ASCII that may stand for ones within it."""
    leads = frame.translate(None, _NO_LEADS)
    return bool(leads) and (bool(leads.translate(None, _NO_ACCENTS)) or _FOLDED.search(frame) is not None)


def _shortest(forms: Collection[str]) -> list[str]:
    """The forms that contain no other form, since a text with a longer one contains these, too; sorted."""
    return sorted(form for form in forms if not any(other != form and other in form for other in forms))


def _needle(form: str) -> str:
    """The part of a form that each text with it contains: its longest run of letters, since figures may be Roman."""
    runs = _LETTERS.findall(form)
    return max(runs, key=len) if runs else form
