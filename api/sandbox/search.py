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

_WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+|[\p{L}\p{M}\p{N}--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]]+",
    regex.V1,
)
_CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]", regex.V1)
_PHRASE = regex.compile(r'"([^"]+)"')
_COMMON = frozenset(
    "a an and are about at be best but by do does for from good has have how i in is it its me my "
    "of on or people say should so than that the their them they think this to was what when where "
    "which who why with worth would you your".split()
)
_SATURATION, _LENGTH, _FAME = 2.0, 0.3, 3.0


def tokens(text: str) -> list[str]:
    """Lower-case words; runs of Chinese, Japanese or Korean become overlapping pairs."""
    found: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _CJK.match(word) and len(word) > 1:
            found += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            found.append(word)
    return found


def phrases(query: str) -> list[list[str]]:
    """The quoted parts of a query, each as its words."""
    return [words for part in _PHRASE.findall(query) if (words := tokens(part))]


@dataclass(frozen=True)
class Index:
    """Posts of one source, searchable."""

    posts: Sequence[Post]

    @cached_property
    def _postings(self) -> dict[str, dict[int, int]]:
        postings: dict[str, dict[int, int]] = defaultdict(dict)
        for number, post in enumerate(self.posts):
            counts = Counter(tokens(post.text))
            for word, count in counts.items():
                postings[word][number] = count
        return dict(postings)

    @cached_property
    def _lengths(self) -> list[int]:
        return [len(tokens(post.text)) + 1 for post in self.posts]

    def search(self, query: str, *, exact: bool = False) -> list[Post]:
        """Everything that holds at least one word, best first; `exact` obeys quoted phrases."""
        words = list(dict.fromkeys(tokens(query)))
        wanted = [word for word in words if word not in _COMMON] or words
        scores: dict[int, float] = defaultdict(float)
        for word in wanted:
            for number, score in self._word(word):
                scores[number] += score
        needed = phrases(query) if exact else []
        ranked = sorted(
            scores, key=lambda number: (-self._boosted(number, scores), self.posts[number].id)
        )
        return [self.posts[n] for n in ranked if all(_holds(self.posts[n], p) for p in needed)]

    def _word(self, word: str) -> list[tuple[int, float]]:
        postings = self._postings.get(word, {})
        rarity = math.log(1 + (len(self.posts) - len(postings) + 0.5) / (len(postings) + 0.5))
        mean = sum(self._lengths) / max(len(self._lengths), 1)
        return [
            (n, rarity * count * (_SATURATION + 1) / (count + _SATURATION * self._stretch(n, mean)))
            for n, count in postings.items()
        ]

    def _stretch(self, number: int, mean: float) -> float:
        return 1 - _LENGTH + _LENGTH * self._lengths[number] / mean

    def _boosted(self, number: int, scores: dict[int, float]) -> float:
        fame = math.log10(1 + max(self.posts[number].popularity, 0))
        return round(scores[number] * (1 + _FAME * fame), 9)


def _holds(post: Post, phrase: list[str]) -> bool:
    words = tokens(post.text)
    return any(words[at : at + len(phrase)] == phrase for at in range(len(words) - len(phrase) + 1))
