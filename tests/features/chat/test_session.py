"""What a chat session remembers, and what is left of it when it is saved."""

from __future__ import annotations

import json

import pytest

from api.core.items import Comment
from api.features.chat.session import BYTES, EXHIBITS, LOOKS, TURNS, VERSION, Exchange, Lookup, Session, restored
from tests.features.chat.new_session import PRODUCT, session
from tests.services.kit import assessed, post


def again(one: Session) -> Session:
    """The same after a restart."""
    back = restored(one.id, one.tenant, PRODUCT.start(), one.save())
    assert back is not None
    return back


def turn(one: Session, *cited: str, question: str = "mug?") -> None:
    """One turn that cites these."""
    one.close(Exchange(question, "It is fine."), cited)


def test_what_was_said_and_shown_survives_a_restart() -> None:
    """Exhibits keep their numbers, words and look-ups, and new ones get the next number."""
    one = session()
    one.remember(Lookup("reddit", "Ember Mug", "quick", "kept 2", ["E1", "E2"]))
    one.show([assessed(post(1)), assessed(post(2))])
    turn(one, "E1")

    back = again(one)

    assert dict(back.exhibits) == dict(one.exhibits)
    assert (back.questions_text, back.exchanges, back.number) == ("mug?", one.exchanges, 1)
    known = back.lookup("reddit", "ember-mug", "quick")
    assert known is not None
    assert (known.line, known.labels) == ("kept 2", ["E1", "E2"])
    assert [x.label for x in back.show([assessed(post(2)), assessed(post(9))])] == ["E2", "E3"]


def test_a_look_up_is_known_by_source_name_and_depth() -> None:
    """Another spelling is the same; another source, or a deeper look, is not."""
    one = session()
    one.remember(Lookup("reddit", "Plaud.ai", "standard", "kept 2", []))

    assert one.lookup("reddit", "plaud ai", "quick") is not None
    assert one.lookup("reddit", "plaud ai", "standard") is not None
    assert one.lookup("reddit", "plaud ai", "deep") is None
    assert one.lookup("youtube", "plaud ai", "quick") is None
    assert one.lookup("reddit", "plaud note", "quick") is None


def test_what_is_not_cited_lately_is_let_go_and_its_number_stays_taken() -> None:
    """With its look-up, so that it can be found again."""
    one = session()
    one.show([assessed(post(1)), assessed(post(2))])
    one.remember(Lookup("reddit", "mug", "quick", "kept 2", ["E1", "E2"]))
    for _ in range(TURNS + 1):
        turn(one, "E2")

    back = again(one)

    assert list(back.exhibits) == ["E2"]
    assert back.lookup("reddit", "mug", "quick") is None
    assert len(back.exchanges) == TURNS
    assert [x.label for x in back.show([assessed(post(1))])] == ["E3"]
    assert [x.label for x in one.show([assessed(post(1))])] == ["E1"]


def test_there_is_a_most_of_everything() -> None:
    """Exhibits and look-ups beyond it go, the oldest first."""
    one = session()
    one.show([assessed(post(n)) for n in range(EXHIBITS + 5)])
    for n in range(LOOKS + 5):
        one.remember(Lookup("reddit", f"mug{n}", "quick", "none", []))
    turn(one)

    assert len(one.exhibits) == EXHIBITS
    assert len(one.looks) == LOOKS
    assert one.lookup("reddit", "mug4", "quick") is None


def test_a_saved_session_is_bounded() -> None:
    """Long texts are cut; if that does not do, half of the exhibits go, then half of the words."""
    one = session()
    long = Comment(id="c", body="y" * 9000)
    one.show([assessed(post(n).edited(body="é" * 50_000, comments=(long,) * 30))
              for n in range(EXHIBITS)])  # fmt: skip
    turn(one, "E60")
    text = one.save()
    wordy = session()
    for n in range(TURNS):
        turn(wordy, question=f"{n}" * BYTES)

    assert 0.2 * BYTES < len(text.encode()) <= BYTES
    assert len(one.exhibits) == EXHIBITS // 2
    assert len(json.loads(text)["exhibits"][0]["assessed"]["item"]["comments"]) == 8
    assert len(wordy.save().encode()) <= BYTES
    assert wordy.exchanges == []


def test_the_prompt_shows_what_fits_the_question_and_was_used_lately() -> None:
    """In the order of the numbers."""
    one = session()
    one.show([assessed(post(n)) for n in range(4)])
    one.show([assessed(post(7, title="The battery of the mug"))])
    turn(one)
    turn(one, "E3")

    def labels(limit: int) -> list[str]:
        return [exhibit.label for exhibit in one.best("and the battery?", limit)[""]]

    assert labels(2) == ["E3", "E5"]
    assert labels(9) == ["E1", "E2", "E3", "E4", "E5"]


