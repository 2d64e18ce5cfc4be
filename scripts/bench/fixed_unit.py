"""A fixed unit of work that says how fast the machine is: `python scripts/bench/fixed_unit.py`.

Python alone, the same on each machine and in each release of Listenpost, of what an analysis does most: JSON is
written and read, words are found by regular expressions, counted and compared as sets, texts are hashed and sorted.
"""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from figures_table import Figure, figure

_POSTS, _SENTENCES, _REPEATS = 120, 12, 18
"""Of the unit: posts, sentences of a post, and times that they are worked on."""
_WORDS = "the battery of this recorder lasts two days and its app loses notes after every update since may".split()
_WORD, _NUMBER = re.compile(r"[a-z]+(?:'[a-z]+)?"), re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")


@dataclass(slots=True)
class MachineSpeed:
    """What the unit took each time that it was measured in a run."""

    milliseconds: list[float] = field(default_factory=list)
    """Of processor time, in the order in which they were measured."""

    def measure(self) -> None:
        """Do the unit once more; it takes some 200 ms of processor time."""
        began = time.process_time()
        unit()
        self.milliseconds.append((time.process_time() - began) * 1000)

    def rows(self, figures: Iterable[Figure]) -> list[Figure]:
        """A row of the unit itself, and for each figure in ms of processor time one that is a multiple of it."""
        each = statistics.median(self.milliseconds)
        multiples = [
            figure(f"{row.name.rpartition(', ms')[0]} / fixed unit", row.unit_aim, (n / each for n in row.values), 3)
            for row in figures
            if row.unit_aim is not None
        ]
        return [figure("fixed unit of work, ms of processor time", "", self.milliseconds, 0), *multiples]


def unit() -> str:
    """Do the work; the digest of its results, which is the same everywhere."""
    posts = [
        {"id": number, "body": " ".join(_sentence(number * _SENTENCES + at) for at in range(_SENTENCES))}
        for number in range(_POSTS)
    ]
    digest, counts = sha256(), Counter[str]()
    for _ in range(_REPEATS):
        known = set[str]()
        for post in json.loads(json.dumps(posts)):
            words = _WORD.findall(post["body"].casefold())
            counts.update(words)
            likeness = len(known.intersection(words)) / len(known.union(words))
            known.update(words, _NUMBER.findall(post["body"]))
            digest.update(f"{post['id']} {likeness:.6f}".encode())
        ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        digest.update(json.dumps(ordered).encode())
    return digest.hexdigest()


def _sentence(number: int) -> str:
    """A sentence that no other number has."""
    turned = _WORDS[number % len(_WORDS) :] + _WORDS[: number % len(_WORDS)]
    return f"{' '.join(turned).capitalize()} {number}.{number % 7}."


if __name__ == "__main__":
    speed = MachineSpeed()
    for _ in range(5):
        speed.measure()
    print(*speed.rows([]), sep="\n")
