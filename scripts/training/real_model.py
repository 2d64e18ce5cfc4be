"""Measures a real model behind any OpenAI-compatible server: `real_model.py --base-url URL --model NAME`.

Gate, grades and support check on labelled items, a report and a chat over the sandbox's sources; one
table. It takes minutes on a server of one's own, costs what its tokens cost, and is no part of the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter

from api import bootstrap
from api.core.domain import Usage
from api.core.model_cost import usage_of_error
from api.errors import ModelError
from api.evaluation.candidates import labelled_corpus
from api.evaluation.evaluate import EvaluationOptions, JudgeCandidate, RememberedAnswers, evaluate, order_stability
from api.evaluation.labelled_items import LabelledQuery, read_claims, read_labelled
from api.evaluation.support_scores import evaluate_support
from api.models.dialects import ModelCallLimiter
from api.reports.local_support import SecondOpinion, doubts
from api.models.model_calls import OpenAIGrader, OpenAIJudge, OpenAISupport
from api.models.model_client import ModelClient
from api.sandbox.server import Sandbox, environment
from api.services.product import Ask, analyze
from api.settings import ModelSettings, Settings

TRIPLES = Path(__file__).parents[2] / "evaluation" / "support" / "triples.jsonl"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    step: str
    result: str
    tokens: int = 0
    seconds: float = 0.0


def main() -> None:
    """Print the table; each row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True, help="root of the server, /v1 included")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--labels", type=Path, help="labelled queries (default: two of the sample corpus)")
    parser.add_argument("--page", type=int, default=8, help="items in one call (default 8)")
    parser.add_argument("--pages", type=int, default=4, help="pages that are judged (default 4)")
    parser.add_argument("--seconds", type=float, default=300, help="deadline of every call (default 300)")
    parser.add_argument("--query", default="Ember mug", help="question of report and chat")
    parser.add_argument("--steps", default="gate,grades,support,report,chat", help="what is run")
    asyncio.run(measured(parser.parse_args()))


async def measured(options: argparse.Namespace) -> None:
    """Run the chosen steps, one after the other."""
    sandbox = Sandbox.start()
    os.environ.update(environment(sandbox.url))
    seconds = str(options.seconds)
    os.environ.update(
        {
            "LISTENPOST_MODE": "live",
            "OPENAI_BASE_URL": options.base_url,
            "OPENAI_API_KEY": os.environ.get("REAL_MODEL_KEY", "none"),
            "LISTENPOST_FILTER_MODEL": options.model,
            "LISTENPOST_AGENT_MODEL": options.model,
            "LISTENPOST_MODEL_CONCURRENCY": "1",
            "LANGFUSE_TRACING_ENABLED": "false",
        }
        | dict.fromkeys((f"LISTENPOST_{name}_TIMEOUT" for name in ("SCORING", "REWRITE", "REPORT", "CRAWL")), seconds)
        | {"LISTENPOST_CHAT_SECONDS": seconds}
    )
    settings = bootstrap.load_settings()
    print(f"{'step':<8} {'tokens':>7} {'s':>6}  result", flush=True)
    try:
        for step in options.steps.split(","):
            try:
                for row in await STEPS[step](options, settings):
                    print(f"{row.step:<8} {row.tokens:>7} {row.seconds:>6.0f}  {row.result}", flush=True)
            except ModelError as error:
                tokens = usage_of_error(error)
                print(f"{step:<8} {tokens.input_tokens + tokens.output_tokens:>7} {'':>6}  failed: {error}", flush=True)
    finally:
        sandbox.stop()


def labelled(options: argparse.Namespace) -> list[LabelledQuery]:
    """As many pages of labelled items as are wanted, each a query by itself."""
    queries = labelled_corpus()
    if options.labels:
        queries = read_labelled(options.labels.read_text("utf-8").split("\n"), str(options.labels))
    mixed = [query for query in queries if 0 < sum(item.relevant for item in query.items) < len(query.items)]
    pages = (LabelledQuery(q.query, q.source, q.items[: options.page], about=q.about) for q in mixed)
    return list(islice(pages, options.pages))


def asking(settings: Settings) -> tuple[ModelClient, ModelSettings]:
    """A client of the server."""
    return ModelClient(settings.models, ModelCallLimiter(1)), settings.models


