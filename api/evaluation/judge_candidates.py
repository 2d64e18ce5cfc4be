"""Judges, graders and support checks by name, the simple baselines among them, and the corpus.

A baseline keeps a text whose score reaches a threshold; it does not see what the query is about.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from math import log
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

import regex
from pydantic import SecretStr

from api.bootstrap import langfuse_prompts
from api.choices import JudgeName
from api.core.domain import Question, Verdict
from api.core.items import Item
from api.core.ports import Grader, Judge, Judgement, SupportChecker
from api.core.prompts import PackagedPrompts, Prompts
from api.core.text import Fence, clean, cut, fold
from api.core.words import split_words
from api.errors import ConfigurationError, UsageError
from api.evaluation.judge_evaluation import Candidate, GraderCandidate, JudgeCandidate
from api.evaluation.labelled_items import LabelledItem, LabelledQuery, labelled_item
from api.models.answer_parsing import STAND_IN
from api.models.local.judge import LocalJudge
from api.models.local.word_vectors import Vectors, vectors
from api.pipeline.gate.excerpt import PASSAGE_LENGTH
from api.pipeline.gate.name_matches import best, name_of, sightings
from api.reports.local_support import LocalSupport
from api.settings import ModelSettings, Settings

if TYPE_CHECKING:
    from api.langfuse.tracing import Tracing


NAMES, BM25, COSINE, HYBRID = 0.8, 0.09, 0.25, 0.27
"""Thresholds with the best MCC on the development data."""
VECTOR_WEIGHT = 0.65
# BM25's usual k1 and b
_SATURATION, _LENGTH = 1.2, 0.75
_BOUNDLESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]"
# a word, or one character of a script without blanks: `ember`, `mug2`; `小`, `米`
_WORD = regex.compile(rf"{_BOUNDLESS}|(?:(?!{_BOUNDLESS})[\p{{L}}\p{{N}}])+")
Scores = Callable[[str, Sequence[str]], Sequence[float]]
"""Scores of the texts of one page for a query, in order."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Keeps every text whose score reaches a threshold; implements `Judge`."""

    name: str
    scores: Scores
    threshold: float

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`; free. Raises `ConfigurationError` if word vectors are missing."""
        texts = [f"{clean(item.title)}\n{cut(clean(item.body), PASSAGE_LENGTH)}" for item in items]
        scores = self.scores(clean(question.text), texts) if texts else ()
        return Judgement(tuple(Verdict(score >= self.threshold, self.name) for score in scores), self.name)


def share_of_words(query: str, texts: Sequence[str]) -> list[float]:
    """Share of the query's words that each text holds."""
    wanted = set(_words(query))
    return [len(wanted & set(_words(text))) / (len(wanted) or 1) for text in texts]


def name_strength(query: str, texts: Sequence[str]) -> list[float]:
    """Strength of the best match of the name in each text, in any spelling."""
    name = name_of(query)
    return [best(sightings(name, split_words(text), text)).strength for text in texts]


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """BM25 divided by the highest possible score; word weights are computed from the page."""
    wanted = set(_words(query))
    counts = [Counter(_words(text)) for text in texts]
    mean = sum(count.total() for count in counts) / (len(counts) or 1) or 1.0
    held = {word: sum(word in count for count in counts) for word in wanted}
    rarity = {word: log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for word, n in held.items()}
    most = sum(rarity.values()) * (_SATURATION + 1) or 1.0
    scores = []
    for count in counts:
        brake = _SATURATION * (1 - _LENGTH + _LENGTH * count.total() / mean)
        score = sum(weight * count[word] * (_SATURATION + 1) / (count[word] + brake) for word, weight in rarity.items())
        scores.append(score / most)
    return scores


def cosine(query: str, texts: Sequence[str], load: Callable[[], Vectors | None] = vectors) -> list[float]:
    """Cosine of the word vectors of query and text; raises `ConfigurationError` without vectors."""
    known = load()
    if known is None:
        raise ConfigurationError("word vectors are missing here; install `wordllama`")
    wanted = known.unit(query)
    return [float(row @ wanted) for row in known.units(texts)]


def hybrid(query: str, texts: Sequence[str]) -> list[float]:
    """Cosine and BM25, each scaled from 0 to 1 over the page, so the best text always has 1."""
    near, same = _stretched(cosine(query, texts)), _stretched(bm25(query, texts))
    return [VECTOR_WEIGHT * a + (1 - VECTOR_WEIGHT) * b for a, b in zip(near, same, strict=True)]


BASELINES: Mapping[str, Baseline] = {
    judge.name: judge
    for judge in (
        Baseline("keep_all", lambda query, texts: [1.0] * len(texts), 0.0),
        Baseline("keyword", share_of_words, 1.0),
        Baseline("names", name_strength, NAMES),
        Baseline("bm25", bm25, BM25),
        Baseline("cosine", cosine, COSINE),
        Baseline("hybrid", hybrid, HYBRID),
    )
}


def _words(text: str) -> list[str]:
    return [match[0] for match in _WORD.finditer(fold(text))]


def _stretched(scores: Sequence[float]) -> list[float]:
    low, high = min(scores), max(scores)
    return [(score - low) / (high - low) if high > low else 0.0 for score in scores]


JUDGES: tuple[JudgeName, ...] = get_args(JudgeName)
PAID = frozenset({"openai", "grader"})  # those that ask a model server; their answers are cached


def sampled(settings: Settings, name: str) -> bool:
    """Whether the sandbox's model answers instead of a paid one."""
    return name in PAID and settings.general.mode == "sandbox"


@asynccontextmanager
async def candidate(
    settings: Settings, name: str, model: str | None = None, tracing: Tracing | None = None
) -> AsyncIterator[Candidate]:
    """The judge or grader of this name, traced where `tracing` is given.

    `openai` and `grader` ask `model` (default: the filter model) at the configured server, or the
    sandbox (see `sampled`). Raises `UsageError` for a model too many or a missing key.
    """
    if name not in PAID:
        if model is not None:
            raise UsageError(f"`--model` goes with `openai` or `grader`; `{name}` asks no model")
        judge: Judge = LocalJudge() if name == "local" else BASELINES[name]
        yield JudgeCandidate(tracing.judge(judge, scored=False) if tracing else judge, judge.name)
        return
    async with _model_step(settings, name, model, tracing) as (options, shown):
        from api.models.model_calls import OpenAIGrader, OpenAIJudge

        async with options["prompts"].using("relevance" if name == "openai" else "grades") as prompt:
            template = prompt.filled(rule=Fence("").rule)
        if name == "openai":
            judge = OpenAIJudge(**options)
            judge = tracing.judge(judge, scored=False) if tracing else judge
            yield JudgeCandidate(judge, shown, template)
        else:
            grader: Grader = OpenAIGrader(**options)
            grader = tracing.grader(grader) if tracing else grader
            yield GraderCandidate(grader, f"grades:{shown}", template)


@asynccontextmanager
async def support_checker(
    settings: Settings, name: str, model: str | None = None, tracing: Tracing | None = None
) -> AsyncIterator[SupportChecker]:
    """The support check `local` or `openai`, perhaps traced; raises `UsageError`."""
    if name == "local":
        local = LocalSupport()
        yield tracing.checker(local) if tracing else local
    elif name == "openai":
        async with _model_step(settings, name, model, tracing) as (options, _):
            from api.models.model_calls import OpenAISupport

            checker = OpenAISupport(**options)
            yield tracing.checker(checker) if tracing else checker
    else:
        raise UsageError(f"`{name}` checks no support; there are `local` and `openai`")


@asynccontextmanager
async def _model_step(
    settings: Settings, name: str, model: str | None, tracing: Tracing | None
) -> AsyncIterator[tuple[dict[str, Any], str]]:
    """The arguments of a `ModelStep`, and the model's name with its host unless that is OpenAI."""
    from api.models.model_client import ModelClient

    models, host = settings.models, ""
    prompts: Prompts = PackagedPrompts()
    async with AsyncExitStack() as stack:
        if sampled(settings, name):
            from api.sandbox.server import Sandbox

            url = stack.enter_context(Sandbox.start()).url
            update = {"openai_api_key": SecretStr("sandbox"), "openai_base_url": f"{url}/v1"}
            model, models = STAND_IN, models.model_copy(update=update)
        elif models.openai_api_key is None:
            raise UsageError(f"`{name}` asks a model; set `OPENAI_API_KEY`")
        elif models.openai_base_url != ModelSettings.model_fields["openai_base_url"].default:
            # a model of that name may be another one there
            host = urlsplit(models.openai_base_url).netloc.rpartition("@")[2]
        if settings.tracing.prompts == "langfuse" and not sampled(settings, name):
            prompts = stored = langfuse_prompts(settings.tracing, tracing)
            stack.push_async_callback(stored.aclose)
        client, model = ModelClient(models), model or models.filter_model
        stack.push_async_callback(client.aclose)
        options = {"client": client, "model": model, "seconds": models.scoring_timeout}
        yield options | {"prompts": prompts}, model + (f"@{host}" if host else "")


def labelled_corpus() -> list[LabelledQuery]:
    """The sample corpus: a query per product (its family) and source; on Amazon only titles."""
    from api.sandbox import corpus

    data = resources.files("api.sandbox") / "data" / "products.json"
    queries = []
    for product in json.loads(data.read_text("utf-8")):
        slug, query = product["slug"], product["query"]
        labels = corpus.labels(slug)
        items: dict[str, list[LabelledItem]] = defaultdict(list)
        for post in corpus.load(slug):
            if (label := labels.get(post.key)) is not None:
                body = "" if post.source == "amazon" else post.body
                item = labelled_item(query, post.title, body, label["relevant"], kind=label["kind"])
                items[post.source].append(item)
        queries += [
            LabelledQuery(query, source, tuple(labelled), slug, product["about"]) for source, labelled in items.items()
        ]
    return queries
