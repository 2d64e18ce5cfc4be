"""Recorded answers before the sandbox's own."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.sandbox.conftest import Start


def record(folder: Path, upstream: str, files: dict[str, tuple[str, dict[str, object]]]) -> Path:
    """Write a folder of recordings: name -> body and facts."""
    (folder / upstream).mkdir()
    for name, (body, _) in files.items():
        (folder / upstream / name).write_text(body)
    index = {name: facts for name, (_, facts) in files.items()}
    (folder / upstream / "index.json").write_text(json.dumps(index))
    return folder


def test_each_recording_is_served_once(start: Start, tmp_path: Path) -> None:
    """In the order of their names, with status and headers, and then the sandbox answers."""
    url = "/youtube/v3/search?part=snippet"
    record(tmp_path, "youtube", {
        "a.json": ('{"items": ["recorded"]}', {"status": 200, "url_indicative": url}),
        "b.json": ('{"error": 1}', {"status": 429, "url": url, "headers": {"retry-after": "9"}}),
        "c.json": ('{"error": 2}', {"status": 403}),
    })  # fmt: skip
    sandbox = start(recordings=tmp_path)
    asked = f"{sandbox.url}/youtube/v3/search?part=snippet&q=glow&key=k"
    first, second, third = (httpx.get(asked) for _ in range(3))

    assert first.json() == {"items": ["recorded"]}
    assert (second.status_code, second.headers["retry-after"]) == (429, "9")
    assert third.json()["items"][0]["kind"] == "youtube#searchResult"


def test_a_folder_without_recordings_is_refused(start: Start, tmp_path: Path) -> None:
    """The message names the folder and what was looked for."""
    with pytest.raises(ValueError, match=r"index\.json"):
        start(recordings=tmp_path)
