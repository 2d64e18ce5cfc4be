"""Reading the texts of Amazon's pages and providers, in the languages of its marketplaces.

Counts, ratings, dates and votes arrive as words ("84.7K", "4.5 out of 5 stars", "Reviewed in Canada
on October 29, 2023", "One person found this helpful") or as numbers, depending on the provider.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import regex as re

from api.core.text import clean, one_line
from api.sources.item_fields import plausible_time

NAME = "amazon"
US = "https://www.amazon.com"
# the month in which Amazon opened
BEGAN = datetime(1995, 7, 1, tzinfo=UTC)
# `www.amazon.com`, `amazon.es`, `www.amazon.co.jp`, `www.amazon.com.au`
_HOST = re.compile(r"(?:www\.)?amazon\.(?:(?:com?\.)?[a-z]{2}|com)")
# behind a shortened count: `84.7K`, `84,7 Tsd.`, `84,7 mil`, `8.4万`
_UNITS = {
    **dict.fromkeys(("k", "tsd", "mil", "tys", "bin", "千"), 1_000),
    **dict.fromkeys(("m", "mio", "mln"), 1_000_000),
    "万": 10_000,
    "lakh": 100_000,
}
# the number one as a word: "One person found this helpful"
_ONE_WORD = "one|eine|una|une|uma|één"
# names of ratings behind their number
_RATING_WORDS = (
    r"(?:global )?ratings?|(?:globale )?(?:sterne)?bewertung(?:en)?|valoraci(?:ón|ones)"
    r"|calificaci(?:ón|ones)|évaluations?|valutazion[ei]|recension[ei]|vot[oi]|beoordeling(?:en)?"
    r"|avaliaç(?:ão|ões)|classificaç(?:ão|ões)|betyg|ocen[ay]?|değerlendirme"
    r"|[件個]の(?:グローバル)?(?:評価|レビュー)"
)
# behind the stars of a review
_OF_FIVE = (
    "out of 5 stars|von 5 sternen|de 5 (?:estrellas|estrelas)|sur 5 étoiles|su 5 stelle"
    "|van 5 sterren|av 5 stjärnor|z 5 gwiazdek"
)
NONE_FOUND = (
    "no results for", "did not match any products", "keine ergebnisse", "no hay resultados para",
    "aucun résultat pour", "nessun risultato per", "geen resultaten voor", "nenhum resultado para",
    "inga resultat för", "brak wyników dla", "に一致する商品はありませんでした",
)  # fmt: skip
"""Sentences of pages without results, in lower case."""
# months by their names in lower case, English ones also by their first three or four letters
_MONTHS = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
januari februari maart april mei juni juli augustus september oktober november december
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari mars april maj juni juli augusti september oktober november december
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık
""".strip().split("\n")
_MONTH_NUMBERS = {name: month for line in _MONTHS for month, name in enumerate(line.split(), 1)} | {
    name[:length]: month for length in (3, 4) for month, name in enumerate(_MONTHS[0].split(), 1)
}


def site_of(root: str) -> str:
    """The shop whose pages a person can open: the one at `root`, or else the American one."""
    host = urlsplit(root).hostname or ""
    return f"https://{host}" if _HOST.fullmatch(host) else US


# the id of a product
_ASIN = re.compile(r"[A-Z0-9]{10}")
# "1,234", "4.5", "1.234.567", "1 234": digits in groups, whatever stands between them
_NUMBER = re.compile(r"\d{1,3}(?: \d{3})+(?!\d)|\d{1,12}(?:[.,]\d{1,12})*+")
# "1,234,567", "1.234", "1 234" and "1,23,456": what stands between the groups is no decimal point
_GROUPED = re.compile(r"\d{1,3}(?:[., ]\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}")
# a larger number is no count
_MAX_COUNT = 10**12
# the unit right behind a number: "K", " Tsd", "万"
_UNIT = re.compile(r" ?([^\W\d_]++)")
# a price is no count: "￥15,592", "18,99 €", "EUR 18"
_MONEY = re.compile(r"\p{Sc}|円|\b(?:EUR|USD|GBP|JPY|AED|SAR|EGP|kr|zł|TL)\b", re.I)
# a count of ratings and nothing else: "(226)", "84.7K", "(84,7 Tsd.)", "1,23,456 ratings"
_RATINGS = re.compile(
    rf"\(?\d[\d., ]*+(?:{'|'.join(_UNITS)})?\.?\+?\)?\s*+(?P<words>{_RATING_WORDS})?", re.I
)
# "5.0 out of 5 stars" or "5つ星のうち5.0" before a review's title
_STARS_PREFIX = re.compile(
    rf"^\s*+(?:\d(?:[.,]\d)?\s++(?:{_OF_FIVE})|5つ星のうち\d(?:\.\d)?)\s*+", re.I
)
# words for screen readers before a review's text
_SCREEN_READER = re.compile(
    r"^\s*(?:brief content visible, double tap to read full content\.?"
    r"|full content visible, double tap to read brief content\.?"
    r"|the media could not be loaded\.?)\s*",
    re.I,
)
# "October 29, 2023", "29 October 2023", "29. Oktober 2023", "29 de octubre de 2023"; "2023-10-29"
# at the start; "2023年10月29日"
_DATES = (
    re.compile(r"\b(?P<month>\p{L}{3,12})\.? (?P<day>\d{1,2}), (?P<year>\d{4})\b"),
    re.compile(
        r"\b(?P<day>\d{1,2})\.? (?:de )?(?P<month>\p{L}{3,12})\.? (?:de )?(?P<year>\d{4})\b"
    ),
    re.compile(r"^(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})"),
    re.compile(r"(?P<year>\d{4})年(?P<month>\d{1,2})月(?P<day>\d{1,2})日"),
)


