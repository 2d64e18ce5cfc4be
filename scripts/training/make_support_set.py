"""Makes the support set from the sample corpus: `python scripts/training/make_support_set.py`.

One run per sample product; each passage of the keyless report on the kept items is one triple of
theme, passage and item. `--sheet triples SEED KEY` prints the committed triples for a reader,
`--sheet polarity SEED KEY` the sentences: shuffled by the seed, numbered in that order, without
labels. KEY, a file that no reader gets, takes lines of `number on the sheet, line in the file`.
`--labels FIRST KEY SECOND KEY` adds two readings (lines of `number supported lean`) to the triples.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from api.core.domain import Question, Verdict
from api.core.items import Assessed, Comment, Item
from api.reports.exhibits import Dossier
from api.reports.keyless.themes import find_themes
from recorded_texts import ROOT, rows

SUPPORT = ROOT / "evaluation" / "support"
TRIPLES = SUPPORT / "triples.jsonl"
_ASKED = (
    "battery price app support subscription setup speed connection screen account sleep comfort"
    " build updates temperature noise privacy export automation delivery repair memory camera pen"
    " accuracy transcripts summaries".split()
)
"""What a person asks about in the chat, beside what the report holds."""


def main() -> None:
    """Write the triples, a sheet of them, or their labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheet", nargs=3, metavar=("SET", "SEED", "KEY"))
    parser.add_argument("--labels", nargs=4, type=Path)
    wanted = parser.parse_args()
    if wanted.sheet:
        name, seed, key = wanted.sheet
        lines, order = sheet(rows(SUPPORT / f"{name}.jsonl"), int(seed))
        print("\n".join(lines))
        pairs = (f"{number} {line}\n" for number, line in enumerate(order, 1))
        Path(key).write_text("".join(pairs), "utf-8")
        return
    if wanted.labels:
        triples = rows(TRIPLES)
        first, second = (readings(*wanted.labels[at : at + 2]) for at in (0, 2))
        for line, row in enumerate(triples, 1):
            row |= {"first": first[line], "second": second[line]}
    else:
        triples = list(made())
    written = (json.dumps(row, ensure_ascii=False) for row in triples)
    TRIPLES.write_text("".join(f"{line}\n" for line in written), "utf-8")
    print(f"{len(triples)} triples in {TRIPLES}")


def sheet(entries: list[dict[str, Any]], seed: int) -> tuple[list[str], list[int]]:
    """The lines of a sheet, and for each the line in the file; neither count nor lean is shown."""
    order = list(range(1, len(entries) + 1))
    random.Random(seed).shuffle(order)
    return [" | ".join((str(number), *_shown(entries[line - 1]))) for number, line in enumerate(order, 1)], order


def _shown(row: dict[str, Any]) -> tuple[str, ...]:
    if "text" in row:
        return (row["text"],)
    theme = f"theme: {row['sentence'].partition(':')[0]}"
    return (f"{row['query']} ({row['about']})", theme, row["passage"], row["item"])


def readings(answers: Path, key: Path) -> dict[int, dict[str, Any]]:
    """A reader's answers by line in the file."""
    pairs = (pair.split() for pair in key.read_text("utf-8").splitlines())
    lines = {int(number): int(line) for number, line in pairs}
    read = (line.split() for line in answers.read_text("utf-8").splitlines() if line.strip())
    return {lines[int(number)]: {"supported": supported == "1", "lean": int(lean)} for number, supported, lean in read}


def made() -> Iterator[dict[str, Any]]:
    """Every triple, in the order of the products."""
    data = resources.files("api.sandbox") / "data" / "products.json"
    for product in json.loads(data.read_text("utf-8")):
        question = Question(product["query"], product["about"])
        yield from triples_of(question, kept(question))


def kept(question: Question) -> list[Assessed]:
    """What is kept of one run of the product in the sandbox."""
    command = ["analyze", question.text, "--about", question.about]
    command += ["--depth", "deep", "--format", "json"]
    run = subprocess.run(
        [sys.executable, "-m", "api", *command],
        env={**os.environ, "LISTENPOST_MODE": "sandbox"},
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    return [
        Assessed(
            Item(
                **{name: item[name] for name in ("key", "id", "source", "title", "body", "place")},
                comments=tuple(Comment(id=c["id"], body=c["body"]) for c in item["comments"]),
            ),
            Verdict(True, probability=item["probability"]),
        )
        for item in json.loads(run.stdout)["items"]
    ]


def triples_of(question: Question, items: list[Assessed]) -> Iterator[dict[str, Any]]:
    """One row per passage of the keyless report on these items, and of answers in the chat."""
    exhibits = Dossier().show(items)
    texts = {exhibit.label: exhibit.item for exhibit in exhibits}
    reported = find_themes(question, exhibits).findings
    names = {finding.name.lower() for finding in reported}
    words = [word for word in _ASKED if word not in names]
    answered = find_themes(question, exhibits, focus=words, most=len(_ASKED))
    for finding in (*reported, *answered.findings):
        for passage in finding.shown:
            item = texts[passage.label]
            yield {
                "query": question.text,
                "about": question.about,
                "place": "report" if finding in reported else "chat",
                "sentence": finding.text,
                "passage": passage.text,
                "item": f"{item.title} ({item.source})",
                "lean": passage.lean,
            }


if __name__ == "__main__":
    main()
