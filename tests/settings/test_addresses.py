"""Settings that say where servers stand: what cannot be used is refused at start, by its name."""

from __future__ import annotations

import httpx
import pytest

from api.bootstrap import load_settings
from api.errors import ConfigurationError
from api.settings import SourceSettings, variable
from api.settings.value_types import MAX_FORUMS, forums_in, is_root

ROOTS = [variable(SourceSettings, field) for field in SourceSettings.model_fields if field.endswith("_url")]
UNUSABLE = [
    "hn.algolia.com", "http://", "http:", "http:/forum.x", "https//x", "ftp://x", "http://x:port",
    "https://x:99999", "https://x:", "https://ada:pass@x", "https://x/?q=1", "https://x#a",
    "https://x y", "http://[::1", "http://[zz]", "http://[:::::]", "https://https://x", "https://x//y",
]  # fmt: skip
USABLE = [
    "https://hn.algolia.com", "http://127.0.0.1:8080/", "http://[::1]:80/below/a", "HTTPS://X.org",
    "https://bücher.example",
]  # fmt: skip


@pytest.mark.parametrize("text", USABLE)
def test_what_paths_can_be_appended_to_is_a_root(text: str) -> None:
    """With a port, below a path and in any script; the client takes it, too."""
    assert is_root(text)
    assert httpx.URL(text).host


@pytest.mark.parametrize("text", UNUSABLE)
def test_what_is_no_address_is_none(text: str) -> None:
    """Nothing of a server, or something that would be sent or shown where nobody expects."""
    assert not is_root(text)


@pytest.mark.parametrize("name", [*ROOTS, "DISCOURSE_FORUMS"])
@pytest.mark.parametrize("text", ["http://", "https://ada:pass@x"])
def test_every_root_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """In one line, which does not repeat what may be a password."""
    monkeypatch.setenv(name, text)

    with pytest.raises(ConfigurationError, match=f"^`{name}`: needs .*http or https") as caught:
        load_settings()

    assert "ada" not in str(caught.value)
    assert "\n" not in str(caught.value)


FORUMS = [
    ",", "forum obsidian", "ftp://forum.example.com", "https://forum.example.com?x=1", "http:",
    "https://me:pw@forum.example.com", "http://[::1", "http://127.0.0.1:1,http://127.0.0.1:2",
    ",".join(f"forum{number}.example" for number in range(MAX_FORUMS + 1)),
]  # fmt: skip


@pytest.mark.parametrize("text", FORUMS)
def test_forums_are_ten_different_ones_at_most(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Each is asked by itself, so there is an end; none is named twice."""
    monkeypatch.setenv("DISCOURSE_FORUMS", text)

    with pytest.raises(ConfigurationError, match=r"^`DISCOURSE_FORUMS`: needs one to 10 forums"):
        load_settings()


def test_ten_forums_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as are asked; the same one may be written twice."""
    named = [f"forum{number}.example" for number in range(MAX_FORUMS)]
    monkeypatch.setenv("DISCOURSE_FORUMS", ",".join([*named, "https://forum0.example/ "]))
    settings = load_settings()

    assert forums_in(settings.sources.discourse_forums) == tuple(f"https://{n}" for n in named)


@pytest.mark.parametrize("sites", [" , ", "a,b,c,d", "super user", "superuser?x=1", "-a"])
def test_sites_are_three_names_at_most(monkeypatch: pytest.MonkeyPatch, sites: str) -> None:
    """None, too many, or what cannot be the name of one."""
    monkeypatch.setenv("LISTENPOST_STACKEXCHANGE_SITES", sites)

    with pytest.raises(ConfigurationError, match=r"^`LISTENPOST_STACKEXCHANGE_SITES`: needs one"):
        load_settings()


def test_a_header_is_what_a_header_can_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user agent is one."""
    monkeypatch.setenv("LISTENPOST_USER_AGENT", "pröduct")

    with pytest.raises(ConfigurationError, match=r"^`LISTENPOST_USER_AGENT`: holds characters"):
        load_settings()
