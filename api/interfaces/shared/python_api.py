"""The Python functions `api.analyze`, `api.ask_again` and `api.fetch`, for programs and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from api.choices import Aim, DepthName, Window
from api.reports.report import Fetched, Report
from api.services import product, provided
from api.services.product import Ask, check, texts_of
from api.sources import OWN_ITEMS


async def analyze(
    query: str,
    *,
    depth: DepthName = "standard",
    sources: Sequence[str] | None = (),
    since: Window = "all",
    limit: int | None = None,
    about: str | None = "",
    not_about: Sequence[str] = (),
    aim: Aim = "about",
    exclude: Sequence[str] = (),
    exclude_authors: Sequence[str] = (),
    exclude_sites: Sequence[str] = (),
) -> Report:
    """Ask every source about a product, keep what is about it, and report with citations.

    Configured from the environment and `.env`, as the command line is; without a source and
    without keys it works on made-up sample data, and `report.sample` says so. Nothing is stored.
    What it needs is built with the first call and closed with the event loop, which stays yours.

    Args:
        query: a product or a question, as you would say it.
        depth: `quick`, `standard` or `deep`: how far to look.
        sources: only these, such as `["reddit", "youtube"]`; none: those of `LISTENPOST_SOURCES`.
        since: `day`, `week`, `month`, `year` or `all`: how far back; undated items stay.
        limit: items per source at first, 1 to 500; None: the depth's.
        about: what it is, to tell it from its namesakes: `"the notes app"`.
        not_about: what it is not, one namesake or topic each: `["the crochet square"]`.
        aim: `about` keeps what is about the product, `mention` also what only mentions it.
        exclude: words; posts and comments that have one are left out before judging.
        exclude_authors: authors whose posts and comments are left out, by their names in the place.
        exclude_sites: sites (`"example.com"`) or places (`"r/deals"`) whose posts are left out.

    Returns:
        The report, whatever happened: `report.decision` says which kind of answer it is, and a
        source that could not be asked is an outcome in `report.sources`, never an exception.

    Raises:
        UsageError: an unknown source, depth or window, a limit out of range, or an argument of
            another type; nobody was asked.
        ConfigurationError: the environment holds an unknown or malformed setting.
    """
    names = () if sources is None else (sources,) if isinstance(sources, str) else sources
    check("sources", names, Iterable, "a list of names")
    about, denied = "" if about is None else about, texts_of("not_about", not_about)
    left_out = _left_out(exclude, exclude_authors, exclude_sites)
    ask = Ask(query, depth, tuple(names), limit, about, denied, aim, since=since, **left_out)
    return await product.analyze(await provided(), ask)


async def ask_again(
    report: Report,
    *,
    about: str | None = None,
    not_about: Sequence[str] | None = None,
    aim: Aim | None = None,
    sense: int | None = None,
) -> Report:
    """Report anew on the items of a report, under another meaning of its name; no source is asked.

    Args:
        report: of `analyze` or of a stored report's JSON; its dropped items are judged again, too.
        about: what the product is; None: as the report has it, as of the others.
        not_about: what it is not, one namesake or topic each.
        aim: `about` or `mention`.
        sense: the number of one of `report.senses`, in place of a description; 0 for none.

    Returns:
        A report of its own; nothing is stored, and no sense is remembered.

    Raises:
        NotFound: the report has no such sense.
        UsageError: a sense and a description are given at once, or the report asked nothing.
        ConfigurationError: as `analyze`.
    """
    from api.bootstrap.storage import with_report_items
    from api.features.analyses.rejudging import ask_again as question_again

    denied = None if not_about is None else texts_of("not_about", not_about)
    ask = question_again(report, about=about, not_about=denied, aim=aim, sense=sense)
    service = await provided(own_items=OWN_ITEMS.name in report.sources)
    return await product.analyze(with_report_items(service, report), ask)


async def fetch(
    source: str,
    query: str,
    *,
    depth: DepthName = "quick",
    since: Window = "all",
    limit: int | None = None,
    about: str | None = "",
    not_about: Sequence[str] = (),
    aim: Aim = "about",
    exclude: Sequence[str] = (),
    exclude_authors: Sequence[str] = (),
    exclude_sites: Sequence[str] = (),
) -> Fetched:
    """Ask one source and keep what is about the query; at standard and deep grade and rank it too.

    Args:
        source: its name, such as `hackernews` or `reddit`; `api.sources.SOURCES` has all.
        query: a product or a question, as you would say it.
        depth: see `analyze`, as the others.
        since: how far back; undated items stay.
        limit: items at first, 1 to 500; None: the depth's.
        about: what it is, to tell it from its namesakes.
        not_about: what it is not.
        aim: whether a mention of it is enough.
        exclude: words, and below authors and sites, whose posts are left out before judging.
        exclude_authors: see `analyze`.
        exclude_sites: see `analyze`.

    Returns:
        `items`, best first, and how they came about; when the source could not be asked,
        `outcome` and `reason` say why.

    Raises:
        UsageError: as `analyze`, and for a query that names nothing to look for.
        ConfigurationError: as `analyze`.
    """
    about, denied = "" if about is None else about, texts_of("not_about", not_about)
    left_out = _left_out(exclude, exclude_authors, exclude_sites)
    ask = Ask(query, depth, (source,), limit, about, denied, aim, since=since, **left_out)
    return (await product.fetch(await provided(), source, ask)).fetched


def _left_out(words: Sequence[str], authors: Sequence[str], sites: Sequence[str]) -> dict[str, Any]:
    """The lists of texts as options of a question."""
    given = {"exclude": words, "exclude_authors": authors, "exclude_sites": sites}
    return {name: texts_of(name, texts) for name, texts in given.items()}
