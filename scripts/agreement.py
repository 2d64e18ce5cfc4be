"""How far two readers agree, from the committed labels alone: `python scripts/agreement.py`.

Recorded texts and sample corpus are two parts, never one figure: the first are real, and both
readings followed docs/labelling.md; the second is made up, its first labels came with the posts.
"""

from __future__ import annotations

from dataclasses import dataclass

from api.lab.metrics import cohen_kappa
from api.sandbox import corpus
from recorded import LABELS, rows

Labels = dict[tuple[str, int], bool]


@dataclass(frozen=True, slots=True)
class Part:
    """Two readings of the same texts, in the same order."""

    name: str
    first: tuple[bool, ...]
    second: tuple[bool, ...]

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance."""
        return cohen_kappa(self.first, self.second)

    @property
    def disagreements(self) -> int:
        """Texts with two different labels."""
        return sum(a != b for a, b in zip(self.first, self.second, strict=True))

    def __str__(self) -> str:
        kappa = "-" if self.kappa is None else f"{self.kappa:.2f}"
        return (
            f"{self.name:<9} kappa {kappa}, {self.disagreements} disagreements in "
            f"{len(self.first)}, relevant {sum(self.first)} and {sum(self.second)}"
        )


def main() -> None:
    """One line per part."""
    for part in parts():
        print(part)


def parts() -> tuple[Part, Part]:
    """The recorded part and the corpus part."""
    return (
        _part("recorded", _recorded("recorded.jsonl"), _recorded("recorded_second.jsonl")),
        _part("corpus", _corpus_first(), _corpus_second()),
    )


def _part(name: str, first: Labels, second: Labels) -> Part:
    """Both readings of what the second reader was given."""
    return Part(name, tuple(first[key] for key in second), tuple(second.values()))


def _recorded(name: str) -> Labels:
    return {(row["file"], row["position"]): row["relevant"] for row in rows(LABELS / name)}


def _corpus_second() -> Labels:
    found = rows(LABELS / "corpus_second.jsonl")
    return {(row["slug"], row["n"]): row["relevant"] for row in found}


def _corpus_first() -> Labels:
    return {
        (slug, label["n"]): label["relevant"]
        for slug in sorted({slug for slug, _ in _corpus_second()})
        for label in corpus.labels(slug).values()
    }


if __name__ == "__main__":
    main()
