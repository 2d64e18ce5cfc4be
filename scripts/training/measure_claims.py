"""Subjects and claims of the keyless writer beside what a reader counted by hand: `measure_claims.py`.

For each product of `evaluation/opinions/counts.jsonl` the number of people that a report says speak of a subject, and
whether it is within 30 %. With `--findings` every finding with its passages, to be read; the texts are other people's,
so they go to the terminal alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from api.core.domain import Question, Verdict
from api.core.items import Assessed, Item
from api.reports.exhibits import Dossier
from api.reports.keyless.theme_finding import ThemeFinding
from api.reports.keyless.themes import find_themes
from recorded_texts import ROOT, UPSTREAM, rows

COUNTS = ROOT / "evaluation" / "opinions" / "counts.jsonl"
DATA = Path(os.environ.get("LISTENPOST_TEST_DATA", UPSTREAM.parent))
NEAR = 0.3
"""Share by which a count may differ from the reader's."""
MANY = 6
"""People by the reader from which a report must show a subject."""


def main() -> None:
    """Print a line for each subject, and the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--findings", action="store_true", help="print every finding with its passages")
    parser.add_argument("--set", help="only this one")
    wanted = parser.parse_args()
    claimed = shown = near = many = 0
    for line in rows(COUNTS):
        if wanted.set not in (None, line["set"]):
            continue
        if not (DATA / line["file"]).is_file():
            sys.exit(f"no opinions in {DATA / line['file']}; set LISTENPOST_TEST_DATA")
        items = list(_items(line))
        themed = find_themes(Question(line["query"], line["about"]), _kept(items))
        print(f"{line['set']} ({line['part']}): {len(items)} people. {themed.summary}")
        for names, count in line["subjects"].items():
            forms = names.split(", ")
            claim = _people(forms, ((f.name.lower(), f.speaking) for f in themed.findings))
            found = max(claim, _people(forms, themed.spoken))
            fits = abs(found - count) <= NEAR * count
            if count >= MANY:
                many, shown, near = many + 1, shown + bool(found), near + fits
                claimed += bool(claim)
            where = "" if claim or not found else ", in the summary"
            print(f"  {names}: {found} of {count} by hand{', within 30 %' * fits}{where}")
        if wanted.findings:
            _print(themed.findings)
    print(f"of {many} subjects of {MANY} people or more {shown} are shown, {claimed} in a claim, {near} within 30 %")


def _people(names: Iterable[str], subjects: Iterable[tuple[str, int]]) -> int:
    """People who speak of a subject, of subjects with their people the one with the most."""
    forms = set(names)
    return max((people for name, people in subjects if name in forms or name.rstrip("s") in forms), default=0)


def _print(findings: Iterable[ThemeFinding]) -> None:
    for finding in findings:
        print(f"  * {finding.text}")
        for passage in finding.passages:
            print(f"      - {' '.join(passage.text.split())}")


def _kept(items: Iterable[Item]) -> Any:
    return Dossier().show(Assessed(item, Verdict(True)) for item in items)


def _items(line: Mapping[str, Any]) -> Iterator[Item]:
    """The items of a set that are about its product."""
    path = DATA / line["file"]
    if path.suffix == ".json":  # comments, each with its video's title
        for entry in json.loads(path.read_text("utf-8")):
            if line["query"] in entry["title"] and "Fold" not in entry["title"]:
                yield _item(
                    {"id": entry["cid"], "body": entry["comment"], "place": entry["title"], "source": "youtube"}
                )
        return
    for row in rows(path):
        if "items" not in row:
            yield _item(row)
        elif row["query"] == line["query"]:
            yield from (_item({"source": "reddit", **entry}) for entry in row["items"] if entry["relevant"])


def _item(row: Mapping[str, Any]) -> Item:
    return Item(
        key=f"{row['source']}:{row['id']}", id=row["id"], source=row["source"], title=row.get("title") or "",
        body=row.get("body") or "", place=row.get("place"),
    )  # fmt: skip


if __name__ == "__main__":
    main()
