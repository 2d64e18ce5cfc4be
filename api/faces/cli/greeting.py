"""What a person at a terminal is told once: where questions go, and how to change that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress

from api.errors import SourceError
from api.faces.cli.printing import tell
from api.services.listening import Product
from api.services.places import title_of
from api.settings import data_folder


def greet(product: Product, places: Sequence[str] = ()) -> None:
    """Say it at the first question that leaves this machine; a file remembers that it was said.

    `places` are those that the question names; empty: it names none.
    """
    mark = data_folder() / "greeted"
    if product.sample or not sys.stderr.isatty() or mark.exists():
        return
    titles = [
        title_of(product.places, name)
        for name in places or product.usual
        if not isinstance(product.sources.get(name), SourceError | None)
    ]
    tell(
        f"Your question is sent to {', '.join(titles) or 'nobody'}. `LISTENPOST_SOURCES` or "
        "`--source` choose others, `--sandbox` asks nobody, `listenpost doctor` shows all. "
        "(This is said once.)"
    )
    with suppress(OSError):  # then it is said again
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
