"""Which database a URL means; nothing here repeats a URL, since it may hold a password."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from api.errors import ConfigurationError, StoreUnavailable

VARIABLE = "`LISTENPOST_DATABASE_URL`"
_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}
_PARAMETERS = {"host", "port", "ssl", "sslmode"}
_FORMS = "`sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`"


def default_path() -> Path:
    """The SQLite file in the user's data directory."""
    return platformdirs.user_data_path("listenpost", appauthor=False) / "listenpost.db"


def engine_url(text: str | None) -> URL:
    """The URL with its async driver; None is the default file, whose folder is made.

    Raises:
        ConfigurationError: it is not a URL of SQLite or PostgreSQL, or SQLite without a file.
        StoreUnavailable: the user's data directory cannot be made.
    """
    if text is None:
        return URL.create("sqlite+aiosqlite", database=str(_made(default_path())))
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise ConfigurationError(f"{VARIABLE} is not a URL; write {_FORMS}") from None
    driver = _DRIVERS.get(url.drivername)
    if driver is None:
        raise ConfigurationError(
            f"{VARIABLE} names neither SQLite nor PostgreSQL; write {_FORMS}, with no driver but "
            "`aiosqlite` or `asyncpg`"
        )
    url = url.set(drivername=driver)
    return _with_file(url) if driver == "sqlite+aiosqlite" else _with_parameters(url)


def _made(path: Path) -> Path:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(
            f"the folder `{path.parent}` cannot be made ({error.strerror}); set {VARIABLE}"
        ) from None
    return path


def _with_file(url: URL) -> URL:
    if not url.database or ":memory:" in url.database or url.database.startswith("file:"):
        raise ConfigurationError(f"{VARIABLE} needs a file that stays; write `sqlite:///FILE`")
    return url


def _with_parameters(url: URL) -> URL:
    if unknown := sorted(set(url.query) - _PARAMETERS):
        raise ConfigurationError(
            f"{VARIABLE} has the parameter `{unknown[0]}`, which is not known; "
            f"known are {', '.join(f'`{name}`' for name in sorted(_PARAMETERS))}"
        )
    if "sslmode" in url.query:  # libpq's name for what asyncpg calls ssl
        mode = url.query["sslmode"]
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url


def private(path: str) -> None:
    """Make the file before SQLite does, readable by its owner alone; its other files follow."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:  # SQLite says why it cannot be opened
        return
