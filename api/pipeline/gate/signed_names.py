"""Names that a sign tells from a word (`C#`, `.NET`, `AT&T`, `H&M`), and names of one letter.

The words of a text leave signs out, so that these are looked for in the text itself.
"""

from __future__ import annotations

import regex

# `.NET`; `C#`, `C++`, `D+`; `AT&T`; `R`: three letters at most on each side of a sign, since
# `Disney+` is known by its letters alone
_DOT = regex.compile(r"\.(\p{L}[\p{L}\p{N}]{1,9})")
_AFTER = regex.compile(r"(\p{L}{1,3})(\+\+|\+|#)")
_BETWEEN = regex.compile(r"(\p{L}{1,3})&(\p{L}{1,3})")
_LETTER = regex.compile(r"[A-Za-z]")
_SPOKEN = {
    "#": ("sharp",),
    "+": ("plus",),
    "++": ("pp", "plusplus", "plus plus"),
}
_FREE, _END = r"(?<![\p{L}\p{N}])", r"(?![\p{L}\p{N}])"


def signed_spellings(query: str) -> tuple[str, tuple[str, ...]] | None:
    """A pattern that finds such a name in a text, and its forms without a sign; None for others.

    `C#` is also found as `CSharp` and `c sharp`, and `.NET` as `dotnet` and in `ASP.NET`. The forms
    are what communities are called: `csharp`, `dotnet`.
    """
    if match := _DOT.fullmatch(query):
        word = match[1]
        written = rf"{_FREE}(?i:\.{word}|dot ?{word}){_END}|(?<=\p{{Lu}})\.{word.upper()}{_END}"
        return written, (f"dot{word.casefold()}",)
    if match := _AFTER.fullmatch(query):
        letters, sign = match.groups()
        spoken = _SPOKEN[sign]
        endings = "".join(rf"|[ -]?{ending}{_END}" for ending in spoken)
        written = rf"{_FREE}(?i:{letters}(?:{regex.escape(sign)}(?![\p{{L}}+#]){endings}))"
        return written, tuple(letters.casefold() + each for each in spoken if " " not in each)
    if match := _BETWEEN.fullmatch(query):
        first, second = match.groups()
        # the capitals alone (`ATT`) from three letters on: `HM` is Her Majesty
        alone = f"|{(first + second).upper()}" if len(first + second) > 2 else ""
        written = rf"{_FREE}(?:(?i:{first} ?(?:&|and) ?{second}){alone}){_END}"
        return written, tuple(f"{first}{join}{second}".casefold() for join in ("", "and"))
    if _LETTER.fullmatch(query):
        # a capital, not in `R&D`, `R-rated`, `R.I.P.`, `Toys'R`, `r/place` or a name's initials
        written = rf"(?<![\p{{L}}\p{{N}}'’&./-]){query.upper()}(?![\p{{L}}\p{{N}}'’&/-]|\.\p{{L}})"
        return written, (query.casefold(),)
    return None
