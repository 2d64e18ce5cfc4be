"""What was kept and what was dropped, narrowed to what somebody looks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.pages.access import Guest
from api.faces.web.pages.composing import evidence_values
from api.faces.web.pages.reading import AnalysisId, report_of
from api.faces.web.pages.screen import PageRoute, page
from api.services.places import place_of
from api.services.question.query import languages_of
from api.services.reporting.report import DroppedItem, KeptItem, Report
from api.services.text import fold

router = APIRouter(prefix="/analyses", include_in_schema=False, route_class=PageRoute)
_STAGES = {"unfit": "no post of a person", **outline.DROPPED}
MOST = 200
"""Items of a list on one page."""


@dataclass(frozen=True, slots=True)
class EvidenceFilter:
    """Which items are looked for; what is empty leaves out none."""

    place: str = ""
    stage: str = ""
    language: str = ""
    text: str = ""

    def kept(self, items: Iterable[KeptItem]) -> list[KeptItem]:
        """Of those that were kept; none of them has a stage."""
        return [
            item
            for item in items
            if not self.stage
            and self.place in {"", item.source}
            and self._matches(item.title, item.body, *(part.body for part in item.comments))
        ]

    def dropped(self, items: Iterable[DroppedItem]) -> list[DroppedItem]:
        """Of those that were dropped; of them the title is known, and the reason."""
        return [
            item
            for item in items
            if self.stage in {"", item.dropped_by}
            and self.place in {"", place_of(item.key)}
            and self._matches(item.title, item.reason)
        ]

    def _matches(self, *texts: str) -> bool:
        words = "\n".join(texts)
        return self.language in {"", language_of(texts[0])} and fold(self.text) in fold(words)


def language_of(title: str) -> str:
    """The code of the language that the small words of a title tell; `?` where they tell none."""
    languages = languages_of(title)
    return next(iter(languages)) if len(languages) == 1 else "?"


@router.get("/{analysis_id}/evidence")
async def evidence_page(
    request: Request,
    analysis_id: AnalysisId,
    visitor: Guest,
    house: Opened,
    place: str = "",
    stage: str = "",
    language: str = "",
    text: str = "",
) -> Response:
    """Two lists, and how to narrow them."""
    values = evidence_values(await report_of(house, visitor, analysis_id))
    report: Report = values["report"]
    chosen = EvidenceFilter(place, stage, language, text[:200])
    everything: list[KeptItem | DroppedItem] = [*report.items, *report.dropped]
    places = dict.fromkeys(
        [*(item.source for item in report.items), *(place_of(item.key) for item in report.dropped)]
    )
    stages = {item.dropped_by for item in report.dropped}
    languages = {language_of(item.title) for item in everything}
    return page(
        request, visitor, "evidence.html",
        title=f"Evidence: {outline.heading(report)}",
        chosen=chosen,
        kept=chosen.kept(report.items),
        lost=chosen.dropped(report.dropped),
        places=[(name, outline.source_title(name)) for name in places],
        stages=[(name, words) for name, words in _STAGES.items() if name in stages],
        languages=[
            (code, "not clear" if code == "?" else code) for code in sorted(languages)
        ],
        most=MOST,
        stage_of=lambda item: _STAGES.get(item.dropped_by, "dropped"),
        source_of=lambda item: outline.source_title(place_of(item.key)),
        **values,
    )  # fmt: skip
