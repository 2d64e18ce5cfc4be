"""What every rendering shows of an answer."""

from __future__ import annotations

import pytest

from api.faces.outline import LONGEST_TITLE, progress, title_of
from api.services.progress import SourceLookedAgain
from tests.faces.answers import plain_report


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("My\nmug", "My mug"),
        ("", "untitled"),
        ("\u200b \u202e", "untitled"),
        ("m" * LONGEST_TITLE, "m" * LONGEST_TITLE),
        ("m" * 1_000_000, "m" * LONGEST_TITLE + "…"),
    ],
)
async def test_an_item_has_a_name_that_can_be_read(title: str, shown: str) -> None:
    """Of a person's own item a title may be anything: nothing to see, or a megabyte."""
    item = (await plain_report()).items[0].model_copy(update={"title": title})

    assert title_of(item) == shown


@pytest.mark.parametrize(("relevant", "ending"), [(1, "kept"), (0, "no")])
def test_a_second_look_is_told(relevant: int, ending: str) -> None:
    """What came of it stands in the progress."""
    line = progress(SourceLookedAgain(source="reddit", relevant=relevant, status="ok"))

    assert line == f"a second look at what was dropped: {ending}"
