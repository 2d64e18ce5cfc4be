"""Print the local judge's figures: `python scripts/training/measure_gate.py --data DIR`.

DIR holds the labelled sets that `train_local_judge.py` is fitted on. Every query is judged with
weights that never saw it (five folds by query). Intervals are 95 %, drawn by query.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import train_local_judge as training
from api.core.domain import Correction, Question, Verdict
from api.evaluation.bench_gates import FoldedJudge
from api.evaluation.labelled_items import LabelledQuery, read_labelled
from api.evaluation.metrics import LabelledVerdict, Tally, differences, intervals, summed, tally, total
from api.models.local.judge import LocalJudge
from api.models.local.word_vectors import vectors
from api.pipeline.question.exclusions import split_exclusions

SCRIPTS = Path(__file__).parents[2] / "tests" / "data" / "untitled_scripts.jsonl"
CORRECTIONS, DRAWS = (3, 5, 10), 12
LARGE = 40
"""Items from which a family's figures with corrections are held to those without."""
BATCH = 10
"""Items of a page as the product asks for it."""
MEASURES = ("mcc", "precision", "recall", "yield_mae", "refetch_right")


class Pair(NamedTuple):
    """One query's counts with corrections and without, over all draws."""

    query: LabelledQuery
    corrected: Tally
    alone: Tally


def counted(query: LabelledQuery, chosen: Sequence[int], verdicts: Sequence[Verdict]) -> Tally:
    """Verdicts on the chosen items of a query against their labels."""
    return tally(
        [
            LabelledVerdict(query.items[at].relevant, verdict.relevant, verdict.probability)
            for at, verdict in zip(chosen, verdicts, strict=True)
        ]
    )


def judged(judge: FoldedJudge | LocalJudge, query: LabelledQuery, question: Question) -> Tally:
    """All items of a query as one page."""
    whole = judge if isinstance(judge, LocalJudge) else judge.of(question)
    verdicts = whole.verdicts(question, query.shown(), query.source)
    return counted(query, range(len(query.items)), verdicts)


def judged_in_batches(judge: FoldedJudge, query: LabelledQuery, question: Question) -> Tally:
    """Every full page of `BATCH` items, drawn anew `DRAWS` times; a query of fewer items is one page."""
    items, tallies = query.shown(), []
    for draw in range(DRAWS):
        order = list(range(len(items)))
        Random(f"{query.query} {draw}").shuffle(order)
        for start in range(0, max(len(order) - BATCH, 0) + 1, BATCH):
            chosen = sorted(order[start : start + BATCH])
            verdicts = judge.of(question).verdicts(question, [items[at] for at in chosen], query.source)
            tallies.append(counted(query, chosen, verdicts))
    return total(tallies)


def with_corrections(judge: FoldedJudge, query: LabelledQuery, count: int, draws: int = DRAWS) -> Pair | None:
    """What is left of a query after corrections of items drawn at random; None for nothing."""
    items, question = query.shown(), query.question()
    if len(items) <= count:
        return None
    corrected: list[Tally] = []
    alone: list[Tally] = []
    for draw in range(draws):
        order = list(range(len(items)))
        Random(f"{query.query} {count} {draw}").shuffle(order)
        rest = sorted(order[count:])
        known = [
            Correction(item.key, labelled.relevant, item.title, item.body, item.place or "")
            for item, labelled in ((items[at], query.items[at]) for at in order[:count])
        ]
        page = [items[at] for at in rest]
        taught = replace(question, corrections=tuple(known))
        for tallies, asked in ((corrected, taught), (alone, question)):
            verdicts = judge.of(question).verdicts(asked, page, query.source)
            tallies.append(counted(query, rest, verdicts))
    return Pair(query, total(corrected), total(alone))


def row(name: str, tallies: Sequence[Tally]) -> str:
    """One line: every measure with its interval."""
    found, spread = summed(tallies), intervals(tallies, summed)
    cells = []
    for measure in MEASURES:
        value, ends = found[measure], spread.get(measure)
        shown = "-" if value is None else f"{value:.3f}"
        cells.append(shown + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""))
    return f"| {name} | {' | '.join(cells)} |"


def gain(name: str, pairs: Sequence[Pair]) -> str:
    """One line: MCC without and with corrections, and the difference with its interval."""
    both = [pair.corrected + pair.alone for pair in pairs]
    first, second = (summed([getattr(pair, side) for pair in pairs]) for side in Pair._fields[1:])
    differing = differences(total(both))["mcc"]
    ends = intervals(both, lambda drawn: differences(total(drawn))).get("mcc")
    shown = f" [{ends[0]:+.3f}, {ends[1]:+.3f}]" if ends else ""
    values = " | ".join("-" if v is None else f"{v:.3f}" for v in (second["mcc"], first["mcc"]))
    difference = "-" if differing is None else f"{differing:+.3f}{shown}"
    return f"| {name} | {values} | {difference} |"


def families(pairs: Iterable[Pair]) -> Mapping[str, list[Pair]]:
    """By family, those of `LARGE` items or more."""
    found = defaultdict(list)
    for pair in pairs:
        found[pair.query.family].append(pair)
    return {
        name: members
        for name, members in sorted(found.items())
        if sum(len(pair.query.items) for pair in members) >= LARGE
    }


def excluding(query: LabelledQuery, described: str) -> Question:
    """The question with the exclusions of another description of it."""
    return replace(query.question(), not_about=split_exclusions(described)[1])


def main() -> None:
    """Print every table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    folder = options.parse_args().data
    sets = {name: training.read_set(folder, files) for name, files in training.SETS.items()}
    judge = training.folded([query for part in sets.values() for query in part], vectors())
    print(f"| set | {' | '.join(MEASURES)} |\n|{' --- |' * (len(MEASURES) + 1)}")
    for name, queries in sets.items():
        print(row(name, [judged(judge, query, query.question()) for query in queries]))
    for name in ("real", "mention"):
        batches = [judged_in_batches(judge, query, query.question()) for query in sets[name]]
        print(row(f"{name}, pages of ten", batches))
    for query in sets["mention"]:
        print(row(f"mention, {query.query}", [judged(judge, query, query.question())]))
    by_words = replace(judge, known=None)
    for name, queries in sets.items():
        tallies = [judged(by_words, query, query.question()) for query in queries]
        print(row(f"{name}, without word vectors", tallies))
    described = training.descriptions_with_exclusions(folder)
    mention = [(query, described[query.query]) for query in sets["mention"]]
    whole = [judged(judge, query, replace(query.question(), about=text)) for query, text in mention]
    chosen = [judged(judge, query, excluding(query, text)) for query, text in mention]
    print(row("mention, the description that excludes", whole))
    print(row("mention, the short one with its exclusions", chosen))
    batches = [judged_in_batches(judge, query, excluding(query, text)) for query, text in mention]
    print(row("mention, the short one with its exclusions, pages of ten", batches))
    scripts = read_labelled(SCRIPTS.read_text("utf-8").splitlines(), SCRIPTS.name)
    print(row("six scripts", [judged(LocalJudge(), q, q.question()) for q in scripts]))
    for count in CORRECTIONS:
        print(f"\n| {count} corrections | without | with | difference |\n| --- | --- | --- | --- |")
        for name in ("real", "mention"):
            found = [with_corrections(judge, query, count) for query in sets[name]]
            pairs = [pair for pair in found if pair is not None]
            print(gain(name, pairs))
            if name == "real":
                for family, members in families(pairs).items():
                    print(gain(f"real, {family}", members))
            else:
                print(row("mention, measures", [pair.corrected for pair in pairs]))


if __name__ == "__main__":
    main()
