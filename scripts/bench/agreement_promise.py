"""How often the cascade misses its promise of agreement, and what it spares, over simulated runs on labelled posts.

    python scripts/bench/agreement_promise.py --data DIR [--runs 200] [--posts 1000] [--seed 1]

DIR holds folders `relevance*` with labelled queries. A run draws posts with replacement from one set; the labels, of
which a share is turned at random, stand for the model's verdicts. Each row says in how many runs the trusted limit was
at any time one at which more posts disagree than is tolerated, with Wilson's 95 % interval; in how many the share of
agreeing verdicts over the whole run was below the target; and the mean share of posts that the model did not judge,
with the middle 90 % of runs. Exits 1 when more runs than the stated risk miss the promise in a set that does not drift.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from api.core.domain import Verdict
from api.evaluation.labelled_items import read_labelled
from api.pipeline.evidence.figures import wilson
from api.pipeline.gate.cascade import Promise
from simulated_cascade import JudgedPost, SimulatedRun, judged_posts, noisy, simulated_run

PROMISES = (Promise(0.95, 0.05), Promise(0.95, 0.1), Promise(0.9, 0.05), Promise(0.9, 0.1))
LEAST = 60
"""Posts of a family that is a set of its own."""
Parts = Sequence[Sequence[JudgedPost]]


def labelled_sets(folder: Path) -> dict[str, list[JudgedPost]]:
    """The posts of each folder, and of each file of `LEAST` posts or more."""
    sets: dict[str, list[JudgedPost]] = {}
    for file in sorted(folder.glob("relevance*/*.jsonl")):
        posts = judged_posts(read_labelled(file.read_text("utf-8").splitlines(), file.name))
        sets.setdefault(file.parent.name, []).extend(posts)
        if len(posts) >= LEAST:
            sets[f"  {file.stem}"] = posts
    return sets


def made(count: int, wrong: float, chance: Random, *, relevant: float = 0.5, useless: bool = False) -> list[JudgedPost]:
    """Made-up posts, of which the local judge gets a share wrong however sure it is; or it guesses."""
    posts = []
    for number in range(count):
        label, probability = chance.random() < relevant, chance.random()
        local = probability >= 0.5
        if not useless:
            right = number >= wrong * count
            local = label if right else not label
            probability = 0.5 + probability / 2 if local else 0.5 - probability / 2
        posts.append(JudgedPost(Verdict(local, "local", probability), label))
    return posts


async def runs_of(
    parts: Parts, noise: float, promise: Promise, count: int, length: int, seed: int
) -> list[SimulatedRun]:
    """So many runs, each with its own order and its own noise."""
    runs = []
    for number in range(count):
        chance = Random(f"{seed} {number}")
        runs.append(await simulated_run([noisy(part, noise, chance) for part in parts], promise, length, chance))
    return runs


def row(name: str, noise: float, promise: Promise, runs: Sequence[SimulatedRun]) -> str:
    """A line of the table."""
    missed, below = sum(run.promise_missed for run in runs), sum(run.agreement < promise.agreement for run in runs)
    low, high = wilson(missed, len(runs)) or (0.0, 1.0)
    spared = sorted(run.spared for run in runs)
    middle = f"[{spared[len(runs) // 20]:.2f}, {spared[-1 - len(runs) // 20]:.2f}]"
    agreement = sum(run.agreement for run in runs) / len(runs)
    share = sum(spared) / len(runs)
    return (
        f"| {name} | {noise:g} | {promise.agreement:g} | {promise.risk:g} | {missed / len(runs):.3f} "
        f"[{low:.3f}, {high:.3f}] | {below / len(runs):.3f} | {agreement:.3f} | {share:.2f} {middle} |"
    )


async def measure(sets: Mapping[str, Parts], noises: Sequence[float], runs: int, posts: int, seed: int) -> bool:
    """Print a row for each set, noise and promise; whether every one of them held."""
    held = True
    print("| set | noise | agreement | risk | promise missed | run below target | agreement reached | spared |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, parts in sets.items():
        whole = name.startswith("relevance")
        for noise in noises if whole else [noises[0] if name.startswith("made") else noises[-1]]:
            for promise in PROMISES if whole else (PROMISES[0], PROMISES[-1]):
                done = await runs_of(parts, noise, promise, runs, posts, seed)
                print(row(name, noise, promise, done), flush=True)
                held &= len(parts) > 1 or sum(run.promise_missed for run in done) <= promise.risk * runs
    return held


def main() -> int:
    """Measure real sets, then made-up ones that are made to break the promise."""
    parser = argparse.ArgumentParser(description="How often the cascade misses its promise of agreement.")
    parser.add_argument("--data", type=Path, help="folder of labelled queries; none: made-up posts alone")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--posts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = Random(given.seed)
    sets: dict[str, Parts] = {}
    if given.data is not None:
        sets |= {name: [posts] for name, posts in labelled_sets(given.data).items()}
    good = made(1000, 0.02, chance)
    sets |= {
        "made: guesses": [made(1000, 0.0, chance, useless=True)],
        "made: 6.4 % wrong, however sure": [made(1000, 0.064, chance)],
        "made: 12.6 % wrong, however sure": [made(1000, 0.126, chance)],
        "made: all relevant, 3 % wrong": [made(1000, 0.03, chance, relevant=1.0)],
        "made: none relevant, 3 % wrong": [made(1000, 0.03, chance, relevant=0.0)],
        "made: drift, 2 % wrong, then 40 %": [good, made(1000, 0.4, chance)],
    }
    return 0 if asyncio.run(measure(sets, (0.0, 0.05), given.runs, given.posts, given.seed)) else 1


if __name__ == "__main__":
    sys.exit(main())
