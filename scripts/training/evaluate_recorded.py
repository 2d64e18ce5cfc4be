"""Measures a judge on recorded texts: `evaluate_recorded.py [options of listenpost eval]`.

Joins the committed labels with the recordings in a temporary file, and calls `listenpost eval` on
it. Without recordings it says where it looked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from api.interfaces.cli.main import run
from recorded_texts import LABELS, MISSING, SETS, UPSTREAM, Record, RecordedSet, records, rows


def main() -> None:
    """Leave with the exit code of `listenpost eval`, or 2 without recordings."""
    if not UPSTREAM.is_dir():
        print(MISSING, file=sys.stderr)
        raise SystemExit(2)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "recorded.jsonl"
        lines = (json.dumps(line, ensure_ascii=False) for line in joined())
        file.write_text("\n".join(lines), "utf-8")
        sys.argv[1:] = ["eval", str(file), *sys.argv[1:]]
        run()


def joined() -> Iterator[dict[str, object]]:
    """One labelled query per recorded set, as `listenpost eval` reads it."""
    labels = {(row["file"], row["position"]): row for row in rows(LABELS / "recorded.jsonl")}
    for recorded in SETS:
        pairs = [(record, labels.pop((record.file, record.position))) for record in records(recorded)]
        yield _line(recorded, pairs)
    if labels:
        raise ValueError(f"labels without a record: {sorted(labels)}")


def _line(recorded: RecordedSet, pairs: list[tuple[Record, dict[str, object]]]) -> dict[str, object]:
    return {
        "query": recorded.query,
        "source_hint": recorded.source,
        "family": recorded.family,
        "about": recorded.about,
        "items": [
            {"title": record.title, "body": record.body, "relevant": label["relevant"]} for record, label in pairs
        ],
    }


if __name__ == "__main__":
    main()
