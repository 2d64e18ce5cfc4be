"""Search as the sites do it: any of the words, best match first, popular posts ranked higher.

Deterministic; as on the sites, popular posts that only mention the words rank high.
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
# a run of characters of a script without blanks, or of any other letters and digits (`--` excludes
# the former): `Rabbit r1小米手机` is `Rabbit`, `r1` and `小米手机`
_WORD = regex.compile(rf"{_CJK}+|[\p{{L}}\p{{M}}\p{{N}}--{_CJK}]+", regex.V1)
_SIGN = regex.compile(_CJK, regex.V1)
_PHRASE = regex.compile(r'"([^"]+)"')
_COMMON = frozenset(
    "a an and are about at be best but by do does for from good has have how i in is it its me my "
    "of on or people say should so than that the their them they think this to was what when where "
    "which who why with worth would you your".split()
)
# BM25's k1 and b (high saturation, little penalty for long texts), and how many times its score a
# post gains for each power of ten of its popularity
_SATURATION, _LENGTH, _FAME = 2.0, 0.3, 3.0


def tokens(text: str) -> list[str]:
    """Lower-case words; of Chinese, Japanese and Korean overlapping pairs of characters."""
    words: list[str] = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        if _SIGN.match(word) and len(word) > 1:
            words += [word[at : at + 2] for at in range(len(word) - 1)]
        else:
            words.append(word)
    return words


@dataclass(frozen=True)
class Index:
    """A search index over posts, built on first use."""

    posts: Sequence[Post]

    @cached_property
    def words(self) -> list[list[str]]:
        """The words of each post, in the order of `posts`."""
        return [tokens(post.text) for post in self.posts]

    @cached_property
    def postings(self) -> dict[str, dict[int, int]]:
        """Word -> index of a post -> count there."""
        postings: dict[str, dict[int, int]] = defaultdict(dict)
        for number, words in enumerate(self.words):
            for word, count in Counter(words).items():
                postings[word][number] = count
        return dict(postings)

    def search(self, query: str, *, exact: bool = False, every: bool = False) -> list[Post]:
        """Posts with any word (`every`: with all), best first; `exact`: with quoted phrases."""
        words = list(dict.fromkeys(tokens(query)))
        mean = sum(len(text) + 1 for text in self.words) / max(len(self.words), 1)
        scores: dict[int, float] = defaultdict(float)
        for word in [word for word in words if word not in _COMMON] or words:
            postings = self.postings.get(word, {})
            rarity = math.log(1 + (len(self.posts) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings.items():
                stretch = 1 - _LENGTH + _LENGTH * (len(self.words[number]) + 1) / mean
                scores[number] += rarity * count * (_SATURATION + 1) / (count + _SATURATION * stretch)
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
    size = len(phrase)
    return any(words[at : at + size] == phrase for at in range(len(words) - size + 1))
