"""Whether an English sentence praises (1) or complains (-1), where that is sure; its "lean".

A lexicon of words that rarely mean anything else, reversed by denial, what the product did or failed
to do (`experience.py`), and rules for what is no opinion: questions, wishes, hearsay, comparisons,
two-sided and ironic sentences. How often it is right, and what it was compared with: docs/keyless.md.
"""

from __future__ import annotations

from functools import cache

import regex

from api.core.text import fold
from api.pipeline.question.product_name import question_parts
from api.reports.keyless.aspects import data
from api.reports.keyless.experience import count_experiences, is_beside
from api.reports.keyless.product_mentions import OTHER_THING, Subject, names_another

SIDES = {1: "praise", -1: "a complaint"}
"""What a sentence is called that leans so."""
# `n't` and small words reverse what follows within four words: `not worth`, `never a bug`; `no`
# and `without` only up to a verb (`a plan without limits is a joke`) or a comma (`charged me
# without warning, shady`)
_DENIED = regex.compile(
    r"(?:(?:\b(?:not|never|none|nothing|hardly|barely|nobody|neither|cannot|zero)\b|n't\b)"
    r"(?:[^\w.!?;:,]+\w[\w'-]*){0,4}?[^\w.!?;:]*"
    r"|\b(?:no|without)\b(?:[^\w.!?;:,]+(?!(?:is|are|was|were)\b)\w[\w'-]*){0,4}?[^\w.!?;:,]*)$"
)
DENIAL = regex.compile(r"(?i)\b(?:no|not|never|none|nothing|hardly|barely|without|cannot)\b|n't\b")
_WORD = regex.compile(r"\p{L}[\p{L}'-]*")
_LATIN = regex.compile(r"[^\W\d_]")
# a question, also without its sign: `Is it any good?`, `anyone know if it leaks`, `any tips`
ASKING = regex.compile(
    r"(?i)[?？]\s*[\"'”’)]*\s*$|^\W*(?:(?:does|do|did|is|are|was|has|have|can|could|would|will"
    r"|should) (?:it|this|that|they|the|anyone|anybody|somebody|someone|you|there|i|we)\b"
    r"|(?:where|what|which|who|how|why|when) (?:is|are|do|does|can|should|would|to|did)\b"
    r"|any(?:one|body)? (?:tips|idea|know|else|had|tried|got)\b|which one\b"
    r"|how (?:good|bad|long|do)\b)"
)
# a wish or a demand: `I wish it had`, `would love`, `please add`, `needs a better clip`
WISHING = regex.compile(
    r"(?i)\b(?:wish(?:es|ed)?|(?:would|'d) (?:love|like|prefer|pay)|hop(?:e|es|ing)|hopefully"
    r"|please|if only|bring back|feature request|ideally"
    r"|should (?:have|be|let|offer|allow|add|ship|sell|show)|(?:could|let) (?:they|us|me|you)\b"
    r"|want (?:an?|it|them|my)\b|needs? (?:an?|more|better)\b"
    r"|(?:would|could) be (?:an? )?(?:so )?(?:great|nice|perfect|amazing|good|better|cool|awesome)"
    r"|why can't|i'd buy|would buy two)\b"
)
# what is no experience of the one who writes: hearsay, conditions, plans, instructions
HEARSAY = regex.compile(
    r"(?i)\b(?:people say|they say|they said|claims?|claimed|promis\w+|advertis\w+|according to"
    r"|supposed\w*|i (?:heard|read)|heard (?:that|the)|some (?:\w+ )?(?:call|say)|says the|told me"
    r"|swore|if|unless|whether|afraid|worried|let me know|was a (?:joy|pleasure)|used to|back then"
    r"|would|could|might|should|may|^maybe|depends|sarcasm|spoiler)\b|/s\b"
)
# two sides in one sentence, or one side and its exception: `great sound but`, `shame about`
_TWO_SIDED = regex.compile(
    r"(?i)\b(?:but|although|though|however|yet|while|whereas|except|despite|otherwise|still"
    r"|shame about"
    r"|aside from|apart from|only (?:downside|complaint|issue|problem)|on the other hand"
    r"|pros?|cons?|the good|the bad|both|from \w+ to \w+)\b"
)
# a comparison: whom the words praise is not sure
_COMPARING = regex.compile(
    r"(?i)\b(?:th[ae]n|compared|versus|vs\.?|unlike|instead of|rather|same as|as \w+ as|prefer"
    r"|beats?|better|worse|best of|switched|alternative)\b"
)
# ... unless it opens with its own side: `Much better than`, `It is far worse than`
_COMPARED_FIRST = regex.compile(
    r"(?i)^\W*(?:(?:it|this|it's) (?:is|was|feels|sounds|works) )?"
    r"(?:so |much |far |way |a lot |miles )?"
    r"(?:better|nicer|faster|quieter|worse|slower|louder)\b.{0,40}\bthan\b"
)
# praise said over a failure, or of what nobody wants: `Great, another update`, `love paying`
IRONY = regex.compile(
    r"(?i)^\W*(?:great|wow|nice|fantastic|awesome|perfect|oh|sure|congrat\w+|thanks|lovely"
    r"|brilliant|well done)\s*,"
    r"|^\W*(?:oh|sure|congrat\w+|thanks|nice of|what an?|so)\b|\blov(?:e|ing) (?:paying|waiting"
    r"|how)\b|,\s*(?:lovely|great|nice|brilliant|wonderful|fantastic|awesome"
    r"|perfect|love it)\s*[.!]*$|\bjust love\b|\banother\b|\bforgot\b"
    r"|\bpaperweight|\bdoorstop|\bbrick\b|\bbecause who\b|🙄|\bapparently\b"
)

