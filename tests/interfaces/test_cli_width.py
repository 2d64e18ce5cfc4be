"""What a person reads, on narrow and on wide terminals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.interfaces.command import Ended, Here, bare

CHINESE = [
    {
        "title": "小米 SU7 半年使用感受：续航、底盘、车机系统都说一说", "place": "汽车论坛",
        "body": "小米 SU7 的续航比我想象的好，冬天也能跑四百公里。", "source": "论坛",
        "created_at": "2026-11-02", "url": "https://example.org/su7",
    },
    {"title": "小米SU7 Ultra track day", "body": "小米 brakes held up, tyres did not."},
    {"title": "周末菜谱", "body": "豆腐和土豆。"},
]  # fmt: skip


def too_wide(ended: Ended, columns: int) -> list[str]:
    """Lines beyond the width, but for addresses, which are never broken."""
    return [line for line in ended.out.splitlines() if cell_len(line) > columns and "://" not in line]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """A terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


@pytest.mark.parametrize("terminal", [40, 60, 80, 200], indirect=True)
@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "plaud.ai", "--depth", "quick", "--dropped"),
        ("analyze", "Zorvexolin Q9"),
        ("analyze", "hello"),
        ("fetch", "amazon", "plaud.ai", "--dropped"),
    ],
)
def test_no_line_is_wider_than_the_terminal(here: Here, terminal: int, words: tuple[str, ...]) -> None:
    """Reports, explanations, guidance and single sources; 120 columns at most."""
    ended = here(*words)

    assert ended.code in {0, 3}
    assert too_wide(ended, min(terminal, 120)) == []


@pytest.mark.parametrize("terminal", [40, 80], indirect=True)
def test_wide_signs_take_two_columns(here: Here, terminal: int) -> None:
    """Chinese titles, places and sources wrap by columns and keep the table straight."""
    Path("own.jsonl").write_text("\n".join(map(json.dumps, CHINESE)))
    ended = here("analyze", "小米", "--items", "own.jsonl", "--dropped")

    assert "小米 SU7" in ended.out
    assert too_wide(ended, terminal) == []
    assert any(cell_len(line) > len(line) for line in ended.out.splitlines())


@pytest.mark.parametrize("terminal", [40], indirect=True)
def test_a_narrow_terminal_still_has_every_figure(here: Here, terminal: int) -> None:
    """A sentence a source instead of a row, short bars, counts without their interval."""
    ended = here("analyze", "plaud.ai", "--depth", "quick")

    text = " ".join(ended.out.split())
    assert re.search(r"- Reddit: ok, \d+ of 10 were about it, searched (once|twice)", text)
    assert "95 %" not in text
    assert re.search(r"one of \d+ posts that speak of it|\d+ (posts|people|person)(: | on )", text)


@pytest.mark.parametrize("terminal", [40], indirect=True)
def test_every_command_is_readable_at_forty_columns(here: Here, terminal: int) -> None:
    """What to do, what it would cost and what is kept: no line is wider."""
    assert here("analyze", "plaud.ai", "--depth", "quick").code == 0
    for words in (("doctor",), ("analyze", "plaud.ai", "--estimate"), ("reports",)):
        ended = here(*words)
        assert ended.code == 0
        assert too_wide(ended, terminal) == []
    doctor = here("doctor").out
    assert "\nReddit ok a stand-in answers\n  to be real: set `REDDIT_CLIENT_ID` and\n" in doctor


def test_help_on_a_narrow_terminal_cuts_no_option() -> None:
    """Names stand whole, without boxes."""
    code = "from api.interfaces.cli.main import run; run(['analyze', '--help'])"
    narrow, wide = (
        subprocess.run(
            [sys.executable, "-c", code], env={**bare(), "COLUMNS": columns}, timeout=60,
            capture_output=True, text=True, check=True,
        ).stdout
        for columns in ("40", "100")
    )  # fmt: skip

    for option in ("--depth <quick|standard|deep>", "--source", "--estimate", "--output <path>"):
        assert option in narrow
    assert "│" not in narrow
    assert "│" in wide


def test_no_terminal_is_eighty_columns_or_more_and_has_no_colour(here: Here) -> None:
    """Into a pipe: the whole table, not one escape."""
    ended = here("analyze", "plaud.ai", "--depth", "quick")

    assert "source        found  about it  share  searched  judged     outcome" in ended.out
    assert "\x1b" not in ended.out + ended.err
