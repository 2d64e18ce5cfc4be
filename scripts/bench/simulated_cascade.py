"""Runs of the cascade over labelled posts in random order, to see how often a promise of agreement is missed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from api.core.domain import Question, Verdict
from api.core.items import Item
from api.core.ports import SampledPost
from api.evaluation.labelled_items import LabelledQuery
from api.models.local.judge import LocalJudge
from api.pipeline.gate.cascade import Cascade, Promise, sureness_of

BATCH = 20
"""Posts that are judged at once."""
_PAGE = 25
_QUESTION = Question("simulated")


@dataclass(frozen=True, slots=True)
class JudgedPost:
    """What both judges say of one post."""

    local: Verdict
    relevant: bool
    """The model's verdict."""

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.local.relevant == self.relevant


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What became of one run."""

    promise_missed: bool
    """Local verdicts stood, at some time, down to a sureness at which more posts disagree than is tolerated."""
    agreement: float
    """Share of all verdicts that are the model's or the same."""
    spared: float
    """Share of the posts that the model did not judge."""


@dataclass(slots=True)
class KeptSamples:
    """A `SampleMemory` without a database."""

    posts: dict[str, dict[str, SampledPost]] = field(default_factory=dict)
    """By question and digest, oldest first."""

    async def agreement_sample(self, tenant: str, question: str, most: int) -> Sequence[SampledPost]:
        """See `SampleMemory`."""
        return list(reversed(self.posts.get(question, {}).values()))[:most]

    async def keep_agreement_sample(self, tenant: str, question: str, posts: Sequence[SampledPost], most: int) -> int:
        """See `SampleMemory`."""
        known = self.posts.setdefault(question, {})
        for post in posts:
            known.setdefault(post.digest, post)
        for digest in list(known)[:-most]:
            del known[digest]
        return len(known)


def judged_posts(queries: Sequence[LabelledQuery]) -> list[JudgedPost]:
    """The posts of labelled queries, judged in pages as they came; the labels stand for a model's verdicts."""
    judge, posts = LocalJudge(), list[JudgedPost]()
    for query in queries:
        shown = query.shown()
        for start in range(0, len(shown), _PAGE):
            verdicts = judge.verdicts(query.question(), shown[start : start + _PAGE], query.source)
            labels = [item.relevant for item in query.items[start : start + _PAGE]]
            posts += map(JudgedPost, verdicts, labels)
    return posts


def noisy(posts: Sequence[JudgedPost], noise: float, chance: Random) -> list[JudgedPost]:
    """The posts by a model that gives so large a share of its verdicts at random the other way."""
    return [JudgedPost(post.local, post.relevant != (chance.random() < noise)) for post in posts]


async def simulated_run(
    parts: Sequence[Sequence[JudgedPost]], promise: Promise, length: int, chance: Random
) -> SimulatedRun:
    """One run over `length` posts, drawn with replacement from the first part, then from the next, in equal shares."""
    cascade = Cascade(promise, KeptSamples(), "", "")
    agreeing = local = 0
    missed = False
    opposed = [sorted(sureness_of(post.local) for post in part if not post.agrees) for part in parts]
    for start in range(0, length, BATCH):
        part = start * len(parts) // length
        posts = parts[part]
        drawn = chance.choices(posts, k=min(BATCH, length - start))
        items = [Item(key=f"made:{start + at}", id="", source="made", title="") for at in range(len(drawn))]
        opinions = [post.local for post in drawn]
        plan = await cascade.plan(_QUESTION, items, "made", opinions)
        if plan.above is not None:
            beyond = len(opposed[part]) - bisect_right(opposed[part], plan.above)
            missed |= beyond > promise.tolerated * len(posts)
        of_model = [Verdict(post.relevant) for post in drawn]
        await cascade.learn(plan, opinions, of_model)
        local += sum(plan.local)
        agreeing += sum(post.agrees or not stands for post, stands in zip(drawn, plan.local, strict=True))
    return SimulatedRun(missed, agreeing / length, local / length)
