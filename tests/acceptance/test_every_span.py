"""Everything that is traced, side by side in one project: an analysis, a turn, a tool, an eval."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from api import bootstrap
from api.bootstrap import chat
from api.sandbox.server import Sandbox
from api.services.product import Ask, analyze
from tests.acceptance.host_programs import PROGRAM, SALARY, TO_LANGFUSE
from tests.interfaces.command import bare, process
from tests.langfuse.tracing.trees import bill, received, roots, unmasked

SESSION = "größe 小"
PRIVATE = "I am ada@example.org and my key is sk-proj-0123456789abcdef."
LABELS = [
    {
        "query": "lampe für groß", "source_hint": "reddit",
        "items": [
            {"title": "lampe für groß, gut", "body": PRIVATE, "relevant": True},
            {"title": "soup", "body": "", "relevant": False},
        ],
    }
]  # fmt: skip


async def test_every_span_of_everything_that_is_traced(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One root each and every parent right; cost is what was used, also for what was rejected.

    No key or address is in it, and ids that are not ASCII lose nothing: Langfuse takes sessions in
    ASCII alone, and has their signs escaped.
    """
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    labels = tmp_path / "größe.jsonl"
    labels.write_text("\n".join(map(json.dumps, LABELS)), "utf-8")
    sandbox.fault("openai.grades=notjson@1x1", "openai.judge=wrong_count@1x1")
    product = bootstrap.build(bootstrap.load_settings())
    report = await analyze(product, Ask("plaud.ai"))
    talk = chat(bootstrap.load_settings(), product)
    session = talk.begin("ada", SESSION)
    turn = await talk.answer(session, f"What do people say about plaud.ai? {PRIVATE}")
    await product.aclose()
    program = PROGRAM.format(tracing=TO_LANGFUSE, salary=SALARY, end="client.shutdown()")
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program], env=bare(sandbox.environment), capture_output=True,
        text=True,
    )  # fmt: skip
    evaluated = process(
        "eval", str(labels), "--judge", "openai", "--langfuse", "gate/größe", "--run", "läuft",
        "--format", "json", env=sandbox.environment,
    )  # fmt: skip

    assert (ran.returncode, evaluated.code) == (0, 0), ran.stderr + evaluated.err
    langfuse = received(sandbox)
    tops = roots(langfuse)
    names = [top.name for top in tops.values()]
    assert {name: names.count(name) for name in names} == {
        "analyze": 1, "chat": 1, "invoke_agent research": 2, "invoke_agent payroll_agent": 2,
        "experiment-item-run": 1,
    }  # fmt: skip
    paths = {langfuse.path(span) for span in langfuse.spans}
    assert paths >= {
        "analyze > gather.reddit > relevance_filter",
        "chat > invoke_agent chat > execute_tool fetch_reddit > gather.reddit > relevance_filter",
        "invoke_agent research > execute_tool fetch_reddit_tool > fetch > gather.reddit > relevance_filter",
        "experiment-item-run > experiment-item-task > relevance_filter",
    }

    by_trace = {trace: [s for s in langfuse.spans if s.trace == trace] for trace in tops}
    usd, tokens = bill(by_trace[report.trace_id or ""])
    assert usd == pytest.approx(report.cost.usd, abs=1e-6)
    assert tokens == report.cost.tokens > 0
    usd, tokens = bill(by_trace[turn.trace_id or ""])
    assert usd == pytest.approx(turn.usage.usd, abs=1e-6)
    assert tokens == turn.usage.input_tokens + turn.usage.output_tokens > 0
    item = langfuse.one("experiment-item-run")
    usd, _ = bill(by_trace[item.trace])
    assert usd > 0
    assert usd == pytest.approx(evaluated.json["overall"]["usd"], abs=1e-6)
    rejected = [span for span in langfuse.spans if span.told("level") == "ERROR"]
    assert any(span.name == "relevance_filter" and bill([span])[1] for span in rejected)

    assert unmasked(langfuse) == set()
    sessions = {span.attributes.get("session.id") for span in by_trace[turn.trace_id or ""]}
    assert sessions == {SESSION.encode("ascii", "backslashreplace").decode()}
    assert item.attributes["langfuse.experiment.name"].endswith(" läuft")
