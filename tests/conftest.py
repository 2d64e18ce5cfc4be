"""What every test has: an empty environment, a folder of its own, and no network but loopback."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import sys
from collections.abc import Generator, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from api.settings import data_folder, variables
from tests.postgres import Postgres, make_tables, packaged, running
from tests.usual import USUAL

OURS = (
    "LISTENPOST_",
    "LANGFUSE_",
    "OPENAI_",
    "OTEL_",
    "REDDIT_",
    "YOUTUBE_",
    "AMAZON_",
    "PRAW",
    "praw_",
)
# by day every machine tries the same few examples, however slow it is; at night many new ones
settings.register_profile("daily", deadline=None, database=None, derandomize=True, max_examples=25)
settings.register_profile("nightly", deadline=None, database=None, max_examples=300)
settings.load_profile(os.environ.get("LISTENPOST_TEST_PROFILE", "daily"))
PROXIES = ("http_proxy", "https_proxy", "all_proxy")

LONG = (
    "interfaces/http/test_openapi.py",
    "store/test_damaged.py",
    "clients/test_pages.py",
    "interfaces/test_mcp_clients.py",
    "interfaces/http/test_serve_command.py",
    "interfaces/test_cli_streams.py",
    "interfaces/http/test_errors.py",
    "clients/test_browser.py",
    "clients/test_openapi.py",
    "interfaces/test_mcp.py",
    "interfaces/test_page_commands.py",
)
"""Modules that take longer than half a minute beside others, longest first; before them two that need no client
which is being installed meanwhile."""


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every address beyond this machine, as a machine without a network does."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode()
    if host and host.lower().rstrip(".") != "localhost" and not _is_loopback(host):
        raise socket.gaierror(socket.EAI_NONAME, f"tests talk to loopback only, not to {host}")


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


sys.addaudithook(_loopback_only)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Run no garbage collector while tests are collected, and exempt what lives until the end from it afterwards.

    Each worker collects all tests, and almost nothing of that is garbage: 12.1 s of processor time, without 7.8 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name packed bytes by their parameter: `gzip` writes the time into them, and workers that
    run beside each other must collect the same names.
    """
    return argname if isinstance(val, bytes) and not val.isascii() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with modules that take long, so that the processes of a run end at about one time."""
    place = {name: number for number, name in enumerate(LONG)}
    here = Path(__file__).parent
    items.sort(key=lambda item: place.get(item.path.relative_to(here).as_posix(), len(LONG)))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The product runs on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting, key, proxy, `.env` or database of the developer reaches a test.

    What holds instead is `USUAL`.
    """
    for name in list(os.environ):
        if name in variables() or name.startswith(OURS) or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path.with_name(f"{tmp_path.name}-data")))
    for name, value in USUAL.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for this run."""
    try:
        with running() as server:
            yield server
    except LookupError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'listenpost.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.create()
    yield url
    server.clear(url)


@pytest.fixture(scope="session")
def sqlite_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the store's tables and no rows but their version."""
    path: Path = tmp_path_factory.mktemp("tables") / "listenpost.db"
    make_tables(f"sqlite:///{path}")
    return path


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_tables: Path) -> str:
    """An SQLite database with the store's tables and no rows."""
    return f"sqlite:///{shutil.copy(sqlite_tables, tmp_path)}"


@pytest.fixture
def default_database(clean_environment: None, sqlite_tables: Path) -> None:
    """The file that is used where no setting names one has its tables already, but no rows."""
    data_folder().mkdir(parents=True)
    shutil.copy(sqlite_tables, data_folder())


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the store's tables and no rows, of each kind; making tables takes longer than most tests."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.create_with_tables()
    yield url
    server.delete_rows(url)


@pytest.fixture(scope="session")
def vector_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server that has the extension `vector`."""
    try:
        with packaged() as server:
            yield server
    except LookupError as error:
        pytest.skip(str(error))
