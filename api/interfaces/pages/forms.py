"""The forms of the pages: their fields as a request describes them, what was sent, and the faults beside each field.

A page that shows a form keeps what was sent, catches `UsageError`, and shows the same form again with `faults`; its
template puts each message beside its field by the macro `fault`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from api.errors import ListenpostError, UsageError
from api.interfaces.pages.templates_rendering import plainly
from api.interfaces.shared.requests import Label, RequestBody
from api.interfaces.shared.validation_messages import Form

M = TypeVar("M", bound=BaseModel)
SPANS = (
    ("1d", "the last day"), ("7d", "the last week"), ("30d", "the last 30 days"),
    ("365d", "the last year"), ("all", "any time"),
)  # fmt: skip
"""Time spans offered for stored analyses, with their words."""
_LONGEST_LINES = 10_000


@dataclass(frozen=True, slots=True)
class FormField:
    """An option as a template draws it."""

    name: str
    label: str
    hint: str
    kind: Literal["line", "lines", "choice", "tick"]
    longest: int | None = None
    """Characters that a line takes."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Text of each value of a choice; for "" the text of no choice."""
    suggestions: tuple[str, ...] = ()


def form_fields(model: type[RequestBody], drawn: Collection[str] = ()) -> dict[str, FormField]:
    """The options of a request that pages offer, those with a `Label`; without those `drawn`."""
    fields = {}
    for name, info in model.model_fields.items():
        label = next((part for part in info.metadata if isinstance(part, Label)), None)
        if label is None or name in drawn:
            continue
        kinds: list[Any] = [info.annotation, *get_args(info.annotation)]
        # of what may be left out the type, with its bounds, stands within
        described = [part for part in kinds if get_origin(part) is Annotated]
        kinds += [part.__origin__ for part in described]
        bounds = [
            *info.metadata,
            *(m for part in described for e in part.__metadata__ for m in getattr(e, "metadata", ())),
        ]
        choices = next((kind for kind in kinds if get_origin(kind) is Literal), None)
        kind: Literal["line", "lines", "choice", "tick"] = "line"
        if choices is not None:
            kind = "choice"
        elif bool in kinds:
            kind = "tick"
        elif any(get_origin(part) in {list, tuple} for part in kinds):
            kind = "lines"
        longest = next((m.max_length for m in bounds if hasattr(m, "max_length")), None)
        words = dict(label.words) or {choice: choice for choice in get_args(choices)}
        fields[name] = FormField(
            name, label.text, label.hint, kind,
            _LONGEST_LINES if kind == "lines" else longest, words, label.suggestions,
        )  # fmt: skip
    return fields


@dataclass(frozen=True, slots=True)
class QuestionForm:
    """Contents of a form's fields, valid or not."""

    model: type[RequestBody]
    texts: Mapping[str, str]
    """Text of each field, except the boxes of the sources."""
    sources: Sequence[str] = ()
    """Sources that are ticked."""

    def request(self, **more: object) -> Any:
        """The request, an instance of `model`, with what the form has no field for.

        Raises:
            UsageError: a field, which it names, holds what none of ours offers.
        """
        fields: dict[str, object] = dict(self.texts)
        for name, option in form_fields(self.model).items():
            if option.kind == "lines" and name in self.texts:
                fields[name] = [line for line in self.texts[name].splitlines() if line.strip()]
        return validated(self.model, {**fields, "sources": self.sources, **more})


def texts_of(model: type[RequestBody], submitted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What was sent of each field but the sources; a field that was not has its default."""
    texts = {
        name: "" if model.model_fields[name].is_required() else _text(model, name)
        for name in form_fields(model, drawn=("sources",))
    }
    return texts | {name: submitted[name][0] for name in texts if any(submitted.get(name, ()))}


def _text(model: type[RequestBody], name: str) -> str:
    default = model.model_fields[name].default
    return str(default) if isinstance(default, str) else ""


def validated(model: type[M], fields: Mapping[str, object]) -> M:
    """The fields as the model has them; empty fields get their defaults.

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
def blaming(name: str) -> Iterator[None]:
    """Name this field in errors that name none.

    Raises:
        UsageError: as it came, with a field.
    """
    try:
        yield
    except UsageError as error:
        raise UsageError(error.public, field=error.field or name) from None


def faults(error: ListenpostError, fields: Collection[str]) -> dict[str, str]:
    """Message in plain words by its field; under "" when no field of these caused it."""
    name, words = error.field if isinstance(error, UsageError) else None, error.public
    if name is None or name not in fields:
        return {"": plainly(words)}
    # it stands beside the field, which has another name on the page
    return {name: plainly(words.replace(f"`{name}`", "this", 1))}
