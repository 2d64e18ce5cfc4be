"""How far two readers agree, from the committed labels alone: `python scripts/agreement.py`.

Of the support set it also says how many passages carry their sentence, and how good leans are.

Recorded texts and sample corpus are two parts, never one figure: the first are real, and both
readings followed docs/labelling.md; the second is made up, its first labels came with the posts.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from api.lab.metrics import cohen_kappa
from api.sandbox import corpus
from api.services.reporting.polarity import lean_of
from recorded import LABELS, ROOT, rows

SUPPORT = ROOT / "evaluation" / "support"
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
    print("\n".join((*support_lines(), *polarity_lines())))


def parts() -> tuple[Part, Part]:
    """The recorded part and the corpus part."""
    return (
        _part("recorded", _recorded("recorded.jsonl"), _recorded("recorded_second.jsonl")),
        _part("corpus", _corpus_first(), _corpus_second()),
    )


def support_lines() -> list[str]:
    """Agreement on the support set; what a passage carries counts when both readers say so."""
    triples = rows(SUPPORT / "triples.jsonl")
    lines = []
    for field in ("supported", "lean"):
        first, second = ([row[reader][field] for row in triples] for reader in ("first", "second"))
        differing = sum(a != b for a, b in zip(first, second, strict=True))
        kappa = cohen_kappa(first, second)
        lines.append(f"support   {field}: kappa {kappa:.2f}, {differing} of {len(triples)} differ")
    for place in ("report", "chat"):
        carried: dict[tuple[str, str], list[bool]] = {}
        for row in triples:
            if row["place"] == place:
                both = row["first"]["supported"] and row["second"]["supported"]
                carried.setdefault((row["query"], row["sentence"]), []).append(both)
        passages = [both for group in carried.values() for both in group]
        none = sum(not any(group) for group in carried.values())
        lines.append(
            f"support   {place}: {sum(passages)} of {len(passages)} passages carry their sentence "
            f"({sum(passages) / len(passages):.3f}), {none} of {len(carried)} sentences have none"
        )
    return lines


def polarity_lines() -> list[str]:
    """Precision and coverage of leans on the labelled sentences, by part."""
    lines = []
    for name in ("dev", "test"):
        sentences = [
            row for row in rows(SUPPORT / "polarity.jsonl") if part_of(row["text"]) == name
        ]
        sure = [(row["lean"], lean) for row in sentences if (lean := lean_of(row["text"]))]
        right, leaning = sum(a == b for a, b in sure), sum(row["lean"] != 0 for row in sentences)
        lines.append(
            f"polarity  {name}: {right} of {len(sure)} leans are right ({right / len(sure):.3f}), "
            f"{right} of {leaning} leaning sentences seen ({right / leaning:.2f})"
        )
    return lines


def part_of(text: str) -> str:
    """`dev` or `test`, by the first digit of the text's SHA-256."""
    return "test" if int(sha256(text.encode()).hexdigest()[0], 16) % 2 else "dev"


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