async def gate(options: argparse.Namespace, settings: Settings) -> list[Row]:
    """Validity, MCC and stability of verdicts."""
    client, models = asking(settings)
    judge = OpenAIJudge(client, models.filter_model, models.scoring_timeout)
    candidate = RememberedAnswers(JudgeCandidate(judge, options.model))
    queries, conditions = labelled(options), EvaluationOptions(page=options.page, concurrency=1)
    began = perf_counter()
    result = (await evaluate(candidate, queries, conditions)).overall
    middle = perf_counter()
    orders = await order_stability(candidate, queries, conditions)
    shuffled, other = (orders[key]["stay"] for key in ("shuffled", "other_yield"))
    await client.aclose()
    pattern = f", pattern {orders['pattern']}" if orders["pattern"] else ""
    return [
        Row(
            "gate",
            f"{result['n']} of {result['n'] + result['degraded']} verdicts valid, MCC {result['mcc']}, "
            f"kept {result['kept']}, relevant {result['relevant']}",
            result["tokens"],
            middle - began,
        ),
        Row("orders", f"shuffled {shuffled} stay, other yield {other} stay{pattern}", 0, perf_counter() - middle),
    ]


async def grades(options: argparse.Namespace, settings: Settings) -> list[Row]:
    """Validity of grades, and what a grade of 3 or more says of relevance."""
    client, models = asking(settings)
    grader = OpenAIGrader(client, models.filter_model, models.scoring_timeout)
    began, queries = perf_counter(), labelled(options)[:1]
    graded = await grader.grade(queries[0].question(about=True), queries[0].shown())
    await client.aclose()
    valid = sum(not grade.defaulted for grade in graded.grades)
    scores = " ".join(str(grade.score) for grade in graded.grades)
    return [
        Row(
            "grades",
            f"{valid} of {len(graded.grades)} valid, scores {scores}",
            total(graded.usage),
            perf_counter() - began,
        )
    ]


async def support(options: argparse.Namespace, settings: Settings) -> list[Row]:
    """The model's support check on labelled pairs, and on made-up ones that no passage carries."""
    client, models = asking(settings)
    claims = read_claims(TRIPLES.read_text("utf-8").split("\n"), str(TRIPLES))
    some = [claim for claim in claims if claim.supported][:6] + [claim for claim in claims if not claim.supported][:6]
    checker = OpenAISupport(client, options.model, models.scoring_timeout)
    began = perf_counter()
    result = await evaluate_support(SecondOpinion(checker), some)
    await client.aclose()
    doubted = sum(doubts(claim.claim, claim.question) for claim in some)
    answered = f"{len(some) - result.unanswered} of {len(some)} answered"
    words = f"{answered}, recall {result.recall}, unsupported let by {result.let_by}"
    return [Row("support", f"{words}, locally doubted {doubted}", 0, perf_counter() - began)]


async def report(options: argparse.Namespace, settings: Settings) -> list[Row]:
    """A report over the sandbox: by whom, what stands, and what is unverified."""
    product, began = bootstrap.build(settings), perf_counter()
    made = await analyze(product, Ask(options.query, "quick", ("reddit", "hackernews")))
    await product.aclose()
    kinds = ", ".join(f"{finding.text[:60]} ({finding.support})" for finding in made.findings[:3])
    unsure = sum(finding.support == "unverified" for finding in made.findings)
    words = f"{made.decision}, {len(made.findings)} findings, {unsure} unverified: {kinds}"
    notes = [Row("", f"note: {note}") for note in made.quality_notes]
    return [Row("report", words, made.cost.tokens, perf_counter() - began), *notes]


async def chat(options: argparse.Namespace, settings: Settings) -> list[Row]:
    """One turn of a chat over the sandbox."""
    product, began = bootstrap.build(settings), perf_counter()
    conversation = bootstrap.chat(settings, product)
    turn = await conversation.answer(conversation.begin(), f"What about the {options.query}?")
    await product.aclose()
    words = f"{turn.outcome}, {len(turn.citations)} citations: {json.dumps(turn.text[:80])}; {'; '.join(turn.notes)}"
    return [Row("chat", words, total(turn.usage), perf_counter() - began)]


def total(usage: Usage) -> int:
    """Tokens in and out."""
    return usage.input_tokens + usage.output_tokens


STEPS = {"gate": gate, "grades": grades, "support": support, "report": report, "chat": chat}

if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
