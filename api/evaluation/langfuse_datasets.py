"""Labelled sets as datasets of Langfuse: the same file makes the same items, written once."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from api.errors import LangfuseError, UsageError
from api.evaluation.labelled_items import LabelledClaim, LabelledQuery
from api.evaluation.support_scores import by_question
from api.langfuse.dashboards.dashboard_client import Server
from api.langfuse.tracing.masking import mask

_DATASETS, _ITEMS = "/v2/datasets", "/dataset-items"
# Characters of a name: with the rest of an item's id they are within Langfuse's limit of 255.
_NAME = 200
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A case of a labelled set, as an item of a dataset."""

    case: str  # digest of what the judge is asked, so that a changed label keeps the case
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def key(self, dataset: str) -> str:
        """Id of the dataset item in Langfuse, the same whenever it is pushed again."""
        return f"{_prefix(dataset)}{self.case}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset with these examples, and what the upload wrote."""

    id: str
    name: str
    examples: Sequence[Example]
    written: int
    unchanged: int
    archived: int  # items of ours that the file no longer holds


def of_queries(queries: Sequence[LabelledQuery]) -> list[Example]:
    """An example for each query, in order; its labels are what is expected."""
    examples = []
    for query in queries:
        texts = [_filled(title=item.title, body=item.body, place=item.place) for item in query.items]
        grades = [item.grade for item in query.items]
        kinds = [item.kind for item in query.items]
        examples.append(
            Example(
                _digest(query.query, query.source, texts),
                _filled(query=query.query, source=query.source, about=query.about, items=texts),
                {
                    "relevant": [item.relevant for item in query.items],
                    **({"grades": grades} if any(grades) else {}),
                },
                _filled(family=query.family, kinds=kinds if any(kinds) else []),
            )
        )
    return _distinct(examples)


def of_claims(claims: Sequence[LabelledClaim]) -> list[Example]:
    """An example for the claims of each question, in order."""
    examples = []
    for members in by_question(claims):
        question = members[0].question
        pairs = [
            {"sentence": claim.sentence, "passage": claim.passage, "context": claim.context}
            for claim in (labelled.claim for labelled in members)
        ]
        examples.append(
            Example(
                _digest(question.text, "", pairs),
                _filled(query=question.text, about=question.about, pairs=pairs),
                {"supported": [labelled.supported for labelled in members]},
            )
        )
    return _distinct(examples)


def upload(server: Server, name: str, examples: Sequence[Example]) -> Dataset:
    """Make a dataset hold exactly these examples, writing only what differs, masked.

    An existing one keeps its description and the items that other programs made. Raises
    `UsageError` for a name that Langfuse refuses, `LangfuseError` after which a second run goes on.
    """
    if not (name.strip() and name.isprintable()) or len(name) > _NAME or "|" in name:
        raise UsageError(f"a dataset's name has 1 to {_NAME} characters, no `|`, and is one line")
    dataset = server.find(f"{_DATASETS}/{quote(name, safe='')}")
    if dataset is None:
        # without schemas, since a null clears those that a dataset has
        about = "Labelled for `listenpost eval`; what its file says is written here again."
        dataset = _post(server, _DATASETS, {"name": name, "description": about}, name)
    rows = {str(row.get("id")): row for row in server.pages(_ITEMS, datasetName=name)}
    wanted = {
        example.key(name): {
            "input": mask(example.input),
            "expectedOutput": mask(example.expected),
            "metadata": mask(example.metadata),
            "status": "ACTIVE",
        }
        for example in examples
    }
    changed = {
        key: body
        for key, body in wanted.items()
        if key not in rows or any((rows[key].get(name) or {}) != value for name, value in body.items())
    }
    gone = {
        key: {"status": "ARCHIVED"}
        for key, row in rows.items()
        if key.startswith(_prefix(name)) and key not in wanted and row.get("status") != "ARCHIVED"
    }
    for key, body in (changed | gone).items():
        _post(server, _ITEMS, {"datasetName": name, "id": key, **body}, key)
    unchanged = len(wanted) - len(changed)
    return Dataset(str(dataset["id"]), name, examples, len(changed), unchanged, len(gone))


def _post(server: Server, path: str, body: Mapping[str, Any], title: str) -> Mapping[str, Any]:
    """Create or replace by name or id, which makes repeating it safe."""
    while True:
        try:
            return server.post(path, body, f"`{title}`")
        except LangfuseError as error:
            if error.http_status == HTTPStatus.CONFLICT:
                raise UsageError(
                    f"`{title}` is an item of another dataset, which had this name once; use the "
                    "name that it has now, or a new one"
                ) from None
            if error.retry_after is None:
                raise
            server.wait(error.retry_after)


def _prefix(dataset: str) -> str:
    return f"listenpost:{dataset}:"


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _distinct(examples: Iterable[Example]) -> list[Example]:
    seen: Counter[str] = Counter()
    distinct = []
    for example in examples:
        seen[example.case] += 1
        if (number := seen[example.case]) > 1:
            example = replace(example, case=f"{example.case}-{number}")
        distinct.append(example)
    return distinct


def _filled(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty: where null is sent, Langfuse keeps the old value."""
    return {name: value for name, value in fields.items() if value}
