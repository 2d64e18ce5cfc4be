"""What a place is called and what is found there: all that help and a model are told of it.

Why there is no answer: what the program has a code for, as people read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from api.core.domain import Outcome


@dataclass(frozen=True, slots=True)
class SourceLabel:
    """What a reader and a model are told about a source."""

    name: str
    """As in keys and settings: `reddit`."""
    title: str
    """As a person writes it: `Reddit`."""
    description: str
    """What is found there, in one line: the description of its tool."""


SourceLabels = Mapping[str, SourceLabel]
"""Places by their names."""


def title_in(places: SourceLabels, source: str) -> str:
    """What a person calls a source; a name that nobody introduced is its own title."""
    return places[source].title if source in places else source


def source_of_key(key: str) -> str:
    """The name of the place that an item is from, out of its key `reddit:t3_1abc`."""
    return key.partition(":")[0]


OUTCOME_REASONS: Mapping[Outcome, str] = MappingProxyType(
    {
        Outcome.NOT_CONFIGURED: "not configured",
        Outcome.REFUSED: "access refused",
        Outcome.RATE_LIMITED: "rate limited",
        Outcome.QUOTA_EXHAUSTED: "daily quota exhausted",
        Outcome.BLOCKED: "blocked by a captcha, login wall or 403 page",
        Outcome.TIMED_OUT: "no answer in time",
        Outcome.UNREACHABLE: "unreachable",
        Outcome.BROKEN: "its answer was malformed",
        Outcome.CANCELLED: "cancelled",
        Outcome.NOT_ASKED: "its search takes no such query",
    }
)
"""Why a source gave no answer, for people and models alike."""
MODEL_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "no_key": "no key is set",
        "timeout": "no answer in time",
        "unreachable": "unreachable",
        "unauthorized": "the key was not accepted",
        "rate_limited": "too many requests",
        "quota": "no credit left",
        "http_error": "an HTTP error",
        "refused": "it declined to answer",
        "filtered": "a content filter took the answer away",
        "truncated": "the answer was cut at its length limit",
        "count_mismatch": "the wrong number of answers",
        "malformed": "its answer was malformed",
        "defect": "a defect of this program",
    }
)
"""Why a model gave no usable answer: the reasons of a `ModelError` (docs/errors.md)."""


def reason_in_words(reason: str | None) -> str:
    """One of `MODEL_REASONS` as a person reads it; any other text as it is."""
    return MODEL_REASONS.get(reason or "", reason or "unknown")
