"""The form in which is chosen what changes when a report is judged again to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from api.interfaces.pages.forms import FormField, QuestionForm, form_fields, texts_of
from api.interfaces.shared import presentation
from api.interfaces.shared.listing_requests import ReplayRequest
from api.reports.report import Report


@dataclass(frozen=True, slots=True)
class ReplayForm:
    """Fields of the form and their contents."""

    fields: Mapping[str, FormField]
    texts: Mapping[str, str]
    senses: Sequence[tuple[str, str]]
    """The groups of the report by their numbers, and 0 for no description at all; none where it has neither."""

    @classmethod
    def of(cls, report: Report, submitted: Mapping[str, Sequence[str]]) -> ReplayForm:
        """The form of a report as submitted; empty when nothing was."""
        senses = [(str(sense.number), sense.name or ", ".join(sense.words)) for sense in report.senses]
        shown = [(number, presentation.shortened(words, presentation.LONGEST_HEADING)) for number, words in senses]
        none = [("0", "none, and no description")] if senses or report.about or report.not_about else []
        return cls(form_fields(ReplayRequest), texts_of(ReplayRequest, submitted), [*shown, *none])

    @property
    def request(self) -> ReplayRequest:
        """What was chosen; raises `UsageError`, which names the field, for what cannot be."""
        request: ReplayRequest = QuestionForm(ReplayRequest, self.texts).request()
        return request
