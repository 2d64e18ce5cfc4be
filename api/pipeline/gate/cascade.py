"""A cascade: where the local judge agrees with the model often enough its verdict stands, the model judges the rest.

Both judge a random sample of a question's posts in one place. Posts are ordered by how sure the local judge is; its
verdicts stand from the lowest sureness on at which the sample still shows, at the stated risk, that few enough of *all*
posts get another verdict than the model's. Method and limits: docs/decisions/0016-cascade.md.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from math import comb

from api.core.domain import Agreement, Question, Usage, Verdict
from api.core.items import Item
from api.core.ports import PER_CALL, SampledPost, SampleMemory
from api.core.words import canonical
from api.errors import StoreUnavailable

MIN_SAMPLE, MAX_SAMPLE = 150, 1000
"""Posts that both judge before a local verdict may be used, and most of the newest that count."""
CONTROL_SHARE = 0.2
"""Share of the later posts that both judge, too, whatever the local judge says."""
RECENT, ALARM = 20, 0.04
"""Newest posts of a sample by which a change is noticed, and the probability of so many disagreements from which on."""
# Rates of disagreement that the bet is spread over, as shares of the rate that is tolerated.
_BETS = (0.0, 0.25, 0.5, 0.75)
# Sureness of a verdict without a probability: it never stands.
_UNSURE = -1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Promise:
    """The agreement that a question's verdicts on one source must reach, and the accepted risk."""

    agreement: float
    """Least share of the verdicts that equal the model's, given or expected."""
    risk: float
    """Probability with which that may be missed."""

    @property
    def tolerated(self) -> float:
        """Share of all posts on which both may disagree where the local judge is trusted.

        In the sample the model's verdict stands, so that only the others of these posts get another one.
        """
        return (1 - self.agreement) / (1 - CONTROL_SHARE)


@lru_cache(maxsize=10_000)
def allowed_disagreements(sample: int, promise: Promise) -> int | None:
    """Most disagreements in a sample that still show the promise; None: it is too small to show anything.

    The bet: if at least the tolerated share of all posts disagrees, the mean of these likelihood ratios is at most 1 in
    expectation, after every post of the sample, so it exceeds 1 / risk with at most that risk (Ville's inequality).
    """
    tolerated, shown = promise.tolerated, None
    for disagreeing in range(sample + 1):
        agreeing = sample - disagreeing
        won = sum(bet**disagreeing * ((1 - bet * tolerated) / (1 - tolerated)) ** agreeing for bet in _BETS)
        if won / len(_BETS) * promise.risk < 1:
            break
        shown = disagreeing
    return shown


def trusted_above(sample: Sequence[SampledPost], promise: Promise) -> float | None:
    """Sureness above which local verdicts may stand by a sample, newest first; None: nowhere.

    The less sure are trusted, the more posts disagree, so that the first limit which the sample does not show is the
    only one that can be missed: no correction for having looked at several. Nothing is trusted while the newest posts
    speak against it: posts, or a judge, have changed.
    """
    allowed = allowed_disagreements(len(sample), promise)
    if allowed is None or len(sample) < MIN_SAMPLE:
        return None
    opposed = sorted((post.sureness for post in sample if not post.agrees), reverse=True)
    above = opposed[allowed] if allowed < len(opposed) else _UNSURE
    lately = sum(post.sureness > above and not post.agrees for post in sample[:RECENT])
    return None if _chance_of(lately, promise.tolerated) < ALARM else above


@lru_cache(maxsize=1_000)
def _chance_of(disagreeing: int, rate: float) -> float:
    """Probability of so many disagreements or more in `RECENT` posts."""
    return sum(comb(RECENT, k) * rate**k * (1 - rate) ** (RECENT - k) for k in range(disagreeing, RECENT + 1))


def sureness_of(verdict: Verdict) -> float:
    """Distance of its probability from 0.5."""
    return _UNSURE if verdict.probability is None else abs(verdict.probability - 0.5)


@dataclass(frozen=True, slots=True)
class CascadePlan:
    """Which posts of a batch the local judge decides."""

    question: str
    """Digest under which the sample is kept."""
    digests: tuple[str, ...]
    local: tuple[bool, ...]
    """For each post, whether the local verdict is used."""
    sampled: tuple[bool, ...]
    """For each post, whether it belongs to the sample."""
    known: int
    """Posts of the sample before this batch."""
    above: float | None
    """Sureness above which local verdicts are used; None: none are."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """Divides the posts of one tenant between the local judge and the model."""

    promise: Promise
    memory: SampleMemory
    tenant: str
    judges: str
    """Name and version of both judges, and of the prompt."""
    per_call: Usage = Usage()
    """Usage of one model call besides its posts."""
    per_post: Usage = Usage()

    async def plan(
        self, question: Question, items: Sequence[Item], source: str, opinions: Sequence[Verdict]
    ) -> CascadePlan:
        """Decide who judges each post; all go to the model while the sample is too small or cannot be read."""
        key = self._digest(question, source)
        try:
            sample = await self.memory.agreement_sample(self.tenant, key, MAX_SAMPLE)
        except StoreUnavailable as error:
            _log.warning("the model judges every post, since its agreement cannot be read: %s", error)
            sample = ()
        above = trusted_above(sample, self.promise)
        digests = tuple(sha256(f"{key}:{item.original}".encode()).hexdigest() for item in items)
        # by its digest, so that a post that comes again stays in or out of the sample
        sampled = tuple(above is None or int(digest[:8], 16) < CONTROL_SHARE * 2**32 for digest in digests)
        local = tuple(
            above is not None and not drawn and sureness_of(opinion) > above
            for drawn, opinion in zip(sampled, opinions, strict=True)
        )
        return CascadePlan(key, digests, local, sampled, len(sample), above)

    async def learn(self, plan: CascadePlan, opinions: Sequence[Verdict], judged: Sequence[Verdict]) -> Agreement:
        """Add the sampled posts that the model has judged to the sample, and return the agreement known now."""
        new = {
            digest: SampledPost(digest, sureness_of(opinion), opinion.relevant == verdict.relevant)
            for digest, drawn, opinion, verdict in zip(plan.digests, plan.sampled, opinions, judged, strict=True)
            if drawn
        }
        sample = plan.known
        if new:
            try:
                sample = await self.memory.keep_agreement_sample(
                    self.tenant, plan.question, tuple(new.values()), MAX_SAMPLE
                )
            except StoreUnavailable as error:
                _log.warning("a sample of %d posts is not kept: %s", len(new), error)
        posts, local = len(plan.local), sum(plan.local)
        calls = -(-posts // PER_CALL) + (local - posts) // PER_CALL
        saved = sum([*[self.per_post] * local, *[self.per_call] * calls], Usage())
        return Agreement(self.promise.agreement, 1 - self.promise.risk, posts, local, sample, saved)

    def _digest(self, question: Question, source: str) -> str:
        """Digest of everything that either judge knows of the question; another description starts a new sample."""
        name = canonical(question.text) or question.text
        known = name, question.about, question.not_about, question.aim, question.corrections, source, self.judges
        return sha256(repr(known).encode("utf-8", "surrogatepass")).hexdigest()
