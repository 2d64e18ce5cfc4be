"""Sheets for a second reader: `python scripts/training/labelling_sheets.py DIRECTORY`.

They hold query, context and text; no label, no id and nothing about where a text comes from.
DIRECTORY must lie outside the checkout, since the recordings are never copied into it.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from hashlib import sha256
from importlib import resources
from pathlib import Path

from api.core.text import clean, cut, one_line
from api.pipeline.gate.excerpt import PASSAGE_LENGTH
from api.sandbox import corpus
from recorded_texts import MISSING, ROOT, SETS, UPSTREAM, records

PER_PRODUCT = 24
Row = dict[str, object]


def main(arguments: list[str]) -> int:
    """Write guideline and sheets; exit code 2 when that cannot be."""
    if len(arguments) != 1:
        print("name one directory, outside the checkout", file=sys.stderr)
        return 2
    target = Path(arguments[0]).resolve()
    if target.is_relative_to(ROOT) or not UPSTREAM.is_dir():
        print(f"{target} is inside the checkout, or {MISSING}", file=sys.stderr)
        return 2
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "docs" / "labelling.md", target / "guideline.md")
    _write(target / "recorded_sheet.jsonl", recorded_sheet())
    _write(target / "corpus_sheet.jsonl", (row for _, _, row in corpus_sheet()))
    return 0


def recorded_sheet() -> list[Row]:
    """All recorded texts, in the order of the sets."""
    return [
        _row(recorded.query, recorded.about, record.title, record.body)
        for recorded in SETS
        for record in records(recorded)
    ]


def corpus_sheet() -> list[tuple[str, int, Row]]:
    """Posts of every product, chosen and shuffled by hash: product, its row, the sheet's row."""
    data = resources.files("api.sandbox") / "data"
    found: list[tuple[str, int, Row]] = []
    for product in json.loads((data / "products.json").read_text("utf-8")):
        slug = product["slug"]
        lines = (data / "posts" / f"{slug}.jsonl").read_text("utf-8").splitlines()
        numbers = [json.loads(line)["n"] for line in lines]
        posts = zip(numbers, corpus.load(slug), strict=True)
        chosen = sorted(posts, key=lambda pair: _hash("chosen", slug, pair[0]))[:PER_PRODUCT]
        found += [
            (slug, number, _row(product["query"], product["about"], post.title, _body(post))) for number, post in chosen
        ]
    return sorted(found, key=lambda entry: _hash("shuffled", *entry[:2]))


def _body(post: corpus.Post) -> str:
    """What the gate sees; on Amazon the tile, which is a title alone."""
    return "" if post.source == "amazon" else cut(one_line(clean(post.body)), PASSAGE_LENGTH)


def _row(query: str, about: str, title: str, body: str) -> Row:
    return {"query": query, "about": about, "text": f"{title}\n{body}".strip()}


def _hash(*parts: object) -> str:
    return sha256(" ".join(map(str, parts)).encode()).hexdigest()


def _write(path: Path, sheet: Iterable[Row]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, row in enumerate(sheet, 1):
            print(json.dumps({"n": number} | row, ensure_ascii=False), file=file)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
