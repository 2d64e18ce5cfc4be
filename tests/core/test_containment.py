"""What nobody foresaw is contained: logged in full, answered in safe words."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import pytest

from api.core.work import Failure, contained, is_defect, translated
from api.errors import Blocked, RateLimited, UsageError


async def failing(error: BaseException) -> NoReturn:
    """Work that ends so."""
    raise error


async def test_work_that_goes_well_gives_what_it_gives() -> None:
    """A value passes as it is, None too."""
    assert await contained(asyncio.sleep(0, "ok"), "work") == "ok"
    assert await contained(asyncio.sleep(0), "work") is None


@pytest.mark.parametrize(
    "error",
    [
        Blocked("youtube"),
        ExceptionGroup("tasks", [Blocked("youtube"), ExceptionGroup("more", [Blocked("reddit")])]),
    ],
)
async def test_an_error_of_ours_speaks_for_itself(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """Of several at once the first; none of it is a defect."""
    failure = await contained(failing(error), "work")

    assert failure == Failure("blocked", str(Blocked("youtube")))
    assert not caplog.records


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OverflowError("secret"), "OverflowError"),
        (RecursionError("secret"), "RecursionError"),
        (RuntimeError("secret"), "RuntimeError"),
        (ExceptionGroup("tasks", [RateLimited("reddit"), KeyError("secret")]), "KeyError"),
    ],
)
async def test_a_defect_is_logged_and_named_by_its_kind(
    error: Exception, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever its class is; also beside an error of ours."""
    with caplog.at_level(logging.ERROR):
        failure = await contained(failing(error), "the tool for reddit")

    message = f"an internal error ({kind}); the log has the details"
    assert failure == Failure("internal", message)
    (record,) = caplog.records
    assert record.getMessage() == "the tool for reddit failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert is_defect(message)


@pytest.mark.parametrize("reason", [None, "", "reddit: HTTP 503; try again later"])
def test_other_reasons_are_no_defect(reason: str | None) -> None:
    """What a source did is not what this program did."""
    assert not is_defect(reason)


async def test_a_passed_deadline_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    """Where it is translated it stays one; where it is contained it says so."""
    failure = await contained(failing(TimeoutError()), "work")

    assert failure == Failure("timed_out", "no answer in time")
    with pytest.raises(TimeoutError):
        await translated(failing(TimeoutError()), "work", UsageError)
    assert not caplog.records


async def test_what_the_caller_knows_is_left_to_it(caplog: pytest.LogCaptureFixture) -> None:
    """It is no defect where it is expected, and one where it is not."""
    with pytest.raises(KeyError):
        await translated(failing(KeyError("a")), "work", UsageError, (KeyError,))
    assert not caplog.records
    with pytest.raises(UsageError, match="KeyError"):
        await translated(failing(KeyError("a")), "work", UsageError, (IndexError,))


async def test_cancellation_passes_through() -> None:
    """It is no failure of the work, and the task is cancelled in truth."""
    entered = asyncio.Event()

    async def work() -> None:
        entered.set()
        await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(contained(work(), "work"))
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()
