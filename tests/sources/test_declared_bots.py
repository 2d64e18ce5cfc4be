"""Texts that say of themselves that a program wrote them."""

from __future__ import annotations

import pytest

from api.core.domain import BY_BOT
from api.sources.item_fields import says_something, unfit_reason


@pytest.mark.parametrize(
    ("text", "by_bot"),
    [
        ("Beep boop", True),
        ("The mug costs 99 dollars.\n\n*I am a bot, and this action was performed automatically.*", True),
        ("Converted: 12 oz are 355 ml. Bleep bloop!", True),
        ("I'm a bot created by a user.", True),
        ("Support treated me as if I am a bot.", False),
        ("I am a bottle collector.", False),
        ("It goes beep boop when it is full.", False),
        ("I am a bot developer and use it daily.", False),
        ("> Beep boop\n\nThat bot again. Mine lasts a day.", False),
    ],
)
def test_a_declared_bot_is_nobodys_voice(text: str, by_bot: bool) -> None:
    """A comment is left out and an item cannot be judged; a person who speaks of bots stays."""
    assert says_something(text) is not by_bot
    assert unfit_reason("A title", text) == (BY_BOT if by_bot else "")
