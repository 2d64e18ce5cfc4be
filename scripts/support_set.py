"""The support set out of the sample world, made by the product: `python scripts/support_set.py`.

One run per sample product; each passage of the keyless report on what it kept is one triple of
sentence, passage and item. `--sheet` prints them shuffled and without labels, for a reader;
`--labels FIRST SECOND` adds two readings (lines of `number supported lean`) to the committed file.
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

from api.services.reporting.dossier import Dossier
from api.services.reporting.themes import find_themes
from api.services.schemas import Assessed, Comment, Item, Question, Verdict
from recorded import ROOT

TRIPLES = ROOT / "evaluation" / "support" / "triples.jsonl"
_SEED = 7
_ASKED = "battery price app support subscription setup speed connection screen account".split()
"""What a person asks about in the chat, beside what the report holds."""


def main() -> None:
    """Write the triples, a sheet of them, or their labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheet", action="store_true")
    parser.add_argument("--labels", nargs=2, type=Path)
    wanted = parser.parse_args()
    triples = list(made())
    if wanted.sheet:
        order = list(enumerate(triples, 1))
        random.Random(_SEED).shuffle(order)
        for number, row in order:
            print(
                f"{number} | {row['query']} | {row['sentence']} | {row['passage']} | {row['item']}"
            )
        return
    if wanted.labels:
        first, second = (_read(path) for path in wanted.labels)
        for number, row in enumerate(triples, 1):
            row |= {"first": first[number], "second": second[number]}
    lines = (json.dumps(row, ensure_ascii=False) for row in triples)
    TRIPLES.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    print(f"{len(triples)} triples in {TRIPLES}")


def made() -> Iterator[dict[str, Any]]:
    """Every triple, in the order of the products."""
    data = resources.files("api.sandbox") / "data" / "products.json"
    for product in json.loads(data.read_text("utf-8")):
        question = Question(product["query"], product["about"])
        yield from triples_of(question, kept(question))


def kept(question: Question) -> list[Item]:
    """The items of one run of the product in the sandbox."""
    command = ["analyze", question.text, "--about", question.about]
    command += ["--depth", "deep", "--format", "json"]
    run = subprocess.run(
        [sys.executable, "-m", "api", *command],
        env={**os.environ, "LISTENPOST_MODE": "sandbox"},
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    return [
        Item(
            **{name: item[name] for name in ("key", "id", "source", "title", "body", "place")},
            comments=tuple(Comment(id=c["id"], body=c["body"]) for c in item["comments"]),
        )
        for item in json.loads(run.stdout)["items"]
    ]


def triples_of(question: Question, items: list[Item]) -> Iterator[dict[str, Any]]:
    """One row per passage of the keyless report on these items, and of answers in the chat."""
    exhibits = Dossier().show(Assessed(item, Verdict(True)) for item in items)
    texts = {exhibit.label: exhibit.item for exhibit in exhibits}
    reported = find_themes(question, exhibits).findings
    names = {finding.name.lower() for finding in reported}
    words = [word for word in _ASKED if word not in names]
    answered = find_themes(question, exhibits, asked=words, most=len(_ASKED))
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


def _read(path: Path) -> dict[int, dict[str, Any]]:
    rows = (line.split() for line in path.read_text("utf-8").splitlines() if line.strip())
    return {
        int(number): {"supported": supported == "1", "lean": int(lean)}
        for number, supported, lean in rows
    }


if __name__ == "__main__":
    main()
