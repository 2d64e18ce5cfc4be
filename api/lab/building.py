"""Who can be evaluated, built without sources, tracing or a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import urlsplit

from pydantic import SecretStr

from api.errors import UsageError
from api.judges.local import LocalJudge
from api.lab.baselines import BASELINES
from api.lab.evaluating import Asked, AskedGrader, AskedJudge
from api.settings import ModelSettings, Settings
from api.wiring.models import Crew, model_client

if TYPE_CHECKING:
    from api.judges.client import ModelClient
    from api.sandbox.server import Sandbox

JudgeName = Literal[
    "local", "openai", "grader", "keyword", "names", "bm25", "cosine", "hybrid", "keep_all"
]
JUDGES: tuple[JudgeName, ...] = get_args(JudgeName)
PAID = frozenset({"openai", "grader"})
"""Those that ask a model server: their answers are worth keeping."""


@dataclass(slots=True)
class Evaluated:
    """A judge or grader, and what must be closed after it."""

    asked: Asked
    client: ModelClient | None = None
    sandbox: Sandbox | None = None

    async def aclose(self) -> None:
        """Close the model client and stop the sandbox."""
        if self.client is not None:
            await self.client.aclose()
        if self.sandbox is not None:
            self.sandbox.stop()


def build_evaluated(settings: Settings, name: str, model: str | None = None) -> Evaluated:
    """The judge of this name for the running loop.

    `openai` and `grader` ask `model` (default: the filter model) at the configured server; without
    a key, or in mode `sandbox`, at the sandbox's model endpoint, which spends nothing.
    """
    if name not in PAID:
        if model is not None:
            raise UsageError(f"`--model` goes with `openai` or `grader`; `{name}` asks no model")
        judge = LocalJudge() if name == "local" else BASELINES[name]
        return Evaluated(AskedJudge(judge, judge.name))
    models, sandbox = _server(settings)
    if model is not None:
        models = models.model_copy(update={"filter_model": model})
    client = model_client(models, None)
    crew = Crew(settings, models, client, None)
    return Evaluated(_asked(crew, name, "sandbox" if sandbox else _host(models)), client, sandbox)


def _server(settings: Settings) -> tuple[ModelSettings, Sandbox | None]:
    models, mode = settings.models, settings.general.mode
    if mode == "live" or (mode == "auto" and models.openai_api_key is not None):
        return models, None
    from api.sandbox.server import Sandbox

    sandbox = Sandbox.start()
    update = {"openai_api_key": SecretStr("sandbox"), "openai_base_url": f"{sandbox.url}/v1"}
    return models.model_copy(update=update), sandbox


def _asked(crew: Crew, name: str, host: str) -> Asked:
    from api.judges.prompting import system
    from api.services.text import Fence

    called = crew.models.filter_model + (f"@{host}" if host else "")
    bare = Fence("")
    if name == "openai":
        judge = crew.gate(alone=False, checked=False).primary
        return AskedJudge(judge, called, system("relevance", bare))
    grader = crew.grader()
    if grader is None:
        raise UsageError("the grader asks a model; set `OPENAI_API_KEY`")
    return AskedGrader(grader, f"grades:{called}", system("grades", bare))


def _host(models: ModelSettings) -> str:
    """The server where it is not the usual one; another server may be another model."""
    if models.openai_base_url == ModelSettings.model_fields["openai_base_url"].default:
        return ""
    return urlsplit(models.openai_base_url).netloc.rpartition("@")[2]
