"""Beginning to trace: what it needs, what it imports, and what the other wrappers write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from opentelemetry import trace

from api.core.domain import Grade, Question, Usage
from api.core.items import Item
from api.core.ports import Facts, Grades, Rewrites
from api.errors import ModelError
from api.langfuse.tracing import Tracing, start
from api.langfuse.tracing.langfuse_client import probe
from api.langfuse.tracing.masking import HomeSession
from api.reports.insufficient_data import Explanation, Shortfall
from api.settings import TracingSettings
from tests.langfuse.tracing.collector import SCORES, TRACES, Collector, settings_for
from tests.loopback import Loopback, Reply, free_port

ITEMS = [Item(key=f"reddit:{n}", id=str(n), source="reddit", title=f"Post {n}") for n in range(3)]


@pytest.mark.parametrize("missing", ["langfuse_public_key", "langfuse_secret_key"])
def test_no_keys(missing: str) -> None:
    """With one key missing there is no tracing."""
    settings = settings_for("http://127.0.0.1").model_copy(update={missing: None})
    assert start(settings) is None


def test_imports() -> None:
    """Without keys neither langfuse nor OpenTelemetry nor pydantic-ai is imported."""
    program = (
        "import sys; from api.langfuse.tracing import start;"
        "from api.settings import TracingSettings;"
        "assert start(TracingSettings()) is None;"
        "print(*{'langfuse', 'opentelemetry', 'pydantic_ai', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={})
    assert done.stdout == "\n"


def test_agents_are_not_imported(langfuse: Collector) -> None:
    """With keys, a run without an agent does not import pydantic-ai."""
    program = (
        "import sys; from api.langfuse.tracing import start;"
        "from api.settings import TracingSettings;"
        "from api.core.domain import Question; made = start(TracingSettings())\n"
        "with made.observer.analysis('fetch', Question('q')): pass\n"
        "print('langfuse' in sys.modules, 'pydantic_ai' in sys.modules)"
    )
    keys = {"LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**keys, "LANGFUSE_BASE_URL": langfuse.url},
    )  # fmt: skip
    assert done.stdout == "True False\n"
    assert langfuse.one("fetch").told("type") == "span"


def test_nothing_global(langfuse: Collector) -> None:
    """The process keeps its tracer provider."""
    before = trace.get_tracer_provider()
    made = start(settings_for(langfuse.url))
    assert made is not None
    with made.observer.analysis("analyze", Question("q")):
        pass
    made.shutdown()

    assert trace.get_tracer_provider() is before
    assert langfuse.path(langfuse.one("analyze")) == "analyze"


@pytest.mark.parametrize(("status", "outcome"), [(200, "ok"), (401, "refused"), (403, "refused"), (500, "unreachable")])
async def test_probe(langfuse: Collector, tracing: Tracing, status: int, outcome: str) -> None:
    """Asking whether the keys fit tells a wrong key from a server that is not well."""
    langfuse.status = status
    found, detail = await tracing.probe()
    assert found == outcome
    assert "lf-" not in detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_probe_does_not_carry_the_keys_elsewhere(status: int) -> None:
    """A redirect within the server is followed, one to another server is not."""
    with Loopback(lambda asked: Reply()) as other:
        targets = {"/api/public/projects": "/moved", "/moved": f"{other.url}/stolen"}
        with Loopback(lambda asked: Reply(status, headers={"location": targets[asked.path]})) as server:
            outcome, detail = probe(settings_for(server.url))

    assert (outcome, detail) == ("unreachable", f"HTTP {status}; check `LANGFUSE_BASE_URL`")
    assert [asked.path for asked in server.asked] == list(targets)
    assert other.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_traces_and_scores_do_not_go_elsewhere(status: int) -> None:
    """The exporter carries keys and prompts: a redirect to another server is the end of them."""
    with Loopback(lambda asked: Reply()) as other:
        elsewhere = Reply(status, headers={"location": f"{other.url}/stolen"})
        with Loopback(lambda asked: elsewhere) as server:
            made = start(settings_for(server.url))
            assert made is not None
            with made.observer.analysis("analyze", Question("q")) as span:
                span.record(Facts("ok", 1, 1, 0.0, None))
            made.shutdown()

    assert {asked.path for asked in server.asked} == {TRACES, SCORES}
    assert other.asked == []


def test_an_entry_of_netrc_does_not_replace_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the program gives is what is sent."""
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password else")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    url = "https://langfuse.invalid"

    with HomeSession(settings_for(url)) as session:
        request = requests.Request("GET", url, headers={"Authorization": "Basic ours"})
        sent = session.prepare_request(request)

    assert sent.headers["Authorization"] == "Basic ours"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_SCHEDULE_DELAY"),
        ("OTEL_EXPERIMENTAL_RESOURCE_DETECTORS", "resource detector 'abc'"),
    ],
)
def test_a_default_of_the_libraries_is_told_in_one_line(
    langfuse: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    words: str,
) -> None:
    """What OpenTelemetry cannot read is replaced by it, and told without a traceback."""
    monkeypatch.setenv(name, "abc")
    made = start(settings_for(langfuse.url))
    assert made is not None
    made.shutdown()

    assert words in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("url", ["http://127.0.0.1:{free_port}", "http://no url"])
