"""The features of a text for the local judge: numbers from 0 to 1, each with a fixed direction.

Also signs against it apart from its topic: adverts, job posts, orders to a model, add-ons. Words of the question
itself are no such sign: an offer of Groupon's, a post about Telegram.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import regex

from api.core.words import content_words, split_words, stem
from api.models.local.likeness import Likeness, likeness
from api.models.local.parsed_text import Reading, Topic, figures_of
from api.models.local.word_vectors import Vectors
from api.pipeline.gate.name_matches import NEARLY, PART, WHOLE, Sighting, other_version
from api.reports.keyless.aspects import aspects_in

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

# a sentence about a video, a text or whoever made it, in which the thing has no part
_SPEAKER = regex.compile(
    r"\b(?:videos?(?! (?:calls?|chats?|quality|record))|vids?|channels?|subscrib\w*|subbed|(?:re)?viewers?|youtub\w*"
    r"|tutorials?|unboxings?|thumbnails?|edit(?:ors?|ing)|narrat\w+|thanks?|thank (?:you|u)|thx|bravo|comments?"
    r"|commenters?|first (?:like|view)|like button|watch(?:ed|ing) (?:this|your)|(?:well|nicely) done"
    r"|(?:great|nice|good|best|amazing|awesome|incredible|excellent|your|ur|this) (?:\w+ )?"
    r"(?:reviews?|jobs?|works?|content|tips?|stuff)|(?:see|make|do) (?:one|more|another) of (?:these|those))\b"
)
# a sentence to or about a person; one that points at something may be about the thing all the same
_PERSON = regex.compile(r"\b(?:your|ur|you're|youre|you are|he|him|his|she|her|guy|bro|dude|sir|brother|my man)\b")
# what points at a person, not at the thing: `this guy`
_POINTED_PERSON = regex.compile(r"\b(?:this|that|these|those) (?:guy|man|dude|bro|person|people)\b")
_OWNER = regex.compile(r"\b(?:my|mine|i've|ive|got|had|bought|ordered)\b")
_SENTENCE_END = regex.compile(r"(?<=[.!?…\n。！？])\s*")
_HANDLE = regex.compile(r"@\S+|https?://\S+")
# Likeness to the thing from which a sentence that points at nothing is taken to be about it.
_ON_TOPIC = 0.2


def speaks_of_it(text: str, near: Likeness) -> bool:
    """Whether a text in a place of the product, without its name, is about the product.

    Thanks, praise of a video and what is said to or of people is not. What is left must point at
    something, say that somebody owns it, speak of an aspect of products (battery, price), or be like
    the question and the texts that name the thing; texts that vectors cannot compare need no more.
    Figures of the comments on which this was chosen, and of others: docs/local-judge.md.
    """
    sentences = _SENTENCE_END.split(_POINTED_PERSON.sub(" he ", _HANDLE.sub(" ", text.casefold())))
    left = " ".join(
        sentence
        for sentence in sentences
        if not _SPEAKER.search(sentence) and (_POINTER.search(sentence) or not _PERSON.search(sentence))
    )
    meant = near.lexical or near.like >= _ON_TOPIC or points(left) or bool(_OWNER.search(left) or aspects_in(left))
    return bool(content_words(left)) and meant


def adverts(title: str, text: str, known: Set[str]) -> list[str]:
    """Words of an advert, in order; `known` are the stems of the question's own.

    A shop's tile has no `title` here: it is there to sell, and its price is no mark.
    """
    marks = [match[0] for match in _ADVERT.finditer(text.casefold())]
    marks += _PRICE.findall(title)[:1]
    return [words for words in marks if not _own(words, known)]


def job(text: str) -> bool:
    """Whether the text offers or seeks a job."""
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
    """Whether the text refers to something without naming it."""
    return bool(_POINTER.search(text.casefold()))


def _own(words: str, known: Set[str]) -> bool:
    return not known.isdisjoint(stem(word.text) for word in split_words(words))


FOR = (
    "named", "handle", "words", "figures", "like", "named_like", "place", "pointer", "sense",
    "nearby", "setting", "told",
)  # fmt: skip
"""Features that can only increase a score."""
AGAINST = ("late", "vague", "small", "version", "made_for", "advert")
"""Features that can only decrease a score."""
FEATURES = FOR + AGAINST
AGAINST_ALL, FOR_ALL = ("job", "order"), ("clear", "home")
"""Rules: a job post or an order to a model is out; a text that itself names the thing, in its title
if it has one, and has nothing against it is in; so is one that stands in a place of the thing alone
and speaks of it. A comment there that does not is `aside`; a text that only lists the name is `listed`."""
Row = dict[str, float]
DESCRIBED = 0.12
"""Mean likeness to the description from which nothing speaks for another meaning. By recall and MCC
on the mention and the real set; docs/local-judge.md has what other values give."""
_CAPITAL = regex.compile(r"\b\p{Lu}\p{Ll}")
# Capitals from which a text is one that uses them.
_CASED = 3


def page(topic: Topic, readings: Sequence[Reading], source: str, vectors: Vectors | None) -> list[Row]:
    """Measure the texts of one page; without `vectors` likeness is a share of words."""
    near = likeness(topic, readings, vectors)
    return [
        _row(reading, measured, other, shop=source == "amazon")
        for reading, measured, other in zip(readings, near, _other_meanings(readings, near, source), strict=True)
    ]


def _other_meanings(readings: Sequence[Reading], near: Sequence[Likeness], source: str) -> list[float]:
    """Strength of the signs that each text names something else than what is described.

    That a post shares nothing with a short description says little; that all posts of its
    community on this page that name the thing do not says much. An untitled text is judged by its
    own words. Nothing speaks against a text without a community, or in a community of the thing.
    """
    places = [_community(reading, source) for reading in readings]
    # where the whole page stands in one place, the place tells no meanings apart
    several = len(set(places) - {""}) > 1
    naming: dict[str, list[int]] = {}
    for at, place in enumerate(places):
        if readings[at].overall >= NEARLY:
            naming.setdefault(place, []).append(at)
    against = []
    for at, (reading, place) in enumerate(zip(readings, places, strict=True)):
        witnesses = [at]
        if reading.lines[0]:
            known = several and place and not reading.own_place
            witnesses = naming.get(place, []) if known else []
        amount = min(1.0, sum(readings[other].amount for other in witnesses))
        sense = sum(near[other].sense for other in witnesses) / (len(witnesses) or 1)
        against.append(amount * max(0.0, 1 - sense / DESCRIBED))
    return against


def _community(reading: Reading, source: str) -> str:
    """Community of a text about one subject; empty for channels and brands, which have several subjects."""
    elsewhere = reading.shown.comment or source in ("amazon", "youtube")
    return "" if elsewhere else reading.shown.place.casefold()


def _row(reading: Reading, near: Likeness, other_meaning: float, *, shop: bool) -> Row:
    topic, title, text, strong = reading.topic, reading.lines[0], reading.text, reading.strong
    strength = reading.overall
    named = float(strength >= NEARLY)
    about, ambiguous = float(topic.aim == "about"), named * topic.everyday
    # an everyday name in a longer form (`monday.com`, `#notion`) is no everyday word any more
    bare = all(seen.size == 1 and not reading.words[at][seen.at].marked for at, seen in strong)
    plain = topic.everyday * named * (bare or topic.everyday < 1)
    small = bool(strong) and not topic.written_small
    small = small and all(reading.lines[at][seen.start].islower() for at, seen in strong)
    marked = any(reading.words[at][seen.at].marked and seen.strength > PART for at, seen in strong)
    accessory = any(made_for(reading.lines[at], seen) for at, seen in strong[:1])
    other_title, other_passage = (
        other_version(topic.name, reading.words[line], reading.mentions[line]) for line in (0, 1)
    )
    row = {
        "named": named,
        "handle": float(marked),
        "words": reading.share(0, 1) if len(topic.name.words) > 1 else 0.0,
        "figures": (len(topic.figures & figures_of(text)) / len(topic.figures) if topic.figures else 0.0),
        "like": near.like,
        "named_like": strength * near.like,
        "place": float(reading.own_place),
        "pointer": float(reading.thread and strength < PART and points(text)),
        "sense": ambiguous * near.sense,
        "nearby": ambiguous * near.nearby,
        "setting": ambiguous * near.setting,
        "told": ambiguous * reading.described,
        "vague": ambiguous * (topic.everyday == 1 and bool(topic.about)) * other_meaning,
        "late": about * float(bool(title) and reading.strength(1) >= NEARLY > reading.strength(0)),
        "small": plain * (small and len(_CAPITAL.findall(text)) >= _CASED),
        "version": float(other_title or (strength < WHOLE and other_passage)),
        "made_for": float(shop and accessory),
        "advert": about * min(len(adverts("" if shop else title, text, topic.known)), 2) / 2,
        "job": about * float(job(text)),
        "order": float(order(text, topic.known)),
    }
    marked_down = any(row[name] for name in (*AGAINST, *AGAINST_ALL))
    rules = {"clear": named * (not marked_down), "home": 0.0, "aside": 0.0, "excluded": near.excluded}
    rules["listed"] = about * float(not shop and reading.listed)
    # under a title that names the thing, another version is compared with what the text points at
    others = [name for name in (*AGAINST, *AGAINST_ALL) if not (name == "version" and reading.shown.comment)]
    if reading.home and not (named or any(row[name] for name in others)):
        about_it = speaks_of_it(text, near) and not (row["version"] and not points(text))
        rules |= {"home": float(about_it), "aside": float(reading.shown.comment and not about_it)}
    return row | rules | {"lexical": float(near.lexical)}
