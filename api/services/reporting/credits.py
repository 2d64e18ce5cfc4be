"""Whose words are shown, where a licence asks for the author's name and profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import regex

from api.services.text import one_line

# `Ada (https://superuser.com/users/7/ada)`: a name, and the profile where there is one
_CREDIT = regex.compile(r"(?P<name>.*?)(?: \((?P<url>https?://\S+)\))?", regex.S)


class _Written(Protocol):
    """A comment, as it was read or as a report has it."""

    @property
    def body(self) -> str: ...
    @property
    def credit(self) -> str | None: ...


class _Item(_Written, Protocol):
    """An item with its comments, likewise."""

    @property
    def comments(self) -> Sequence[_Written]: ...


def credit_of(item: _Item, words: str = "") -> str | None:
    """Who wrote these words of an item or, when no comment of it holds them, the item itself.

    None where nobody has to be named.
    """
    line = one_line(words)
    if line and line not in one_line(item.body):
        for comment in item.comments:
            if line in one_line(comment.body):
                return comment.credit
    return item.credit


def parts_of(credit: str) -> tuple[str, str]:
    """Name and profile of a credit; the profile is empty where there is none."""
    match = _CREDIT.fullmatch(credit)
    return (match["name"], match["url"] or "") if match else (credit, "")
