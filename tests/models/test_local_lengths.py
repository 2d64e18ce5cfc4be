"""The local judge runs where the product waits for it: no text may keep it busy."""

from __future__ import annotations

from api.choices import MAX_QUESTION_LENGTH
from api.core.domain import Question
from api.models.local.judge import LocalJudge, probabilities
from api.pipeline.gate.excerpt import TITLE_LENGTH
from tests.models.items import item


def test_a_question_counts_to_the_length_that_may_be_asked() -> None:
    """What stands behind it changes nothing, in the query and in what it is about."""
    query = ("plaud note " * MAX_QUESTION_LENGTH)[:MAX_QUESTION_LENGTH]
    texts = ["Plaud Note after a month\nIt works.", "Bread for beginners\n"]
    longer = query + " bread beginners"

    assert probabilities(longer, longer, texts, "reddit") == (probabilities(query, query, texts, "reddit"))


async def test_a_title_counts_as_far_as_at_the_gate() -> None:
    """What stands behind its first characters changes nothing."""
    title = ("bread and butter " * TITLE_LENGTH)[:TITLE_LENGTH]
    pair = [item(title), item(title + " plaud note", key="reddit:t3_b")]

    found = await LocalJudge().judge(Question("plaud note"), pair, "reddit")

    assert found.verdicts[0] == found.verdicts[1]
