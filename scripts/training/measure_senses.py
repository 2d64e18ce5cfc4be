"""Print how names fall apart into meanings: `python scripts/training/measure_senses.py --data DIR`.

A row a name of the labelled sets with 12 items or more. `share` decides whether a
question shows meanings; `pure` is the share of the grouped items with the commoner label of their
group. A name with `relevant` below 100 % has items about something else. A second table has the names
that reach the limits, as a person sees them who chooses the group with the largest share of relevant items.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from api.choices import Aim
from api.core.domain import Question
from api.evaluation.labelled_items import LabelledQuery, read_labelled
from api.features.analyses.rejudging import described
from api.models.local.judge import LocalJudge
from api.models.local.senses import find_senses, group_items

SETS = ("relevance-mention/*.jsonl", "relevance-real/real_posts_*.jsonl")
FEWEST = 12


def main() -> None:
    """Read the sets below `--data` and print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", type=Path, required=True)
    folder: Path = options.parse_args().data
    print("| set | name | items | relevant | share | groups | pure |")
    print("| --- | --- | ---: | ---: | ---: | --- | ---: |")
    for pattern in SETS:
        for file in sorted(folder.glob(pattern)):
            lines = file.read_text("utf-8").splitlines()
            for line in table(file.stem, read_labelled(lines, file.name)):
                print(line)
    print("\n| name | judged | kept | precision | recall |\n| --- | --- | ---: | ---: | ---: |")
    for pattern in SETS:
        for file in sorted(folder.glob(pattern)):
            aim: Aim = "mention" if file.stem.startswith("mention") else "about"
            for query in read_labelled(file.read_text("utf-8").splitlines(), file.name):
                for line in chosen(query, aim):
                    print(line)


def chosen(query: LabelledQuery, aim: Aim) -> Iterator[str]:
    """Two rows of a name whose senses are shown: judged before and after one was chosen."""
    question, items = Question(query.query, aim=aim), query.shown()
    relevant = {item.key for item, entry in zip(items, query.items, strict=True) if entry.relevant}
    senses = find_senses(question, items, relevant)
    if len(query.items) < FEWEST or not senses:
        return
    best = max(senses, key=lambda sense: (sense.kept / sense.count, sense.count))
    about, not_about = described(senses, best.number)
    meant = replace(question, about=about, not_about=not_about)
    for title, asked in (("as asked", question), (f"as “{about}”", meant)):
        verdicts = zip(items, LocalJudge().verdicts(asked, items, query.source), strict=True)
        kept = [item.key for item, verdict in verdicts if verdict.relevant]
        right = len(relevant.intersection(kept))
        shares = " | ".join(f"{right / len(whole):.2f}" if whole else "-" for whole in (kept, relevant))
        yield f"| {query.query} | {title} | {len(kept)} | {shares} |"


def table(name: str, queries: Sequence[LabelledQuery]) -> Iterator[str]:
    """The rows of one file."""
    for query in queries:
        if len(query.items) >= FEWEST:
            yield row(name, query)


def row(name: str, query: LabelledQuery) -> str:
    """One name: its groups by size, each with its relevant items."""
    items = query.shown()
    labels = {item.key: entry.relevant for item, entry in zip(items, query.items, strict=True)}
    grouping = group_items(Question(query.query), items, {key for key in labels if labels[key]})
    counts = [(sense.count, sense.kept) for sense in grouping.senses]
    grouped = sum(count for count, _ in counts)
    common = sum(max(kept, count - kept) for count, kept in counts)
    pure = f"{100 * common / grouped:.0f} %" if grouped else "-"
    shown = ", ".join(f"{count} ({kept} relevant)" for count, kept in counts) or "-"
    relevant = 100 * sum(labels.values()) / len(labels)
    return f"| {name} | {query.query} | {len(items)} | {relevant:.0f} % | {grouping.share:.2f} | {shown} | {pure} |"


if __name__ == "__main__":
    main()
