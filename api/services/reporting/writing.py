"""What a report writer is asked for and hands in; the writer itself is outside or an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from api.services.bills import Wasted
from api.services.evidence.pipeline import Evidence
from api.services.evidence.ranking import Ranked
from api.services.evidence.run import Run
from api.services.reporting.citing import Drafted
from api.services.reporting.dossier import Dossier
from api.services.schemas import Gathered, Usage

WRITER_REQUESTS = 8
"""Model requests of one report at most."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """One more look at a source, with another query, while the report was written."""

    gathered: Gathered
    ranked: Ranked
    """What the evidence did not have yet."""


@dataclass(frozen=True, slots=True)
class Written:
    """A checked draft, what it cost, and what was looked up for it."""

    draft: Drafted
    usage: Usage
    follow_ups: tuple[FollowUp, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know about the writing."""


def share_read(evidence: Evidence) -> str:
    """What a writer is shown: `the 30 best of 33 kept posts`; "" where it is all of them."""
    shown, kept = len(evidence.shown), len(evidence.kept)
    return f"the {shown} best of {kept} kept posts" if shown < kept else ""


class NotWritten(Wasted):
    """The writer began and gave no usable draft; what it used and looked up still counts."""

    def __init__(
        self,
        reason: str,
        detail: str = "",
        usage: Usage = Usage(),
        follow_ups: tuple[FollowUp, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Keep the bill."""
        super().__init__(reason, detail, usage)
        self.follow_ups, self.notes = follow_ups, notes


class Writer(Protocol):
    """Writes a report over a run's exhibits."""

    async def write(self, run: Run, evidence: Evidence, dossier: Dossier) -> Written:
        """A checked draft over what the dossier shows; follow-ups are shown there too.

        Raises:
            ModelError: the model could not be reached or gave no usable draft.
        """
        ...
