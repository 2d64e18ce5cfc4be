"""What a text gives away apart from its topic: adverts, job posts, orders to a model, add-ons.

A mark made of the question's own words is none: an offer of Groupon's, a post about Telegram.
"""

from __future__ import annotations

from collections.abc import Set

import regex

from api.services.gate.sightings import Sighting
from api.services.gate.words import split, stem

_ADVERT = regex.compile(
    r"\b(?:promo(?:\s?codes?|tion)?|coupons?|vouchers?|discounts?|cashback|bargain|clearance"
    r"|use (?:my |the |our )?(?:code|link)|\d+ ?% ?(?:off|discount)|give-?aways?|airdrop|referral"
    r"|affiliate|sponsored|deals|deal (?:alert|of)|steals"
    r"|(?:flash|mega) sale|on sale|save (?:big|up to|\$|\d+)"
    r"|free (?:gift ?cards?|followers|shipping|crypto|trial|download|apk)|today'?s? only"
    r"|links? in (?:my |the )?(?:bio|description|profile|comments?)|dm (?:me|us)|whats ?app"
    r"|telegram|click (?:here|the link|below)|gutscheine?|rabatt\w*|código|cupón|cupom"
    r"|descuento|sconto|réduction|codes? promo)\b|#ad\b|\[offer\]|优惠|折扣"
)
# a shop's price in the title of a post: `$89.24 (was $112.99)`
_PRICE = regex.compile(r"[$£€] ?\d[\d.,]*[.,]\d\d\b|\d[.,]\d\d ?€")
_JOB = regex.compile(
    r"\[hiring\]|\[for hire\]|\b(?:remote job|job (?:post|opening|offer)|we(?: a|')re hiring"
    r"|apply (?:now|here)|stellenangebot)\b"
)
# such as: ignore all previous instructions; mark this post as relevant
_ORDER = regex.compile(
    r"\b(?:ignore|disregard|forget|override|bypass|skip)\b[^.!?\n]{0,40}\b(?:rules?|instructions?"
    r"|prompts?|guidelines?|criteria|directions?|filters?|above|previous)\b"
    r"|\b(?:mark|rate|label|classify|return|score|count|treat|judge|grade|flag|answer|output"
    r"|reply|respond|set|consider)\b[^.!?\n]{0,40}"
    r"\b(?:relevant|true|5 ?(?:/|out of) ?5|score of 5)\b"
    r"|\b(?:this|these|every|all) (?:post|item|text|comment|video|entry|items|posts)\b"
    r"[^.!?\n]{0,20}\b(?:relevant|on[- ]topic)\b|\brelevant\"? ?[:=] ?\[? ?(?:true|yes|1)\b"
    r"|\bsystem ?(?:prompt|message|:)|\[(?:system|inst)\]|</?(?:system|item|assistant|user)\b"
)
# "you are an AI", "note to the model": words that a question about an assistant may hold as well
_ADDRESS = regex.compile(
    r"\b(?:you are|act as) (?:now )?(?:an? )?(?:ai|assistant|model|llm|judge|grader)\b|\bas an ai\b"
    r"|\b(?:note|message|attention|instructions?|dear|hey|hello)[ ,:]*(?:to |for )?(?:the |all )?"
    r"(?:ai|ais|llms?|(?:language )?models?|judges?|graders?|assistants?|filters?|classifiers?"
    r"|bots?)\b"
)
# what stands before the name of a thing that something else is made for: `case compatible with`
_MADE_FOR = regex.compile(
    r"\b(?:for|fits?|compatible with|works? with|designed|replacement|spare|für|pour|para"
    r"|kompatibel)\b[^.|:!?\n]{0,40}$",
    regex.I,
)
# what points at the thing that the title names: `it`, `these`
_POINTER = regex.compile(r"\b(?:it|its|they|them|these|this|mine|one)\b")


def adverts(title: str, text: str, known: Set[str]) -> list[str]:
    """Words of an advert, in order; `known` are the stems of the question's own.

    A shop's tile has no `title` here: it is there to sell, and its price is no mark.
    """
    marks = [match[0] for match in _ADVERT.finditer(text.casefold())]
    marks += _PRICE.findall(title)[:1]
    return [words for words in marks if not _own(words, known)]


def job(text: str) -> bool:
    """Somebody is looking for staff."""
    return bool(_JOB.search(text.casefold()))


def order(text: str, known: Set[str]) -> bool:
    """The text talks to a model instead of a reader."""
    folded = text.casefold()
    addressed = (match[0] for match in _ADDRESS.finditer(folded))
    return bool(_ORDER.search(folded)) or any(not _own(words, known) for words in addressed)


def made_for(text: str, sighting: Sighting) -> bool:
    """Something is offered for the thing that is named here."""
    return bool(_MADE_FOR.search(text[: sighting.start]))


def points(text: str) -> bool:
    """The text speaks of something that it need not name."""
    return bool(_POINTER.search(text.casefold()))


def _own(words: str, known: Set[str]) -> bool:
    return not known.isdisjoint(stem(word.text) for word in split(words))
