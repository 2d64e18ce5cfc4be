"""Prompts of a Langfuse project: read once in a period and checked, at little cost to a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from api.core.prompts import LONGEST, NAMES, Prompt, PromptName, packaged
from api.langfuse.tracing.langfuse_prompts import LangfusePrompts
from api.sandbox.server import Sandbox
from tests.langfuse.tracing.collector import settings_for

KEYS = ("pk-lf-test", "sk-lf-test")
GATE = packaged("relevance").text


@dataclass
class Desk:
    """A project, its prompts as we read them, and the time."""

    sandbox: Sandbox
    now: float = 1000.0

    def push(self, text: Any, name: PromptName = "relevance", *labels: str, **more: Any) -> None:
        """A new version, in production unless other labels are named."""
        body = {"prompt": text, "name": packaged(name).title, **more}
        body["labels"] = list(labels) or ["production"]
        url = f"{self.sandbox.url}/api/public/v2/prompts"
        httpx.post(url, json=body, auth=KEYS).raise_for_status()

    def drop(self, name: PromptName) -> None:
        """Take all its versions away."""
        url = f"{self.sandbox.url}/api/public/v2/prompts/listenpost%2F{name}"
        httpx.delete(url, auth=KEYS).raise_for_status()

    def prompts(self, **settings: Any) -> LangfusePrompts:
        """What a product reads them with."""
        return LangfusePrompts(
            settings_for(self.sandbox.url, **{"prompt_timeout": 60, **settings}),
            clock=lambda: self.now,
        )

    @property
    def asked(self) -> list[str]:
        """The names that were asked for, by us alone."""
        requests = self.sandbox.requests("langfuse", "prompts")
        return sorted(entry.path for entry in requests if entry.method == "GET")


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An empty project."""
    with Sandbox.start() as sandbox:
        yield Desk(sandbox)


async def used(prompts: LangfusePrompts, name: PromptName = "relevance") -> Prompt:
    """What a model would be asked by."""
    async with prompts.using(name) as prompt:
        return prompt


async def test_the_version_of_the_label_is_used(desk: Desk) -> None:
    """Not the newest."""
    desk.push(f"One. {GATE}")
    desk.push(f"Two. {GATE}", "relevance", "candidate")

    standing, trial = desk.prompts(), desk.prompts(prompt_label="candidate")
    first, second = await used(standing), await used(trial)
    await asyncio.gather(standing.aclose(), trial.aclose())

    assert first == Prompt("relevance", f"One. {GATE}", 1)
    assert second == Prompt("relevance", f"Two. {GATE}", 2)


async def test_all_are_read_at_once_and_once_in_a_period(desk: Desk) -> None:
    """Whoever needs one first; whoever comes meanwhile waits for the same answers."""
    for name in NAMES:
        desk.push(f"{packaged(name).text}!", name)
    prompts = desk.prompts()

    await asyncio.gather(*(used(prompts, name) for name in NAMES), used(prompts))
    desk.now += 59
    later = await used(prompts, "report")
    await prompts.aclose()

    label = "?label=production"
    assert desk.asked == sorted(f"/api/public/v2/prompts/listenpost/{name}{label}" for name in NAMES)
    assert later == Prompt("report", f"{packaged('report').text}!", 1)


async def test_another_version_is_used_after_the_period(desk: Desk) -> None:
    """When the label has moved."""
    desk.push(f"One. {GATE}")
    prompts = desk.prompts()
    versions = [(await used(prompts)).version]

    desk.push(f"Two. {GATE}")
    versions.append((await used(prompts)).version)
    desk.now += 60
    versions.append((await used(prompts)).version)
    await prompts.aclose()

    assert versions == [1, 1, 2]


