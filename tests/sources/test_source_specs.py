"""What is known of a place before its client is loaded, and that every room says the same of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from api import settings as all_settings
from api.bootstrap import build, mode_of
from api.bootstrap.estimates import estimate
from api.errors import NotConfigured
from api.interfaces.shared.doctor import check_upstreams
from api.sandbox.server import Sandbox
from api.services import tools
from api.services.product import Ask
from api.settings import Settings, SourceSettings
from api.sources import (
    ALL_SOURCES,
    ARCHIVE,
    ASKABLE_SOURCES,
    ITEM_SOURCES,
    SOURCE_LIST,
    SOURCE_TITLES,
    SOURCES,
    SourceSpec,
    default_sources,
)
from tests.services.kit import providing

COMPLETE = [
    ("reddit", {"REDDIT_CLIENT_ID": "i", "REDDIT_CLIENT_SECRET": "s"}),
    ("youtube", {"YOUTUBE_API_KEY": "k"}),
    ("amazon", {"AMAZON_PROVIDER": "html"}),
    ("amazon", {"AMAZON_PROVIDER": "omkar", "AMAZON_API_KEY": "k"}),
]
PARTIAL = [
    ("reddit", {}, ("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET")),
    ("reddit", {"REDDIT_CLIENT_ID": "i"}, ("REDDIT_CLIENT_SECRET",)),
    ("reddit", {"REDDIT_CLIENT_ID": "i", "REDDIT_CLIENT_SECRET": " "}, ("REDDIT_CLIENT_SECRET",)),
    ("youtube", {"YOUTUBE_API_KEY": "  "}, ("YOUTUBE_API_KEY",)),
    ("amazon", {"AMAZON_API_KEY": "k"}, ("AMAZON_PROVIDER",)),
    ("amazon", {"AMAZON_PROVIDER": "omkar"}, ("AMAZON_API_KEY",)),
    ("amazon", {"AMAZON_PROVIDER": "openwebninja", "AMAZON_API_KEY": " "}, ("AMAZON_API_KEY",)),
]


def settings_with(sources: SourceSettings) -> Settings:
    """The defaults, with these sources."""
    settings = all_settings.load()
    general = settings.general.model_copy(update={"mode": "auto"})
    return replace(settings, general=general, sources=sources)


@pytest.mark.parametrize(("name", "values"), COMPLETE)
async def test_what_is_configured_is_so_everywhere(name: str, values: dict[str, str]) -> None:
    """Its spec, the mode, the product and the estimate agree that it is asked."""
    settings = settings_with(SourceSettings.model_validate(values))
    built = build(settings)
    most = estimate(settings, Ask("mug", "quick", (name,))).most
    await built.aclose()

    assert SOURCES[name].configured(settings.sources)
    assert mode_of(settings) == "live"
    assert not isinstance(built.sources[name], NotConfigured)
    assert most["upstream_calls"] > 0


@pytest.mark.parametrize(("name", "values", "missing"), PARTIAL)
def test_what_is_not_configured_is_so_everywhere(name: str, values: dict[str, str], missing: tuple[str, ...]) -> None:
    """Blanks are no key, a paid provider needs one; the factory names what is missing."""
    settings = settings_with(SourceSettings.model_validate(values))
    spec = SOURCES[name]
    named = " and ".join(f"`{variable}`" for variable in missing)

    assert spec.missing(settings.sources) == missing
    assert not spec.configured(settings.sources)
    with pytest.raises(NotConfigured, match=re.escape(f"{name}: {named} not set")):
        spec.build(settings.sources)


@pytest.mark.parametrize("spec", SOURCES.values(), ids=SOURCES)
def test_a_spec_is_sound(spec: SourceSpec) -> None:
    """Its settings exist, its words fit, and what it needs holds for every provider."""
    known = all_settings.variables()
    complete = SourceSettings.model_validate(
        {name: "html" if name == "AMAZON_PROVIDER" else "x" for name in spec.variables}
    )

    assert {*spec.variables, spec.address} <= set(known)
    assert all(known[name][0] is SourceSettings for name in (*spec.variables, spec.address))
    assert (spec.title in re.split(", | and ", SOURCE_LIST)) == spec.switched_on(SourceSettings())
    assert SOURCE_TITLES[spec.name] == ITEM_SOURCES[spec.name].title == spec.title
    assert spec.description.endswith(".")
    assert "\n" not in spec.description
    assert spec.missing(complete) == ()
    assert spec.price(complete).entries > 0


def test_the_archive_can_be_asked_and_is_no_place_that_an_item_is_from() -> None:
    """It has one name at every door."""
    assert (*SOURCES, ARCHIVE.name) == ASKABLE_SOURCES
    assert SOURCE_TITLES[ARCHIVE.name] == ALL_SOURCES[ARCHIVE.name].title == "The archive"
    assert ARCHIVE.name not in ITEM_SOURCES


@pytest.mark.parametrize("spec", SOURCES.values(), ids=SOURCES)
async def test_the_tool_says_what_the_spec_says(spec: SourceSpec) -> None:
    """Every place has its tool, and a model reads one description of it everywhere."""
    model = TestModel(call_tools=[])
    await Agent(model, toolsets=[tools.listening_toolset([spec.name])]).run("hello")
    asked = model.last_model_request_parameters
    assert asked is not None

    (tool,) = asked.function_tools

    assert tool.name == f"fetch_{spec.name}_tool"
    assert (tool.description or "").startswith(spec.description)
    assert set(tool.parameters_json_schema["properties"]) == {"query", "depth", "about"}


async def test_an_agent_has_a_tool_for_every_place_that_can_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The three always, whose answer may be why they cannot be asked; others when they can."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("LISTENPOST_SOURCES", "reddit,hackernews")
    model, product = TestModel(call_tools=[]), build(all_settings.load())
    with providing(product):
        await Agent(model, toolsets=[tools.listening_toolset()]).run("hello")
    await product.aclose()
    asked = model.last_model_request_parameters
    assert asked is not None

    assert [tool.name.split("_")[1] for tool in asked.function_tools] == [
        "reddit", "youtube", "amazon", "hackernews",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["bluesky", "steam", "news"])
def test_a_source_that_is_off_is_asked_when_it_is_named(name: str) -> None:
    """No question is put to it by itself, and its words say how it is."""
    off, on = (
        SourceSettings.model_validate({"LISTENPOST_SOURCES": "", name.upper(): switch}) for switch in (False, True)
    )
    named = SourceSettings.model_validate({"LISTENPOST_SOURCES": name})

    assert name not in default_sources(off)
    assert name in default_sources(on)
    assert default_sources(named) == (name,)
    assert SOURCES[name].off_note(off) == f"off: set `{name.upper()}=on`, or ask with `--source {name}`"
    assert SOURCES[name].off_note(on) == ""


async def test_what_is_off_is_said_and_not_asked() -> None:
    """Behind the places that were asked; not where `LISTENPOST_SOURCES` leaves it out."""
    with Sandbox.start([]) as sandbox:
        for sources in "", "lemmy":
            values = sandbox.environment | {"LISTENPOST_SOURCES": sources}
            settings = settings_with(SourceSettings.model_validate(values))
            built = build(settings)
            rows = await check_upstreams(settings, built)
            await built.aclose()

            said = {row.upstream: row.detail for row in rows if row.outcome == "not_asked"}
            off = [name for name, spec in SOURCES.items() if not spec.switched_on(settings.sources)]
            assert [*said] == ([] if sources else off)
            assert all(detail.startswith("off: ") for detail in said.values())
            assert {row.upstream for row in rows if row.is_source} - {*said} == {*default_sources(settings.sources)}
        assert not sandbox.requests("steam")
        assert not sandbox.requests("news")
