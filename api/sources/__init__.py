"""One file per place people talk; `SOURCES` is the list of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from api.services.keeping.storage import SourceMemory
from api.services.ports import Source
from api.settings import SourceSettings


class Build(Protocol):
    """A source's factory; it never asks the network."""

    def __call__(self, settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
        """The source; `memory` is what it remembers between runs.

        Raises:
            NotConfigured: naming what to set.
        """
        ...


def _of(module: str) -> Build:
    """A factory that imports its client library only when the source is built."""

    def build(settings: SourceSettings, memory: SourceMemory | None = None) -> Source:
        return cast(Build, import_module(f"{__name__}.{module}").build)(settings, memory)

    return build


SOURCES: Mapping[str, Build] = MappingProxyType(
    {name: _of(name) for name in ("reddit", "youtube", "amazon")}
)
"""Name -> factory, which never asks the network; raises `NotConfigured` naming what to set."""
