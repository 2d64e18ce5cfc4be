"""Which vectors are nearest, and the files they lie in: no database."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from api.features.archive.search_values import DIMENSIONS
from api.store.vector_entries import COMPARED, Neighbours

NAME = "mark-20260101"
FAR = bytes([129, 127] * (DIMENSIONS // 2))


def vector(number: int) -> bytes:
    """Unlike any other's."""
    return Random(number).randbytes(DIMENSIONS)


def opened(folder: Path, *numbers: int) -> Neighbours:
    """What lies there and these, as the table gives them, ready to be searched."""
    neighbours = Neighbours(folder, NAME, most_later=3)
    for number in numbers:
        if number > neighbours.last:
            neighbours.add([(number, vector(number))])
    neighbours.load()
    return neighbours


def file(neighbours: Neighbours, there: Iterable[int], *, everything: bool = False) -> None:
    """Write a file."""
    plan = neighbours.plan(everything=everything)
    assert plan is not None
    assert neighbours.write(plan, array("Q", there))
    neighbours.put(plan)


def found(neighbours: Neighbours, numbers: Iterable[int]) -> list[int]:
    """Those of these that are the nearest to themselves."""
    neighbours.load()
    return [n for n in numbers if neighbours.nearest(vector(n), 1) == [n]]


def test_of_many_the_likeliest_are_compared_and_the_newest_of_equals(tmp_path: Path) -> None:
    """The nearest is among them; what is left out is what is as far as others, and older."""
    neighbours = Neighbours(tmp_path, NAME, most_later=3)
    rows = [(number, FAR) for number in range(1, COMPARED + 501)]
    rows[7] = 8, vector(8)
    neighbours.add(rows[: COMPARED // 2])
    neighbours.add(rows[COMPARED // 2 :])

    assert neighbours.nearest(vector(8), 1) == [8]
    compared = neighbours.nearest(vector(8), 2 * COMPARED)
    assert len(compared) == COMPARED
    assert set(range(1, COMPARED + 501)) - set(compared) == {*range(1, 8), *range(9, 502)}


def test_small_files_are_joined(tmp_path: Path) -> None:
    """There are few, whatever is written, and each number is in one of them."""
    numbers = range(1, 161)
    for end in range(4, 161, 4):
        neighbours = opened(tmp_path, *numbers[:end])
        assert neighbours.due
        file(neighbours, numbers[:end])
        assert not neighbours.due
        assert neighbours.count == end

    assert len(list(tmp_path.iterdir())) <= 4
    assert found(opened(tmp_path), numbers) == list(numbers)


def test_what_is_gone_is_left_out_and_what_came_later_is_not(tmp_path: Path) -> None:
    """The table may have been read before an entry came that another search has read."""
    neighbours = opened(tmp_path, *range(1, 11))
    file(neighbours, (1, 2, 5, 8))

    assert found(opened(tmp_path), range(1, 12)) == [1, 2, 5, 8, 9, 10]
    neighbours.add([(11, vector(11))])
    file(neighbours, (9,), everything=True)
    assert found(neighbours, range(1, 12)) == [9, 10, 11]
    file(neighbours, (12,), everything=True)
    assert found(opened(tmp_path), range(1, 12)) == []
    assert opened(tmp_path, *range(1, 13)).count == 1, "`last` is that of the empty file"


def test_entries_without_vectors_are_passed_over(tmp_path: Path) -> None:
    """They count as read."""
    neighbours = Neighbours(tmp_path, NAME, most_later=3)
    neighbours.add([(1, None), (2, b"short"), (3, vector(3))])
    neighbours.add([(4, None)])
    neighbours.load()

    assert (neighbours.last, neighbours.count) == (4, 1)
    assert neighbours.nearest(vector(3), 9) == [3]


def test_files_that_overlap_have_each_number_once(tmp_path: Path) -> None:
    """Two processes have written what either had read."""
    ahead, behind = opened(tmp_path, *range(1, 5)), opened(tmp_path, *range(1, 7))
    plans = [process.plan() for process in (ahead, behind)]
    for process, plan in zip((ahead, behind), plans, strict=True):
        assert plan is not None
        process.write(plan, array("Q", range(1, 7)))
    further = opened(tmp_path)
    assert further.last == 6
    further.add([(number, vector(number)) for number in range(7, 30)])
    file(further, range(1, 30))

    again = opened(tmp_path)
    again.load()
    assert sorted(again.nearest(vector(3), 99)) == list(range(1, 30))
    assert len(list(tmp_path.iterdir())) <= 2, "what is in others is removed"


def test_what_another_process_has_joined_is_opened_anew(tmp_path: Path) -> None:
    """Also when this one was about to write; what it had in memory is read once more."""
    here = opened(tmp_path, *range(1, 5))
    file(here, range(1, 5))
    there = opened(tmp_path, *range(1, 9))
    file(there, range(1, 9), everything=True)

    assert found(here, range(1, 9)) == list(range(1, 9))
    here.add([(9, vector(9))])
    there.add([(number, vector(number)) for number in range(9, 20)])
    file(there, range(1, 20), everything=True)
    assert here.plan() is None
    assert here.last == 19


def test_file_that_is_written_while_another_is_opened_stays(tmp_path: Path) -> None:
    """It lies there for whoever opens it next."""
    neighbours = opened(tmp_path, *range(1, 5))
    plan = neighbours.plan()
    assert plan is not None
    file(opened(tmp_path, *range(1, 9)), range(1, 9))
    assert neighbours.write(plan, array("Q", range(1, 5)))
    neighbours.open()
    neighbours.put(plan)

    assert found(neighbours, range(1, 9)) == list(range(1, 9))
    assert found(opened(tmp_path), range(1, 9)) == list(range(1, 9))


def test_file_that_is_cut_while_it_is_open_is_not_read(tmp_path: Path) -> None:
    """`last` goes back to where the table is to be read."""
    neighbours = opened(tmp_path, *range(1, 9))
    file(neighbours, range(1, 9))
    assert found(neighbours, (3,)) == [3]
    (lying,) = tmp_path.iterdir()
    lying.write_bytes(lying.read_bytes()[:-1])

    neighbours.load()
    assert neighbours.last == 0
    assert neighbours.nearest(vector(3), 1) == []


def test_a_folder_that_cannot_be_made_is_said_and_tried_less_often(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything stays in memory."""
    blocked = tmp_path / "file" / "folder"
    (tmp_path / "file").write_text("mine")
    neighbours = opened(blocked, *range(1, 5))
    plan = neighbours.plan()
    assert plan is not None
    assert not neighbours.write(plan, array("Q"))

    assert not neighbours.due
    assert found(neighbours, range(1, 5)) == [1, 2, 3, 4]
    assert "are not kept" in caplog.text
