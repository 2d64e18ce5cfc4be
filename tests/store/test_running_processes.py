"""Whether a process is still there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api.store.retention import SILENCE
from api.store.running_repository import Owner, gone, this_process

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def test_this_process_is_here() -> None:
    """It runs, it is no other's, and two stores of it are two owners."""
    here = this_process()

    assert here.pid == os.getpid()
    assert not gone(here, NOW, here, NOW)
    assert this_process().id != here.id


def test_process_on_this_machine_is_looked_up() -> None:
    """One that ended is gone although its heart beat just now."""
    here = this_process()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert gone(replace(here, pid=ended.pid), NOW, here, NOW)
    assert gone(Owner(here.place, ended.pid, ""), NOW, here, NOW)


def test_process_that_got_the_number_of_another_is_not_it() -> None:
    """The same id with another start is another process."""
    here = this_process()

    assert gone(replace(here, started="12"), NOW, here, NOW)


def test_unreaped_process_is_gone() -> None:
    """A zombie runs nothing."""
    here = this_process()
    with subprocess.Popen([sys.executable, "-c", "print()"], stdout=subprocess.PIPE) as zombie:
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)

        assert gone(Owner(here.place, zombie.pid, "1"), NOW, here, NOW)


def test_process_elsewhere_is_known_by_its_heartbeat() -> None:
    """Its id means nothing here; a minute of silence is the end."""
    here = this_process()
    elsewhere = Owner("another host", here.pid, "1")

    assert not gone(elsewhere, NOW - SILENCE, here, NOW)
    assert gone(elsewhere, NOW - SILENCE - timedelta(seconds=1), here, NOW)
