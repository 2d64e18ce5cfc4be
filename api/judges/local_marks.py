"""What a text gives away apart from its topic: adverts, orders to a model, lists, model codes."""

from __future__ import annotations

import re
from collections.abc import Sequence

import regex

from api.judges.local_names import Name, Sighting, Word
from api.judges.local_words import ACCESSORIES, ARTICLES, CALENDAR, FOREIGN, SMALL, TALK, TIMES

_SPAM = re.compile(
    r"\b(?:promo(?:\s?codes?|tion)?|coupons?|vouchers?|discounts?|cashback|bargain|clearance"
    r"|use (?:my |the |our )?(?:code|link)|\d+ ?% (?:off|discount)|give-?aways?|airdrop|referral"
    r"|affiliate|sponsored|resellers?|dropship\w*|replicas?"
    r"|free (?:gift ?cards?|followers|shipping|crypto|trial|download|apk)"
    r"|(?:limited|today'?s?) (?:time )?(?:offer|deals?)|deal alert|(?:flash|mega) sale|on sale"
    r"|(?:best|hot|top|daily|mega) (?:deals?|price|offers?)|save (?:big|up to|\$|\d+)"
    r"|links? in (?:my |the )?(?:bio|description|profile|comments?)|dm (?:me|us)|whats ?app"
    r"|telegram|t\.me|click (?:here|the link|below)|visit our|our store"
    r"|check out (?:my|our) (?:shop|store|channel)|earn \$?\d+|passive income|make money"
    r"|(?:buy|order|shop|subscribe|sign up|grab (?:it|yours)) now"
    r"|(?:follow|contact) (?:me|us) (?:for|and|on)|hurry|while (?:stocks?|supplies) last"
    r"|act (?:fast|now)|guaranteed|100 ?% (?:working|legit)|gutscheine?|rabatt\w*|código|cupón"
    r"|cupom|promoción|descuento|sconto|réduction|codes? promo)\b"
    r"|优惠|折扣|[🔥💥🎁🤑💰👉➡✅🚀]|#ad\b"
)
_CAPS_CODE = re.compile(r"\b[A-Z]{4,}\d{2,3}\b")
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|skip)\b[^.!?\n]{0,40}\b(?:rules?|instructions?"
    r"|prompts?|guidelines?|criteria|directions?|filters?|above|previous)\b"
    r"|\b(?:mark|rate|label|classify|return|score|count|treat|judge|grade|flag|answer|output"
    r"|reply|respond|set|consider)\b[^.!?\n]{0,40}"
    r"\b(?:relevant|true|5 ?(?:/|out of) ?5|score of 5)\b"
    r"|\b(?:this|these|every|all) (?:post|item|text|comment|video|entry|items|posts)\b"
    r"[^.!?\n]{0,20}\b(?:relevant|on[- ]topic)\b|\bsystem ?(?:prompt|message|:)"
    r"|\[(?:system|inst)\]|</?(?:system|item|assistant|user)\b"
    r"|\b(?:you are|act as) (?:now )?(?:an? )?(?:ai|assistant|model|llm|judge|grader)\b"
    r"|\bas an ai\b|\b(?:note|message|attention|instructions?|dear|hey|hello)[ ,:]*"
    r"(?:to |for )?(?:the |all )?(?:ai|ais|llms?|(?:language )?models?|judges?|graders?"
    r"|assistants?|filters?|classifiers?|bots?)\b|\brelevant\"? ?[:=] ?\[? ?(?:true|yes|1)\b"
)
_LISTED = regex.compile(r"(?<=[,/|+&•])\s*\p{Lu}\p{L}*(?:\s\p{Lu}\p{L}*)?\s*(?=[,/|+&•]|and\b)")
_LATIN = regex.compile(r"\p{Latin}")
_OTHER = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)
_FITS = regex.compile(r"\b(?:compatible with|fits?|made for|designed for|works with|for)\b")
_CODE = regex.compile(
    r"(?=[\p{L}\p{N}/-]*\p{N})(?=[\p{L}\p{N}/-]*\p{L})[\p{L}\p{N}]+(?:[/-][\p{L}\p{N}]+)*"
)
_UNIT = regex.compile(
    r"\d+(?:[./x]\d+)*(?:mb|gb|tb|mp|ghz|mhz|mm|cm|m|in|inch|hz|k|w|mah|v|a|x|p|g|kg|oz|ml|l|s|th"
    r"|nd|rd|st|pack|pcs|fps|core|bit|yr|yo|days?|hrs?|d|h|min)",
    regex.I,
)
_NUMBER = regex.compile(r"(?<![\p{L}\p{N}])\d+(?:\.\d+)?")
_NOT_LETTERS = regex.compile(r"[^\p{L}\p{N}]+")


