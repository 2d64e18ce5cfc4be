"""Processor time of a report without a model over own items: `python scripts/bench/report_growth.py [RUNS]`.

Prints one row for each number and length of items; each is a median over runs, behind a first one that loads.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence

from api.bootstrap import only_over
from api.sandbox import corpus
from api.services import product as listening
from api.services.product import Ask
from api.sources.own_items import own_items_of
from processor_time import product_of

COUNTS, LENGTHS = (25, 100, 400), (1_000, 10_000, 100_000)
MOST_CHARACTERS = 10_000_000
"""Of all items of a row; larger ones are left out."""
_SHORT, _LONG = 30, 200


def own_items(count: int, length: int) -> Sequence[Mapping[str, str]]:
    """Items that name one product, of sentences of the sample world in random order, the same in each run."""
    chance = random.Random(f"{count} {length}")
    sentences = [s for post in corpus.load() for s in post.body.split(". ") if _SHORT < len(s) < _LONG]
    items = []
    for number in range(count):
        body = "Plaud Note: "
        while len(body) < length:
            body += f"{chance.choice(sentences)} in week {chance.randrange(1_000)}. "
        items.append(
            {"id": str(number), "title": f"Plaud Note {number}", "body": body[:length], "author": f"a{number}"}
        )
    return items


async def measured(runs: int) -> None:
    """Print the table."""
    print("| items | characters each | s | ms an item |\n| --- | --- | --- | --- |")
    async with product_of(traced=False, patient=True) as product:
        for length in LENGTHS:
            for count in COUNTS:
                if count * length > MOST_CHARACTERS:
                    continue
                over, took = only_over(product, own_items_of(own_items(count, length))), []
                for _ in range(runs + 1):
                    began = time.process_time()
                    await listening.analyze(over, Ask("Plaud Note", "deep"))
                    took.append(time.process_time() - began)
                seconds = statistics.median(took[1:])
                print(f"| {count} | {length:,} | {seconds:.2f} | {seconds / count * 1000:.0f} |", flush=True)


if __name__ == "__main__":
    os.environ |= {"LISTENPOST_MODE": "live", "LISTENPOST_JUDGE": "local"}
    os.environ.pop("OPENAI_API_KEY", None)
    asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