def asin_of(value: object) -> str:
    """The id of a product, ten capital letters and digits; else empty."""
    text = clean(value)
    return text if _ASIN.fullmatch(text) else ""


def stars_of(value: object) -> float | None:
    """Stars, above 0 to 5, from a number or a text such as "4.5 out of 5 stars"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        numbers = [float(value)] if 0 < value <= 5 else []
    else:
        numbers = [_decimal(number) for number in _NUMBER.findall(clean(value))]
    best = min(numbers, default=0.0)
    return best if 0 < best <= 5 else None


def count_of(value: object) -> int | None:
    """A count from a number or a text: "(226)", "21,200 ratings", "84.7K"; None for a price."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int(value) if 0 <= value <= _MAX_COUNT else None
    text = one_line(clean(value)).lower()
    if _MONEY.search(text):
        return None
    number = _NUMBER.search(text)
    if number is None:
        return 1 if re.search(rf"\b(?:{_ONE_WORD})\b", text) else None
    unit = _UNIT.match(text, number.end())
    if unit and (scale := _UNITS.get(unit[1])):
        return round(_decimal(number[0]) * scale)
    if _GROUPED.fullmatch(number[0]):
        return int(re.sub(r"[., ]", "", number[0]))
    return int(_decimal(number[0]))


def ratings_of(text: str, *, named: bool = False) -> int | None:
    """The number of ratings from a text with nothing else; `named`: with a word for ratings."""
    match = _RATINGS.fullmatch(one_line(clean(text)))
    return count_of(match[0]) if match and (match["words"] or not named) else None


def _decimal(number: str) -> float:
    if _GROUPED.fullmatch(number) and len(re.findall(r"[., ]", number)) > 1:
        return float(re.sub(r"[., ]", "", number))
    whole, *rest = re.split(r"[.,]", number)
    return float(f"{whole}.{''.join(rest) or '0'}")


def price_of(value: object, currency: object = "") -> str:
    """A price as text; a bare number gets its currency."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not 0 < value <= _MAX_COUNT:
            return ""
        unit = clean(currency)
        return f"${value:,.2f}" if unit in {"", "$", "USD"} else f"{unit} {value:,.2f}"
    return one_line(clean(value))


def day_of(value: object) -> datetime | None:
    """The day in "Reviewed in ... on ..." in the language of a marketplace, or an ISO date."""
    text = one_line(clean(value))
    match = next((match for match in (shape.search(text) for shape in _DATES) if match), None)
    if match is None:
        return None
    name = match["month"].lower()
    month = int(name) if name.isdigit() else _MONTH_NUMBERS.get(name, 0)
    try:
        return plausible_time(
            datetime(int(match["year"]), month, int(match["day"]), tzinfo=UTC), BEGAN
        )
    except ValueError:
        return None


def review_title(value: object) -> str:
    """The title without the stars that older pages put before it."""
    return one_line(_STARS_PREFIX.sub("", clean(value)))


def review_body(value: object) -> str:
    """The text without the words for screen readers that stand before it."""
    text = clean(value)
    while (shorter := _SCREEN_READER.sub("", text)) != text:
        text = shorter
    return text


def brand_of(value: object) -> str | None:
    """The brand in "Visit the X Store", "Brand: X" or "X"."""
    text = one_line(clean(value))
    text = re.sub(r"^(?:brand:\s*|visit the\s+)", "", text, flags=re.I)
    return re.sub(r"(?<!\s)\s++store$", "", text, flags=re.I).strip() or None
