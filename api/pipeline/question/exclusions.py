"""What a question excludes: other things of its name (`the soap, not the bird`), and words, authors and sites."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from urllib.parse import urlsplit

import regex

from api.choices import MAX_BLOCKED, MAX_BLOCKED_LENGTH, MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS
from api.core.domain import EXCLUDED, FetchPlan
from api.core.items import Batch, Comment, Commented, Item, pseudonym
from api.core.ports import WrappedSource
from api.core.text import clean, cut, fold, is_visible, one_line, quantity
from api.core.words import UNSPACED
from api.errors import UsageError

_PIECE = r"(?:[^,;.()\[\]–—]|\([^()]*\))+"
# `; not a crochet square`, `(not the fruit)`, `, nicht der Fluss`: a clause that begins with a
# negation; inside a sentence (`it does not sync`) the word denies something else and stays.
# commas belong to it when its list ends with `or`: `not the game, an arc, or a plot`
_CLAUSE = regex.compile(
    # blanks are taken whole and from their first on, so that a long run of them costs no more
    r"(?:^|(?<!\s)\s*+[,;:.(\[–—-]|(?<!\s)\s++(?:and|but|und|aber|et|y|e|mas|pero))\s*+"
    r"(?:not|nicht|kein|keine|pas|no|não|non)\s+"
    rf"(?P<what>{_PIECE}(?:(?:,{_PIECE})*,\s*(?:or|nor|oder|ou|o)\s{_PIECE})?)[)\]]?",
    regex.IGNORECASE,
)
# within a clause: `not the fruit or the record label` excludes two things
_ALTERNATIVES = regex.compile(
    r"(?<!\s)\s*+,\s*+(?:(?:or|nor|oder|ou|o)\s++)?|(?<!\s)\s++(?:or|nor|oder|ou|o)\s++",
    regex.IGNORECASE,
)
# the blank that a clause leaves in `the soap , made by Unilever`
_BEFORE_MARK = regex.compile(r"(?<!\s)\s++(?=[,;:.])")
_ARTICLE = regex.compile(
    r"^(?:about\s+)?(?:an?|the|any|der|die|das|ein|eine|le|la|les|un|une|el|los|um|uma)\s+",
    regex.IGNORECASE,
)


def split_exclusions(about: str) -> tuple[str, tuple[str, ...]]:
    """The description without its negated clauses, and what these exclude, in order."""
    clauses: list[str] = []

    def take(match: regex.Match[str]) -> str:
        clauses.extend(_ALTERNATIVES.split(match["what"]))
        return " "

    left = _BEFORE_MARK.sub("", one_line(_CLAUSE.sub(take, about))).strip(" ,;:.-–—")
    return left, exclusions_of(clauses)


def exclusions_of(excluded: Iterable[str]) -> tuple[str, ...]:
    """Exclusions as judges take them: on one line, without article, each once."""
    plain = (_ARTICLE.sub("", one_line(clean(text))).strip(" .") for text in excluded)
    bounded = dict.fromkeys(cut(text, MAX_EXCLUSION_LENGTH) for text in plain if text)
    return tuple(bounded)[:MAX_EXCLUSIONS]


# a word that a phrase of ours may begin or end within, since its script has no blanks
_UNSPACED = regex.compile(rf"[{UNSPACED}]")
_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")
# how a name is written where people mention somebody: `u/ada`, `/u/ada`, `@ada`
_MENTION = regex.compile(r"^(?:/?u/|@)(?=.)", regex.IGNORECASE)
_SCHEME = regex.compile(r"^(?:https?:)?//(?:www\.)?|^www\.|^/", regex.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Blocklist:
    """Words, authors and sites that a question excludes."""

    words: tuple[str, ...] = ()
    """Whole words or phrases of a title or text, in small or capital letters; a part of a word counts in scripts
    without blanks."""
    authors: tuple[str, ...] = ()
    """Names as the place writes them, in small or capital letters; `Ada`, `u/ada` and `@ada` are the same."""
    sites: tuple[str, ...] = ()
    """Hosts with all their subdomains (`example.com`), such with the beginning of a path, and places (`r/deals`)."""

    @classmethod
    def of(cls, words: Iterable[str], authors: Iterable[str], sites: Iterable[str]) -> Blocklist:
        """Each entry on one line and once.

        Raises:
            UsageError: too many or too long ones, or one that names nothing.
        """
        return cls(
            _entries("exclude", words, str.strip),
            _entries("exclude_authors", authors, partial(_MENTION.sub, "")),
            _entries("exclude_sites", sites, _site),
        )

    def __bool__(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.words or self.authors or self.sites)

    def reason(self, item: Item, pattern: regex.Pattern[str] | None) -> str:
        """Why an item is excluded; empty when it is not. `pattern` is `word_pattern`."""
        if word := self._word(f"{item.title}\n{item.body}", pattern):
            return f"has “{word}”"
        if self._is_author(item.author, item.place):
            return "its author is left out"
        addresses = [f"{_site(address)}/" for address in (item.url, item.link) if address]
        place = fold(item.place or "")
        for site in self.sites:
            beginning = f"{site}/"
            if site == place or any(_is_on(address, beginning) for address in addresses):
                return f"from {site}"
        return ""

    def leaves_out(self, comment: Comment, place: str | None, pattern: regex.Pattern[str] | None) -> bool:
        """Whether a comment has one of the words, or is by one of the authors."""
        return bool(self._word(comment.body, pattern)) or self._is_author(comment.author, place)

    def word_pattern(self) -> regex.Pattern[str] | None:
        """The words as one pattern over folded text, with a group for each word; None without words."""
        patterns = [f"({_whole(fold(word))})" for word in self.words]
        return regex.compile("|".join(patterns)) if patterns else None

    def _word(self, text: str, pattern: regex.Pattern[str] | None) -> str:
        match = pattern.search(fold(text)) if pattern else None
        return self.words[(match.lastindex or 1) - 1] if match else ""

    def _is_author(self, author: str | None, place: str | None) -> bool:
        """Whether an author, by name or pseudonym, is one of the names."""
        if not author or not self.authors:
            return False
        pseudonyms = _pseudonyms(self.authors, author.rpartition("-")[0], place)
        return author in pseudonyms or author.casefold() in map(str.casefold, self.authors)


NOTHING_EXCLUDED = Blocklist()


@lru_cache(maxsize=256)
def _pseudonyms(authors: tuple[str, ...], kind: str, place: str | None) -> frozenset[str | None]:
    """Pseudonyms of authors in a place: one of each form of a name from which a source makes a pseudonym."""
    names = ((name, *name.partition("@")[::2]) for name in authors)
    forms = (
        form
        for name, own, server in names
        for form in (name, f"@{name}", f"{name}@{place}", f"https://{server}/u/{own}")
    )
    return frozenset(pseudonym(kind, form) for form in forms)


def _entries(name: str, texts: Iterable[str], form: Callable[[str], str]) -> tuple[str, ...]:
    entries = tuple(dict.fromkeys(form(one_line(clean(text))) for text in texts))
    if len(entries) > MAX_BLOCKED:
        raise UsageError(f"`{name}` takes {MAX_BLOCKED} at most, not {len(entries)}", field=name)
    for entry in entries:
        if not is_visible(entry):
            raise UsageError(f"a text in `{name}` names nothing", field=name)
        if len(entry) > MAX_BLOCKED_LENGTH:
            raise UsageError(f"a text in `{name}` has {MAX_BLOCKED_LENGTH} characters at most", field=name)
    return entries


def _site(address: str) -> str:
    """Host and path of an address, without `www.` and the slash at its end, folded: `example.com/blog`."""
    bare = fold(_SCHEME.sub("", address))
    try:
        parts = urlsplit(f"//{bare}")
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:  # no address, such as one with half of a bracket
        return bare.rstrip("/")
    return f"{host}{parts.path}".rstrip("/")


def _is_on(address: str, beginning: str) -> bool:
    """Whether an address begins so, or does behind a subdomain."""
    host = address.partition("/")[0]
    site = beginning.partition("/")[0]
    if host != site and not host.endswith(f".{site}"):
        return False
    return address[len(host) :].startswith(beginning[len(site) :])


def _whole(text: str) -> str:
    """A pattern of a phrase: whole words, with anything but letters and digits between them."""
    first, *others = text.split()
    pattern, before = regex.escape(first), first
    for part in others:
        # beside a part that is a sign (`R & D`) only white space, since `\W++` would take the sign itself
        wordy = _LETTER.search(before) and _LETTER.search(part)
        pattern += (r"\W++" if wordy else r"\s++") + regex.escape(part)
        before = part
    begins, ends = text[0], text[-1]
    opening = r"(?<![\p{L}\p{M}\p{N}])" if _LETTER.match(begins) and not _UNSPACED.match(begins) else ""
    closing = r"(?![\p{L}\p{M}\p{N}])" if _LETTER.match(ends) and not _UNSPACED.match(ends) else ""
    return opening + pattern + closing


def _left_out_note(count: int) -> tuple[str, ...]:
    return (f"{quantity(count, 'comment')} left out as excluded",) if count else ()


@dataclass(frozen=True, slots=True)
class ExcludingSource(WrappedSource):
    """A source whose items are marked where the question leaves them out, and lose the comments that it leaves out."""

    blocklist: Blocklist

    async def fetch(self, plan: FetchPlan) -> Batch:
        """See `Source.fetch`; an item that is left out is `unfit`, and a note counts the comments that are left out."""
        batch = await self.inner.fetch(plan)
        items, left_out = await asyncio.to_thread(self._marked, batch.items)
        return replace(batch, items=items, notes=(*batch.notes, *_left_out_note(left_out)))

    async def comments(self, items: Sequence[Item]) -> Commented:
        """See `Source.comments`; a note says how many are left out."""
        commented = await self.inner.comments(items)
        marked, left_out = await asyncio.to_thread(self._without_comments, commented.items)
        return Commented(marked, (*commented.notes, *_left_out_note(left_out)))

    async def with_best_comments(self, item: Item) -> Item | None:
        """See `Source.with_best_comments`."""
        best = await self.inner.with_best_comments(item)
        return best and (await asyncio.to_thread(self._without_comments, (best,)))[0][0]

    def _marked(self, items: Sequence[Item]) -> tuple[tuple[Item, ...], int]:
        pattern, blocklist = self.blocklist.word_pattern(), self.blocklist
        reasons = [not item.unfit and blocklist.reason(item, pattern) for item in items]
        marked = (
            item.edited(unfit=f"{EXCLUDED}{reason}") if reason else item
            for item, reason in zip(items, reasons, strict=True)
        )
        return self._without_comments(tuple(marked), pattern)

    def _without_comments(
        self, items: Sequence[Item], pattern: regex.Pattern[str] | None = None
    ) -> tuple[tuple[Item, ...], int]:
        blocklist = self.blocklist
        pattern = pattern or blocklist.word_pattern()
        kept, left_out = list[Item](), 0
        for item in items:
            fitting = tuple(c for c in item.comments if not blocklist.leaves_out(c, item.place, pattern))
            left_out += len(item.comments) - len(fitting)
            kept.append(item if len(fitting) == len(item.comments) else item.edited(comments=fitting))
        return tuple(kept), left_out