async def test_the_period_is_a_setting(desk: Desk) -> None:
    """As Langfuse's own variable says; 0 reads them each time."""
    desk.push(GATE)
    prompts = desk.prompts(prompt_ttl=0)

    await used(prompts)
    await used(prompts)
    await prompts.aclose()

    assert len(desk.asked) == 2 * len(NAMES)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("hang", "no answer within 1 s"),
        ("500", "HTTP 500"),
        ("429", "HTTP 429"),
        ("401", "`LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY` are refused"),
        ("403", "`LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY` are refused"),
        ("404html", "no version has the label `production`"),
        ("notjson", "the answer is no JSON"),
    ],
)
async def test_a_fault_is_one_warning_and_one_wait(
    desk: Desk, fault: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All prompts are the package's; nobody asks again before the period is over."""
    desk.push(GATE)
    desk.sandbox.fault(f"langfuse.prompts={fault}")
    prompts = desk.prompts(prompt_timeout=1.0 if fault == "hang" else 60)

    for name in (*NAMES, *NAMES):
        assert await used(prompts, name) == packaged(name)
    rounds = len(desk.asked)
    desk.now += 61
    assert await used(prompts) == packaged("relevance")
    await prompts.aclose()

    (warning,) = caplog.messages
    names = ", ".join(f"`listenpost/{name}`" for name in NAMES)
    used_instead = "the package's file is used"
    assert warning == f"prompts of Langfuse: {names}: {reason}; {used_instead}"
    assert (rounds, len(desk.asked)) == (len(NAMES), 2 * len(NAMES))


@pytest.mark.parametrize(
    ("sent", "flaw"),
    [
        ({"prompt": GATE.replace("{{rule}}", "")}, "version 1: it lacks `{{rule}}`"),
        ({"prompt": f"{GATE} {{{{market}}}}"}, "version 1: nothing fills its `{{market}}`"),
        ({"prompt": "About it? {{rule}}"}, "version 1: it does not ask for `true`"),
        ({"prompt": GATE + "a" * LONGEST}, f"version 1: it has more than {LONGEST} characters"),
        (
            {"prompt": [{"role": "system", "content": GATE}], "type": "chat"},
            "it is no text prompt",
        ),
    ],
)
async def test_a_text_that_would_not_do_is_not_used(
    desk: Desk, sent: dict[str, Any], flaw: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The file is, and a warning says what is wrong; the other prompts are Langfuse's."""
    for name in NAMES:
        if name != "relevance":
            desk.push(packaged(name).text, name)
    desk.push(sent.pop("prompt"), **sent)
    prompts = desk.prompts()

    assert await used(prompts) == packaged("relevance")
    assert (await used(prompts, "grades")).version == 1
    await prompts.aclose()

    (warning,) = caplog.messages
    assert warning.startswith(f"prompts of Langfuse: `listenpost/relevance`: {flaw}")
    assert warning.endswith("; the package's file is used")


async def test_what_was_read_stays_in_use_while_langfuse_is_down(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A gate does not change its prompt because a server is restarted; it does when it is gone."""
    for name in NAMES:
        desk.push(packaged(name).text, name)
    prompts = desk.prompts()
    assert (await used(prompts)).version == 1

    desk.sandbox.fault("langfuse.prompts=503")
    desk.now += 60
    assert (await used(prompts)).version == 1
    desk.sandbox.heal()
    desk.drop("relevance")
    desk.now += 60
    assert await used(prompts) == packaged("relevance")
    assert (await used(prompts, "grades")).version == 1
    await prompts.aclose()

    down, gone = caplog.messages
    assert down.endswith(": HTTP 503; what was read before is used")
    assert "`listenpost/relevance`: no version has the label" in gone
    assert "grades" not in gone


async def test_nobody_is_asked_at_a_closed_port(caplog: pytest.LogCaptureFixture) -> None:
    """The address and the kind of error, and no key."""
    with Sandbox.start() as sandbox:
        closed = sandbox.url
    prompts = LangfusePrompts(settings_for(closed))

    assert await used(prompts) == packaged("relevance")
    await prompts.aclose()

    (warning,) = caplog.messages
    assert "no connection (it was refused)" in warning
    assert "sk-" not in warning


async def test_an_address_that_is_none(caplog: pytest.LogCaptureFixture) -> None:
    """It is a fault like any other."""
    prompts = LangfusePrompts(settings_for("http://127.0.0.1:99999"))

    assert await used(prompts) == packaged("relevance")
    await prompts.aclose()

    assert "is not a URL" in caplog.text


async def test_whoever_leaves_keeps_nobody_from_the_answer(desk: Desk) -> None:
    """A run that is cancelled while prompts are read; the next gets them."""
    desk.push(GATE)
    desk.sandbox.latency("langfuse.prompts=0.3s")
    prompts = desk.prompts()
    leaving, staying = (asyncio.create_task(used(prompts)) for _ in range(2))
    await asyncio.sleep(0)

    leaving.cancel()

    assert (await staying).version == 1
    await prompts.aclose()
    assert len(desk.asked) == len(NAMES)


async def test_the_status_says_what_is_in_use(desk: Desk) -> None:
    """For `doctor`."""
    desk.push(GATE)
    desk.push("Report.", "report")
    prompts = desk.prompts()

    status = await prompts.status()
    await prompts.aclose()

    assert status.startswith("prompts labelled `production`: relevance 1; `listenpost/grades`, `listenpost/rewrites`")
    assert "`listenpost/report`: version 1: it lacks `{{passage}}`" in status
