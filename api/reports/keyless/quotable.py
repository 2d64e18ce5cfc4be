"""Whether a sentence says something of a product that stands by itself, and how likely it is worth showing.

Rules find what is no finding: a plan, a wish, doubt, an address, hearsay, a mere possession, and what neither judges,
measures nor says what the product does. Of the rest, which words are quoted is chosen by a logistic function of marks
that any sentence has, fitted on sentences that two readers marked. How good it is: docs/keyless.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import exp, log

import regex

from api.core.words import UNSPACED
from api.reports.keyless.aspects import data
from api.reports.keyless.polarity import ASKING, DENIAL, WISHING, count_feelings, is_english
from api.reports.keyless.sentence_topic import INSTRUCTION

# Signs of a word, its blank included, and of one in a script without blanks.
_LETTERS_OF_WORD, _SIGNS_OF_WORD = 6, 2
_UNSPACED = regex.compile(rf"[{UNSPACED}]")
# Words by which something is judged or measured, whichever way.
_JUDGING = regex.compile(
    r"(?i)\b(?:problem|issue|bug|support|price|cost|works?|worth|better|worse|love|like|hate|easy|hard|slow|fast|good|bad"
    r"|nice|quality|battery|cheap|expensive|miss|fails?|lost|lose|broke\w*|crash\w*|great|useful|useless|solid|smooth"
    r"|comfortable|reliable|annoy\w*|impress\w*|disappoint\w*)\b"
)
_DEGREE = regex.compile(
    r"(?i)\b(?:very|really|so|too|super|extremely|absolutely|never|always|every|only|all|still|even|just|way|much|most"
    r"|best|worst|better|worse|than|enough)\b"
)
_BEING = regex.compile(r"(?i)\b(?:is|are|was|were|isn't|aren't|wasn't|it's|has|have|had)\b")
# begins with a word that points at what was said before
_POINTING = regex.compile(r"(?i)^\W*(?:it|this|that|these|those|he|she|they|there|here)\b")
_CODE = regex.compile(r"[`{}<>\\_=]|https?:|\p{L}\.\p{L}{2,4}/|/\w+/|#\d+|\d+\.\d+\.\d+")

# Fitted by scripts/training/fit_informative.py.
_BIAS = -3.28
_WEIGHTS = {
    "length": 0.61, "shared": 0.59, "sure": 0.18, "praise": 0.29, "complaint": 0.28, "judging": 0.31, "degree": 0.08,
    "being": 0.28, "denial": 0.23, "number": 0.33, "exclamation": -0.52, "ellipsis": -1.14, "question": -1.86,
    "wish": -0.58, "instruction": -0.29, "pointing": -0.73, "code": -1.32,
}  # fmt: skip


@lru_cache(maxsize=4_096)
def informativeness(text: str, shared: bool, sure: bool) -> float:
    """A probability; `shared` says that others speak of the same subject, `sure` that it surely leans."""
    return 1 / (1 + exp(-_BIAS - sum(_WEIGHTS[name] * value for name, value in marks(text, shared, sure))))


def marks(text: str, shared: bool, sure: bool) -> Iterator[tuple[str, float]]:
    """Name and value of each mark of a sentence."""
    plain = text.replace("’", "'")
    praise, complaint = count_feelings(plain)
    unspaced = len(_UNSPACED.findall(text))
    yield "length", log(max(1.0, (len(text) - unspaced) / _LETTERS_OF_WORD + unspaced / _SIGNS_OF_WORD))
    yield "shared", shared
    yield "sure", sure
    yield "praise", praise
    yield "complaint", complaint
    yield "judging", len(_JUDGING.findall(plain))
    yield "degree", len(_DEGREE.findall(plain))
    yield "being", _BEING.search(plain) is not None
    yield "denial", DENIAL.search(plain) is not None
    yield "number", any(map(str.isdigit, text))
    yield "exclamation", "!" in text
    yield "ellipsis", "…" in text or "..." in text
    yield "question", ASKING.search(plain) is not None
    yield "wish", WISHING.search(plain) is not None
    yield "instruction", INSTRUCTION.search(plain) is not None
    yield "pointing", _POINTING.search(plain) is not None
    yield "code", _CODE.search(text) is not None


def _pattern(name: str, before: str = r"\b") -> regex.Pattern[str]:
    """The words of `quotable.toml` under a name, behind what stands `before` them."""
    words = "|".join(word.replace("_", " ") for word in data("quotable")[name].split())
    return regex.compile(rf"(?i)(?:{before})(?:{words})\b")


_NO_FINDING = _pattern("no_finding")
# a clause on either side may be what counts: `maybe it charges slowly, but |the battery is amazing`
_TURN = regex.compile(r"(?i)\bbut\s+(?!\W)")
# ... except for what only sounds like a wish
_PRAISED = regex.compile(r"(?i)\b(?:could(?:n't| not) be|could not be) (?:happier|better|more)\b")
_NEEDS_CONTEXT = _pattern("needs_context", before=r"^\W*")
_IT = regex.compile(r"(?i)^\W*(?:it|it's|its)\b")
# holds a word that points back: `nothing is as bad as this`, `I got mine there, too`, `now I get 25`
_POINTS_BACK = regex.compile(
    r"(?i)\b(?:(?:like|as|than|of|about|with|for|to|in|on|at) (?:this|that|these|those|one)\W*$"
    r"|th(?:is|at|e other) (?:one|way|size|kind|sort|feature)\b|(?:the same for|so is|so does|mine too)\b"
    r"|too(?=\W*$|[,.;])|the (?:step|former|latter|above|following|rest|same thing|whole thing|thing was)\b"
    r"|(?:get|got|gets|only|about|to|was) \d+(?=[,.;]|$)|at \d+:\d\d\b"
    r"|(?:an?|some|the same|similar) (?:\w+ )?(?:issues?|problems?|complaints?|questions?)\W*$"
    r"|(?:feature|trick|thing|setting|way|option)s? (?:that )?(?:i|we) (?:found|discovered|learned|noticed)\b"
    r"|the (?:right|wrong) one\b)"
)
_POSSESSION = _pattern(
    "possession",
    before=r"^\W*(?:i|we|i've|we've|ive|i'm|im|(?:my|our) \w+(?!\s+(?:was|were|went)\b))\s+"
    r"(?:(?:just|also|currently|already|recently|have|had|still|do"
    r"|only|finally|been)\s+)*",
)
_ANECDOTE = regex.compile(r"(?i)\b(?:to replace|said|says|told|asked)\b")
# names of several things (`problems with Ann, Bea, Cleo`), a headline with its site (`It is out - The Site`), an
# advertisement (`Big sale: Get 15 %`), an address, a diagram, and words that somebody else is said to have used
_NOT_OWN = regex.compile(
    r"(?:\b\p{Lu}[\p{L}&]+ ?, ?){2}|\s[-–—|]\s*(?=\p{Ll}?\p{Lu})[\p{L}. ]{2,30}$|[→|]|https?:|\.\p{L}{2,4}/|\bvia @"
    r"|(?i::\s+(?:get|save|check|watch|read|grab|win)\b|\bcashback\b|% off\b|\bfix: |\bgiving away\b|\ba thread\b)"
    r"|\b(?:is now|(?:drop|fall|reduc)\w* (?:by|to)) [£$€]\d"
    r"|[\"“](?:[^\"“”\s]+\s+){5,}[^\"“”]*[\"”]|^[^\"]*\"[^\"]*$"
)
# a word, which begins with a capital in a headline and in shouting
_LONG_WORD = regex.compile(r"\p{L}[\p{L}'-]{3,}")
_FEWEST_OF_HEADLINE, _CAPITALS = 5, 0.75
_BRACKETS = regex.compile(r"\([^()]*\)")
_PRAISES, _BLAMES = _pattern("praises"), _pattern("blames")
_JUDGES = regex.compile("|".join((_PRAISES.pattern, _BLAMES.pattern, _pattern("judges").pattern)))
_DOES = _pattern("does")
_FAILING = regex.compile(r"(?i)\b(?:(?:does|wo)n't|cannot|lacks?|lacking|missing|no longer)\b")
_MEASURES = regex.compile(
    r"(?i)[$€£¥]\s?\d|\b\d[\d.,]{0,14}\s?(?:dollars?|bucks|euros?|h|hrs?|hours?|min(?:ute)?s?|seconds?|days?|weeks?|months?"
    r"|years?|nights?|%|percent|mah|°|degrees?|fps|lbs?|pounds?|kg|times|cycles|gb|inch(?:es)?|km|miles)\b|\b\d+/\d+\b"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|twice|half|double|eleven|twelve|twenty|thirty) (?:\w+ )?"
    r"(?:hours?|minutes?|days?|weeks?|months?|years?|seconds?|times|as|the)\b"
)


@lru_cache(maxsize=4_096)
def says_something(text: str, follows: bool = False) -> bool:
    """Whether an English sentence judges, measures or says what the product does, and stands by itself.

    `follows`: the sentence before it names the product, so that `it` is that. True of other languages.
    """
    plain = _BRACKETS.sub("", text.replace("’", "'"))
    if not is_english(plain):
        return True
    clauses = [clause for clause in _TURN.split(plain) if _JUDGES.search(clause)] or [plain]
    if all(_NO_FINDING.search(clause) and not _PRAISED.search(clause) for clause in clauses):
        return False
    if (
        INSTRUCTION.search(plain)
        or _NOT_OWN.search(plain)
        or _NEEDS_CONTEXT.search(plain)
        or _POINTS_BACK.search(plain)
        or (_IT.search(plain) and not follows)
        or _is_headline(plain)
    ):
        return False
    judges, does = _JUDGES.search(plain) is not None, _DOES.search(plain) is not None or "n't" in plain
    measures = _MEASURES.search(plain) is not None
    if _POSSESSION.search(plain):
        return (judges or (does and measures)) and not _ANECDOTE.search(plain)
    return judges or does or measures


def _is_headline(text: str) -> bool:
    """Whether most of its longer words begin with a capital: `The Best Gameplay in the Whole League`."""
    words = _LONG_WORD.findall(text)
    return len(words) >= _FEWEST_OF_HEADLINE and sum(word[0].isupper() for word in words) >= _CAPITALS * len(words)


def leans_to(text: str, side: int) -> bool:
    """Whether the words that judge in an English sentence are of one side alone, 1 for praise and -1 for blame.

    Less sure than `lean_of`; True of other languages.
    """
    plain = text.replace("’", "'")
    praised, blamed = _PRAISES.search(plain) is not None, _BLAMES.search(plain) is not None
    if DENIAL.search(plain):  # `not good` blames; `no problem` and `nothing else lets me` do neither
        praised, blamed = False, praised and not blamed
    failing = _FAILING.search(plain) is not None and not praised
    return (praised, blamed or failing) == (side > 0, side < 0) or not is_english(plain)


def is_mixed(text: str) -> bool:
    """Whether a sentence has words that praise and words that blame, and denies none: `Great to open, weak sound`."""
    plain = text.replace("’", "'")
    sides = _PRAISES.search(plain), _BLAMES.search(plain), DENIAL.search(plain) is None
    return is_english(plain) and None not in sides and sides[2]


def weighs(text: str) -> bool:
    """Whether a sentence has words that judge or measure; True of other languages than English."""
    plain = text.replace("’", "'")
    return not is_english(plain) or _JUDGES.search(plain) is not None or _MEASURES.search(plain) is not None
