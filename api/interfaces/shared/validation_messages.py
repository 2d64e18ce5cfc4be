"""Validation errors in our own sentences, made from the published schema of an interface.

A validator's own words do not say what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from api.core.text import clean, cut, one_line

# Characters of a wrong value or name, and faults, that a message names.
_SHOWN, _FAULTS = 40, 5
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Form:
    """Published schema of what an interface accepts."""

    schema: Schema
    whole: str
    """Name of the whole: the body, the arguments."""
    noun: str
    """Name of one property: an argument, a field, a parameter."""
    document: Schema
    """JSON schema in which `$ref` is resolved."""

    def refusal(self, faults: Iterable[Mapping[str, Any]]) -> str:
        """One sentence for each of a validator's first faults; only short values are repeated."""
        sentences, listed = [], False
        for fault in [*faults][:_FAULTS]:
            path, fault_type = list(fault["loc"]), fault["type"]
            if fault_type == "extra_forbidden":
                known = list(self._properties(path[:-1]))
                sentences.append(_unknown(self.noun, str(path[-1]), known, listed))
                listed = True
                continue
            where, schema = self._place(path)
            kinds = self._kinds(schema)
            wanted = " or ".join(dict.fromkeys(map(self._named, kinds)))
            if fault_type == "value_error":  # raised by a check of ours, whose words go on behind a place
                error = str(fault["ctx"]["error"])
                sentences.append(f"{where} {error}" if where else error)
            elif fault_type == "string_unicode":
                half = "half a character (a lone surrogate)"
                sentences.append(f"{where or f'the name of a {self.noun}'} holds {half}")
            elif fault_type == "missing":
                sentences.append(f"{where or self.whole} is missing; it must be {wanted}")
            else:
                instead = _instead(fault["input"], {kind.get("type") for kind in kinds})
                sentences.append(f"{where or self.whole} must be {wanted}{instead}")
        return "; ".join(dict.fromkeys(sentences))

    def _place(self, path: Sequence[str | int]) -> tuple[str, Schema]:
        """Text of a path, and the schema of its value; the text is empty for the whole document.

        A validator's names of a union's members, `str` or `[UiChat]`, are no part of it.
        """
        schema, where = self.schema, ""
        for part in path:
            for kind in self._kinds(schema):
                if isinstance(part, int) and "items" in kind:
                    schema, where = kind["items"], f"{where}[{part}]"
                elif part in kind.get("properties", {}):
                    schema, where = kind["properties"][part], f"{where}.{part}"
                elif part == f"[{kind.get('title')}]":
                    schema = kind
                else:
                    continue
                break
        return where and f"`{where.removeprefix('.')}`", schema

    def _properties(self, path: Sequence[str | int]) -> Schema:
        (kind, *_) = self._kinds(self._place(path)[1])
        properties: Schema = kind["properties"]
        return properties

    def _kinds(self, schema: Schema) -> list[Schema]:
        """The alternatives of a schema with references resolved, without null."""
        if "$ref" in schema:  # `#/components/schemas/OwnItem`
            target = self.document
            for name in schema["$ref"].split("/")[1:]:
                target = target[name]
            return self._kinds(target)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options is None:
            return [] if schema.get("type") == "null" else [schema]
        return [kind for option in options for kind in self._kinds(option)]

    def _named(self, kind: Schema) -> str:
        """Required type of a value, in words."""
        if "enum" in kind:
            return _either(kind["enum"], "or")
        match kind.get("type"):
            case "integer" | "number" as name:
                words = "a whole number" if name == "integer" else "a number"
                bounded = "minimum" in kind and "maximum" in kind
                extent = f" from {kind['minimum']:g} to {kind['maximum']:g}" if bounded else ""
                return f"{words}{extent}"
            case "string":
                extent = _extent(kind.get("minLength"), kind.get("maxLength"))
                return f"text of {extent} characters" if extent else "text"
            case "array":
                extent = _extent(kind.get("minItems"), kind.get("maxItems"))
                each = " or ".join(map(self._named, self._kinds(kind["items"])))
                return f"a list of {extent}, each {each}" if extent else f"a list, each {each}"
            case "boolean":
                return "true or false"
        required = kind.get("required")
        return f"an object with {_either(required, 'and')}" if required else "an object"


def _unknown(noun: str, name: str, known: list[str], listed: bool) -> str:
    """Sentence about an unknown name, with the most similar known one, and once with all known names."""
    words = f"there is no {noun} `{cut(one_line(clean(name)), _SHOWN)}`"
    near = get_close_matches(name, known, 1, cutoff=0.7)
    if near:
        words += f", did you mean `{near[0]}`?"
    if listed:
        return words
    return f"{words}{'' if near else ';'} known are {_either(known, 'and')}"


def _extent(least: int | None, most: int | None) -> str:
    """Allowed number of values in words; empty when unlimited."""
    if most is None:
        return f"at least {least}" if least else ""
    return f"{least} to {most}" if least else f"at most {most}"


def _either(words: Sequence[str], last: str) -> str:
    *first, final = (f"`{word}`" for word in words)
    return f"{', '.join(first)} {last} {final}" if first else final


def _instead(value: Any, wanted: set[str | None]) -> str:
    """The given value in words, when it is short enough to be recognised."""
    match value:
        case None | bool() | int() | float():
            return f", not `{json.dumps(value)}`"
        case str() if len(value) <= _SHOWN:
            return f", not `{one_line(clean(value))}`"
        case list():
            return f", not of {len(value)}" if "array" in wanted else ", not a list"
        case dict():
            return ", not an object"
    return ""
