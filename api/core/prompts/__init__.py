"""The prompts of the package, a Markdown file for each, and the check of one that replaces it.

`{{rule}}` is a placeholder: the sentence about quoted text, with the nonce of the call.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Literal, Protocol, get_args

PromptName = Literal[
    "relevance", "grades", "rewrites", "support", "answers", "insufficient", "senses", "report", "report_small", "chat"
]
NAMES: tuple[PromptName, ...] = get_args(PromptName)
LONGEST = 16_000
"""Longest prompt, in characters; the longest one in the package has 1,600."""
# `{{rule}}`; `{{ rule }}`, as some people write it
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
ANSWER_WORDS: Mapping[PromptName, tuple[str, ...]] = MappingProxyType(
    {
        "relevance": ("true",),
        "support": ("true",),
        "answers": ("true",),
        "grades": ("score", "explanation", "sentiment", "aspects", "quote"),
        "rewrites": ("queries",),
        "insufficient": ("explanation_text", "suggestions"),
    }
)
"""Fields of the answer to each prompt, by which it is parsed."""
# verdicts that a model may copy instead of reading: `[true, false, ...]`, `"1": true`
_VERDICTS = re.compile(r"\b(?:true|false)\b[\s\"']*,[\s\"']*(?:true|false)\b|\d[\"']?\s*:\s*(?:true|false)\b", re.I)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, from the package or from Langfuse."""

    name: PromptName
    text: str
    version: int | None = None
    """Version number in Langfuse; None for the package's file."""

    @property
    def title(self) -> str:
        """The prompt's name in Langfuse."""
        return f"listenpost/{self.name}"

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of its text."""
        return sha256(self.text.encode()).hexdigest()[:8]

    def filled(self, **values: object) -> str:
        """The text with its placeholders replaced; placeholders inside a value are left alone."""
        return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), self.text)

    def flaw(self) -> str | None:
        """Why it cannot replace the package's prompt of the same name; None when it can."""
        if len(self.text) > LONGEST:
            return f"it has more than {LONGEST} characters"
        own = packaged(self.name).text
        wanted, given = (set(_PLACEHOLDER.findall(text)) for text in (own, self.text))
        if missing := sorted(wanted - given):
            return f"it lacks `{{{{{missing[0]}}}}}`"
        if unknown := sorted(given - wanted):
            return f"nothing fills its `{{{{{unknown[0][:40]}}}}}`"
        if lost := [word for word in ANSWER_WORDS.get(self.name, ()) if word not in self.text]:
            return f"it does not ask for `{lost[0]}`, by which the answer is read"
        return "it shows verdicts, which a model may copy" if _VERDICTS.search(self.text) else None


class Prompts(Protocol):
    """Source of prompts: the package, or a Langfuse project."""

    def using(self, name: PromptName) -> AbstractAsyncContextManager[Prompt]:
        """The prompt for the model calls in the block, which traces link to it."""


class PackagedPrompts:
    """The package's files; implements `Prompts`."""

    @asynccontextmanager
    async def using(self, name: PromptName) -> AsyncIterator[Prompt]:
        """See `Prompts.using`."""
        yield packaged(name)


@cache
def packaged(name: PromptName) -> Prompt:
    """The prompt in the package's file."""
    return Prompt(name, files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip())
