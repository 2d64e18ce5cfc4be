"""What is not worth a search: small talk, and words that name nothing."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from api.services.archive.words import UNSPACED, phrases, tokens
from api.services.question.query import content_words, screen

# a figure (`t3_1a`, `v2`), an address or file (`me@a.org`, `app.log`), a word with a capital inside
# the text or in it (`the Ember`, `iPhone`), or a script without blanks
_NAMING = regex.compile(
    r"\p{N}|\w[@._]\w|(?<=\S\s+[\"“'(]*)\p{Lu}|\p{Ll}\p{Lu}"
    rf"|[{UNSPACED}]"
)


def guidance_for(text: str, names: Iterable[str], least: int) -> str:
    """Why a text is not searched, and what to write instead; empty when it is.

    Args:
        text: what a person wrote.
        names: that are known, such as what was asked before: one word of them is enough.
        least: words with a meaning that are enough without a name; 0: any text.
    """
    screened = screen(text)
    if not screened.ok:
        return screened.guidance
    query = screened.query
    if len(content_words(query)) >= least or _NAMING.search(query) or phrases(query):
        return ""
    known = {word for name in names for word in tokens(name)}
    if not known.isdisjoint(tokens(query)):
        return ""
    return (
        "That is too little to search for: name the product, or say in three words what about it, "
        "for example `Ember mug battery` or `stops charging overnight`."
    )
