"""Whose words are shown, and how a credit is read."""

from __future__ import annotations

import pytest

from api.core.text import Fence
from api.features.chat.chat_citations import citations_of
from api.reports.composition import credit_of, parts_of
from api.reports.exhibits import Exhibit, describe
from tests.services.kit import assessed, post, said

ADA, BO = "Ada (https://superuser.com/users/7/ada)", "Bo (https://superuser.com/users/8/bo)"
ITEM = post(
    1,
    title="Why does it hum?",
    body="It hums\nat night. It is warm.",
    credit=ADA,
    comments=(
        said("Update the firmware. It is warm.", "c1", credit=BO),
        said("Return the thing.", "c2"),
    ),
)


@pytest.mark.parametrize(
    ("words", "credit"),
    [
        ("", ADA),
        ("It hums at night.", ADA),
        ("It is warm.", ADA),
        ("Update the firmware.", BO),
        ("Return the thing.", None),
        ("Why does it hum?", ADA),
    ],
)
def test_words_have_one_author(words: str, credit: str | None) -> None:
    """The comment's where only it holds them, else the item's; nobody where none is named."""
    assert credit_of(ITEM, words) == credit


@pytest.mark.parametrize(
    ("credit", "parts"),
    [
        (ADA, ("Ada", "https://superuser.com/users/7/ada")),
        ("user99", ("user99", "")),
        ("A (b) (https://x.example/u)", ("A (b)", "https://x.example/u")),
        ("A (https://evil.example) (https://x.example/u)",
         ("A (https://evil.example)", "https://x.example/u")),
        ("A (javascript:x)", ("A (javascript:x)", "")),
    ],
)  # fmt: skip
def test_a_credit_is_a_name_and_a_profile(credit: str, parts: tuple[str, str]) -> None:
    """The last address alone, and only where it is one."""
    assert parts_of(credit) == parts


def test_a_citation_names_the_author_of_its_passage() -> None:
    """In JSON the key is there only where somebody has to be named."""
    exhibit = Exhibit("E1", assessed(ITEM))
    anonymous = Exhibit("E1", assessed(post(1, body="It hums at night.")))

    (answer,) = citations_of("Update the firmware [E1].", [exhibit], [])
    (question,) = citations_of("It hums at night [E1].", [exhibit], [])
    (nobody,) = citations_of("It hums at night [E1].", [anonymous], [])

    assert (answer.credit, question.credit) == (BO, ADA)
    assert answer.json()["credit"] == BO
    assert "credit" not in nobody.json()


def test_a_foreign_agent_is_told_whom_to_name() -> None:
    """Within the fence, since the name is a stranger's word; where links are shown alone."""
    exhibit, fence = Exhibit("E1", assessed(ITEM)), Fence()

    linked = describe([exhibit], fence, linked=True)

    facts, quoted = linked.splitlines()
    assert "Ada" not in facts
    assert f"by {ADA}: " in quoted
    assert "Ada" not in describe([exhibit], fence)
