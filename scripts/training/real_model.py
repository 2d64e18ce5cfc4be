"""Measures a real model behind any OpenAI-compatible server: `real_model.py --base-url URL --model NAME`.

Gate, grades and support check on labelled items, a report and a chat over the sandbox's sources; one
table, in `--minutes` at most: what was not asked for want of time is said. It costs what its tokens cost,
and is no part of the tests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from api import bootstrap
from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import usage_of_error
from api.core.ports import Claim, Judgement, Support
from api.errors import ModelError
from api.evaluation.judge_candidates import labelled_corpus
from api.evaluation.judge_evaluation import (
    EvaluationOptions,
    JudgeCandidate,
    RememberedAnswers,
    evaluate,
    order_stability,
)
from api.evaluation.labelled_items import LabelledQuery, read_claims, read_labelled
from api.evaluation.support_scores import evaluate_support
from api.models.dialects import ModelCallLimiter
from api.models.model_calls import OpenAIGrader, OpenAIJudge, OpenAISupport
from api.models.model_client import ModelClient
from api.reports.local_support import SecondOpinion, carries, doubts
from api.sandbox.server import Sandbox, environment
from api.services.product import Ask, analyze
from api.settings import ModelSettings, Settings

A = TypeVar("A", Judgement, Support)
TRIPLES = Path(__file__).parents[2] / "evaluation" / "support" / "triples.jsonl"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    step: str
    result: str
    tokens: int = 0
    seconds: float = 0.0


@dataclass
class Counted:
    """Asks a judge or a support check until a point in time of the loop's clock, and counts; implements both."""

    inner: Any
    until: float
    tokens: int = 0
    pages: list[str] = field(default_factory=list)
    """The verdicts on each page, as T and F."""
    unasked: int = 0
    """Calls that were not made, or not answered, by then."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.inner.name)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        judged: Judgement = await self._within(partial(self.inner.judge, question, items, source))
        self.pages.append(signs(verdict.relevant for verdict in judged.verdicts))
        return judged

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """See `SupportChecker.check`."""
        checked: Support = await self._within(partial(self.inner.check, question, claims))
        return checked

    async def _within(self, ask: Callable[[], Awaitable[A]]) -> A:
        try:
            if asyncio.get_running_loop().time() >= self.until:
                raise TimeoutError
            async with asyncio.timeout_at(self.until):
                answer = await ask()
        except TimeoutError:
            self.unasked += 1
            raise ModelError("timeout", "the time for this step was up") from None
        except ModelError as error:
            self.tokens += total(usage_of_error(error))
            raise
        self.tokens += total(answer.usage)
        return answer

    @property
    def words(self) -> str:
        """What was not asked, for a row of the table."""
        return f", {self.unasked} calls not asked or not answered in time" if self.unasked else ""


def main() -> None:
    """Print the table; each row as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True, help="root of the server, /v1 included")
    parser.add_argument("--model", required=True, help="name of the model")
    parser.add_argument("--labels", type=Path, help="labelled queries (default: two of the sample corpus)")
    parser.add_argument("--page", type=int, default=8, help="items in one call (default 8)")
    parser.add_argument("--pages", type=int, default=4, help="pages that are judged (default 4)")
    parser.add_argument("--seconds", type=float, default=300, help="longest time of one call (default 300)")
    parser.add_argument("--minutes", type=float, default=25, help="longest time of all (default 25)")
    parser.add_argument("--query", default="Ember mug", help="question of report and chat")
    parser.add_argument("--steps", default=",".join(SHARES), help=f"what is run (default {','.join(SHARES)})")
    asyncio.run(measured(parser.parse_args()))


async def measured(options: argparse.Namespace) -> None:
    """Run the chosen steps, one after the other, each within its share of the time that is left."""
    sandbox, clock = Sandbox.start(), asyncio.get_running_loop().time
    ends, steps = clock() + 60 * options.minutes, options.steps.split(",")
    print(f"{'step':<8} {'tokens':>7} {'s':>6}  result", flush=True)
    try:
        for number, step in enumerate(steps):
            began, share = clock(), SHARES[step] / sum(SHARES[name] for name in steps[number:])
            until = began + share * (ends - began)
            settings = settings_for(options, sandbox.url, step, until - began)
            try:
                async with asyncio.timeout_at(until + _GRACE):
                    for row in await STEPS[step](options, settings, until):
                        figures = f"{row.tokens:>7} {row.seconds:>6.0f}" if row.step else " " * 14
                        print(f"{row.step:<8} {figures}  {row.result}", flush=True)
            except (ModelError, TimeoutError) as error:
                tokens = total(usage_of_error(error))
                why = f"failed: {error}" if isinstance(error, ModelError) else "not finished in its time"
                print(f"{step:<8} {tokens:>7} {clock() - began:>6.0f}  {why}", flush=True)
    finally:
        sandbox.stop()


def settings_for(options: argparse.Namespace, sources: str, step: str, seconds: float) -> Settings:
    """The product over the sandbox's sources and the server, with deadlines for a step of so many seconds."""
    os.environ.update(environment(sources))
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
    )
    whole = {} if step in {"report", "chat"} else {"LISTENPOST_SCORING_TIMEOUT": 1.0}
    for name, part in (DEADLINES | whole).items():
        os.environ[name] = f"{max(1.0, min(options.seconds, part * seconds)):.1f}"
    return bootstrap.load_settings()


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


