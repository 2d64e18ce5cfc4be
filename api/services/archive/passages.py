"""The words of an entry that answer a question best, as they stand there."""

from __future__ import annotations

from api.services.archive.chunks import Chunk, comment_of
from api.services.archive.scoring import cosines
from api.services.archive.shelf import Embed
from api.services.archive.words import tokens
from api.services.reporting.findings import LONGEST_PASSAGE
from api.services.reporting.report import ItemFacts
from api.services.reporting.sentences import beginning, sentences
from api.services.text import cut, one_line


def passage_of(
    query: str, vector: bytes | None, piece: Chunk, item: ItemFacts, embed: Embed
) -> str:
    """A whole sentence of the piece, at most `LONGEST_PASSAGE` characters; else its beginning.

    The one that shares most words with the question, of those the nearest in meaning; the title
    of an item without a text. `vector` is the question's; None: nothing is near.
    """
    comment = comment_of(item, piece)
    text = beginning(item.body if comment is None else comment.body)
    whole = [part for part in sentences(text) if len(part) <= LONGEST_PASSAGE]
    parts = [part for part in whole if one_line(part) in piece.text]
    if not parts:
        return _beginning(piece.text or one_line(item.title))
    wanted, vectors = set(tokens(query)), embed(parts) if vector else None
    near = cosines(vector, vectors) if vector and vectors else [0.0] * len(parts)
    shared = [len(wanted.intersection(tokens(part))) for part in parts]
    return max(zip(shared, near, parts, strict=True), key=lambda ranked: ranked[:2])[2]


def _beginning(text: str) -> str:
    """As many whole words as fit."""
    if len(text) <= LONGEST_PASSAGE:
        return text
    start = cut(text, LONGEST_PASSAGE)
    return start.rpartition(" ")[0] or start
