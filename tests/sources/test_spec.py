"""What is known of a place before its client is loaded, and that every room says the same of it."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace

import pytest

from api import settings as all_settings
from api.errors import NotConfigured
from api.services import tools
from api.services.listening import Ask
from api.settings import Settings, SourceSettings
from api.sources import NAMED, PLACES, SOURCES, TITLES
from api.sources.spec import SourceSpec
from api.wiring import build, mode_of
from api.wiring.estimating import estimate

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
    return replace(all_settings.load(), sources=sources)


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
def test_what_is_not_configured_is_so_everywhere(
    name: str, values: dict[str, str], missing: tuple[str, ...]
) -> None:
    """Blanks are no key, a paid provider needs one; the factory names what is missing."""
    settings = settings_with(SourceSettings.model_validate(values))
    spec = SOURCES[name]
    named = " and ".join(f"`{variable}`" for variable in missing)

    assert spec.missing(settings.sources) == missing
    assert not spec.configured(settings.sources)
    assert mode_of(settings) == "sandbox"
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
    assert spec.title in NAMED
    assert TITLES[spec.name] == PLACES[spec.name].title == spec.title
    assert spec.says.endswith(".")
    assert "\n" not in spec.says
    assert spec.missing(complete) == ()
    assert spec.price(complete).entries > 0


@pytest.mark.parametrize("spec", SOURCES.values(), ids=SOURCES)
def test_the_tool_says_what_the_spec_says(spec: SourceSpec) -> None:
    """Every place has its public tool, and a model reads one description of it everywhere."""
    tool = getattr(tools, f"fetch_{spec.name}_tool")

    assert (inspect.getdoc(tool) or "").partition("\n")[0] == spec.says
    assert f"fetch_{spec.name}_tool" in tools.listening_toolset().tools
