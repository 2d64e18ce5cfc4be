"""The form of a watch: what stands in it at first, as it is kept, or as it was sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.faces.watches import target_words
from api.faces.web.pages.access import Submission
from api.faces.web.pages.fields import validated
from api.faces.web.watches import WatchRequest
from api.services.keeping.keys import digest
from api.services.question.accepting import question_of
from api.services.watching.watch import Target, Watch

_EMPTY = {
    "query": "", "about": "", "name": "", "every": "mon 08:00", "tz": "UTC",
    "depth": "standard", "notify": "", "only": "", "tell_first": "",
}  # fmt: skip
"""Fields of one line by the names that the API has for them, with what stands in them at first."""
FIELDS = (*_EMPTY, "sources")
"""Beside which a message can stand."""


@dataclass(frozen=True, slots=True)
class WatchForm:
    """What stands in the fields."""

    texts: Mapping[str, str]
    sources: Sequence[str] = ()
    kept: Sequence[str] = ()
    """Marks of those who are told already, and shall be."""
    offered: Sequence[str] = ()
    """Marks of those whom the form showed: somebody may have added others since."""

    @classmethod
    def empty(cls, query: str) -> WatchForm:
        """Of a watch that is to be added."""
        return cls(_EMPTY | {"query": query})

    @classmethod
    def of_watch(cls, watch: Watch) -> WatchForm:
        """As it is kept; addresses may hold secrets, so those who are told are marks."""
        texts = {name: str(getattr(watch, name, None) or "") for name in _EMPTY}
        texts |= {"tz": watch.zone, "notify": ""}
        return cls(texts, watch.sources, [mark for mark, _ in _marked(watch)])

    @classmethod
    def sent(cls, form: Submission) -> WatchForm:
        """As a person has sent it."""
        texts = {name: form.text(name) for name in _EMPTY}
        marks = form.fields.get("kept", ()), form.fields.get("offered", ())
        return cls(texts, form.fields.get("source", ()), *marks)

    def request(self, **more: object) -> WatchRequest:
        """As the API takes it, with what the form has no field for.

        Raises:
            UsageError: a field holds what none of ours offers.
        """
        question_of(self.texts["query"], self.texts["about"])
        notify = self.texts["notify"].split()
        return validated(
            WatchRequest, {**self.texts, "sources": self.sources, "notify": notify, **more}
        )

    def draft(self, tenant: str) -> Watch:
        """What it would be, to say what that costs: its question may be missing yet.

        Raises:
            UsageError: a field holds what none of ours offers, or somebody is no address.
        """
        texts = {**self.texts, "query": self.texts["query"] or "a product"}
        return replace(self, texts=texts).request().watch(tenant)

    def changes(self, watch: Watch) -> dict[str, Any]:
        """The fields of a watch as they shall be.

        Raises:
            UsageError: a field holds what none of ours offers, or somebody is no address.
        """
        more: dict[str, object] = {"limit": watch.limit, "sandbox": watch.sandbox}
        if watch.began_at is not None:  # its first run is over, so the form does not ask
            more["tell_first"] = watch.tell_first
        fields = self.request(**more).fields()
        kept = [
            target
            for mark, target in _marked(watch)
            if mark in self.kept or mark not in self.offered
        ]
        return fields | {"notify": (*kept, *fields["notify"])}


def receivers_of(watch: Watch) -> list[tuple[str, str]]:
    """Everybody who is told, by a mark and in words."""
    return [(mark, target_words(target.shown)) for mark, target in _marked(watch)]


def _marked(watch: Watch) -> Iterator[tuple[str, Target]]:
    for target in watch.notify:
        yield digest(f"{watch.id} {target.kind} {target.address}"), target
