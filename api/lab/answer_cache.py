"""Answers that were paid for, kept on disk: a run that was cut goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import regex

from api.errors import ConfigurationError
from api.services.schemas import Item, Question, Usage


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a judge or grader said about one item."""

    relevant: bool
    probability: float | None = None
    score: int | None = None
    """1 to 5, from a grader."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One page as it was answered."""

    opinions: tuple[Opinion, ...]
    usage: Usage = Usage()
    seconds: float = 0.0
    """How long the answer took when it was given."""


class AnswerCache:
    """One file of JSON lines per judge; only answered pages are written, never degraded ones.

    A page is on the disk before the next one counts. A line that a kill cut short is skipped, and
    its page is asked again.
    """

    def __init__(self, folder: Path, judge: str) -> None:
        """Read what is there.

        Raises:
            ConfigurationError: the folder cannot be made, read or written.
        """
        slug = regex.sub(r"[^\w.-]+", "_", judge)[:60]
        self._path = folder / f"{slug}-{_digest(judge)[:8]}.jsonl"
        self._known: dict[str, Answered] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab+") as file:
                file.seek(0)
                held = file.read()
                if held and not held.endswith(b"\n"):
                    file.write(b"\n")
        except OSError as error:
            raise _unusable(folder, error) from None
        for line in held.splitlines():
            if (read := _read(line)) is not None:
                self._known[read[0]] = read[1]

    def get(self, key: str, count: int) -> Answered | None:
        """The answer kept under a key, if it has `count` opinions."""
        found = self._known.get(key)
        return found if found is not None and len(found.opinions) == count else None

    def put(self, key: str, answered: Answered) -> None:
        """Keep an answer; it is on the disk when this returns.

        Raises:
            ConfigurationError: the file cannot be written.
        """
        self._known[key] = answered
        line = json.dumps({"key": key, **asdict(answered)}, separators=(",", ":")) + "\n"
        try:
            with self._path.open("ab") as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unusable(self._path, error) from None


def page_key(
    judge: str, template: str, question: Question, source: str, items: Sequence[Item]
) -> str:
    """What an answer depends on, hashed: judge, prompt without its nonce, question and texts."""
    texts = [[item.title, item.body] for item in items]
    return _digest(json.dumps([judge, template, question.text, question.about, source, texts]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(line: bytes) -> tuple[str, Answered] | None:
    try:
        row: dict[str, Any] = json.loads(line)
        opinions = tuple(Opinion(**opinion) for opinion in row["opinions"])
        return row["key"], Answered(opinions, Usage(**row["usage"]), row["seconds"])
    except (ValueError, KeyError, TypeError):
        return None


def _unusable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cache `{path}`: {error.strerror}; name a folder you can write to")