def test_an_exhibit_knows_what_it_was_found_for() -> None:
    """After a restart too; found for two, it stands for both, and under what is asked about."""
    one = session()
    for query, numbers in (("plaud.ai", [1, 2]), ("Ember mug", [2, 3])):
        one.show([assessed(post(n)) for n in numbers], one.subjects_of(query))
    one.show([assessed(post(4))])
    one.close(Exchange("mug?", "Fine."), ["E1"], ["ember mug"])

    back = again(one)

    assert (back.subjects, back.last_subjects) == (["plaud", "ember mug"], ["ember mug"])
    assert list(back.exhibits_for(["plaud"])) == ["E1", "E2", "E4"]
    assert list(back.exhibits_for(["ember mug"])) == ["E2", "E3", "E4"]
    assert list(back.exhibits_for([])) == ["E4"]

    def groups(*subjects: str, limit: int = 9) -> dict[str, list[str]]:
        best = back.best("?", limit, subjects)
        return {name: [exhibit.label for exhibit in group] for name, group in best.items()}

    assert list(groups("ember mug").items()) == [
        ("ember mug", ["E2", "E3"]), ("plaud", ["E1"]), ("", ["E4"]),
    ]  # fmt: skip
    assert groups("plaud", limit=2) == {"plaud": ["E1", "E2"]}


def test_a_query_with_more_words_is_on_the_same_product() -> None:
    """Also when the longer one came first; the shorter name then stands for both."""
    one = session()
    one.show([assessed(post(1))], one.subjects_of("ember mug battery"))
    one.show([assessed(post(2))], one.subjects_of("oura"))
    one.close(Exchange("mug?", "Fine."), [], ["ember mug battery"])

    named = [one.subjects_of(query) for query in ("Ember mug", "ember mug lid", "ember mug vs oura")]

    assert named == [("ember mug",), ("ember mug",), ("ember mug", "oura")]
    assert (one.subjects, one.last_subjects) == (["ember mug", "oura"], ["ember mug"])
    assert list(one.exhibits_for(["ember mug"])) == ["E1"]
    assert one.subjects_of("ember mug 2") == ("ember mug 2",)


@pytest.mark.parametrize("query", ["ember mug lid vs ember mug", "compare ember mug with ember mug lid"])
def test_a_product_and_its_part_in_one_query_are_one_subject(query: str) -> None:
    """In any order; a prompt can be made of what was found, after a restart too."""
    talk = session()
    subjects = talk.subjects_of(query)
    talk.show([assessed(post(1))], subjects)
    talk.close(Exchange(query, "Fine."), ["E1"], subjects)

    assert subjects == talk.current_names(["ember mug lid"]) == ("ember mug",)
    for kept in (talk, again(talk)):
        assert [*kept.best("?", 9, kept.last_subjects)] == ["ember mug"]


def test_a_subject_without_exhibits_is_let_go() -> None:
    """Once it is not what was asked last."""
    one = session()
    one.show([assessed(post(1))], one.subjects_of("oura"))
    one.close(Exchange("sonos?", "None."), [], one.subjects_of("sonos"))
    before = list(one.subjects)
    one.close(Exchange("oura?", "Fine."), ["E1"], ["oura"])

    assert (before, one.subjects) == (["oura", "sonos"], ["oura"])


def test_a_session_of_an_older_release_is_read() -> None:
    """Its exhibits may stand for anything, since nobody knows what they were found for."""
    one = session()
    one.show([assessed(post(1))], one.subjects_of("oura"))
    turn(one, "E1")
    saved = json.loads(one.save())
    del saved["subjects"], saved["asked"], saved["sample"], saved["exhibits"][0]["subjects"]
    saved["exchanges"][0]["messages"] = [{"kind": "request"}]

    back = restored("s1", "ada", PRODUCT.start(), json.dumps(saved))

    assert back is not None
    assert (back.subjects, back.last_subjects, back.sample) == ([], [], False)
    assert list(back.exhibits_for(["ember mug"])) == ["E1"]


@pytest.mark.parametrize("text", ["", "null", "[]", '{"version": 1}', "{"])
def test_what_cannot_be_read_is_no_session(text: str) -> None:
    """A damaged text is nobody's fault that a turn should end by."""
    assert restored("s1", "ada", PRODUCT.start(), text) is None


def test_another_version_is_no_session() -> None:
    """What a newer release saved is not guessed at."""
    saved = json.loads(session().save())

    assert saved["version"] == VERSION
    assert restored("s", "a", PRODUCT.start(), json.dumps(saved | {"version": 99})) is None


def test_an_item_s_key_stands_in_its_own_entry_only() -> None:
    """So that an item which its upstream deleted can be taken out of the text as an entry."""
    one = session()
    one.show([assessed(post(1)), assessed(post(2))])
    one.remember(Lookup("reddit", "mug", "quick", "kept 2", ["E1", "E2"]))
    turn(one, "E1", "E2")

    saved = json.loads(one.save())
    saved["exhibits"] = [entry for entry in saved["exhibits"] if entry["key"] != "reddit:1"]
    back = restored("s1", "ada", PRODUCT.start(), json.dumps(saved))

    assert "reddit:1" not in json.dumps(saved)
    assert back is not None
    assert list(back.exhibits) == ["E2"]
    assert back.looks == []
