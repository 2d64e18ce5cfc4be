"""The largest legal call of each operation that a server publishes: routes of OpenAPI, tools of MCP, forms of pages.

Arguments follow the published schemas: the longest text, the longest list and the largest number that each allows,
with real names and ids where any other value would end in a refusal before there is work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

SECOND_LAST = ("delete",)
"""Methods that are sent behind all others, since they take away what these ask for."""
HEAVY = re.compile(r"/(?:events|stream)$")
"""Routes that answer as long as somebody listens."""
FORM_PAGES = ("/", "/compare", "/watches", "/sources", "/inbox")
"""Pages whose forms are sent with the largest fields."""
_TEXT = "Glow Lamp battery " * 60_000
_FORM = re.compile(r'<form[^>]*?method="post"[^>]*?action="([^"]+)"', re.IGNORECASE)
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP call: its name in the table, method, path and body."""

    name: str
    method: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @classmethod
    def of(
        cls, name: str, method: str, path: str, body: Mapping[str, Any] | None = None, accept: str = "application/json"
    ) -> Call:
        """A call with a body in JSON, or none."""
        return cls(name, method, path, None if body is None else json.dumps(body).encode(), accept=accept)

    @property
    def headers(self) -> Mapping[str, str]:
        """What is sent beside the body."""
        return {"accept": self.accept, "content-type": self.content_type}


@dataclass(frozen=True, slots=True)
class Values:
    """The largest values that schemas allow, with `known` ones by the name of their field."""

    known: Mapping[str, Any]
    definitions: Mapping[str, Any]
    longest: int
    """Characters of a text that has no bound of its own."""

    def of(self, schema: Mapping[str, Any], name: str = "") -> Any:
        """The largest value of a schema."""
        if name in self.known:
            return self.known[name]
        if "$ref" in schema:
            return self.of(self.definitions[schema["$ref"].rpartition("/")[2]])
        choices: Sequence[Any] = schema.get("enum") or [schema["const"]] if {"enum", "const"} & schema.keys() else ()
        choices = choices or [self.of(part) for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, ())]
        if choices:
            return max(choices, key=lambda value: len(json.dumps(value)))
        match schema.get("type"):
            case "object":
                return {field: self.of(part, field) for field, part in schema.get("properties", {}).items()}
            case "array":
                part = schema.get("items", {})
                return [_numbered(self.of(part), number) for number in range(min(schema.get("maxItems", 20), 500))]
            case "string":
                return _TEXT[: min(schema.get("maxLength", self.longest), self.longest)]
            case "integer" | "number":
                return int(schema.get("maximum", 500))
            case "boolean":
                return True
        return None


def _numbered(value: Any, number: int) -> Any:
    """A text of a list that differs from the others of the list."""
    return f"{number}{value}"[: len(value)] if isinstance(value, str) else value


def fitting(schema: Mapping[str, Any], definitions: Mapping[str, Any], known: Mapping[str, Any], most: int) -> Any:
    """The largest value of a schema whose JSON has at most so many bytes."""
    longest, value = 8, Values(known, definitions, 8).of(schema)
    while longest < most:  # a text of twice the length doubles a list of 500 of them at most
        longest *= 2
        larger = Values(known, definitions, longest).of(schema)
        if len(json.dumps(larger)) > most:
            break
        value = larger
    return value


def route_calls(document: Mapping[str, Any], known: Mapping[str, Any], most: int) -> Iterator[Call]:
    """A call of each route of an OpenAPI document, those that delete at the end."""
    definitions = document["components"]["schemas"]
    listed = [
        (method, path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if not HEAVY.search(path)
    ]
    for method, path, operation in sorted(listed, key=lambda entry: entry[0] in SECOND_LAST):
        parameters = [part for part in operation.get("parameters", ()) if "schema" in part]
        values = Values(known, definitions, 2_000)
        at = path
        for part in parameters:
            if part["in"] == "path":
                at = at.replace(f"{{{part['name']}}}", quote(str(values.of(part["schema"], part["name"])), safe=""))
        query = {p["name"]: values.of(p["schema"], p["name"]) for p in parameters if p["in"] == "query"}
        query = {name: value for name, value in query.items() if value not in (None, "")}
        schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
        body = None if schema is None else json.dumps(fitting(schema, definitions, known, most)).encode()
        address = f"{at}?{urlencode(query, doseq=True)}" if query else at
        yield Call(f"{method.upper()} {path}", method.upper(), address, body)


def tool_calls(tools: Sequence[Mapping[str, Any]], known: Mapping[str, Any], most: int) -> Iterator[Call]:
    """A call of each tool that `tools/list` names."""
    for tool in tools:
        schema = tool["inputSchema"]
        arguments = fitting(schema, schema.get("$defs", {}), known, most - 500)
        yield mcp_call(f"tool {tool['name']}", "tools/call", {"name": tool["name"], "arguments": arguments})


def mcp_call(name: str, method: str, parameters: Mapping[str, Any]) -> Call:
    """A message of MCP over HTTP."""
    return Call.of(name, "POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters})


def form_calls(pages: Mapping[str, str], most: int) -> Iterator[Call]:
    """A call of each form that posts on these pages, by path, with one field as long as the body may be."""
    for path, html in pages.items():
        token = _CSRF.search(html)
        for action in dict.fromkeys(_FORM.findall(html)):
            fields = {"csrf": token[1] if token else "", "query": "Glow Lamp", "products": "Glow Lamp", "address": "x"}
            fields["about"] = _TEXT[: most - 2_000]
            body, kind = urlencode(fields).encode(), "application/x-www-form-urlencoded"
            yield Call(f"form {action} of {path}", "POST", action, body, kind, "text/html")
