"""Labelled sets in a Langfuse project: written once, and nothing of others is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.core.domain import Question
from api.core.ports import Claim
from api.errors import LangfuseError, UsageError
from api.evaluation.labelled_items import LabelledClaim, LabelledItem, LabelledQuery
from api.evaluation.langfuse_experiment import Dataset, Example, of_claims, of_queries, upload
from tests.langfuse.dashboards.kit import Losing, Project

NAME = "gate/börse: brands"
ITEMS = (
    LabelledItem("Mug died", "write to ada@example.com", True, grade=5, place="mugs"),
    LabelledItem("Embers", "", False, kind="homonym"),
)
QUERIES = [
    LabelledQuery("ember mug", "reddit", ITEMS, "brand", "a heated mug"),
    LabelledQuery("tidbyt", "youtube", (LabelledItem("Tidbyt review", "", True),)),
]


def relabelled(query: LabelledQuery) -> LabelledQuery:
    """The same texts with one other label."""
    first, *others = query.items
    return replace(query, items=(replace(first, relevant=not first.relevant), *others))


def uploaded(project: Project, queries: list[LabelledQuery], name: str = NAME) -> Dataset:
    """The dataset after an upload."""
    server = project.server()
    try:
        return upload(server, name, of_queries(queries))
    finally:
        server.close()


def items(project: Project, name: str = NAME) -> dict[str, dict[str, Any]]:
    """Every item of a dataset by its id."""
    listed = project.call("GET", "/dataset-items", datasetName=name)["data"]
    return {row["id"]: row for row in listed}


def test_a_second_upload_writes_nothing(project: Project) -> None:
    """The dataset by its whole name, slash and all; its items by ids that name it."""
    first = uploaded(project, QUERIES)
    project.sandbox.forget()
    second = uploaded(project, QUERIES)

    assert (first.written, first.unchanged, first.archived) == (2, 0, 0)
    assert (second.written, second.unchanged, second.archived) == (0, 2, 0)
    assert second.id == first.id == project.call("GET", "/v2/datasets")["data"][0]["id"]
    assert project.writes() == []
    assert all(key.startswith(f"listenpost:{NAME}:") for key in items(project))


def test_an_item_is_what_a_line_of_the_file_says(project: Project) -> None:
    """Texts without their labels, the labels, and the rest; addresses are masked."""
    uploaded(project, QUERIES)
    (row,) = [row for row in items(project).values() if row["input"]["query"] == "ember mug"]

    assert row["input"] == {
        "query": "ember mug",
        "source": "reddit",
        "about": "a heated mug",
        "items": [
            {"title": "Mug died", "body": "write to [masked]", "place": "mugs"},
            {"title": "Embers"},
        ],
    }
    assert row["expectedOutput"] == {"relevant": [True, False], "grades": [5, None]}
    assert row["metadata"] == {"family": "brand", "kinds": ["", "homonym"]}


def test_another_label_writes_one_item(project: Project) -> None:
    """Under the id that it has."""
    uploaded(project, QUERIES)
    before = items(project)
    project.sandbox.forget()
    changed = uploaded(project, [relabelled(QUERIES[0]), QUERIES[1]])
    (write,) = project.writes()
    after = items(project)

    assert (changed.written, changed.unchanged) == (1, 1)
    assert set(after) == set(before)
    assert after[write.body["id"]]["expectedOutput"]["relevant"] == [False, False]


def test_what_the_file_no_longer_holds_is_archived(project: Project) -> None:
    """Once, and it comes back; an item that a person added stays as it is."""
    uploaded(project, QUERIES)
    project.call("POST", "/dataset-items", {"datasetName": NAME, "id": "by-hand", "input": "x"})
    fewer, again = uploaded(project, QUERIES[:1]), uploaded(project, QUERIES[:1])
    archived = [key for key, row in items(project).items() if row["status"] == "ARCHIVED"]
    back = uploaded(project, QUERIES)

    assert (fewer.archived, again.archived, again.written) == (1, 0, 0)
    assert archived == [of_queries(QUERIES)[1].key(NAME)]
    assert (back.written, back.archived) == (1, 0)
    assert {row["status"] for row in items(project).values()} == {"ACTIVE"}


def test_a_dataset_that_is_there_keeps_what_it_has(project: Project) -> None:
    """Its schemas and description; only items are written."""
    made = {"name": NAME, "description": "ours", "inputSchema": {"type": "object"}}
    project.call("POST", "/v2/datasets", made)
    uploaded(project, QUERIES)
    (row,) = project.call("GET", "/v2/datasets")["data"]

    assert made.items() <= row.items()


def test_a_new_dataset_is_made_without_schemas(project: Project) -> None:
    """Null would clear those that somebody sets meanwhile."""
    uploaded(project, QUERIES)
    (body,) = [w.body for w in project.writes() if w.endpoint == "datasets"]

    assert set(body) == {"name", "description"}


@pytest.mark.parametrize("path", ["/v2/datasets", "/dataset-items"])
@pytest.mark.parametrize("arrives", [True, False])
def test_a_lost_answer_makes_nothing_twice(project: Project, path: str, arrives: bool) -> None:
    """It ends there, and a second run does what is left."""
    lossy = Project(project.sandbox, Losing(path, arrives=arrives))
    with pytest.raises(LangfuseError, match="nothing is made twice"):
        uploaded(lossy, QUERIES)
    uploaded(project, QUERIES)

    assert len(project.call("GET", "/v2/datasets")["data"]) == 1
    assert len(items(project)) == 2


def test_a_server_that_asks_to_wait_is_waited_for(project: Project) -> None:
    """As long as it says, and what it refused is sent again."""
    project.sandbox.fault("langfuse.dataset_items=429@2x1")
    made = uploaded(project, QUERIES)

    assert (made.written, project.pauses) == (2, [7.0])
    assert len(items(project)) == 2


def test_texts_that_repeat_are_items_of_their_own(project: Project) -> None:
    """Whatever their labels."""
    twice = [QUERIES[0], relabelled(QUERIES[0]), QUERIES[0]]
    uploaded(project, twice)
    again = uploaded(project, twice)

    assert (again.unchanged, len(items(project))) == (3, 3)


def test_an_id_of_another_dataset_is_never_taken(project: Project) -> None:
    """The same texts in two datasets are two items."""
    uploaded(project, QUERIES)
    uploaded(project, QUERIES, "other")

    assert not set(items(project)) & set(items(project, "other"))


def test_a_dataset_that_was_renamed_is_named(project: Project) -> None:
    """Its items keep their ids, which are one in a project."""
    taken = of_queries(QUERIES)[0].key(NAME)
    project.call("POST", "/v2/datasets", {"name": "renamed"})
    project.call("POST", "/dataset-items", {"datasetName": "renamed", "id": taken, "input": "x"})

    with pytest.raises(UsageError, match="an item of another dataset"):
        uploaded(project, QUERIES)


@pytest.mark.parametrize("name", ["", "  ", "a|b", "a\nb", "x" * 201])
def test_a_name_that_langfuse_does_not_take_is_refused(project: Project, name: str) -> None:
    """Before anything is asked."""
    with pytest.raises(UsageError, match="1 to 200 characters"):
        uploaded(project, QUERIES, name)
    assert project.sandbox.requests("langfuse") == ()


def test_claims_of_a_question_are_one_example() -> None:
    """With their passages; what is expected is one label each."""
    claims = [
        LabelledClaim(Question(text, "about"), Claim(f"s{n}", "p", "t p"), bool(n % 2))
        for n, text in enumerate(["mug", "mug", "lamp"])
    ]
    mug, lamp = of_claims(claims)

    assert mug == Example(
        mug.case,
        {
            "query": "mug",
            "about": "about",
            "pairs": [
                {"sentence": "s0", "passage": "p", "context": "t p"},
                {"sentence": "s1", "passage": "p", "context": "t p"},
            ],
        },
        {"supported": [False, True]},
    )
    assert lamp.case != mug.case
