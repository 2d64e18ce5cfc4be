"""Listenpost: what people really say about a product, and only what is about it.

    report = await api.analyze("plaud.ai")            a report with citations
    report = await api.ask_again(report, sense=2)     the same items, as one of its senses
    reddit = await api.fetch("reddit", "plaud.ai")    one source through the gate
    kept, share = await api.relevance_filter("plaud.ai", items, "reddit")
    agent = Agent(model, toolsets=[api.listening_toolset()])

The import package is `api`. Importing it loads no client library: what these need is built on
first use, from the environment. Errors are in `api.errors`; more in `docs/python.md`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from api.services import Provider, provide

if TYPE_CHECKING:
    from api.interfaces.shared.python_api import analyze, ask_again, fetch
    from api.reports.report import Fetched, Report
    from api.services.tools import (
        fetch_amazon_tool,
        fetch_reddit_tool,
        fetch_youtube_tool,
        listening_toolset,
        relevance_filter,
    )

__all__ = [
    "Fetched",
    "Report",
    "analyze",
    "ask_again",
    "fetch",
    "fetch_amazon_tool",
    "fetch_reddit_tool",
    "fetch_youtube_tool",
    "listening_toolset",
    "relevance_filter",
]
# Where the names are that are no tools.
_HOMES = {
    "Fetched": "api.reports.report",
    "Report": "api.reports.report",
    "analyze": "api.interfaces.shared.python_api",
    "ask_again": "api.interfaces.shared.python_api",
    "fetch": "api.interfaces.shared.python_api",
}
__version__: str


@cache
def _per_loop() -> Provider:
    """Return a function that gives each event loop its own `Product`; the bootstrap is imported on the first call."""
    from api.bootstrap import PerLoop

    return PerLoop().product


provide(lambda own_items: _per_loop()(own_items))


if not TYPE_CHECKING:  # where types are checked, a misspelt name is an error

    def __getattr__(name: str) -> Any:
        """Load what a public name stands for when it is asked for."""
        if name == "__version__":
            from importlib.metadata import version

            return version("listenpost")
        if name not in __all__:
            raise AttributeError(f"module `api` has no attribute `{name}`")
        return getattr(import_module(_HOMES.get(name, "api.services.tools")), name)


def __dir__() -> list[str]:
    """The public names, whether they are loaded or not."""
    return [*__all__, "__version__"]
