"""How counts, stars, prices, dates and names read."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.sources.amazon_pages import (
    asin_of,
    brand_of,
    count_of,
    day_of,
    price_of,
    ratings_of,
    review_title,
    shopper,
    site_of,
    stars_of,
)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("84,753 ratings", 84_753),
        ("(226)", 226),
        ("84.7K", 84_700),
        ("(2M)", 2_000_000),
        ("1.234.567", 1_234_567),
        ("12 kids found this helpful", 12),
        ("One person found this helpful", 1),
        ("1,23,456 ratings", 123_456),
        ("12,34,567", 1_234_567),
        ("84,7 Tsd.", 84_700),
        ("(84,7\u202fTsd.)", 84_700),
        ("84,7 mil", 84_700),
        ("8.4万", 84_000),
        ("1.1万件", 11_000),
        ("2만", 20_000),
        ("5 тыс.", 5_000),
        ("1’234", 1_234),
        ("1'234'567", 1_234_567),
        ("84\u202f753 évaluations", 84_753),
        ("84\u00a0753", 84_753),
        ("1,2 Mio.", 1_200_000),
        ("15,592件の評価", 15_592),
        ("12 Personen fanden diese Informationen hilfreich", 12),
        ("A una persona le resultó útil", 1),
        ("￥15,592", None),
        ("$18.99", None),
        ("18,99 €", None),
        ("EUR 18,99", None),
        ("someone", None),
        ("", None),
        (None, None),
        (True, None),
        (1e300, None),
        (float("nan"), None),
        (-3, None),
        (19039, 19_039),
        ("9" * 400, 999_999_999_999),
    ],
)
def test_counts(words: object, count: int | None) -> None:
    """Numbers, abbreviations and words become a count, anything else nothing."""
    assert count_of(words) == count


@pytest.mark.parametrize(
    ("words", "stars"),
    [
        ("4.5 out of 5 stars", 4.5),
        ("4,5 von 5 Sternen", 4.5),
        ("5つ星のうち4.3", 4.3),
        ("5,0 de 5 estrellas", 5.0),
        ("4,0\u00a0de 5\u00a0estrellas", 4.0),
        (4, 4.0),
        ("4.5", 4.5),
        (0, None),
        (9.5, None),
        (False, None),
        (float("inf"), None),
        (10**400, None),
        ("new", None),
    ],
)
def test_stars(words: object, stars: float | None) -> None:
    """Above 0 to 5; a rating of 0 means that nobody rated."""
    assert stars_of(words) == stars


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("Reviewed in Canada on October 29, 2023", (2023, 10, 29)),
        ("Reviewed in the United Kingdom on 3 May 2024", (2024, 5, 3)),
        ("Reviewed in India on Sept. 9, 2025", (2025, 9, 9)),
        ("2026-09-03", (2026, 9, 3)),
        ("Rezension aus Deutschland vom 29. Oktober 2023", (2023, 10, 29)),
        ("Bewertet in Deutschland am 3. März 2024", (2024, 3, 3)),
        ("Reseñado en España el 29 de octubre de 2023", (2023, 10, 29)),
        ("2023年10月29日に日本でレビュー済み", (2023, 10, 29)),
        ("Avis laissé en France le 1 août 2025", (2025, 8, 1)),
        ("Recensione in Italia il 5 maggio 2025", (2025, 5, 5)),
        ("Opinia w Polsce: 7 września 2025", (2025, 9, 7)),
        ("Reviewed in Canada on January 1, 1970", None),
        ("Reviewed in Canada on January 1, 2099", None),
        ("0001-01-01", None),
        ("Reviewed on February 30, 2023", None),
        ("Reviewed on Smarch 3, 2023", None),
        (None, None),
    ],
)
def test_days(words: object, day: tuple[int, int, int] | None) -> None:
    """Dates of the marketplaces and ISO dates are days in UTC; what cannot be true is unknown."""
    assert day_of(words) == (datetime(*day, tzinfo=UTC) if day else None)


@pytest.mark.parametrize(
    ("value", "currency", "price"),
    [
        (403.0, "USD", "$403.00"),
        (1499, "$", "$1,499.00"),
        (12.5, "EUR", "EUR 12.50"),
        ("$159.00", "USD", "$159.00"),
        (0, "$", ""),
        (float("nan"), "$", ""),
        (10**400, "$", ""),
        (None, "$", ""),
    ],
)
def test_prices(value: object, currency: str, price: str) -> None:
    """A bare number gets its currency; words stay; no price is nothing."""
    assert price_of(value, currency) == price


@pytest.mark.parametrize(
    ("words", "named", "bare"),
    [
        ("84,753 ratings", 84_753, 84_753),
        ("1 rating", 1, 1),
        ("1,23,456 ratings", 123_456, 123_456),
        ("84.753 Sternebewertungen", 84_753, 84_753),
        ("84.753 valoraciones", 84_753, 84_753),
        ("84\u202f753 évaluations", 84_753, 84_753),
        ("15,592個の評価", 15_592, 15_592),
        ("(84,7 Tsd.)", None, 84_700),
        ("(226)", None, 226),
        ("4.5 out of 5 stars, rating details", None, None),
        ("+5 other colors/patterns", None, None),
        ("(15+ used & new offers)", None, None),
        ("$18.99$18.99List: $34.99", None, None),
        ("￥15,592", None, None),
        ("Leave ad feedback", None, None),
        ("", None, None),
    ],
)
def test_ratings_are_called_so(words: str, named: int | None, bare: int | None) -> None:
    """A label counts ratings when it says so, a link when it holds a count and nothing else."""
    assert ratings_of(words, named=True) == named
    assert ratings_of(words) == bare


@pytest.mark.parametrize(
    ("root", "site"),
    [
        ("https://www.amazon.com", "https://www.amazon.com"),
        ("https://www.amazon.es", "https://www.amazon.es"),
        ("https://amazon.de/", "https://amazon.de"),
        ("http://www.amazon.co.jp", "https://www.amazon.co.jp"),
        ("https://www.amazon.com.au", "https://www.amazon.com.au"),
        ("http://127.0.0.1:8000", "https://www.amazon.com"),
        ("https://amazon.example", "https://www.amazon.com"),
        ("https://amazon-scraper-api.omkar.cloud", "https://www.amazon.com"),
    ],
)
def test_links_lead_to_the_configured_shop(root: str, site: str) -> None:
    """A marketplace's own root is where its products are; another server's is no shop."""
    assert site_of(root) == site


def test_identity() -> None:
    """Only ten capital letters and digits are an ASIN, so it is safe in a path."""
    assert asin_of(" B0TESTAAA1 ") == "B0TESTAAA1"
    assert [asin_of(bad) for bad in ("../etc/pa", "b0testaaa1", "B0", None, 7)] == [""] * 5


def test_pseudonyms_are_stable_and_tell_nothing() -> None:
    """The account decides, else the name; a name that everybody has is nobody's."""
    assert shopper("A1", "Jo") == shopper("A1", "Someone else")
    assert shopper("", "Jo") == shopper(None, " Jo ") != shopper("", "Al")
    assert shopper("", "Amazon Customer") is None
    assert shopper("", "") is None


def test_brands_and_titles() -> None:
    """What Amazon writes around a brand or before a title is not part of it."""
    assert [brand_of(text) for text in ("Visit the Brava Store", "Brand: Brava", "Brava")] == ["Brava"] * 3
    assert brand_of("") is None
    assert review_title("5.0 out of 5 stars  Solid") == "Solid"
    assert review_title("5,0 de 5 estrellas Muy bueno") == "Muy bueno"
    assert review_title("4,0 von 5 Sternen\nGut") == "Gut"
    assert review_title("5つ星のうち5.0 とても良い") == "とても良い"
    assert review_title("5 out of 5, would buy") == "5 out of 5, would buy"
