"""JSON schemas as OpenAI takes them: the strict subset, and values made to fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_UNSUPPORTED = "allOf not if then else oneOf patternProperties dependentRequired".split()
_EMPTY: Mapping[str, Any] = {
    "string": "", "integer": 0, "number": 0, "boolean": False, "null": None, "array": [],
    "object": {},
}  # fmt: skip
_NAMES = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object",
}  # fmt: skip


def complaint(schema: Any) -> str | None:
    """What the strict mode has against a schema; None when nothing."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "schema must be a JSON Schema of 'type: \"object\"'."
    return next(_complaints(schema, ()), None)


def _complaints(schema: Any, at: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    for word in _UNSUPPORTED:
        if word in schema:
            yield f"In context={at}, '{word}' is not permitted."
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            need = "is required to be supplied and to be false"
            yield f"In context={at}, 'additionalProperties' {need}."
        properties = schema.get("properties", {})
        missing = [name for name in properties if name not in schema.get("required", ())]
        if missing:
            yield (
                f"In context={at}, 'required' is required to be supplied and to be an array "
                f"including every key in properties. Missing '{missing[0]}'."
            )
    for key in ("properties", "$defs", "definitions"):
        for name, inner in schema.get(key, {}).items():
            yield from _complaints(inner, (*at, key, name))
    if "items" in schema:
        yield from _complaints(schema["items"], (*at, "items"))
    for number, inner in enumerate(schema.get("anyOf", ())):
        yield from _complaints(inner, (*at, "anyOf", str(number)))


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema behind a `$ref` such as `#/$defs/Finding`."""
    while "$ref" in schema:
        target: Any = root
        for step in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target[step] if step else target
        schema = target
    return schema


def fitted(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """The value with what the schema does not know left out and what it requires added."""
    root = schema if root is None else root
    schema = resolved(schema, root)
    if "anyOf" in schema:
        options = [resolved(option, root) for option in schema["anyOf"]]
        return fitted(value, next((o for o in options if _matches(value, o)), options[0]), root)
    if "enum" in schema and value not in schema["enum"]:
        return schema["enum"][0]
    if not _matches(value, schema):
        value = _EMPTY.get(_types(schema)[0])
    if isinstance(value, Mapping) and "properties" in schema:
        needed = schema.get("required", ())
        return {
            name: fitted(value.get(name), inner, root)
            for name, inner in schema["properties"].items()
            if name in value or name in needed
        }
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        most = schema.get("maxItems", len(value))
        return [fitted(inner, schema["items"], root) for inner in value[:most]]
    return value


def _types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return [kind] if isinstance(kind, str) else list(kind)


def _matches(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds, name = _types(schema), _NAMES.get(type(value), "null")
    return not kinds or name in kinds or (name == "integer" and "number" in kinds)