# a side that is named before what is on it: `Cons: the battery`; not of two sides in one sentence
_NAMED_SIDE = regex.compile(
    r"(?i)\b(?:(?P<bad>bad|cons?|negatives?|downsides?|dislikes?)|(?P<good>good|pros?|positives?|upsides?|likes?))\s?:\**\s"
)
# ends a sentence that differs from the one before, and says nothing of its own side: `It is quiet, though`
_THOUGH = regex.compile(r"(?i),? though\W*$")
# what a question asks for: `what annoys people`, `any downsides`; `what do they like`
_WANTED = {
    -1: regex.compile(
        r"(?i)\b(?:annoy|bother|complain|dislik|irritat|frustrat|downside|drawback|weakness|wrong"
        r"|(?:hate|problem|issue)s?\b)"
    ),
    1: regex.compile(
        r"(?i)\b(?:(?:do|does|did|they|people|users|owners|everyone) (?:\w+ )?"
        r"(?:like|love|enjoy)s?\b|prais|upside|strength)"
    ),
}

# Of these a sentence gives no sure opinion of its writer on the product.
_UNSURE = (ASKING, WISHING, HEARSAY, _TWO_SIDED, OTHER_THING)
# separates clauses that may have different subjects: `it is light, the clip broke`
_CLAUSE = regex.compile(r"[,;–—]|\s-\s|\band (?=(?:the|it|its|my|i|we|they)\b)", regex.I)

# Characters before a word that are searched for its denial, which stands within four words.
_DENIAL_REACH = 200
# Characters of the longest sentence that is read: what is longer is a list or unpunctuated text.
_LONGEST = 1_000


@cache
def _lexicon() -> tuple[regex.Pattern[str], regex.Pattern[str], frozenset[str], frozenset[str]]:
    """Patterns of praise and complaint; small words of English alone and of other languages."""
    read = data("polarity")

    def words(name: str) -> regex.Pattern[str]:
        families = "|".join(f"(?:{line})" for line in read[name].split("\n") if line)
        return regex.compile(rf"(?<![\w-])(?:{families})(?![\w-])")

    return (
        words("good"),
        words("bad"),
        frozenset(read["english"].split()),
        frozenset(read["foreign"].split()),
    )


def is_english(text: str) -> bool:
    """Whether a sentence is English, by its letters and small words."""
    letters = _LATIN.findall(text)
    if not letters or any(not letter.isascii() for letter in letters):
        return False
    *_, english, foreign = _lexicon()
    words = {word.lower() for word in _WORD.findall(text)}
    return len(words & foreign) <= len(words & english) and not (words & foreign and not words & english)


def count_feelings(sentence: str, subject: Subject | None = None) -> tuple[int, int]:
    """Words of praise and of complaint, denied ones counted as the opposite, the name left out."""
    good, bad, *_ = _lexicon()
    text = fold(subject.pattern.sub(" ", sentence) if subject else sentence).replace("’", "'")
    pro = con = 0
    for pattern, sign in ((good, 1), (bad, -1)):
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - _DENIAL_REACH) : match.start()]
            sign_here = -sign if _DENIED.search(before) else sign
            pro, con = pro + (sign_here > 0), con + (sign_here < 0)
    return pro, con


def feeling_words(sentence: str) -> frozenset[str]:
    """The folded words of praise and of complaint in a sentence."""
    text = fold(sentence).replace("’", "'")
    spans = (match[0] for pattern in _lexicon()[:2] for match in pattern.finditer(text))
    return frozenset(word for span in spans for word in _WORD.findall(span))


def lean_wanted(question: str) -> int | None:
    """1 where a question asks for praise alone, -1 for complaints, None for both or neither."""
    sides = [side for side, pattern in _WANTED.items() if pattern.search(question)]
    if sides:
        return sides[0] if len(sides) == 1 else None
    return {"praise": 1, "complaints": -1}.get(question_parts(question).side)


def lean_of(sentence: str, theme: regex.Pattern[str] | None = None, subject: Subject | None = None) -> int | None:
    """1 for praise, -1 for complaint; None when neither is sure.

    With a `theme`, the clause that speaks of it must decide. The name of the `subject` is neither
    another product (`Oura`) nor a feeling (`Magic Mouse`).
    """
    text = _THOUGH.sub("", sentence.replace("’", "'"))
    if len(text) > _LONGEST or not is_english(text):
        return None
    named = list(_NAMED_SIDE.finditer(text))
    if len(named) == 1 and not text[: named[0].start()].strip(" \t*_#-•"):
        return 1 if named[0]["good"] else -1
    # the words that tell of an experience are no doubt, no comparison: `still works`, `would buy it again`
    told_pro, told_con, rest = count_experiences(text)
    if ASKING.search(text) or any(rule.search(rest) for rule in _UNSURE):
        return None
    if names_another(text, subject) or is_beside(rest):
        return None
    if _COMPARING.search(rest) and not _COMPARED_FIRST.search(text):
        return None
    pro, con = count_feelings(rest, subject)
    pro, con = pro + told_pro, con + told_con
    if bool(pro) == bool(con) or (pro and IRONY.search(rest)):
        return None
    if theme and not any(theme.search(clause) and any(_sides_of(clause, subject)) for clause in _CLAUSE.split(text)):
        return None
    return 1 if pro else -1


def _sides_of(text: str, subject: Subject | None) -> tuple[int, int]:
    """What speaks for and against the product: experiences, and words of feeling beside them."""
    told_pro, told_con, rest = count_experiences(text)
    pro, con = count_feelings(rest, subject)
    return pro + told_pro, con + told_con
