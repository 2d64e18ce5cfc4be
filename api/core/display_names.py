"""Names, descriptions and reasons as people and models read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from api.core.domain import Outcome


@dataclass(frozen=True, slots=True)
class SourceLabel:
    """Name, title and description of a source for readers and models."""

    name: str
    """Name used in keys and settings, such as `reddit`."""
    title: str
    """Name shown to people, such as `Reddit`."""
    description: str
    """What the source holds, in one sentence; used as the description of its tool."""
    by_name: bool = field(default=False, kw_only=True)
    """Whether the source is searched by the product's name alone, so that other words of a query change nothing."""


SourceLabels = Mapping[str, SourceLabel]
"""Labels by the names of the sources."""


def title_in(labels: SourceLabels, source: str) -> str:
    """The title of a source, or its name when it has no label."""
    return labels[source].title if source in labels else source


def source_of_key(key: str) -> str:
    """The name of an item's source, from its key `reddit:t3_1abc`."""
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
"""Why a source gave no answer."""
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
        "too_long": "the question does not fit the model's context",
        "count_mismatch": "the wrong number of answers",
        "malformed": "its answer was malformed",
        "defect": "a defect of this program",
    }
)
"""Why a model gave no usable answer, by `ModelError.reason` (docs/errors.md)."""


def reason_in_words(reason: str | None) -> str:
    """Plain words for one of `MODEL_REASONS`; any other text unchanged, `unknown` for None or empty text."""
    return MODEL_REASONS.get(reason or "", reason or "unknown")