async def gate(options: argparse.Namespace, settings: Settings, until: float) -> list[Row]:
    """Validity, MCC and stability of verdicts."""
    client, models = asking(settings)
    judge = Counted(OpenAIJudge(client, models.filter_model, models.scoring_timeout), until)
    candidate = RememberedAnswers(JudgeCandidate(judge, options.model))
    queries, conditions = labelled(options), EvaluationOptions(page=options.page, concurrency=1)
    began = perf_counter()
    # the two other orders of each page take twice as long, but verdicts on half of the pages say less
    judge.until -= (until - asyncio.get_running_loop().time()) / 2
    result = (await evaluate(candidate, queries, conditions)).overall
    middle, cut, tokens, given = perf_counter(), judge.words, judge.tokens, " ".join(judge.pages)
    right = " ".join(signs(item.relevant for item in query.items) for query in queries[: len(judge.pages)])
    judge.until, judge.unasked = until, 0
    orders = await order_stability(candidate, queries, conditions)
    shuffled, other = (orders[key]["stay"] for key in ("shuffled", "other_yield"))
    await client.aclose()
    pattern = f", pattern {orders['pattern']}" if orders["pattern"] else ""
    return [
        Row(
            "gate",
            f"{result['n']} of {result['n'] + result['degraded']} verdicts valid, MCC {result['mcc']}, "
            f"kept {result['kept']}, relevant {result['relevant']}{cut}",
            tokens,
            middle - began,
        ),
        Row("", f"answered {given}, right were {right}"),
        Row(
            "orders",
            f"shuffled {shuffled} stay, other yield {other} stay{pattern}{judge.words}",
            judge.tokens - tokens,
            perf_counter() - middle,
        ),
    ]


async def grades(options: argparse.Namespace, settings: Settings, until: float) -> list[Row]:
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


async def support(options: argparse.Namespace, settings: Settings, until: float) -> list[Row]:
    """The model's support check on six sound pairs, and on their sentences with passages about other things."""
    client, models = asking(settings)
    claims = read_claims(TRIPLES.read_text("utf-8").split("\n"), str(TRIPLES))
    sound = [labelled for labelled in claims if labelled.supported]
    sound = sound[:: len(sound) // 6][:6]
    passages = [labelled.claim.passage for labelled in (*sound[3:], *sound[:3])]
    made_up = [
        replace(labelled, claim=replace(labelled.claim, passage=passage, context=""), supported=False)
        for labelled, passage in zip(sound, passages, strict=True)
    ]
    some = [*sound, *made_up]
    checker = Counted(OpenAISupport(client, options.model, models.scoring_timeout), until)
    began = perf_counter()
    result = await evaluate_support(SecondOpinion(checker), some)
    await client.aclose()
    doubted = sum(doubts(labelled.claim, labelled.question) for labelled in made_up)
    answered = f"{len(some) - result.unanswered} of {len(some)} answered"
    words = f"{answered}, recall {rounded(result.recall)}, share of the others let by {rounded(result.let_by)}"
    words += f", of these the local check doubts {doubted} of {len(made_up)}{checker.words}"
    return [Row("support", words, checker.tokens, perf_counter() - began)]


async def report(options: argparse.Namespace, settings: Settings, until: float) -> list[Row]:
    """A report over the sandbox: by whom, what stands, and what is unverified."""
    product, began = bootstrap.build(settings), perf_counter()
    made = await analyze(product, Ask(options.query, "quick", ("reddit", "hackernews")))
    await product.aclose()
    checked = [finding for finding in made.findings if finding.support == "checked"]
    unsure = sum(finding.support == "unverified" for finding in made.findings)
    question = Question(options.query)
    refused = sum(
        not any(carries(Claim(finding.text, passage.passage, ""), question) for passage in finding.evidence)
        for finding in checked
    )
    words = f"{made.decision}, {len(made.findings)} findings: {len(checked)} checked, {unsure} unverified"
    words += f"; of the checked ones the local check would refuse {refused}: read them"
    rows = [Row("report", words, made.cost.tokens, perf_counter() - began)]
    rows += [Row("", f"summary: {made.summary}")] if made.summary else []
    for finding in made.findings:
        passages = " / ".join(passage.passage for passage in finding.evidence[:2])
        rows.append(Row("", f"{finding.support} {finding.kind}: {finding.text} | {passages}"))
    return [*rows, *(Row("", f"note: {note}") for note in made.quality_notes)]


async def chat(options: argparse.Namespace, settings: Settings, until: float) -> list[Row]:
    """One turn of a chat over the sandbox."""
    product, began = bootstrap.build(settings), perf_counter()
    conversation = bootstrap.chat(settings, product)
    turn = await conversation.answer(conversation.begin(), f"What about the {options.query}?")
    await product.aclose()
    words = f"{turn.outcome}, {len(turn.citations)} citations: {json.dumps(turn.text[:80])}; {'; '.join(turn.notes)}"
    return [Row("chat", words, total(turn.usage), perf_counter() - began)]


def signs(flags: Iterable[bool]) -> str:
    """Verdicts as T and F."""
    return "".join("FT"[flag] for flag in flags)


def rounded(share: float | None) -> float | None:
    """To two places."""
    return None if share is None else round(share, 2)


def total(usage: Usage) -> int:
    """Tokens in and out."""
    return usage.input_tokens + usage.output_tokens


STEPS = {"gate": gate, "grades": grades, "support": support, "report": report, "chat": chat}
SHARES = {"gate": 8, "grades": 2, "support": 4, "report": 8, "chat": 3}
"""Shares of the time, by step."""
DEADLINES = {
    "LISTENPOST_SCORING_TIMEOUT": 0.25, "LISTENPOST_REWRITE_TIMEOUT": 0.1, "LISTENPOST_CRAWL_TIMEOUT": 0.35,
    "LISTENPOST_REPORT_TIMEOUT": 0.35, "LISTENPOST_CHAT_SECONDS": 1.0,
}  # fmt: skip
"""Shares of the time of a report or a chat, by setting: crawl, grades and writing follow each other."""
# Seconds after which a step that did not end by itself is stopped.
_GRACE = 15

if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
