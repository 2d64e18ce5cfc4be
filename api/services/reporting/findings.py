"""What a report says: sentences, the words that carry them, and quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic.json_schema import SkipJsonSchema

from api.services.evidence.figures import WHERE_THERE
from api.services.schemas import PUBLISHED_VALUE

FindingKind = Literal["praise", "complaint", "request", "difference", "other"]
Backing = Literal["checked", "counted", "unverified"]
"""Of a finding: a support check said that each passage carries it; it only counts what its passages
show; or nobody has checked."""


LONGEST_PASSAGE = 200
"""Characters of a passage; of whole sentences only those that fit into one are shown."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Words of an item that carry a sentence, exactly as they stand there."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    key: str
    passage: str
    """Verbatim, at most `LONGEST_PASSAGE` characters."""
    comment_id: str | None = None
    """Where it stands in a comment."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of a report, and the words of the items it rests on."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    text: str
    kind: FindingKind
    cites: tuple[str, ...]
    """Item keys, each once."""
    evidence: tuple[Passage, ...] = ()
    """At least one per key, in the order of the keys; none in reports of older versions."""
    support: Backing = "unverified"

    @classmethod
    def resting(
        cls, text: str, kind: FindingKind, evidence: Sequence[Passage], support: Backing
    ) -> Self:
        """The finding that cites the items of its passages."""
        keys = dict.fromkeys(passage.key for passage in evidence)
        return cls(text, kind, tuple(keys), tuple(evidence), support)


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim words, linked back."""

    __pydantic_config__: ClassVar = PUBLISHED_VALUE
    text: str
    key: str
    url: str
    comment_id: Annotated[str | SkipJsonSchema[None], WHERE_THERE] = None
