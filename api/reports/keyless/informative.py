"""How likely a reader finds a sentence about a product worth showing by itself; chooses which words are quoted.

A logistic function of marks that any sentence has, fitted on sentences that two readers marked. How good it is:
docs/keyless.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import exp, log

import regex

from api.core.words import UNSPACED
from api.reports.keyless.polarity import ASKING, DENIAL, WISHING, count_feelings
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
