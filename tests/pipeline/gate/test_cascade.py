"""The cascade: what is promised, whom it asks, and that it fails towards the model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from api.core.domain import Correction, Question, Usage, Verdict
from api.core.items import Item
from api.core.ports import Judgement, SampledPost
from api.errors import ModelError, StoreUnavailable
from api.evaluation.labelled_items import read_labelled
from api.pipeline.gate.cascade import MAX_SAMPLE, MIN_SAMPLE, Cascade, Promise, allowed_disagreements, trusted_above
from api.pipeline.gate.verdicts import CORRECTED, Gate, RunGate
from simulated_cascade import JudgedPost, KeptSamples, SimulatedRun, judged_posts, noisy, simulated_run
from tests.replay import DATA
from tests.services.fakes import FakeJudge, items, passed

QUESTION = Question("plaud.ai", "the recorder")
PROMISE = Promise(0.9, 0.05)
NO_LABELS = f"no labelled posts in {DATA / 'relevance-real'}; set LISTENPOST_TEST_DATA"


@dataclass
class SureJudge:
    """Says yes with 0.9 to the named ids and no with 0.1 to the rest; with 0.6 to those it is not sure of."""

    relevant: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    name: str = "local-x"

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        chances = [0.6 if item.id in self.unsure else 0.9 if item.id in self.relevant else 0.1 for item in items]
        return Judgement(tuple(Verdict(chance > 0.5, self.name, chance) for chance in chances), self.name)


class BrokenMemory(KeptSamples):
    """A database that cannot be used."""

    async def agreement_sample(self, tenant: str, question: str, most: int) -> Sequence[SampledPost]:
        """See `SampleMemory`."""
        raise StoreUnavailable("no database")


@dataclass
class Setting:
    """A gate with a cascade, and what it was made of."""

    local: SureJudge = field(default_factory=SureJudge)
    model: FakeJudge = field(default_factory=FakeJudge)
    memory: KeptSamples = field(default_factory=KeptSamples)

    @property
    def gate(self) -> Gate:
        """The gate."""
        cascade = Cascade(PROMISE, self.memory, "a", "both", Usage(200, 0, 0.2, 1), Usage(85, 4, 0.1))
        return Gate(self.model, checker=self.local, cascade=cascade)


async def test_a_small_sample_sends_everything_to_the_model() -> None:
    """Whatever the local judge says; what both say is kept."""
    setting = Setting()

    gated = await setting.gate.judge(QUESTION, items(40), "reddit")

    assert [len(call) for call in setting.model.asked] == [40]
    assert {verdict.judge for verdict in gated.verdicts} == {"fake-1"}
    assert gated.agreement is not None
    assert (gated.agreement.judged, gated.agreement.local, gated.agreement.sample) == (40, 0, 40)
    assert gated.agreement.saved == Usage()


async def test_the_local_judge_decides_what_is_promised() -> None:
    """The model judges a sample of the later posts and those of which the local judge is not sure."""
    setting = Setting(local=SureJudge(unsure=frozenset(map(str, range(300, 320)))))
    setting.model.relevant = tuple(map(str, range(300, 310)))
    await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")
    # of those that it was not sure of, so many were wrong that they are not trusted
    unsure = [SampledPost(f"u{number}", 0.1, agrees=False) for number in range(40)]
    await setting.memory.keep_agreement_sample("a", next(iter(setting.memory.posts)), unsure, MAX_SAMPLE)
    setting.model.asked.clear()
    later = items(320)[MIN_SAMPLE:]

    gated = await setting.gate.judge(QUESTION, later, "reddit")

    agreement, by_model = gated.agreement, [at for call in setting.model.asked for at in call]
    assert agreement is not None
    assert agreement.local == len(later) - len(by_model) > 100
    assert {str(number) for number in range(300, 320)} <= set(by_model)
    assert 20 + 10 < len(by_model) < 20 + 60  # a fifth of the 150 others
    local = [verdict for verdict in gated.verdicts if verdict.judge == "local-x"]
    assert len(local) == agreement.local
    assert {(verdict.place, verdict.second, verdict.disputed) for verdict in local} == {(None, None, False)}
    assert passed(gated) == [300 <= int(item.id) < 310 for item in later]
    assert agreement.saved.input_tokens == 85 * agreement.local + 200 * agreement.saved.requests
    assert agreement.saved.requests == 4 - len(setting.model.asked)
    assert (agreement.target, agreement.confidence) == (0.9, 0.95)


async def test_a_batch_without_a_call_is_judged() -> None:
    """Where the local judge decides every post, nothing is asked and nothing is degraded."""
    setting = Setting()
    await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")
    setting.model.asked.clear()

    batches = [await setting.gate.judge(QUESTION, [post], "reddit") for post in items(200)[MIN_SAMPLE:]]

    free = [gated for gated in batches if gated.agreement and gated.agreement.local]
    assert len(free) == 50 - len(setting.model.asked) > 25
    assert {(gated.status, gated.model, gated.usage) for gated in free} == {("ok", "fake-1", Usage())}
    assert {gated.agreement.saved.requests for gated in free if gated.agreement} == {1}


async def test_a_post_that_comes_again_has_the_same_judge() -> None:
    """And is no second post of the sample."""
    setting = Setting()
    await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")
    setting.model.asked.clear()
    later = items(200)[MIN_SAMPLE:]

    first, again = [await setting.gate.judge(QUESTION, later, "reddit") for _ in range(2)]

    assert [verdict.judge for verdict in first.verdicts] == [verdict.judge for verdict in again.verdicts]
    assert first.agreement == again.agreement


@pytest.mark.parametrize(
    "other",
    [
        Question("plaud.ai", "the company"),
        replace(QUESTION, not_about=("a plot",)),
        replace(QUESTION, aim="mention"),
        replace(QUESTION, corrections=(Correction("x:1", True, "t"),)),
    ],
)
async def test_another_question_begins_anew(other: Question) -> None:
    """Nothing is known of the verdicts of another description, aim, set of corrections or place."""
    setting = Setting()
    await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")

    later = items(200)[MIN_SAMPLE:]
    anew = await setting.gate.judge(other, later, "reddit"), await setting.gate.judge(QUESTION, later, "lemmy")

    assert {verdict.judge for gated in anew for verdict in gated.verdicts} == {"fake-1"}
    assert [len(posts) for posts in setting.memory.posts.values()] == [MIN_SAMPLE, 50, 50]


async def test_a_failed_model_opens_the_gate_and_agrees_with_nobody() -> None:
    """Its posts pass unjudged, as without a cascade, and are no part of the sample."""
    setting = Setting(model=FakeJudge(trouble={0: ModelError("timeout"), 4: ModelError("timeout")}))

    gated = await setting.gate.judge(QUESTION, items(30), "reddit")

    assert (gated.status, gated.reason, gated.agreement) == ("degraded", "timeout", None)
    assert setting.memory.posts == {}
    await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")
    known = deepcopy(setting.memory.posts)
    gated = await setting.gate.judge(QUESTION, items(250)[MIN_SAMPLE:], "reddit")
    assert (gated.status, gated.relevant, setting.memory.posts) == ("degraded", 0, known)


async def test_without_a_database_the_model_judges_everything() -> None:
    """A sample that cannot be read promises nothing."""
    setting = Setting(memory=BrokenMemory())

    gated = await setting.gate.judge(QUESTION, items(MIN_SAMPLE), "reddit")

    assert {verdict.judge for verdict in gated.verdicts} == {"fake-1"}


async def test_a_person_beats_both() -> None:
    """A corrected post is sent to nobody and counted by nobody."""
    setting = Setting(local=SureJudge(relevant=frozenset({"1"})))
    corrected = replace(QUESTION, corrections=(Correction("reddit:1", False, "Post 1"),))

    gated = await RunGate(setting.gate).judge(corrected, items(3), "reddit")

    assert [verdict.judge for verdict in gated.verdicts] == ["fake-1", CORRECTED, "fake-1"]
    assert gated.agreement is not None
    assert gated.agreement.judged == 2


@pytest.mark.parametrize(
    ("sample", "agreement", "risk", "allowed"),
    [
        (0, 0.95, 0.05, None),
        (60, 0.95, 0.05, None),
        (70, 0.95, 0.05, 0),
        (150, 0.95, 0.05, 2),
        (500, 0.95, 0.05, 17),
        (MAX_SAMPLE, 0.7, 0.5, 322),
    ],
)
def test_what_a_sample_shows(sample: int, agreement: float, risk: float, allowed: int | None) -> None:
    """Disagreements by the size of the sample."""
    assert allowed_disagreements(sample, Promise(agreement, risk)) == allowed


def test_a_change_is_noticed() -> None:
    """Four of the newest twenty posts disagree, of all too few to matter: nothing is trusted for now."""
    sample = [SampledPost(f"{number}", 0.4, agrees=True) for number in range(400)]
    changed = [SampledPost(f"new {number}", 0.4, agrees=number % 5 > 0) for number in range(20)]

    assert trusted_above(sample, Promise(0.95, 0.05)) == -1
    assert trusted_above([*changed, *sample], Promise(0.95, 0.05)) is None
    assert trusted_above([*sample, *changed], Promise(0.95, 0.05)) == -1


def _made(wrong: float, chance: Random) -> list[JudgedPost]:
    """Posts of which the local judge gets so large a share wrong, however sure it is."""
    posts = [(chance.random(), number >= wrong * 1000) for number in range(1000)]
    return [JudgedPost(Verdict(True, "local", 0.5 + sure / 2), right) for sure, right in posts]


async def _runs(posts: Sequence[JudgedPost], promise: Promise, noise: float, length: int) -> list[SimulatedRun]:
    chances = [Random(f"run {number}") for number in range(200)]
    return [await simulated_run([noisy(posts, noise, chance)], promise, length, chance) for chance in chances]


@pytest.mark.parametrize("promise", [Promise(0.9, 0.1), Promise(0.95, 0.05)])
async def test_a_promise_is_kept(promise: Promise) -> None:
    """Of 200 runs over posts of which a little more than is tolerated disagree, at most the risk miss it."""
    runs = await _runs(_made(promise.tolerated + 0.002, Random(1)), promise, 0.0, 400)

    assert sum(run.promise_missed for run in runs) <= promise.risk * len(runs)
    assert sum(run.agreement < promise.agreement for run in runs) <= promise.risk * len(runs)
    assert sum(run.spared for run in runs) > 0  # it is tempted


async def test_a_promise_is_kept_on_labelled_posts() -> None:
    """Of 200 runs over real posts, whose labels with 5 % noise are the model's verdicts, at most the risk miss it."""
    files = sorted((DATA / "relevance-real").glob("*.jsonl"))
    if not files:
        pytest.skip(NO_LABELS)
    queries = [query for file in files for query in read_labelled(file.read_text("utf-8").splitlines(), file.name)]
    promise = Promise(0.9, 0.1)

    runs = await _runs(judged_posts(queries), promise, 0.05, 400)

    assert sum(run.promise_missed for run in runs) <= promise.risk * len(runs)
    assert sum(run.agreement < promise.agreement for run in runs) <= promise.risk * len(runs)
    assert sum(run.spared for run in runs) / len(runs) > 0.05
