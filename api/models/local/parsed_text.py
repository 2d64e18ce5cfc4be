"""Parses a question and a text once: where the text has the product's name, and how completely."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import regex

from api.choices import Aim
from api.core.words import MINOR_WORDS, Word, split_words, stem, stop_words
from api.pipeline.gate.excerpt import Excerpt, contains_name
from api.pipeline.gate.name_matches import (
    MODEL,
    NEARLY,
    PART,
    Name,
    Sighting,
    best,
    everyday_parts,
    is_community_of,
    name_of,
    other_version,
    sightings,
)

# Letters from which a word may be part of a longer one: `Katze` in `Katzenfutter`.
_LONG = 5
# Other words that may stand between those of a name that is an everyday word.
_BETWEEN = 3
# How everyday a name of several everyday words is.
_TOGETHER = 0.3
# Different words from which a text has enough of them to tell its sense.
_TELLING = 25
# Languages whose words without meaning are known, of those with other scripts than Latin.
_OTHER_SCRIPTS = "ar bg bn el fa gu he hi hy ja ko mr ru th uk ur zh".split()
_LETTER, _LATIN_LETTER = regex.compile(r"\p{L}"), regex.compile(r"\p{Latin}")
_LATIN = regex.compile(r"[\p{Latin}\p{N}]")
# Letters of a run that tells as much as a word, by script; 4 in those that are not here.
_RUNS = (
    (2, regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")),
    (3, regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}]")),
)
# runs that are grammar in any Japanese text
_GRAMMAR = regex.compile(r"\p{Hiragana}{2}")
# a model code with letters and figures (`MD095LL`), or a number
_FIGURE = regex.compile(
    r"(?:(?<!\p{L})(?=\p{L}++\p{N})|(?<!\p{N})(?=\p{N}++\p{L}))[\p{L}\p{N}]{4,}|\p{N}+(?:\.\p{N}+)?"
)

# a title about two things
_VERSUS = regex.compile(r"\b(?:vs|versus|or|compar\w+)\b", regex.I)

# a name as lists have them, `Sublime Text 2`, and what joins it to the next one
_ENTRY = r"[\p{Lu}\p{N}@#][\p{L}\p{N}.+#’'-]{0,60}+(?: [\p{Lu}\p{N}][\p{L}\p{N}.+#’'-]{0,60}+){0,3}"
_JOINT = r"(?: ?[,;、，/&+•·] ?(?:(?:and|or|und|et|y) |& ?)?| (?:and|or|und|et|y|e) |\s*\n\s*[-*•–]*\s*)"
# `for Claude, Cursor and Codex`; in small letters only with commas and slashes: `anki/memrise/duolingo`
_LISTS = (
    regex.compile(rf"{_ENTRY}(?:{_JOINT}{_ENTRY}){{2,}}"),
    regex.compile(
        r"(?<![\p{L}\p{N}])[\p{L}\p{N}.+#’'-]{1,60}+(?: ?[,/|+] ?(?:and |or )?[\p{L}\p{N}.+#’'-]{1,60}+){2,}"
    ),
)
_BRACKETS = regex.compile(r"[(\[（][^()\[\]（）]*+[)\]）]")
# what a list in a title follows that is not the title's subject
_LINKED = regex.compile(r"\b(?:for|with|from|across|via|like|including|supporting) (?:the )?$", regex.I)
# words by which a sentence weighs the things that it lists
_WEIGHED = regex.compile(
    r"\b(?:vs|versus|which|better|best|worse|than|between|compar\w+|switch\w*|instead|prefer\w*|recommend\w*"
    r"|favou?rite|worth)\b",
    regex.I,
)
# words that point at them or tell how they were used; not `it seems`
_REFERRED = regex.compile(
    r"\b(?:it(?! (?:seems|looks like|would be))|its|they|them|these|those|this|mine|tried|tested|bought|owned)\b",
    regex.I,
)
_SENTENCE = regex.compile(r"(?<=[.!?…。！？])\s+|\n\s*\n")


@dataclass(frozen=True, slots=True)
class Topic:
    """A question taken apart; see `topic_of`."""

    name: Name
    query: str
    """The query's words, in the one form for all spellings of the name."""
    about: str
    """The description without the words of the name, which its namesakes hold too."""
    context: frozenset[str]
    """Words of the description."""
    known: frozenset[str]
    """The words of query and description, stemmed."""
    everyday: float
    """1 for a name that is an everyday word."""
    figures: frozenset[str]
    excluded: tuple[str, ...] = ()
    """Descriptions of what is not meant, without the words of the name."""
    aim: Aim = "about"
    written_small: bool = False
    """The description writes the name in small letters: `a bolt fastener`."""


def is_latin(text: str) -> bool:
    """Whether at least half of its letters are Latin."""
    return text.isascii() or len(_LATIN_LETTER.findall(text)) * 2 >= len(_LETTER.findall(text))


