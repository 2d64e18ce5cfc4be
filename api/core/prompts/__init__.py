"""The prompts: the words by which models are asked, a file for each, and what may stand in for one.

What differs from one use to the next is a placeholder, such as `{{rule}}` for the fence's rule.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Literal, Protocol, get_args

PromptName = Literal["relevance", "grades", "rewrites", "support", "insufficient", "report", "chat"]
NAMES: tuple[PromptName, ...] = get_args(PromptName)
LONGEST = 16_000
"""Characters of a prompt; the longest of the package has 1600."""
# `{{rule}}`; `{{ rule }}`, as some people write it
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# names in the JSON that a prompt asks for: `relevant` of `{"relevant": [true, false, ...]}`
_ANSWER = re.compile(r'"(\w+)"\s*:')


@dataclass(frozen=True, slots=True)
class Prompt:
    """The words of one prompt."""

    name: PromptName
    text: str
    version: int | None = None
    """Its number in Langfuse; None: it is the package's file."""

    @property
    def title(self) -> str:
        """What it is called in Langfuse."""
        return f"listenpost/{self.name}"

    @property
    def digest(self) -> str:
        """Eight characters that are others when its text is."""
        return sha256(self.text.encode()).hexdigest()[:8]

    def filled(self, **values: object) -> str:
        """The text with a value for each placeholder; what a value holds is left alone."""
        return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), self.text)

    def flaw(self) -> str | None:
        """Why it cannot stand in for the package's prompt of that name; None: it can."""
        if len(self.text) > LONGEST:
            return f"it has more than {LONGEST} characters"
        own = packaged(self.name).text
        wanted, given = (set(_PLACEHOLDER.findall(text)) for text in (own, self.text))
        if missing := sorted(wanted - given):
            return f"it lacks `{{{{{missing[0]}}}}}`"
        if unknown := sorted(given - wanted):
            return f"nothing fills its `{{{{{unknown[0][:40]}}}}}`"
        lost = [field for field in _ANSWER.findall(own) if f'"{field}"' not in self.text]
        return f'it does not ask for `"{lost[0]}"`, by which the answer is read' if lost else None


class Prompts(Protocol):
    """Where prompts come from."""

    def using(self, name: PromptName) -> AbstractAsyncContextManager[Prompt]:
        """The prompt by which a model is asked in the block."""
        ...


class PackagedPrompts:
    """Those of the package; implements `Prompts`."""

    @asynccontextmanager
    async def using(self, name: PromptName) -> AsyncIterator[Prompt]:
        """See `Prompts.using`."""
        yield packaged(name)


@cache
def packaged(name: PromptName) -> Prompt:
    """The package's prompt."""
    return Prompt(name, files(__name__).joinpath(f"{name}.md").read_text("utf-8").strip())
