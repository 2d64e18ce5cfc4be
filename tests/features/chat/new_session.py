"""A session of a chat over three posts."""

from __future__ import annotations

from api.features.chat.session import Session
from api.reports.exhibits import Dossier
from tests.services.fakes import FakeSource
from tests.services.kit import kit, posts

PRODUCT = kit(FakeSource(posts(3)))


def session() -> Session:
    """One that remembers nothing."""
    run = PRODUCT.start()
    return Session("s1", "ada", run, Dossier(run.places))
