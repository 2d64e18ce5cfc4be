"""Which process runs an analysis, and whether that process is still there.

A process on the same machine is looked up by its id and start time; of any other only its heartbeat
is known, a row that it renews every ten seconds.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

BEAT = 10.0
"""Seconds between two heartbeats."""
SILENCE = timedelta(seconds=60)
"""Without a heartbeat for this long a process counts as gone."""


@dataclass(frozen=True, slots=True)
class Owner:
    """One open store of one process."""

    place: str
    """Host, boot and process namespace: where a process id means something."""
    pid: int
    started: str
    """Start of the process in ticks since boot; empty where the system does not say."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))


def this_process() -> Owner:
    """A new owner for this process."""
    pid = os.getpid()
    return Owner(_place(), pid, _started(pid) or "")


def gone(owner: Owner, seen_at: datetime, here: Owner, now: datetime) -> bool:
    """Whether the process is known to have ended, or has been silent for too long."""
    if owner.place == here.place and sys.platform != "win32" and not _alive(owner):
        return True
    return now - seen_at > SILENCE


def _alive(owner: Owner) -> bool:
    """Whether this very process runs, not another that got its id."""
    if owner.started:
        return _started(owner.pid) == owner.started
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _place() -> str:
    boot = _read("/proc/sys/kernel/random/boot_id")
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return " ".join((socket.gethostname(), boot, namespace)).strip()


def _started(pid: int) -> str | None:
    """When a process began; None when there is none, or it is a zombie, or nobody says."""
    state, *fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ("",)
    return fields[18] if state not in {"", "Z", "X"} and len(fields) > 18 else None


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""
