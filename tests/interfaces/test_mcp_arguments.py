"""What MCP clients hand in: read forgivingly, and refused in sentences of ours."""

from __future__ import annotations

from typing import Any

import pytest

from api.errors import UsageError
from api.interfaces.mcp.mcp_requests import (
    AnalysisArguments,
    Arguments,
    CompareArguments,
    CorrectionArguments,
    FetchArguments,
    RelevanceArguments,
    read,
)
from tests.usual import EITHER

KNOWN = (
    "known are `query`, `about`, `not_about`, `aim`, `depth`, `limit`, `sandbox`, `exclude`, `exclude_authors`, "
    "`exclude_sites`, `since` and `include_dropped`"
)


@pytest.mark.parametrize("nothing", [None, ""])
def test_nothing_stands_for_the_default(nothing: object) -> None:
    """
    Forms and models fill in every field.
    """
    optional = ("depth", "limit", "since", "about", "sandbox", "include_dropped")
    given = {"query": "plaud", **dict.fromkeys(optional, nothing)}

    assert read(FetchArguments, given) == read(FetchArguments, {"query": "plaud"})
    assert read(AnalysisArguments, {"query": "plaud", "sources": nothing}).sources == ()


@pytest.mark.parametrize(("sent", "relevant"), [(True, True), ("false", False), (None, None), ("null", None)])
def test_only_null_removes_a_correction(sent: object, relevant: bool | None) -> None:
    """
    As JSON text, too; an empty or missing `relevant` is refused and never taken for a removal.
    """
    chosen = {"report_id": "a1", "key": "reddit:t3_1"}

    assert read(CorrectionArguments, chosen | {"relevant": sent}).relevant is relevant
    for less in (chosen, chosen | {"relevant": ""}):
        with pytest.raises(UsageError, match="`relevant`"):
            read(CorrectionArguments, less)


def test_lists_and_numbers_may_come_as_their_json_text() -> None:
    """
    Some clients send every argument as text; a text option stays what was written.
    """
    items = '[{"title": "My mug"}]'

    assert read(AnalysisArguments, {"query": "[a]", "sources": '["reddit"]'}).ask().sources == ("reddit",)
    assert read(AnalysisArguments, {"query": "[1]"}).query == "[1]"
    judged = read(RelevanceArguments, {"query": "mug", "source": "reddit", "items": items})
    assert judged.items == [{"title": "My mug"}]
    texts = read(FetchArguments, {"query": "[5]", "limit": "5", "sandbox": "true"})
    assert (texts.query, texts.limit, texts.sandbox) == ("[5]", 5, True)


@pytest.mark.parametrize(
    ("model", "given", "words"),
    [
        (FetchArguments, None, "`query` is missing; it must be text of at most 500 characters"),
        (FetchArguments, {"query": None}, "`query` must be text of at most 500 characters, not `"),
        (FetchArguments, {"query": "x" * 501}, "`query` must be text of at most 500 characters"),
        (
            FetchArguments,
            {"query": "x", "depht": "deep"},
            f"there is no argument `depht`, did you mean `depth`? {KNOWN}",
        ),
        (FetchArguments, {"query": "x", "bogus": 1}, f"there is no argument `bogus`; {KNOWN}"),
        (FetchArguments, {"query": "x", "colour": 1}, f"there is no argument `colour`; {KNOWN}"),
        (
            FetchArguments,
            {"query": "x", "limit": 0},
            "`limit` must be a whole number from 1 to 500, not `0`",
        ),
        (
            FetchArguments,
            {"query": "x", "depth": "fast", "since": "ever"},
            "`depth` must be `quick`, `standard` or `deep`, not `fast`; "
            "`since` must be `day`, `week`, `month`, `year` or `all`, not `ever`",
        ),
        (
            FetchArguments,
            {"query": "x", "include_dropped": "perhaps"},
            "`include_dropped` must be true or false, not `perhaps`",
        ),
        (
            AnalysisArguments,
            {"query": "x", "sources": "reddit"},
            f"`sources` must be a list of at most 20, each {EITHER}, not `reddit`",
        ),
        (
            AnalysisArguments,
            {"query": "x", "sources": "[reddit"},
            f"`sources` must be a list of at most 20, each {EITHER}, not `[reddit`",
        ),
        (
            RelevanceArguments,
            {"query": "x", "source": "y", "items": [{"title": "z"}, 7]},
            "`items[1]` must be an object, not `7`",
        ),
        (
            RelevanceArguments,
            {"query": "x", "source": "y", "items": [{"title": float("nan")}]},
            "`items` holds `NaN` or `Infinity`, which are no JSON",
        ),
        (
            CompareArguments,
            {"first": "x"},
            "`second` is missing; it must be text of at most 500 characters",
        ),
    ],
)
def test_a_fault_is_a_sentence_that_says_what_would_be_right(
    model: type[Arguments], given: dict[str, Any] | None, words: str
) -> None:
    """
    It names the argument; of what came only what is short, of a validator's words none.
    """
    with pytest.raises(UsageError) as caught:
        read(model, given)

    assert str(caught.value).startswith(words)
    assert len(str(caught.value)) < 250
    assert "nput" not in str(caught.value)
