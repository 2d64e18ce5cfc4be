"""Pictures as SVG text: shapes of numbers that are finite and words that are escaped.

Colours and sizes of words are the page's, by class, or plain attributes: a page that allows no
style but its own may show what is made here.
"""

from __future__ import annotations

from html import escape
from math import isfinite
from unicodedata import east_asian_width

from api.core.text import clean, one_line


def element(tag: str, *content: str, **attributes: float | str) -> str:
    """A tag around markup; `text_anchor` is written `text-anchor`, and `class_` is `class`."""
    written = "".join(f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"' for name, value in attributes.items())
    inner = "".join(content)
    return f"<{tag}{written}>{inner}</{tag}>" if inner else f"<{tag}{written}/>"


def words(x: float | str, y: float, text: object, **attributes: float | str) -> str:
    """Text whose baseline is at `y`."""
    return element("text", escape(one_line(clean(text))), x=x, y=y, **attributes)


def title(text: object) -> str:
    """A text that appears under the pointer."""
    return element("title", escape(one_line(clean(text))))


def percent(share: float) -> str:
    """A share of the picture's width, from 0 to 1, as `12.5%`; not a number: `0%`."""
    return f"{_rounded(min(1.0, max(0.0, share if isfinite(share) else 0.0)) * 100)}%"


def part(count: float, whole: float) -> float:
    """Share `count` of `whole`, from 0 to 1; 0 when `whole` is 0."""
    return min(1.0, max(0.0, count / whole)) if whole else 0.0


def brief(count: int) -> str:
    """A count in at most five characters: `9999`, `12k`, `3.4M`, `>999G`."""
    if count < 10_000:
        return str(count)
    for size, unit in ((1e3, "k"), (1e6, "M"), (1e9, "G")):
        if count < 999.5 * size:
            number = count / size
            return f"{number:.0f}{unit}" if number >= 9.95 else f"{number:.1f}{unit}"
    return ">999G"


def shortened(text: object, columns: int) -> str:
    """One line of at most this many columns; a longer text ends with an ellipsis."""
    line = one_line(clean(text))
    if _columns(line) <= columns:
        return line
    while _columns(line) >= columns:
        line = line[:-1]
    return f"{line.rstrip()}…"


def _columns(text: str) -> int:
    """Chinese, Japanese and Korean signs are twice as wide as others."""
    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escape(clean(value))
    return _rounded(value if isfinite(value) else 0.0)


def _rounded(number: float) -> str:
    """A number with at most two decimals, such as `12.5` or `3`, and without a negative zero."""
    return f"{round(number, 2) + 0.0:.2f}".rstrip("0").rstrip(".")
