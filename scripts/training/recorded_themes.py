"""Passages of the keyless writer on recorded texts: `recorded_themes.py FOLDER`.

The local judge keeps the items that are about each query of the real and the recorded texts. Each
passage of the keyless report on them is one triple, as `make_support_set.py` makes them from the
sample corpus. The texts are other people's: triples, sheets and keys go to FOLDER, outside the
project, and only figures are printed. `--sheets SEED SEED` writes two sheets with their keys;
`--labels FIRST SECOND` reads the answers and prints how many passages carry their sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from api.core.domain import Question
from api.core.items import Assessed, Comment, Item
from api.models.local.judge import LocalJudge
from api.reports.keyless.theme_sentences import VOICE
from label_agreement import carried_lines
from make_support_set import readings, sheet, triples_of
from recorded_texts import ROOT, SETS, UPSTREAM, rows

REAL = UPSTREAM.parent / "relevance-real"
_SOURCES = ("reddit", "youtube", "amazon")
_BENEATH = ("comments", "charger comments", "reviews")
"""Recorded sets whose texts are comments or reviews of what the title names."""
_SINGLE = "amazon-reviews"
"""A family without the products' titles: its reviews cannot be told apart, so it is left out."""


def main() -> None:
    """Make the triples, and the sheets or the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sheets", nargs=2, type=int, metavar="SEED")
    parser.add_argument("--labels", nargs=2, type=Path)
    wanted = parser.parse_args()
    folder = wanted.folder.resolve()
    if folder.is_relative_to(ROOT):
        parser.error(f"`{folder}` is inside the project, where recorded texts may not lie")
    path = folder / "recorded_triples.jsonl"
    if wanted.labels:
        triples = rows(path)
        for name, answers, key in zip(("first", "second"), wanted.labels, _keys(folder), strict=True):
            read = readings(answers, key)
            for line, row in enumerate(triples, 1):
                row[name] = read[line]
        for name, bare in (("themes", False), ("single voices", True)):
            part = [row for row in triples if row["sentence"].startswith(VOICE) is bare]
            print("\n".join((f"{name}: {len(part)} passages", *carried_lines(part))))
        return
    folder.mkdir(parents=True, exist_ok=True)
    triples = asyncio.run(_made())
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in triples), "utf-8")
    for name, key, seed in zip(("first", "second"), _keys(folder), wanted.sheets or (), strict=False):
        lines, order = sheet(triples, seed)
        (folder / f"recorded_{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        pairs = (f"{number} {line}\n" for number, line in enumerate(order, 1))
        key.write_text("".join(pairs), "utf-8")
    queries = len({row["query"] for row in triples})
    print(f"{len(triples)} triples of {queries} queries in {folder}")


def _keys(folder: Path) -> tuple[Path, Path]:
    return folder / "recorded_first.key", folder / "recorded_second.key"


async def _made() -> list[dict[str, Any]]:
    """Every triple, in the order of the files."""
    judge = LocalJudge()
    triples: list[dict[str, Any]] = []
    for question, items in (*_real(), *_upstream()):
        verdicts = (await judge.judge(question, items, items[0].source)).verdicts
        kept = [Assessed(item, verdict) for item, verdict in zip(items, verdicts, strict=True) if verdict.relevant]
        triples += triples_of(question, kept)
    return triples


def _real() -> Iterator[tuple[Question, list[Item]]]:
    """The labelled real posts, query by query."""
    for path in sorted(REAL.glob("*.jsonl")):
        for row in rows(path):
            source = row["source_hint"] if row["source_hint"] in _SOURCES else "reddit"
            texts = [
                (
                    entry["title"],
                    entry["body"],
                    entry["place"] if source == "reddit" else None,
                    entry["place"] == "comment",
                )
                for entry in row["items"]
            ]
            if row["family"] != _SINGLE:
                yield Question(row["query"], row["about"]), _items(source, texts)


def _upstream() -> Iterator[tuple[Question, list[Item]]]:
    """The recorded answers of the sources."""
    for recorded in SETS:
        beneath = recorded.family in _BENEATH
        texts = recorded.texts(UPSTREAM / recorded.file)
        named = [(title, body, None, beneath) for title, body in texts]
        yield Question(recorded.query, recorded.about), _items(recorded.source, named)


def _items(source: str, texts: Iterable[tuple[str, str, str | None, bool]]) -> list[Item]:
    """Items as a source would give them; what stands beneath a title is that item's comments."""
    items: list[Item] = []
    threads: dict[str, Item] = {}
    for number, (title, body, place, beneath) in enumerate(texts):
        item = Item(
            key=f"{source}:{number}", id=str(number), source=source, title=title, body=body,
            place=place,
        )  # fmt: skip
        if beneath:
            thread = threads.get(title, item.edited(body="", place=None))
            comment = Comment(id=str(number), body=body)
            threads[title] = thread.edited(comments=(*thread.comments, comment))
        else:
            items.append(item)
    return [*items, *threads.values()]


if __name__ == "__main__":
    main()
