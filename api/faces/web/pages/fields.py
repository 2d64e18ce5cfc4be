"""What a form or an address holds, read with the API's own models, and what is wrong with it.

Whoever shows a form keeps what was sent, catches `UsageError`, and shows the same form again with
`faults`; its template puts each beside its field by the macro `fault`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from api.errors import ListenpostError, UsageError
from api.faces.refusals import Form

M = TypeVar("M", bound=BaseModel)
SPANS = (
    ("1d", "the last day"), ("7d", "the last week"), ("30d", "the last 30 days"),
    ("365d", "the last year"), ("all", "any time"),
)  # fmt: skip
"""How far back something stored is looked at."""
# what the API's messages quote: `mon 08:00`
_QUOTED = re.compile(r"`([^`]*)`")


def validated(model: type[M], fields: Mapping[str, object]) -> M:
    """The fields as the model has them; what is left empty stands as its default.

    Raises:
        UsageError: a field, which it names, holds what none of ours offers.
    """
    try:
        return model.model_validate({name: value for name, value in fields.items() if value})
    except ValidationError as error:
        wrong, schema = error.errors(), model.model_json_schema()
        words = Form(schema, "the form", "field", schema).refusal(wrong[:1])
        raise UsageError(words, field=str(wrong[0]["loc"][0])) from None


@contextmanager
def read_from(field: str) -> Iterator[None]:
    """What is wrong herein is wrong with this field, where nobody names another.

    Raises:
        UsageError: as it came, with a field.
    """
    try:
        yield
    except UsageError as error:
        raise UsageError(error.public, field=error.field or field) from None


def faults(error: ListenpostError, fields: Collection[str]) -> dict[str, str]:
    """What is wrong, in plain words, by its field; by "" where none of these is the one."""
    name, words = error.field if isinstance(error, UsageError) else None, error.public
    if name is None or name not in fields:
        return {"": plainly(words)}
    # it stands beside the field, which has another name on the page
    return {name: plainly(words.replace(f"`{name}`", "this", 1))}


def plainly(message: str) -> str:
    """A message of the API as a sentence for people: `this must be …` is “This must be …”."""
    words = _QUOTED.sub(r"“\1”", message.strip())
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?", "…")) else ".")
