"""Measuring a support check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from api.core.domain import Question, Usage
from api.core.model_batches import UnusableAnswer
from api.core.ports import PER_CALL, Claim, Support
from api.errors import UsageError
from api.evaluation.labelled_items import read_claims
from api.evaluation.metrics import compare
from api.evaluation.support_scores import evaluate_support


@dataclass
class Yes:
    """Lets by every sentence that begins with `Yes`; one question it cannot answer."""

    name: str = "yes-1"
    largest: int = 0

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        self.largest = max(self.largest, len(claims))
        if question.text == "broken":
            raise UnusableAnswer("malformed", "", Usage(1, 1, 0.25))
        answers = tuple(claim.sentence.startswith("Yes") for claim in claims)
        return Support(answers, self.name, Usage(1, 1, 0.5))


def line(sentence: str, query: str = "mug", **label: Any) -> str:
    """One labelled claim."""
    return json.dumps({"query": query, "sentence": sentence, "passage": "p", "item": "t"} | label)


def both(first: bool, second: bool) -> dict[str, Any]:
    """Two readings."""
    return {"first": {"supported": first}, "second": {"supported": second}}


async def test_shares_are_those_of_what_was_answered() -> None:
    """A claim is supported when both readers say so; a failed call counts in the cost alone."""
    lines = [
        line("Yes a", supported=True),
        line("Yes b", **both(True, False)),
        line("No c", **both(True, True)),
        "",
        line("No d", supported=False),
        line("Yes e", "broken", supported=True),
    ]
    claims = read_claims(lines, "f")
    result = await evaluate_support(Yes(), claims)

    assert claims[0].claim == Claim("Yes a", "p", "t p")
    shown = result.as_json()
    queries, latency = shown.pop("queries"), shown.pop("ms_per_10")

    assert shown == {
        "judge": "yes-1", "checker": "yes-1", "claims": 5, "supported": 3, "precision": 0.5,
        "recall": 0.5, "let_by": 0.5, "mcc": 0.0, "kappa": 0.0, "unanswered": 1, "usd": 0.75,
    }  # fmt: skip
    assert latency >= 0
    assert {name: row["tally"][:4] for name, row in queries.items()} == {
        "mug": [1, 1, 1, 1],
        "broken": [0, 0, 0, 0],
    }


async def test_two_support_checks_are_compared() -> None:
    """By question, as judges are; without any answer there is no figure."""
    claims = read_claims(
        [line(f"{word} {n}", f"q{n}", supported=word == "Yes")
         for n in range(3) for word in ("Yes", "No")], "f",
    )  # fmt: skip
    result = (await evaluate_support(Yes(), claims)).as_json()
    silent = await evaluate_support(Yes(), read_claims([line("Yes", "broken", supported=True)], "f"))

    assert compare(result, result)["overall"]["mcc"] == {"difference": 0, "low": 0, "high": 0}
    assert (silent.precision, silent.ms_per_10, silent.unanswered) == (None, None, 1)


async def test_many_claims_go_in_batches() -> None:
    """As in the report; without any unsupported one there is no share of them."""
    checker = Yes()
    claims = read_claims([line("Yes", supported=True)] * (PER_CALL + 1), "f")
    result = await evaluate_support(checker, claims)

    assert (checker.largest, result.usd) == (PER_CALL, 1.0)
    assert (result.precision, result.let_by) == (1.0, None)


@pytest.mark.parametrize("text", ["{", "[]", '{"query": "q"}', '{"supported": true}'])
def test_a_line_that_is_no_claim_is_named(text: str) -> None:
    """By file and number."""
    with pytest.raises(UsageError, match="`f` line 1: `"):
        read_claims([text], "f")
