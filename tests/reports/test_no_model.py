"""What stands where a model would."""

from __future__ import annotations

import pytest

from api.core.ports import Rewrites
from api.errors import ModelError
from api.reports.exhibits import Dossier
from api.reports.insufficient_data import Shortfall
from tests.services.kit import MUG, NOBODY, evidence_of, kit, posts


async def test_nobody_judges_explains_or_writes() -> None:
    """
    Each says that there is no key and how to set one.
    """
    run, evidence = await evidence_of(kit())
    calls = (
        NOBODY.judge(MUG, posts(1), "reddit"),
        NOBODY.explain(Shortfall(MUG, (), ())),
        NOBODY.write(run, evidence, Dossier()),
    )
    for call in calls:
        with pytest.raises(ModelError, match="OPENAI_API_KEY") as caught:
            await call
        assert caught.value.reason == "no_key"


async def test_nobody_knows_no_other_words() -> None:
    """
    The original query alone is asked.
    """
    assert await NOBODY.rewrite(MUG, 3, ["gap"]) == Rewrites(("ember mug",))