def spam(text: str) -> float:
    """0, or more the more it sounds like an advert; 1 from two marks on."""
    found = len(_SPAM.findall(text.lower())) + len(_CAPS_CODE.findall(text))
    return min(found / 2, 1.0)


def orders(text: str) -> float:
    """1 when the text talks to a model."""
    return float(bool(_ORDERS.search(text.lower())))


def common_use(seen: Sighting, words: Sequence[Word], *, named: bool) -> float:
    """How far a name is used like an ordinary word: in small letters, after an article, a date.

    0 when the query itself is no name.
    """
    if not named or seen.at < 0 or seen.size != 1 or seen.handle:
        return 0.0
    word = words[seen.at]
    before = words[seen.at - 1].text if seen.at and not word.opens else ""
    after = words[seen.at + 1].text if seen.at + 1 < len(words) else ""
    score = 0.0
    if seen.lower:
        score = 0.8 if sum(w.capital for w in words) > 1 and words[0].capital else 0.3
    if not word.capital and (before in ARTICLES or after in ("of", "that")):
        score += 0.4
    if before in TIMES or word.text in CALENDAR:
        score += 0.7
    return min(score, 1.0)


def namesake(seen: Sighting, words: Sequence[Word], known: frozenset[str]) -> float:
    """1 when a capitalised word the question does not know stands before the name (`Intel Arc`)."""
    if seen.at < 1 or seen.handle or words[seen.at].opens:
        return 0.0
    before = words[seen.at - 1]
    titled = sum(w.capital for w in words) > 0.5 * len(words)
    other = before.capital and not before.opens and not before.shouted and not before.mark
    return float(other and not titled and before.text not in known)


def passing(seen: Sighting, words: Sequence[Word], text: str) -> float:
    """1 when the name comes once, late, and not in the first line."""
    if seen.at < 12 or seen.count > 1 or words[seen.at].end <= text.find("\n"):
        return 0.0
    return 1.0 if seen.at >= 20 else 0.5


def talk(stems: frozenset[str]) -> float:
    """How much it sounds like somebody who owns or buys a product; 1 from two words on."""
    return min(len(TALK & stems) / 2, 1.0)


def listed(seen: Sighting, words: Sequence[Word], text: str) -> float:
    """1 when the name is one of many in a list or among five hashtags."""
    if seen.at < 0 or seen.count > 1:
        return 0.0
    tags = sum(w.mark == "#" for w in words)
    commas = _LISTED.findall(text)
    return 1.0 if tags >= 5 or len(commas) >= 3 else 0.5 if len(commas) == 2 else 0.0


def accessory(query: Sequence[str], words: Sequence[Word], seen: Sighting, text: str) -> float:
    """1 for something sold for the product, 0.5 when only the noun says so."""
    asked = set(query)
    nouns = any(w.text in ACCESSORIES and w.text not in asked for w in words)
    if not nouns:
        return 0.0
    before = text[: words[seen.at].end] if seen.at >= 0 else text
    return 1.0 if _FITS.search(before.lower()) else 0.5


def other_script(text: str) -> bool:
    """Most letters are not Latin; the word vectors know next to nothing of such a text."""
    return not text.isascii() and len(_OTHER.findall(text)) > len(_LATIN.findall(text))


def foreign(words: Sequence[Word], text: str) -> float:
    """1 when the text is not in English, where the word vectors say little."""
    if other_script(text):
        return 1.0
    strange = sum(w.text in FOREIGN for w in words)
    plain = sum(w.text in SMALL and w.text not in FOREIGN for w in words)
    return float(strange >= 2 and strange > plain)


def codes(text: str) -> frozenset[str]:
    """Model codes: letters and digits together, sizes left out."""
    return frozenset(
        m[0].lower() for m in _CODE.finditer(text) if len(m[0]) > 2 and not _UNIT.fullmatch(m[0])
    )


def code_fit(wanted: frozenset[str], text: str) -> tuple[float, float]:
    """Whether a wanted code is found, and whether the text has others instead."""
    if not wanted:
        return 0.0, 0.0
    held = codes(text)
    bare = _NOT_LETTERS.sub("", text.lower())
    found = any(code in held or (len(code) > 4 and _bare(code) in bare) for code in wanted)
    return float(found), float(bool(held) and not found)


def numbers(text: str) -> frozenset[str]:
    """The numbers in a text, units cut off."""
    return frozenset(_NUMBER.findall(text))


def successor(name: Name, seen: Sighting, words: Sequence[Word]) -> float:
    """1 when the query's number is replaced by another (`FIFA 06` for `FIFA 20`)."""
    wanted = {w for w in name.words if w.isdigit()}
    if not wanted or seen.at < 0 or seen.strength >= 0.9:
        return 0.0
    after = [w.text for w in words[seen.at : seen.at + seen.size + 2]]
    return float(any(w.isdigit() and w not in wanted for w in after))


def _bare(code: str) -> str:
    return _NOT_LETTERS.sub("", code)