async def test_probe_of_nobody(url: str) -> None:
    """Where nobody answers the variable to check is named."""
    made = start(settings_for(url.format(free_port=free_port())))
    assert made is not None
    outcome, detail = await made.probe()
    made.shutdown()
    assert outcome == "unreachable"
    assert "LANGFUSE_BASE_URL" in detail


@dataclass
class Model:
    """Grades, rewrites and explains at a fixed price."""

    model: str = "gpt-4o-mini"
    usage: Usage = Usage(20, 2, None)

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        grades = (Grade(5), Grade(3, defaulted=True), Grade(1))
        return Grades(grades, self.usage, "gpt-4o-mini-x")

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> Rewrites:
        return Rewrites((question.text, "plaud note pin"), self.usage)

    async def explain(self, shortfall: Shortfall) -> Explanation:
        if shortfall.dropped:
            raise ModelError("refused")
        return Explanation("Nothing there.", ("plaud review",), self.usage)


async def test_other_generations(langfuse: Collector, tracing: Tracing) -> None:
    """Grading, rewriting and explaining are generations; an unknown price is no price."""
    question, model = Question("plaud"), Model()
    with tracing.observer.analysis("analyze", question):
        await tracing.grader(model).grade(question, ITEMS)
        await tracing.rewriter(model).rewrite(question, 2, ["a gap"])
        await tracing.explainer(model).explain(Shortfall(question, ("plaud",), ("reddit: empty",)))
        with pytest.raises(ModelError):
            await tracing.explainer(model).explain(Shortfall(question, ("plaud",), (), (("title", "why"),)))
    tracing.shutdown()

    grade, rewrite = langfuse.one("grade"), langfuse.one("rewrite")
    assert grade.told("output") == [5, None, 1]
    assert grade.told("status_message") == "1 grades defaulted"
    assert grade.told("model.name") == "gpt-4o-mini-x"
    assert rewrite.told("output") == ["plaud", "plaud note pin"]
    assert rewrite.told("model.name") == "gpt-4o-mini"
    told = [one.told("status_message") for one in langfuse.named("explain")]
    assert told == [None, "refused"]
    for span in (grade, rewrite, langfuse.named("explain")[0]):
        assert span.told("type") == "generation"
        assert span.told("usage_details")["total"] == 22
        assert "langfuse.observation.cost_details" not in span.attributes


async def test_filter_without_a_question(langfuse: Collector, tracing: Tracing) -> None:
    """A judge that is asked outside any question makes a trace of its own, with its person."""
    from tests.langfuse.tracing.fakes import EvenJudge

    await tracing.judge(EvenJudge()).judge(Question("plaud"), ITEMS, "reddit")
    tracing.shutdown()

    span = langfuse.one("relevance_filter")
    assert span.parent == ""
    assert span.attributes["user.id"] == "ada"


def test_settings_without_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both keys are what switches tracing on."""
    monkeypatch.delenv("LANGFUSE_PUBLIC_KEY", raising=False)
    assert start(TracingSettings()) is None
