"""Stack Exchange: questions of up to three of its sites, with their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.sources.spec import Price, SourceSpec

if TYPE_CHECKING:
    from api.settings import SourceSettings

NAME = "stackexchange"
SITES = "LISTENPOST_STACKEXCHANGE_SITES"
"""The setting that names the sites."""


def key_of(settings: SourceSettings) -> str:
    """The key without blanks around it; empty when there is none."""
    key = settings.stackexchange_key
    return key.get_secret_value().strip() if key else ""


def _price(settings: SourceSettings) -> Price:
    from api.settings.addresses import sites_in

    sites = len(sites_in(settings.stackexchange_sites))
    return Price(entries=100, phrases=True, searches=sites, threads=sites)


STACKEXCHANGE = SourceSpec(
    name=NAME,
    title="Stack Exchange",
    says="Problems with devices and software, and what solved them: questions and their answers.",
    page="docs/sources/stackexchange.md",
    variables=(),
    address="STACKEXCHANGE_URL",
    module="api.sources.stackexchange.client",
    price=_price,
)
