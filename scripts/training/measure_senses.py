"""Print how names fall apart into meanings: `python scripts/training/measure_senses.py --data DIR`.

A row a name of the labelled sets with 12 items or more. `share` decides whether a
question shows meanings; `pure` is the share of the grouped items with the commoner label of their
group. A name with `relevant` below 100 % has items about something else.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from api.core.domain import Question
from api.evaluation.labelled_items import LabelledQuery, read_labelled
from api.models.local.senses import group_items

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
