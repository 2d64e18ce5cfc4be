"""Asks a model server what the product will ask it, at the size at which it will, and says what to set.

Four known items in two orders, a graded item, two pairs of sentence and passage, and a report; in
this order, so that a server that cannot be reached costs one call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from api.core.display_names import reason_in_words
from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import usage_of_error
from api.core.ports import Claim
from api.errors import ModelError
from api.models.dialects import GRADED_AT_ONCE
from api.models.model_calls import OUTCOMES, OpenAIGrader, OpenAIJudge, OpenAISupport
from api.models.model_client import ModelClient
from api.settings import ModelSettings

UNREAD = "this model does not read what it judges"
DraftProbe = Callable[[Question, Sequence[Item]], Awaitable[tuple[str, Usage]]]
"""Drafts a report over the items; returns the form in which it came. Raises `ModelError`."""
_QUESTION = Question("ember mug", "a mug that keeps coffee warm")
_ABOUT = (
    ("Ember mug, two years later", "My Ember mug still keeps coffee at 57 degrees for an hour; the battery is weaker."),
    ("Is the Ember mug worth it?", "The Ember mug was a gift. The app works, the lid leaks a little, I use it daily."),
)  # fmt: skip
_OTHER = (
    ("Embers of a campfire", "How do I keep the embers of a campfire alive overnight without too much smoke in camp?"),
    ("Which lawn mower for a slope?", "The garden is steep and wet, and the belt of a cheap mower slips after weeks."),
)  # fmt: skip
# Right verdicts of the eight that every answer by position gets, whatever it is, and one more by chance.
_BY_CHANCE = 5
_CLAIMS = (
    Claim("The lid leaks a little.", "The app works, the lid leaks a little", "Is the Ember mug worth it?"),
    Claim("It has a built-in camera.", "Is there support for the Spotify Android app?", "Anyone tried it?"),
)
# Tokens of a page beside its items, of an item with its verdict, and items of a page of the product.
_PAGE_TOKENS, _ITEM_TOKENS, _PAGE = 500, 110, 10
# How much longer the grades of a full call take than one: they are more to write, and little more to read.
_TIMES_ONE_GRADE = GRADED_AT_ONCE / 2
# Exhibits of the probed report, as a question at depth `quick` brings them.
_EXHIBITS = 15
T = TypeVar("T")


@dataclass(slots=True)
class _Checked:
    """Tokens, findings, remedies and failures of the checks so far."""

    usage: Usage = Usage()
    details: list[str] = field(default_factory=list)
    remedies: dict[str, None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    """Reasons of the parts that failed."""
    written: int = 0
    seconds: float = 0.0
    judging: float = 0.0
    """Seconds of the slower page of four items."""
    grading: float = 0.0
    """Seconds that the server took to grade one item."""


async def check_server(client: ModelClient, models: ModelSettings, draft: DraftProbe) -> tuple[str, str, str]:
    """Outcome, detail and remedies; about 7,000 tokens, half of them by the report's model."""
    checked, name, seconds = _Checked(), models.filter_model, models.scoring_timeout
    judge, pages = OpenAIJudge(client, name, seconds), _pages()
    right, pattern = 0, []

    async def timed(what: str, model: str, call: Awaitable[T], usage: Callable[[T], Usage]) -> T | None:
        began = perf_counter()
        try:
            answer = await call
        except ModelError as error:
            checked.usage += usage_of_error(error)
            checked.failed.append(error.reason)
            checked.details.append(f"{what} failed: {_words(error)}")
            if remedy := _remedy(error.reason, what, models, client.context(model)):
                checked.remedies[remedy] = None
            return None
        checked.usage += usage(answer)
        checked.written += usage(answer).output_tokens
        checked.seconds += perf_counter() - began
        return answer

    for items, truth in (zip(*page, strict=True) for page in pages):
        before = checked.seconds
        judged = await timed("judging", name, judge.judge(_QUESTION, items, "reddit"), lambda answer: answer.usage)
        if judged is None:
            break
        checked.judging = max(checked.judging, checked.seconds - before)
        flags = [verdict.relevant for verdict in judged.verdicts]
        right += sum(flag is wanted for flag, wanted in zip(flags, truth, strict=True))
        pattern.append("".join("FT"[flag] for flag in flags))
    if checked.failed and checked.failed[0] in OUTCOMES:
        return _result(checked, client, models)
    if len(pattern) == len(pages):
        checked.details.append(f"`{name}` judged four items in two orders, {right} of 8 right")
        if right <= _BY_CHANCE:
            checked.failed.append("unread")
            checked.details.append(f"{UNREAD}: it answered {' and '.join(pattern)}, right were TTFF and FFTT")
            checked.remedies["use another `LISTENPOST_FILTER_MODEL`, or `LISTENPOST_JUDGE=local`"] = None
    before = checked.seconds
    grading = OpenAIGrader(client, name, seconds).grade_chunk(_QUESTION, [lengthened(pages[0][0][0], 1500)])
    grades = await timed("grading", name, grading, lambda answer: answer[2])
    checked.grading = checked.seconds - before
    if grades is not None:
        causes = grades[1]
        checked.failed += causes
        if causes and (remedy := _remedy(causes[0], "grading", models, client.context(name))):
            checked.remedies[remedy] = None
        checked.details.append(f"grading failed: {reason_in_words(causes[0])}" if causes else "graded an item")
    support = OpenAISupport(client, models.support_model or name, seconds)
    supported = await timed("the support check", support.name, support.check(_QUESTION, _CLAIMS), lambda a: a.usage)
    if supported is not None:
        both = supported.supported == (True, False)
        checked.details.append(f"checked two sentences, {'' if both else 'not '}both right")
        if not both:
            checked.failed.append("unread")
            checked.remedies["use another `LISTENPOST_SUPPORT_MODEL`"] = None
    drafted = await timed("the report", models.agent_model, draft(_QUESTION, _exhibits()), lambda answer: answer[1])
    checked.details += [f"`{models.agent_model}` drafted a report, asked {drafted[0]}"] if drafted else []
    return _result(checked, client, models)