def comparable(words: Iterable[str]) -> frozenset[str]:
    """What of folded words can be found again in other texts.

    Of Latin ones the stem. Others have endings and articles in many forms, or no blanks between
    them: of these every run of two to four letters, by script.
    """
    parts = set[str]()
    for word in words:
        if (word.isascii() and word.isalnum()) or _LATIN.search(word):
            parts.add(stem(word))
        elif len(word) > 1 and word not in _function_words():
            size = next((size for size, script in _RUNS if script.search(word)), 4)
            parts |= {word[at : at + size] for at in range(max(1, len(word) - size + 1))}
    return frozenset(run for run in parts - MINOR_WORDS if run.isascii() or not _GRAMMAR.fullmatch(run))


@cache
def _function_words() -> frozenset[str]:
    """Function words of languages in non-Latin scripts, folded like any word."""
    listed = frozenset[str]().union(*map(stop_words, _OTHER_SCRIPTS))
    return frozenset(word.text for text in listed for word in split_words(text))


@lru_cache(maxsize=256)
def topic_of(query: str, about: str, not_about: tuple[str, ...] = (), aim: Aim = "about") -> Topic:
    """Name, description and exclusions of a question, ready to compare."""
    name = name_of(query, about)
    parts = everyday_parts(name)
    # nobody here knows how often a word of another script is used; its own script can describe it
    unknown = len(name.words) == 1 and not (is_latin(query) or is_latin(about))
    details = [word.text for word in split_words(about) if not name.is_own(word.text)]
    return Topic(
        name,
        " ".join(name.words),
        " ".join(details),
        comparable(details) - comparable(name.own),
        comparable(
            word.text
            for text in (f"{query} {about}", f"{query} {about}".lower())
            for word in split_words(text)
            if word.text not in MINOR_WORDS
        ),
        1.0 if parts == 1 or unknown else _TOGETHER * bool(parts),
        figures_of(query),
        tuple(" ".join(word.text for word in split_words(text) if not name.is_own(word.text)) for text in not_about),
        aim,
        any(name.is_own(word.text) and about[word.start].islower() for word in split_words(about)),
    )


def figures_of(text: str) -> frozenset[str]:
    """Model codes and numbers in a text: `wh1000`, `3.14`."""
    return frozenset(_FIGURE.findall(text.casefold()))


