"""The vectors of one tenant's entries, in files and in memory, and which are nearest to one.

A file holds the entries between two numbers, which stand in its name. It is written whole, under
another name first, and never changed; small ones are joined to larger ones. Nothing is lost with
any of them: the table holds it all.
"""

from __future__ import annotations

import logging
import secrets
import time
from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from api.store.vector_entries import (
    UNREADABLE,
    Entries,
    Filed,
    FilePlan,
    behind,
    compared,
    entries_of,
    filed_at,
    joined,
    load,
    nearest,
    write,
)

_log = logging.getLogger(__name__)
_SUFFIX, _SCRATCH = ".npy", ".part"
_WRITING_SECONDS = 3600
"""After which a file that is still half-written is what a killed process left."""


class Neighbours:
    """One tenant's vectors; used by one task at a time, but for `write`."""

    def __init__(self, folder: Path, name: str, most_later: int) -> None:
        """Open what lies there.

        `name` begins with the tenant's mark and says which database; `most_later` are the entries
        after which a file is written.
        """
        self._folder, self._name, self._most_later = folder, name, most_later
        self._failures = 0
        self._files: list[Filed] = []
        self._later: list[Entries] = []
        self.last = 0
        """The highest number that is known; what is behind it stands in the table alone."""
        self.open()

    def open(self) -> None:
        """The files that follow each other from the first entry on."""
        self._files, self._later = self._lying(), []
        self.last = self._until

    @property
    def _until(self) -> int:
        return self._files[-1].last if self._files else 0

    @property
    def _waiting(self) -> int:
        return sum(len(entries) for entries in self._later)

    @property
    def count(self) -> int:
        """Entries in files and in memory, also those that are no longer in the table."""
        return sum(filed.count for filed in self._files) + self._waiting

    @property
    def due(self) -> bool:
        """Whether so many are in memory that a file is worth it; ever more where none can be."""
        return self._waiting > self._most_later << self._failures

    def add(self, rows: Sequence[tuple[int, bytes | None]]) -> None:
        """What comes next in the table, by number; those without a vector are passed over."""
        self._later = [joined([*self._later, entries_of(rows)])]
        self.last = rows[-1][0]

    def load(self) -> None:
        """Make the files ready for `nearest`; one that was changed or removed is looked for anew.

        What cannot be read is not there: `last` goes back, and the table has the rest.
        """
        for _ in range(2):
            try:
                for filed in self._files:
                    load(filed)
            except UNREADABLE:  # another process has joined it to others, or it is damaged
                self.open()
            else:
                return
        self._files, self._later, self.last = [], [], 0

    def nearest(self, vector: bytes, most: int) -> list[int]:
        """Numbers of the nearest that `load` and `add` have made ready."""
        filed = [file.loaded for file in self._files if file.loaded is not None]
        return nearest([*filed, *map(compared, self._later)], vector, most)

    def plan(self, *, everything: bool = False) -> FilePlan | None:
        """What is to be written; None: the files have changed, and were opened anew.

        Files that are not much larger than what follows them are written again with it, so that
        there are few and each entry is written a few times; or all are.
        """
        if [filed.file for filed in self._lying()] != [filed.file for filed in self._files]:
            self.open()
            return None
        kept, size = len(self._files), self._waiting
        while kept and (everything or self._files[kept - 1].count <= 2 * size):
            kept -= 1
            size += self._files[kept].count
        files = tuple(self._files[kept:])
        since = files[0].since if files else self._until
        target = self._folder / f"{self._name}-{since}-{self.last}{_SUFFIX}"
        later = joined(self._later)
        return FilePlan(target, since, self.last, files, later)

    def write(self, plan: FilePlan, there: array[int]) -> bool:
        """Write a file of what is there, by number, and of what came later than all of that.

        False: it cannot be written; the log says why.
        """
        scratch = plan.target.with_suffix(f".{secrets.token_hex(4)}{_SCRATCH}")
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            with scratch.open("wb") as file:
                write(file, plan, there)
            scratch.replace(plan.target)
        except UNREADABLE as error:
            self._failures += 1
            kind = type(error).__name__
            _log.warning("the vectors in `%s` are not kept: %s", self._folder, kind)
            with suppress(OSError):
                scratch.unlink(missing_ok=True)
            return False
        self._failures = 0
        return True

    def put(self, plan: FilePlan) -> None:
        """Take the file that was written in the place of what is in it, and remove older ones.

        When others were opened in the meantime it is only one more that lies there.
        """
        kept = len(self._files) - len(plan.files)
        if kept >= 0 and tuple(self._files[kept:]) == plan.files:
            with suppress(*UNREADABLE):
                self._files[kept:] = [filed_at(plan.target, plan.since, plan.last)]
                self._later = [behind(later, plan.last) for later in self._later]
        self._clear()

    def _lying(self) -> list[Filed]:
        spans = [
            (span[1], span[2], file)
            for file in self._folder.glob(f"{self._name}-*{_SUFFIX}")
            if (span := _span(file))
        ]
        spans.sort(key=lambda span: span[1], reverse=True)  # the longest first
        known = {(filed.file, filed.since, filed.size): filed for filed in self._files}
        chain: list[Filed] = []
        until = 0
        while fitting := [span for span in spans if span[0] <= until < span[1]]:
            _, last, file = fitting[0]
            spans.remove(fitting[0])
            with suppress(*UNREADABLE):
                filed = filed_at(file, until, last)
                chain.append(known.get((file, until, filed.size), filed))
                until = last
        return chain

    def _clear(self) -> None:
        """Remove older files, those of a database that was here before, and half-written ones."""
        mine = {filed.file for filed in self._files}
        for file in self._folder.glob(f"{self._name.partition('-')[0]}-*"):
            with suppress(OSError):
                if file.suffix == _SCRATCH:
                    remains = time.time() - file.stat().st_mtime > _WRITING_SECONDS
                else:
                    name, _, last = _span(file) or ("", 0, 0)
                    older, own = last <= self._until, name == self._name
                    remains = not own or (older and file not in mine)
                if remains:
                    file.unlink(missing_ok=True)


def _span(file: Path) -> tuple[str, int, int] | None:
    """The name, and the numbers between which its entries lie, of `3f2a-20260101-0-5000.npy`."""
    rest, _, last = file.stem.rpartition("-")
    name, _, after = rest.rpartition("-")
    if not (name and after.isdecimal() and last.isdecimal()):
        return None
    return name, int(after), int(last)
