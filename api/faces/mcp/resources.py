"""What can be read: the places with their state and price, and the caller's own reports."""

from __future__ import annotations

from collections.abc import Sequence

from api.errors import NotFound, SourceError
from api.faces.markdown import report_markdown
from api.services.keeping.keys import Tenant
from api.services.keeping.reports import stored_report
from api.services.keeping.storage import Filters, Listed
from api.services.listening import Ask
from api.services.reporting.escaping import md
from api.settings import DepthName
from api.sources import SOURCES
from api.sources.spec import Price
from api.wiring.serving import House

PLACES = "listenpost://places"
REPORTS = "listenpost://reports/"
"""Before the id of a stored report."""
MARKDOWN = "text/markdown"
"""What every resource is."""
_NEWEST = 20
"""Reports that a listing shows."""
_DEPTHS: tuple[DepthName, ...] = ("quick", "standard", "deep")


async def newest_reports(house: House, tenant: Tenant) -> Sequence[Listed]:
    """The latest of the tenant's analyses that have a report.

    Raises:
        StoreUnavailable: the database cannot be used.
    """
    page = await house.store.listing(tenant.id, Filters(), _NEWEST)
    return [listed for listed in page.analyses if listed.state == "done"]


async def resource(house: House, tenant: Tenant, address: str) -> str:
    """The Markdown at an address.

    Raises:
        NotFound: there is nothing, or it is another's.
        UsageError: that analysis is not done, or failed.
        StoreUnavailable: the database cannot be used.
    """
    if address == PLACES:
        return await _places(house)
    if not address.startswith(REPORTS):
        raise NotFound(f"there are the resources `{PLACES}` and `{REPORTS}` with a report's id")
    report = await stored_report(house.store, tenant.id, address.removeprefix(REPORTS))
    return report_markdown(report, dropped=False)


async def _places(house: House) -> str:
    """Which places there are, whether each can be asked, and what that takes."""
    from api.wiring.estimating import estimate  # loads with the product

    rows = []
    for name, source in (await house.product()).sources.items():
        spec = SOURCES[name]
        state = f"cannot be asked: {source.reason}" if isinstance(source, SourceError) else "ready"
        cells = (
            f"`{name}`",
            md(spec.title),
            md(spec.says),
            md(state),
            _cost(spec.price(house.settings.sources)),
        )
        rows.append(f"| {' | '.join(cells)} |")
    likely = []
    for depth in _DEPTHS:
        figures = estimate(house.settings, Ask("a product", depth)).likely
        usd = "unknown" if figures["usd"] is None else f"{figures['usd']:.4f}"
        likely.append(
            f"| {depth} | {figures['upstream_calls']} | {figures['youtube_searches']} | {usd} |"
        )
    sample = "Everything is made up and comes from the offline sandbox; nothing is spent.\n\n"
    return "\n".join(
        [
            f"# Places\n\n{sample * house.sample}"
            "| name | place | what is found there | state | what asking it takes |",
            "| --- | --- | --- | --- | --- |",
            *rows,
            "\nWhat an analysis of all places that are ready is likely to take:\n",
            "| depth | requests | YouTube searches | USD for models |",
            "| --- | ---: | ---: | ---: |",
            *likely,
        ]
    )


def _cost(price: Price) -> str:
    """Requests of one search, in words."""
    requests = "1 request" if price.searches == 1 else f"{price.searches} requests"
    parts = [f"{requests} for a page of {price.entries} results"]
    parts += [f"{price.token} before the first search"] if price.token else []
    parts += [f"1 for the texts of {price.details} kept items"] if price.details else []
    most = "" if price.threads is None else f", {price.threads} at most"
    parts.append(f"1 for the comments of each kept item{most}")
    counted = "; a page is one of the day's searches" if price.counted else ""
    return f"{', '.join(parts)}{counted}"