@dataclass(frozen=True)
class Reading:
    """A parsed text; the thread's title is no part of a comment."""

    topic: Topic
    shown: Excerpt

    @cached_property
    def lines(self) -> tuple[str, str]:
        """Its own title, empty for a comment, and its passage."""
        return "" if self.shown.comment else self.shown.title, self.shown.passage

    @cached_property
    def text(self) -> str:
        """The title and the passage, each on a line."""
        return "\n".join(self.lines)

    @cached_property
    def words(self) -> tuple[Sequence[Word], Sequence[Word]]:
        """The words of the title and those of the passage."""
        return split_words(self.lines[0]), split_words(self.lines[1])

    @cached_property
    def mentions(self) -> tuple[list[Sighting], list[Sighting]]:
        """Where the title and the passage have the name."""
        name, (title, passage) = self.topic.name, self.lines
        return sightings(name, self.words[0], title), sightings(name, self.words[1], passage)

    @cached_property
    def strong(self) -> list[tuple[int, Sighting]]:
        """Mentions of at least a part of the name, each after its line: 0 title, 1 passage."""
        return [(line, seen) for line in (0, 1) for seen in self.mentions[line] if seen.strength >= PART]

    @cached_property
    def overall(self) -> float:
        """How completely title and passage together have the name."""
        return self.strength(0, 1)

    def strength(self, *lines: int) -> float:
        """How completely title (0), passage (1) or both have the name.

        All its words count as nearly the whole name, wherever they stand; so does a part of the
        name in a text that also holds a word of the description. Those of an everyday name count
        when they stand near one another: not "Ember 6 is out, here is my mug of champagne".
        """
        seen = best([sighting for line in lines for sighting in self.mentions[line]])
        if seen.strength >= MODEL:
            return seen.strength
        together = len(self.topic.name.words) > 1 and self.share(*lines) == 1
        if together and self.topic.everyday:
            width = len(self.topic.name.words) + _BETWEEN
            together = any(
                self._held([w for w in words if first.token <= w.token < first.token + width]) == 1
                for words in (self.words[line] for line in lines)
                for first in words
            )
        described = seen.strength == PART and any(
            stem(word.text) in self.topic.context for line in lines for word in self.words[line]
        )
        return max(seen.strength, MODEL * (together or described))

    def share(self, *lines: int) -> float:
        """Share of the name's words that occur; share of its letters in a script without blanks."""
        return self._held(*(self.words[line] for line in lines))

    def _held(self, *texts: Sequence[Word]) -> float:
        name, runs = self.topic.name, set[str]()
        for words in texts:
            joined: dict[int, str] = {}
            for word in words:
                joined[word.token] = joined.get(word.token, "") + word.text
            runs |= {*joined.values(), *(word.text for word in words)}
        if name.boundless:
            running, letters = "".join(runs), "".join(name.words)
            return sum(letter in running for letter in letters) / len(letters)
        held = runs | {stem(run) for run in runs}
        several = len(name.words) > 1
        there = [word in held or (several and _within(word, runs)) for word in name.words]
        return sum(there) / (len(there) or 1)

    @cached_property
    def setting(self) -> list[str]:
        """The words of its community's name, without those of the thing's."""
        place = "" if self.shown.comment else self.shown.place.removeprefix("r/")
        return [w.text for w in split_words(place) if not self.topic.name.is_own(w.text)]

    @cached_property
    def around(self) -> list[str]:
        """The words that show its sense: all but the name, and with those of its setting.

        A comment's parent title is among them: it says what is spoken of there.
        """
        words = [
            *split_words(self.shown.title),
            *split_words(self.shown.context or self.shown.passage),
        ]
        own = self.topic.name.is_own
        return [*(word.text for word in words if not own(word.text)), *self.setting]

    @cached_property
    def amount(self) -> float:
        """How much text there is to tell the sense by; 1 from `_TELLING` different words on.

        Nothing where text and description are in different scripts.
        """
        if is_latin(self.text) != is_latin(self.topic.about):
            return 0.0
        return min(1.0, len(set(self.around) - MINOR_WORDS) / _TELLING)

    @cached_property
    def described(self) -> float:
        """Share of the description's words among those around the name."""
        context = self.topic.context
        return len(context & comparable(self.around)) / (len(context) or 1)

    @cached_property
    def listed(self) -> bool:
        """Whether each mention only lists the name: among three names in a row, or in brackets.

        A sentence that weighs what it lists, or points at it in the same or the next one, says more.
        What stands in a place of the thing is about it whatever it lists, and of an untitled text,
        such as a message of one line, a list says nothing.
        """
        title, body = self.lines[0], self.shown.context or self.shown.passage
        if not (title and self.strong) or self.own_place:
            return False
        return all(
            _only_listed(text, seen, words, title=text is title)
            for text in (title, body)
            for words in (split_words(text),)
            for seen in sightings(self.topic.name, words, text)
            if seen.strength >= PART
        )

    @cached_property
    def home(self) -> bool:
        """Whether it stands in a place about this product only: under a title, in a community, or by its maker.

        A place with a part of the name is none: `Tesla` is asked about more than `Tesla charging`.
        """
        name, comment = self.topic.name, self.shown.comment
        title = self.shown.title if comment else self.shown.place
        words = split_words(title)
        seen = sightings(name, words, title)
        if not comment:
            return self.own_place and not 0 < best(seen).strength < NEARLY
        rival = _VERSUS.search(title) or other_version(name, words, seen)
        return best(seen).strength >= NEARLY and not rival and not self.topic.everyday

    @cached_property
    def own_place(self) -> bool:
        """Whether it stands in a community of the product, or its maker wrote it."""
        topic, shown = self.topic, self.shown
        return bool(shown.author) or is_community_of(topic.name, shown.place, topic.context)

    @cached_property
    def thread(self) -> bool:
        """Whether it is a comment under a title that has the name."""
        return self.shown.comment and contains_name(self.topic.name, self.shown.title)


def _within(word: str, runs: set[str]) -> bool:
    return len(word) >= _LONG and any(run.startswith(word) or run.endswith(word) for run in runs)


def _only_listed(text: str, seen: Sighting, words: Sequence[Word], *, title: bool) -> bool:
    """Whether a mention is one of a list of names about which nothing else is said."""
    start, end = words[seen.at].start, words[seen.at + seen.size - 1].end
    if not title and any(match.start() < start < match.end() for match in _BRACKETS.finditer(text)):
        return True
    lists = (match for form in _LISTS for match in form.finditer(text))
    row = next((match for match in lists if match.start() <= start and end <= match.end()), None)
    if row is None or (title and not _LINKED.search(text[: row.start()])):
        return False
    ends = [match.end() for match in _SENTENCE.finditer(text)]
    begin = max((at for at in ends if at <= start), default=0)
    first, second, *_ = (*(at for at in ends if at > start), len(text), len(text))
    # `Roku, Plex and Hulu all drop the picture`: what follows is said of each
    if not text[begin : row.start()].strip() and text[row.end() : first].strip(" .!?…。"):
        return False
    return not (_WEIGHED.search(text[begin:first]) or _REFERRED.search(text[begin:second]))
