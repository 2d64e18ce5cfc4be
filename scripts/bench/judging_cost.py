"""What a model costs that judges 1,000 posts: `python scripts/bench/judging_cost.py`.

Tokens are those of the sandbox's model, which counts one for four characters of prompt, schema and answer. USD are list
prices of `genai_prices`. With the cascade the model judges fewer posts of each page, by the shares that
`agreement_promise.py` measured on labelled posts (docs/relevance-scoring.md). Takes half a minute.
"""

from __future__ import annotations

import asyncio
import os
from itertools import cycle, islice

from analysis_ratios import LATENCY, sandbox
from api import bootstrap
from api.core.domain import Question, Usage
from api.core.items import Item
from api.models.answer_parsing import Tokens
from api.models.model_client import price_of
from api.sandbox import corpus
from processor_time import product_of

POSTS = 1_000
MODELS = ("gpt-4.1-nano", "gpt-4o-mini", "gpt-4.1-mini")
SPARED = {"promise of 0.95": 0.16, "promise of 0.9": 0.36}
"""Share of the first 1,000 posts of a question and place that the model does not judge; real set, 5 % noise."""
PAGES = (5, 20, 50)
"""Posts of one call: of a quick question, of a stream, at most."""
CASCADED = 20


async def judged(page: int, posts: int) -> Usage:
    """The tokens of judging so many posts of the sample world, in calls of a page."""
    rows = [post for post in corpus.load() if not post.deleted]
    items = [
        Item(key=f"x:{number}", id=str(number), source=post.source, title=post.title, body=post.body)
        for number, post in enumerate(islice(cycle(rows), posts))
    ]
    usage = Usage()
    async with product_of(traced=False, patient=True) as product:
        for start in range(0, posts, page):
            gated = await product.gate.judge(Question("plaud.ai"), items[start : start + page], "reddit")
            usage += gated.usage
    return usage


def judging_row(name: str, usage: Usage) -> str:
    """Tokens, and USD by model."""
    spent = Tokens.model_validate({"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens})
    models = bootstrap.load_settings().models
    prices = [price_of(models, spent, model) for model in MODELS]
    cells = [f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", *(f"{usd or 0:.3f}" for usd in prices)]
    return f"| {name} | {' | '.join(cells)} |"


async def judging() -> None:
    """Print a row for each way to judge 1,000 posts."""
    print("| 1,000 posts | tokens read | written |" + "".join(f" {model}, USD |" for model in MODELS))
    print("| --- " * (3 + len(MODELS)) + "|")
    for page in PAGES:
        print(judging_row(f"{page} a call", await judged(page, POSTS)), flush=True)
    for promise, spared in SPARED.items():
        of_model = round(POSTS * (1 - spared))
        name = f"{CASCADED} a page, cascade with a {promise}"
        print(judging_row(name, await judged(round(CASCADED * (1 - spared)), of_model)), flush=True)


def main() -> None:
    """Judge in a sandbox, and print the table."""
    os.environ["LISTENPOST_MODE"] = "live"
    with sandbox(dict.fromkeys(LATENCY, 0)) as served:
        os.environ.update(served.variables)
        asyncio.run(judging())


if __name__ == "__main__":
    main()
