"""How long rows are stored that no person deletes, and the statements that delete them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Delete, delete

from api.store.tables import asking, charges, idempotency, ledger, logins, paces, pages, runs, sessions

PAGE_LIFE = timedelta(days=1)
"""Retention of a source's page, and of the pace of a source that is no longer asked."""
SAMPLE_LIFE = timedelta(days=180)
"""Retention of a post of a sample, see `api/pipeline/gate/cascade.py`."""
LEDGER_LIFE = timedelta(days=90)
"""Retention of a day's charges and of the quota ledger."""
SESSION_LIFE = timedelta(days=30)
"""Retention of a chat session after its last turn."""
IDEMPOTENCY_LIFE = timedelta(days=7)
SILENCE = timedelta(seconds=60)
"""Time without a heartbeat after which a process counts as ended: five beats may be lost."""


def expired(now: datetime) -> Sequence[Delete]:
    """Statements that delete every row of its age or older."""
    return (
        delete(charges).where(charges.c.day < (now - LEDGER_LIFE).date()),
        delete(pages).where(pages.c.stored_at < now - PAGE_LIFE),
        delete(asking).where(asking.c.until < now),
        delete(paces).where(paces.c.used_at < now - PAGE_LIFE),
        delete(sessions).where(sessions.c.saved_at < now - SESSION_LIFE),
        delete(idempotency).where(idempotency.c.claimed_at < now - IDEMPOTENCY_LIFE),
        delete(logins).where(logins.c.until < now),
        delete(ledger).where(ledger.c.day < (now - LEDGER_LIFE).date()),
        delete(runs).where(runs.c.seen_at < now - SILENCE - PAGE_LIFE),
    )
