"""One question by four programs over the sandbox: `python scripts/bench/peer_pipelines.py [--runs N]`.

Two loops are written after public descriptions of tools of their kind, in our words and on the client libraries that
the simple pipeline uses too; the third is that pipeline, the fourth is Listenpost. Each asks the same three places
and a model with the latencies of `analysis_ratios.py`. Prints requests, tokens, seconds, and how many of the kept
posts are about something else by the labels of the sample data. Takes a minute.

- One prompt (https://github.com/prateekjain6342/stokbot, `docs/llm-analysis.md`): a search, the first 20 posts of
  500 characters and 50 comments of 300 in one prompt; no post is judged.
- A call for each post (https://n8n.io/workflows/1895): a search, a call that says whether the first 500 characters of
  a post are about the product, and one that sums up each post that is; calls of a kind at once. Its limits of
  votes and days are left out, since posts of the sample data have other dates.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from openai import AsyncOpenAI

from analysis_ratios import LATENCY, sandbox
from api.sandbox import corpus
from api.services import product as listening
from api.services.product import Ask
from baseline_pipeline import Naive, filtered
from client_calls import sent
from place_posts import PLACES, PlaceClients, PlacePost
from processor_time import product_of, spellings

PER_PLACE = 10
"""Posts of one search of a peer: as many as the plain pattern and Listenpost read at most."""
POSTS, COMMENTS, CHARACTERS, COMMENT_CHARACTERS = 20, 50, 500, 300
LONG_ANSWER, SHORT_ANSWER = 1_500, 500
"""Milliseconds of an answer over all posts, and over one."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a program made of one question."""

    kept: Sequence[str]
    """Keys of the posts on which its answer rests."""
    tokens: int
    """Read and written by the model."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What that took."""

    answered: Answered
    place_calls: int
    model_calls: int
    seconds: float
    milliseconds: float
    """Of processor time."""


async def one_prompt(env: Mapping[str, str], query: str) -> Answered:
    """A search of each place, and everything in one prompt."""
    posts = (await searched(env, query, comments=True))[:POSTS]
    comments = islice(chain.from_iterable(post.comments for post in posts), COMMENTS)
    lines = [f"Analyze the following discussions about {query}.", "Posts:"]
    lines += [f"### {post.title}\n{post.body[:CHARACTERS]}" for post in posts]
    lines += ["Comments:", *(f"- {text[:COMMENT_CHARACTERS]}" for text in comments)]
    lines += ["Name the questions, keywords and pain points with their solutions, ten of each, as JSON."]
    async with model(env) as client:
        tokens = await completed(client, "You find insights in discussions. Answer with valid JSON.", "\n".join(lines))
    return Answered([post.key for post in posts], tokens)


async def call_per_post(env: Mapping[str, str], query: str) -> Answered:
    """A search of each place, a verdict for each post, a summary of each that is kept."""
    posts = await searched(env, query, comments=False)
    async with model(env) as client:
        texts = [f"{post.title} {post.body}"[:CHARACTERS] for post in posts]
        judged = await asyncio.gather(*(filtered(client, query, [text]) for text in texts))
        kept = [at for at, (relevant, _) in enumerate(judged) if relevant == [True]]
        words = f"Sum up in one sentence what this post says about {query}."
        summaries = await asyncio.gather(*(completed(client, words, texts[at]) for at in kept))
    return Answered([posts[at].key for at in kept], sum(tokens for _, tokens in judged) + sum(summaries))


async def plain_pattern(env: Mapping[str, str], query: str) -> Answered:
    """See `baseline_pipeline.py`; it filters, and writes nothing."""
    spent = (await Naive(env).run(query)).values()
    return Answered(list(chain.from_iterable(each.kept for each in spent)), sum(each.tokens for each in spent))


async def listenpost(_: Mapping[str, str], query: str) -> Answered:
    """A quick question, with grades, a report and its checks, by a product that is built for it."""
    async with product_of(traced=False) as product:
        report = await listening.analyze(product, Ask(query, "quick", sources=PLACES))
    return Answered([item.key for item in report.items], report.cost.tokens)


async def searched(env: Mapping[str, str], query: str, *, comments: bool) -> list[PlacePost]:
    """The first posts of the places, in turn."""
    clients = PlaceClients(env)
    search = partial(clients.search, query=query, limit=PER_PLACE, comments=comments)
    found = await asyncio.gather(*(asyncio.to_thread(search, place) for place in PLACES))
    return [posts[at] for at in range(PER_PLACE) for posts in found if at < len(posts)]


def model(env: Mapping[str, str]) -> AsyncOpenAI:
    """A client of the model."""
    return AsyncOpenAI(api_key=env["OPENAI_API_KEY"], base_url=env["OPENAI_BASE_URL"])


async def completed(client: AsyncOpenAI, system: str, user: str) -> int:
    """Have the model answer; the tokens that it read and wrote."""
    answer = await client.chat.completions.create(
        model="gpt-4o-mini",
        temperature=0,
        max_tokens=2_000,
        messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
    )
    return answer.usage.total_tokens if answer.usage else 0


Program = Callable[[Mapping[str, str], str], Awaitable[Answered]]
PROGRAMS: Sequence[tuple[str, Program, int]] = (
    ("one prompt over everything", one_prompt, LONG_ANSWER),
    ("a call for each post", call_per_post, SHORT_ANSWER),
    ("the plain pattern", plain_pattern, SHORT_ANSWER),
    ("Listenpost", listenpost, SHORT_ANSWER),
)
"""Name, loop, and milliseconds of its calls that have no schema."""


async def measured(program: Program, query: str, runs: int) -> list[Measured]:
    """Each run after a first one, which loads libraries; no question in the same spelling twice."""
    url, results = os.environ["REDDIT_URL"], list[Measured]()
    for _, question in zip(range(runs + 1), spellings(query), strict=False):
        since = sent(url)[-1:]
        began, worked = time.perf_counter(), time.process_time()
        answered = await program(os.environ, question)
        took, spent = time.perf_counter() - began, time.process_time() - worked
        log = sent(url, since=since[0]["number"] if since else 0)
        of_model = sum(entry["upstream"] == "openai" for entry in log)
        of_places = sum(entry["upstream"] in PLACES for entry in log)
        results.append(Measured(answered, of_places, of_model, took, spent * 1000))
    return results[1:]


def row(name: str, results: Sequence[Measured], own: frozenset[str]) -> str:
    """The medians of the runs; `own` are the keys of all posts that are about the product."""
    last = results[-1].answered
    on_product = len(own.intersection(last.kept))
    cells = (
        name,
        f"{statistics.median(result.place_calls for result in results):.0f}",
        f"{statistics.median(result.model_calls for result in results):.0f}",
        f"{statistics.median(result.answered.tokens for result in results):,.0f}",
        f"{statistics.median(result.seconds for result in results):.1f}",
        f"{statistics.median(result.milliseconds for result in results):,.0f}",
        on_product,
        len(last.kept) - on_product,
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Print a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    os.environ["LISTENPOST_MODE"] = "live"
    own = frozenset(key for key, label in corpus.labels("plaud").items() if label["relevant"])
    heads = "program", "requests to places", "calls of a model", "tokens", "s", "ms of processor time"
    print(f"| {' | '.join(heads)} | kept, on the product | kept, on something else |\n{'| --- ' * 8}|")
    for name, program, milliseconds in PROGRAMS:
        with sandbox({**LATENCY, "openai.chat": milliseconds}) as served:
            os.environ.update(served.variables)
            print(row(name, asyncio.run(measured(program, "plaud.ai", chosen.runs)), own), flush=True)


if __name__ == "__main__":
    main()
