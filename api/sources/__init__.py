"""One file per place people talk; `SOURCES` is the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from api.services.ports import Source
from api.settings import SourceSettings

Build = Callable[[SourceSettings], Source]


def _of(module: str) -> Build:
    """A factory that imports its client library only when the source is built."""

    def build(settings: SourceSettings) -> Source:
        return cast(Build, import_module(f"{__name__}.{module}").build)(settings)

    return build


SOURCES: Mapping[str, Build] = MappingProxyType(
    {name: _of(name) for name in ("reddit", "youtube", "amazon")}
)
"""Name -> factory, which never asks the network; raises `NotConfigured` naming what to set."""