def _exhibits() -> list[Item]:
    """Items of the number and length that a report on a small question has."""
    items = [item for item, relevant in _pages()[0] if relevant]
    return [lengthened(items[n % len(items)], 400).edited(key=f"example:{n}") for n in range(_EXHIBITS)]


def lengthened(item: Item, length: int) -> Item:
    """The item with its text repeated up to so many characters."""
    return item.edited(body=(f"{item.body} " * (length // len(item.body) + 1))[:length])


def _pages() -> list[list[tuple[Item, bool]]]:
    """Four items in two orders, each with whether it is about the question."""
    labelled = [(text, True) for text in _ABOUT] + [(text, False) for text in _OTHER]
    page = [
        (Item(key=f"example:{n}", id=str(n), source="reddit", title=title, body=body), relevant)
        for n, ((title, body), relevant) in enumerate(labelled)
    ]
    return [page, page[::-1]]


def _words(error: ModelError) -> str:
    reason = reason_in_words(error.reason)
    return f"{reason} ({error.detail})" if error.detail else reason


def _remedy(reason: str, what: str, models: ModelSettings, context: int | None) -> str:
    """The setting that mends a failure."""
    if reason == "timeout":
        variable, seconds = "LISTENPOST_SCORING_TIMEOUT", models.scoring_timeout
        if what == "the report":
            variable, seconds = "LISTENPOST_REPORT_TIMEOUT", models.report_timeout
        slots = ", and set `LISTENPOST_MODEL_CONCURRENCY=1` if it has one slot" if models.model_concurrency > 1 else ""
        return f"the server is slow: raise `{variable}`, which is {seconds:g} s{slots}"
    if reason == "too_long":
        held = f" than {context} tokens" if context else ""
        return f"give the server a larger context{held}, see docs/models.md"
    if reason in {"malformed", "count_mismatch", "truncated"}:
        model = "LISTENPOST_AGENT_MODEL" if what == "the report" else "LISTENPOST_FILTER_MODEL"
        return f"use another `{model}`, or `LISTENPOST_REASONING_EFFORT=low` if it reasons"
    return ""


def _result(checked: _Checked, client: ModelClient, models: ModelSettings) -> tuple[str, str, str]:
    """Outcome, detail and remedies of a check: models, speed, context, cost, and settings to change."""
    details, name = checked.details, models.filter_model
    if checked.written and checked.seconds:
        speed = checked.written / checked.seconds
        details.append(f"{speed:.1f} tokens a second written, the reading included")
        if (needed := checked.judging * _PAGE / (len(_ABOUT) + len(_OTHER))) > models.scoring_timeout:
            remedy = f"the server is slow: a page takes about {needed:.0f} s, raise `LISTENPOST_SCORING_TIMEOUT`"
            checked.remedies[remedy] = None
        if (needed := checked.grading * _TIMES_ONE_GRADE) > models.scoring_timeout:
            remedy = f"the server is slow: {GRADED_AT_ONCE} grades take {needed:.0f} s or more, raise"
            checked.remedies[f"{remedy} `LISTENPOST_SCORING_TIMEOUT`"] = None
    if (context := client.context(name)) is not None:
        fitting = max(0, (context - _PAGE_TOKENS) // _ITEM_TOKENS)
        details.append(f"its context of {context} tokens holds pages of {min(fitting, 50)} items")
    elif client.local:
        details.append("its context is not known: set `LISTENPOST_MODEL_CONTEXT`, some servers cut silently")
    if adapted := client.adaptations(name):
        details.append(f"asked {', '.join(adapted)}")
    if checked.usage.usd is None:
        tokens = checked.usage.input_tokens + checked.usage.output_tokens
        details.append(f"it took {tokens} tokens, whose price is not known: set `LISTENPOST_MODEL_PRICES`")
    elif checked.usage.usd:
        details.append(f"it cost {checked.usage.usd:.6f} USD")
    outcome = "ok" if not checked.failed else OUTCOMES.get(checked.failed[0], "broken")
    return outcome, "; ".join(details), "; ".join(checked.remedies)
