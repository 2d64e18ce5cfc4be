"""Kept answers: found again, torn lines skipped, folders that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.core.domain import Question, Usage
from api.core.items import Item
from api.errors import ConfigurationError
from api.evaluation.judge_evaluation import AnswerCache, page_key
from api.evaluation.judge_scores import Answered, Opinion

KEPT = Answered((Opinion(True, 0.9), Opinion(False, score=2)), Usage(10, 2, None), 0.5)


def item(title: str) -> Item:
    """An item with this title."""
    return Item(key="reddit:0", id="0", source="reddit", title=title)


def test_an_answer_is_found_by_another_process(tmp_path: Path) -> None:
    """What was put is there for whoever opens the folder next, unknown price included."""
    AnswerCache(tmp_path / "new", "gpt").put("a", KEPT)

    again = AnswerCache(tmp_path / "new", "gpt")
    assert again.get("a", 2) == KEPT
    assert again.get("b", 2) is None
    assert again.get("a", 3) is None


def test_judges_do_not_share_answers(tmp_path: Path) -> None:
    """Names that look alike as file names are kept apart."""
    AnswerCache(tmp_path, "gpt/4").put("a", KEPT)

    assert AnswerCache(tmp_path, "gpt:4").get("a", 2) is None
    assert AnswerCache(tmp_path, "gpt/4").get("a", 2) == KEPT


def test_a_torn_last_line_is_skipped_and_the_next_one_is_whole(tmp_path: Path) -> None:
    """Every cut of the last line loses that page alone, and never the page written after it."""
    AnswerCache(tmp_path, "gpt").put("a", KEPT)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    AnswerCache(tmp_path, "gpt").put("b", KEPT)
    both = file.read_bytes()

    for end in range(len(whole) + 1, len(both) - 1, 7):
        file.write_bytes(both[:end])
        cut = AnswerCache(tmp_path, "gpt")
        assert (cut.get("a", 2), cut.get("b", 2)) == (KEPT, None)
        cut.put("c", KEPT)
        assert AnswerCache(tmp_path, "gpt").get("c", 2) == KEPT


@pytest.mark.parametrize("line", [b"\xff\xfe", b"[]", b"7", b'{"key": "a"}', b'{"key": "a", "opinions": [{"odd": 1}]}'])
def test_a_strange_line_is_no_answer(tmp_path: Path, line: bytes) -> None:
    """Whatever stands in the file, it is read or skipped."""
    AnswerCache(tmp_path, "gpt").put("a", KEPT)
    (file,) = tmp_path.iterdir()
    file.write_bytes(line + b"\n" + file.read_bytes())

    assert AnswerCache(tmp_path, "gpt").get("a", 2) == KEPT


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A file where the folder should be, and a file that vanished into a folder."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match="name a folder you can write to"):
        AnswerCache(tmp_path / "file", "gpt")

    cache = AnswerCache(tmp_path / "folder", "gpt")
    (made,) = (tmp_path / "folder").iterdir()
    made.unlink()
    made.mkdir()
    with pytest.raises(ConfigurationError, match="cache"):
        cache.put("a", KEPT)


def test_the_key_covers_all_an_answer_depends_on() -> None:
    """Judge, template, question, context, source and every text; lone surrogates included."""
    ask = Question("mug", "the cup")
    keys = [
        page_key("gpt", "prompt", ask, "reddit", [item("a"), item("b")]),
        page_key("other", "prompt", ask, "reddit", [item("a"), item("b")]),
        page_key("gpt", "changed", ask, "reddit", [item("a"), item("b")]),
        page_key("gpt", "prompt", Question("mug"), "reddit", [item("a"), item("b")]),
        page_key("gpt", "prompt", ask, "amazon", [item("a"), item("b")]),
        page_key("gpt", "prompt", ask, "reddit", [item("ab")]),
        page_key("gpt", "prompt", ask, "reddit", [item("\ud800")]),
    ]

    assert len(set(keys)) == len(keys)
    assert keys[0] == page_key("gpt", "prompt", ask, "reddit", [item("a"), item("b")])
