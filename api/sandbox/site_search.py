"""Search as the sites do it: any of the words, best keyword match first, the popular pushed up.

Deterministic, and good enough to be annoying: very popular chatter that holds the words ranks high.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import regex

from api.sandbox.corpus import Post

_CJK = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]"
# A run of signs without blanks between words, or of any other letters and digits (`--` takes the
# signs out of the letters): `Rabbit r1小米手机` is `Rabbit`, `r1` and `小米手机`.
_WORD = regex.compile(rf"{_CJK}+|[\p{{L}}\p{{M}}\p{{N}}--{_CJK}]+", regex.V1)
_SIGN = regex.compile(_CJK, regex.V1)
_PHRASE = regex.compile(r'"([^"]+)"')
_COMMON = frozenset(
    "a an and are about at be best but by do does for from good has have how i in is it its me my "
    "of on or people say should so than that the their them they think this to was what when where "
    "which who why with worth would you your".split()
)
# BM25's k1 and b (repetition counts less and less, long texts a little less), and how many times
# its score a post gains per power of ten of votes or views.
_SATURATION, _LENGTH, _FAME = 2.0, 0.3, 3.0


def tokens(text: str) -> list[str]:
    """Lower-case words; runs of Chinese, Japanese or Korean become overlapping pairs."""
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _SIGN.match(word) and len(word) > 1:
            words += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            words.append(word)
    return words


@dataclass(frozen=True)
class Index:
    """Posts of one source, searchable."""

    posts: Sequence[Post]

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each post."""
        return [tokens(post.text) for post in self.posts]

    @cached_property
    def postings(self) -> dict[str, dict[int, int]]:
        """Word -> number of a post -> how often it stands there."""
        postings: dict[str, dict[int, int]] = defaultdict(dict)
        for number, words in enumerate(self.words):
            for word, count in Counter(words).items():
                postings[word][number] = count
        return dict(postings)

    def search(self, query: str, *, exact: bool = False, every: bool = False) -> list[Post]:
        """Everything that holds at least one word, best first.

        `exact` obeys quoted phrases; with `every` a post must hold each of the words.
        """
        words = list(dict.fromkeys(tokens(query)))
        mean = sum(len(text) + 1 for text in self.words) / max(len(self.words), 1)
        scores: dict[int, float] = defaultdict(float)
        for word in [word for word in words if word not in _COMMON] or words:
            postings = self.postings.get(word, {})
            rarity = math.log(1 + (len(self.posts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings.items():
                stretch = 1 - _LENGTH + _LENGTH * (len(self.words[number]) + 1) / mean
                scores[number] += (
                    rarity * count * (_SATURATION + 1) / (count + _SATURATION * stretch)
                )
        if every:
            held = [self.postings.get(word, {}) for word in words]
            scores = {number: scores[number] for number in scores if all(number in h for h in held)}
        for number in scores:
            fame = math.log10(1 + max(self.posts[number].popularity, 0))
            scores[number] = round(scores[number] * (1 + _FAME * fame), 9)
        phrases = [tokens(part) for part in _PHRASE.findall(query)] if exact else []
        return [
            self.posts[number]
            for number in sorted(scores, key=lambda n: (-scores[n], self.posts[n].id))
            if all(_follows(phrase, self.words[number]) for phrase in phrases)
        ]


def _follows(phrase: list[str], words: list[str]) -> bool:
    """Whether the words of a phrase stand one after another."""
    size = len(phrase)
    return any(words[at : at + size] == phrase for at in range(len(words) - size + 1))
