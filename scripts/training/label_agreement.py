"""How far two readers agree, by the committed labels.

    python scripts/training/label_agreement.py

Of the support set it also prints how many passages carry their sentence, and how good the leans
are.

Recorded texts and sample corpus are two parts and never one figure: the first are real, and both
readings followed docs/labelling.md; the second is made up, and its first labels came with the
posts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from api.pipeline.evidence.figures import wilson
from api.reports.keyless.polarity import lean_of
from api.sandbox import corpus
from recorded_texts import LABELS, ROOT, rows

SUPPORT = ROOT / "evaluation" / "support"
Labels = dict[tuple[str, int], bool]


def cohen_kappa(mine: Sequence[Hashable], theirs: Sequence[Hashable]) -> float | None:
    """Agreement of two labellings beyond chance; None when chance alone explains all."""
    if not mine:
        return None
    n, labels = len(mine), Counter(theirs)
    agreed = sum(a == b for a, b in zip(mine, theirs, strict=True)) / n
    chance = sum(count * labels[label] for label, count in Counter(mine).items()) / n**2
    return None if chance == 1 else (agreed - chance) / (1 - chance)


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
    print("\n".join((*support_lines(), *polarity_lines(), *chat_lines())))


def parts() -> tuple[Part, Part]:
    """The recorded part and the corpus part."""
    return (
        _part("recorded", _recorded("recorded.jsonl"), _recorded("recorded_second.jsonl")),
        _part("corpus", _corpus_first(), _corpus_second()),
    )


def support_lines() -> list[str]:
    """Agreement on the support set; what a passage carries counts when both readers say so."""
    return carried_lines(rows(SUPPORT / "triples.jsonl"))


def carried_lines(triples: Sequence[dict[str, Any]]) -> list[str]:
    """Agreement on triples with two readings, and how many passages and leans stand."""
    lines = []
    for field in ("supported", "lean"):
        first, second = ([row[reader][field] for row in triples] for reader in ("first", "second"))
        lines.append(f"support   {field}: {_compared(first, second)}")
    for place in ("report", "chat"):
        passages = [row for row in triples if row["place"] == place]
        if not passages:
            continue
        carried: dict[tuple[str, str], list[bool]] = {}
        for row in passages:
            both = row["first"]["supported"] and row["second"]["supported"]
            carried.setdefault((row["query"], row["sentence"]), []).append(both)
        each = [sum(row[reader]["supported"] for row in passages) for reader in ("first", "second")]
        none = sum(not any(group) for group in carried.values())
        lines.append(
            f"support   {place}: {_share(sum(map(sum, carried.values())), len(passages))} passages "
            f"carry their sentence, by each {each[0]} and {each[1]}; "
            f"{none} of {len(carried)} sentences have none"
        )
    sure = [row for row in triples if row["lean"]]
    right = [[row["lean"] == row[r]["lean"] for row in sure] for r in ("first", "second")]
    if not sure:
        return lines
    seen = sum(row["first"]["lean"] == row["second"]["lean"] != 0 for row in triples)
    lines.append(
        f"support   leans: {_share(sum(map(all, zip(*right, strict=True))), len(sure))} are right, "
        f"by each {sum(right[0])} and {sum(right[1])}; both readers see a lean in {seen}"
    )
    return lines


def polarity_lines() -> list[str]:
    """Agreement on the labelled sentences, and precision and coverage of leans by part."""
    labelled = rows(SUPPORT / "polarity.jsonl")
    label, first, second = ([row[by] for row in labelled] for by in ("lean", "first", "second"))
    against = sum(a == b != own for a, b, own in zip(first, second, label, strict=True))
    lines = [
        f"polarity  readers: {_compared(first, second)}",
        f"polarity  label: with the first {_compared(label, first)}; "
        f"with the second {_compared(label, second)}; both alike against it: {against}",
    ]
    parts = {name: [row for row in labelled if part_of(row["text"]) == name] for name in ("dev", "test")}
    return [*lines, *(_leans_line(name, part) for name, part in parts.items()), *everyday_lines(), *implied_lines()]


def everyday_lines() -> list[str]:
    """Precision and coverage of leans on sentences that imply what they feel, in English and over all languages."""
    labelled = list(rows(SUPPORT / "polarity_everyday.jsonl"))
    agreed = _compared([row["lean"] for row in labelled], [row["second"] for row in labelled])
    english = [row for row in labelled if row["language"] == "en"]
    return [
        f"polarity  everyday, readers: {agreed}",
        _leans_line("everyday, English", english),
        _leans_line("everyday, four languages", labelled),
    ]


def implied_lines() -> list[str]:
    """Precision and coverage of leans on English sentences that tell what a product did, by part."""
    labelled = list(rows(SUPPORT / "polarity_implied.jsonl"))
    parts = {name: [row for row in labelled if part_of(row["text"]) == name] for name in ("dev", "test")}
    return [_leans_line(f"implied, {name}", part) for name, part in parts.items()]


def _leans_line(name: str, labelled: Sequence[Mapping[str, Any]]) -> str:
    sure = [(row["lean"], lean) for row in labelled if (lean := lean_of(row["text"]))]
    correct, leaning = sum(a == b for a, b in sure), sum(row["lean"] != 0 for row in labelled)
    return (
        f"polarity  {name}: {_share(correct, len(sure))} leans are right, "
        f"{_share(correct, leaning)} leaning sentences seen"
    )


def chat_lines() -> list[str]:
    """Two passes of one reader over what answers in the chat show, each under its theme."""
    shown = rows(SUPPORT / "chat.jsonl")
    first, second = ([row[by] for row in shown] for by in ("first", "second"))
    both = sum(map(all, zip(first, second, strict=True)))
    return [
        f"chat      passes: {_compared(first, second)}",
        f"chat      {_share(both, len(shown))} passages carry their theme, by each {sum(first)} and {sum(second)}",
    ]


def part_of(text: str) -> str:
    """`dev` or `test`, by the first digit of the text's SHA-256."""
    return "test" if int(sha256(text.encode()).hexdigest()[0], 16) % 2 else "dev"


def _compared(mine: Sequence[Hashable], theirs: Sequence[Hashable]) -> str:
    """Kappa and disagreements of two readings of the same texts."""
    differing = sum(a != b for a, b in zip(mine, theirs, strict=True))
    kappa = cohen_kappa(mine, theirs)
    return f"kappa {'-' if kappa is None else f'{kappa:.2f}'}, {differing} of {len(mine)} differ"


def _share(count: int, n: int) -> str:
    """A count with its share and the 95 % Wilson interval, as if all cases were independent."""
    low, high = wilson(count, n) or (0.0, 1.0)
    return f"{count} of {n} ({count / n:.3f}, 95 % {low:.2f} to {high:.2f})"


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
