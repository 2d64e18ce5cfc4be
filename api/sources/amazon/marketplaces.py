"""What Amazon's marketplaces write in their own languages, and where each of them lives."""

from __future__ import annotations

from urllib.parse import urlsplit

import regex

US = "https://www.amazon.com"
# `www.amazon.com`, `amazon.es`, `www.amazon.co.jp`, `www.amazon.com.au`
_HOST = regex.compile(r"(?:www\.)?amazon\.(?:(?:com?\.)?[a-z]{2}|com)")

UNITS = {
    **dict.fromkeys(("k", "tsd", "mil", "tys", "bin", "千"), 1_000),
    **dict.fromkeys(("m", "mio", "mln"), 1_000_000),
    "万": 10_000,
    "lakh": 100_000,
}
"""What stands behind a shortened count: `84.7K`, `84,7 Tsd.`, `84,7 mil`, `8.4万`."""
SINGLE = "one|eine|una|une|uma|één"
"""The first number where it is written as a word: "One person found this helpful"."""
RATINGS = (
    r"(?:global )?ratings?|(?:globale )?(?:sterne)?bewertung(?:en)?|valoraci(?:ón|ones)"
    r"|calificaci(?:ón|ones)|évaluations?|valutazion[ei]|recension[ei]|vot[oi]|beoordeling(?:en)?"
    r"|avaliaç(?:ão|ões)|classificaç(?:ão|ões)|betyg|ocen[ay]?|değerlendirme"
    r"|[件個]の(?:グローバル)?(?:評価|レビュー)"
)
"""What the number of ratings is called, as a pattern."""
OF_FIVE = (
    "out of 5 stars|von 5 sternen|de 5 (?:estrellas|estrelas)|sur 5 étoiles|su 5 stelle"
    "|van 5 sterren|av 5 stjärnor|z 5 gwiazdek"
)
"""What stands behind the stars of a review, as a pattern."""
NONE_FOUND = (
    "no results for",
    "did not match any products",
    "keine ergebnisse",
    "no hay resultados para",
    "aucun résultat pour",
    "nessun risultato per",
    "geen resultaten voor",
    "nenhum resultado para",
    "inga resultat för",
    "brak wyników dla",
    "に一致する商品はありませんでした",
)
"""What a page without results says, in lower case."""
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
MONTHS = {name: month for line in _MONTHS for month, name in enumerate(line.split(), 1)} | {
    name[:length]: month for length in (3, 4) for month, name in enumerate(_MONTHS[0].split(), 1)
}
"""Months by their names in lower case, English ones also by their first three or four letters."""


def site_of(root: str) -> str:
    """The shop whose pages a person can open: the configured one, or the American one.

    Another server's root (a provider, a test) is no shop.
    """
    host = urlsplit(root).hostname or ""
    return f"https://{host}" if _HOST.fullmatch(host) else US
