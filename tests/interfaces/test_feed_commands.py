"""`listenpost feeds`: what it says, and that questions read what is followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.errors import UsageError
from tests.interfaces.test_report_commands import call
from tests.loopback import Reply
from tests.sources.emulators import on
from tests.sources.feed_emulator import FeedsEmulator


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedsEmulator]:
    """A site whose server the settings name, and a database of this test."""
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'kept.db'}")
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("LISTENPOST_SOURCES", "feeds")
    with FeedsEmulator(12) as server:
        monkeypatch.setenv("FEEDS", f"{server.server.url}/feed.xml?of=settings")
        yield server


def test_a_feed_is_followed_listed_asked_and_removed(site: FeedsEmulator) -> None:
    """One request for it, whatever is asked; the address can be copied from what is printed."""
    address = f"{site.server.url}/feed.xml"

    added = call("feeds", "add", address, "--name", "My mugs")
    listed = call("feeds", "list").stdout
    asked = call("fetch", "feeds", "mug", "--limit", "3")
    views = json.loads(call("feeds", "list", "--format", "json").stdout)
    removed = call("feeds", "remove", "My mugs")
    call("feeds", "add", address)
    untitled = call("feeds", "remove", "Mugs")

    assert added.stdout.startswith(f"My mugs  {address}\n  12 entries, the newest of 2026-11-28; read ")
    assert "not asked yet: the next question reads it; of `FEEDS`" in listed
    assert asked.exit_code == 0
    assert sorted(site.paths) == ["/feed.xml", "/feed.xml"]
    assert [(view["name"], view["of_settings"], view["outcome"]) for view in views] == [
        ("My mugs", False, "ok"), ("Mugs", True, "ok"),
    ]  # fmt: skip
    assert f"{address} is followed no longer" in removed.stderr
    assert f"{address} is followed no longer" in untitled.stderr
    assert "My mugs" not in call("feeds", "list").stdout


def test_what_is_wrong_is_said(site: FeedsEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """No feed, no address, none of this name; and in the sandbox nothing is followed."""
    site.fault = on("/feed.xml", Reply(200, b"<title>A page</title>", {"content-type": "text/html"}))
    page = call("feeds", "add", f"{site.server.url}/feed.xml").exception
    none = call("feeds", "remove", "nothing").exception
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    sandbox = call("feeds", "list").exception

    assert isinstance(page, UsageError)
    assert str(page) == "not followed: no feed, and no page that announces one"
    assert "no feed `nothing` is followed" in str(none)
    assert "feeds of its own" in str(sandbox)
