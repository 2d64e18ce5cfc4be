"""How the texts of an Amazon page or provider answer read: no client, no HTML.

Counts, ratings, dates and votes arrive as words ("84.7K", "4.5 out of 5 stars", "Reviewed in Canada
on October 29, 2023", "One person found this helpful") or as numbers, by whoever answers.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from api.services.text import clean, one_line

_ASIN = re.compile(r"[A-Z0-9]{10}")
# "1,234", "4.5", "1.234.567": digits in groups, whatever stands between them
_NUMBER = re.compile(r"\d{1,12}(?:[.,]\d{1,12})*")
# "1,234,567" and "1.234": groups of three, so that what stands between them is no decimal point
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_MOST = 10**12
"""What is larger counts nothing."""
_THOUSANDS = {"k": 1_000, "m": 1_000_000}
# "5.0 out of 5 stars" before a review's title
_STARS_PREFIX = re.compile(r"^\s*\d(?:[.,]\d)?\s+out of 5 stars\s*", re.I)
# words for screen readers before a review's text
_HIDDEN = re.compile(
    r"^\s*(?:brief content visible, double tap to read full content\.?"
    r"|full content visible, double tap to read brief content\.?"
    r"|the media could not be loaded\.?)\s*",
    re.I,
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# "October 29, 2023", "29 October 2023" at the end; "2023-10-29" at the start
_DATES = (
    re.compile(r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}), (?P<year>\d{4})\s*$"),
    re.compile(r"(?P<day>\d{1,2}) (?P<month>[A-Za-z]{3,9})\.? (?P<year>\d{4})\s*$"),
    re.compile(r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
)


def asin_of(value: object) -> str:
    """The ASIN itself, or nothing: ten capital letters and digits."""
    text = clean(value)
    return text if _ASIN.fullmatch(text) else ""


def stars_of(value: object) -> float | None:
    """Stars above 0 to 5 from a number or "4.5 out of 5 stars" in either order."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        numbers = [float(value)] if math.isfinite(value) else []
    else:
        numbers = [_decimal(number) for number in _NUMBER.findall(clean(value))]
    best = min(numbers, default=0.0)
    return best if 0 < best <= 5 else None


def count_of(value: object) -> int | None:
    """A count from a number or its words: "(226)", "21,200 ratings", "84.7K", "One person"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 <= value <= _MOST else None
    text = clean(value).lower()
    number = _NUMBER.search(text)
    if number is None:
        return 1 if re.search(r"\bone\b", text) else None
    scale = _THOUSANDS.get(text[number.end() : number.end() + 1])
    if scale and not text[number.end() + 1 : number.end() + 2].isalpha():
        return round(_decimal(number[0]) * scale)
    if _GROUPED.fullmatch(number[0]):
        return int(re.sub(r"[.,]", "", number[0]))
    return int(_decimal(number[0]))


def _decimal(number: str) -> float:
    if _GROUPED.fullmatch(number) and number.count(",") + number.count(".") > 1:
        return float(re.sub(r"[.,]", "", number))
    whole, *rest = re.split(r"[.,]", number)
    return float(f"{whole}.{''.join(rest) or '0'}")


def price_of(value: object, currency: object = "") -> str:
    """A price in words; a bare number gets its currency."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not math.isfinite(value) or value <= 0:
            return ""
        unit = clean(currency)
        return f"${value:,.2f}" if unit in {"", "$", "USD"} else f"{unit} {value:,.2f}"
    return one_line(clean(value))


def day_of(value: object) -> datetime | None:
    """The day at the end of an English "Reviewed in ... on ..." (either order) or an ISO date."""
    text = one_line(clean(value))
    match = next((match for match in (shape.search(text) for shape in _DATES) if match), None)
    if match is None:
        return None
    name = match["month"].lower()
    named = [n for n, full in enumerate(_MONTHS, 1) if name in {full, full[:3], full[:4]}]
    month = int(name) if name.isdigit() else next(iter(named), 0)
    try:
        return datetime(int(match["year"]), month, int(match["day"]), tzinfo=UTC)
    except ValueError:
        return None


def review_title(value: object) -> str:
    """The title without the stars that older pages put before it."""
    return one_line(_STARS_PREFIX.sub("", clean(value)))


def review_body(value: object) -> str:
    """The text without the words for screen readers that stand before it."""
    text = clean(value)
    while (shorter := _HIDDEN.sub("", text)) != text:
        text = shorter
    return text


def brand_of(value: object) -> str | None:
    """The brand in "Visit the X Store", "Brand: X" or "X"."""
    text = one_line(clean(value))
    text = re.sub(r"^(?:brand:\s*|visit the\s+)", "", text, flags=re.I)
    return re.sub(r"\s+store$", "", text, flags=re.I).strip() or None
