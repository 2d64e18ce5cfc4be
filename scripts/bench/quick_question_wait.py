"""How long a quick question waits while another key's sixty deep questions run.

    python scripts/bench/quick_question_wait.py

The sandbox is another process with the latencies of `analysis_ratios.py`. Prints the ratio of the
quick question's time with and without the others.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time

from analysis_ratios import sandbox
from api import bootstrap
from api.bootstrap.app_context import AppContext, open_app_context
from api.features.analyses.analysis_job import AnalysisTask
from api.features.analyses.api_keys import Tenant
from api.services.product import Ask

BUSY, QUICK = Tenant("busy", "store"), Tenant("quick", "store")


async def once(app_context: AppContext, number: int) -> float:
    """Seconds of one quick question that nobody asked before."""
    began = time.perf_counter()
    await app_context.runner.run(QUICK, Ask("plaud.ai", "quick", about=f"the recorder {number}"))
    return time.perf_counter() - began


async def measure(many: int, repeats: int) -> None:
    """Alone first, then beside the other key's."""
    app_context = await open_app_context(bootstrap.load_settings())
    await once(app_context, 0)
    alone = statistics.median([await once(app_context, number) for number in range(1, 1 + repeats)])
    for number in range(many):
        task = await app_context.runner.join(BUSY, Ask("ember mug", "deep", about=f"the mug {number}"))
        assert isinstance(task, AnalysisTask)
        task.detached = True
    beside = statistics.median([await once(app_context, 100 + number) for number in range(repeats)])
    print(f"quick alone: {alone:.2f} s; beside {many} deep of another key: {beside:.2f} s")
    print(f"ratio: {beside / alone:.2f} (at most 3)")
    await app_context.aclose()


def main() -> None:
    """Read the arguments, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deep", type=int, default=60, help="deep questions of the other key")
    parser.add_argument("--repeats", type=int, default=3, help="quick questions each way")
    chosen = parser.parse_args()
    with sandbox() as served, tempfile.TemporaryDirectory() as folder:
        os.environ.update(served.variables, LISTENPOST_MODE="live", LISTENPOST_LIMIT_USD_PER_DAY="0")
        del os.environ["LANGFUSE_SECRET_KEY"]
        os.environ["LISTENPOST_DATABASE_URL"] = f"sqlite:///{folder}/fair.db"
        asyncio.run(measure(chosen.deep, chosen.repeats))


if __name__ == "__main__":
    main()
