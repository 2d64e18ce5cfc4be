"""Where the durable engine keeps its tables: beside those of the store."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sqlalchemy import URL

from api.store.database import engine_url


def work_url(text: str | None) -> str:
    """The URL for the engine: a file beside that of SQLite, else the same database.

    Raises:
        ConfigurationError: it is not a URL of SQLite or PostgreSQL, or SQLite without a file.
        StoreUnavailable: the user's data directory cannot be made.
    """
    url = engine_url(text)
    if url.get_backend_name() != "sqlite":
        return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    store = Path(str(url.database))
    file = store.with_name(f"{store.stem}-work.db")
    with suppress(OSError):  # made here to be the owner's alone; the engine says what is wrong
        os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
    return URL.create("sqlite", database=str(file)).render_as_string()
