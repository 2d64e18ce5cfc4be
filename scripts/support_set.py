"""The support set out of the sample world, made by the product: `python scripts/support_set.py`.

What the keyless judge keeps is what the keyless writer reads; each of its passages is one triple of
sentence, passage and item. `--sheet` prints them shuffled and without labels, for a reader;
`--labels FIRST SECOND` adds two readings (lines of `number supported lean`) to the committed file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from api.judges.local import LocalJudge
from api.sandbox import corpus
from api.services.reporting.dossier import Dossier
from api.services.reporting.themes import find_themes
from api.services.schemas import Assessed, Comment, Item, Question, Verdict
from recorded import ROOT

TRIPLES = ROOT / "evaluation" / "support" / "triples.jsonl"
_COMMENTS, _SEED = 4, 7


def main() -> None:
    """Write the triples, a sheet of them, or their labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheet", action="store_true")
    parser.add_argument("--labels", nargs=2, type=Path)
    wanted = parser.parse_args()
    triples = list(asyncio.run(made()))
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


async def made() -> list[dict[str, Any]]:
    """Every triple, in the order of the products."""
    data = resources.files("api.sandbox") / "data" / "products.json"
    products = json.loads(data.read_text("utf-8"))
    return [
        row
        for product in products
        for row in triples_of(
            Question(product["query"], product["about"]),
            await kept(product["slug"], Question(product["query"], product["about"])),
        )
    ]


async def kept(slug: str, question: Question) -> list[Item]:
    """What the keyless judge keeps of a product's corpus, place by place."""
    items: dict[str, list[Item]] = {}
    for post in corpus.load(slug):
        if not post.deleted:
            items.setdefault(post.source, []).append(_item(post))
    judge, found = LocalJudge(), []
    for source, page in items.items():
        judgement = await judge.judge(question, page, source)
        found += [
            item for item, verdict in zip(page, judgement.verdicts, strict=True) if verdict.relevant
        ]
    return found


def triples_of(question: Question, items: list[Item]) -> Iterator[dict[str, Any]]:
    """One row per passage of the keyless report on these items."""
    exhibits = Dossier().show(Assessed(item, Verdict(True)) for item in items)
    texts = {exhibit.label: exhibit.item for exhibit in exhibits}
    for finding in find_themes(question, exhibits).findings:
        for passage in finding.passages:
            item = texts[passage.label]
            yield {
                "query": question.text,
                "about": question.about,
                "sentence": finding.text,
                "passage": passage.text,
                "item": f"{item.title} ({item.source})",
                "lean": passage.lean,
            }


def _item(post: corpus.Post) -> Item:
    remarks = [remark for remark in post.comments if not remark.deleted][:_COMMENTS]
    return Item(
        key=post.key, id=post.id, source=post.source, title=post.title, body=post.body,
        place=post.place, comments=tuple(Comment(id=r.id, body=r.body) for r in remarks),
    )  # fmt: skip


def _read(path: Path) -> dict[int, dict[str, Any]]:
    rows = (line.split() for line in path.read_text("utf-8").splitlines() if line.strip())
    return {
        int(number): {"supported": supported == "1", "lean": int(lean)}
        for number, supported, lean in rows
    }


if __name__ == "__main__":
    main()
