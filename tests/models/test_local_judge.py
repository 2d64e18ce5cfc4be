"""The judge without a key: what it keeps, that it needs nothing, and what it says it is."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from api.core.domain import Question, Usage, Verdict
from api.core.items import Item
from api.models.local.judge import THRESHOLD, LocalJudge, probabilities, profiles
from api.models.local.judge_features import AGAINST, FEATURES, FOR
from api.models.local.word_vectors import vectors
from tests.models.items import item

NEEDS_VECTORS = pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")
ABOUT = "the AI voice recorder with its app"
PLAUD = [
    "Plaud Note after six months\nThe recorder still holds a charge for a week, the app is slow.",
    "Is plaud ai worth it?\nI record meetings and want a summary.",
    "Best sourdough starter\nFeed it twice a day and keep it warm.",
    "My cat is asleep\nShe sleeps all day.",
]
OFFLINE = """
import socket, sys, time
class Refused(socket.socket):
    def __init__(self, *a, **k):
        raise SystemExit("a socket was opened")
socket.socket = Refused
socket.create_connection = lambda *a, **k: sys.exit("a connection was opened")
from api.models.local.judge import probabilities
found = probabilities("plaud.ai", "", ["My Plaud broke", "a cat"], "reddit")
assert found[0] > 0.5 > found[1], found
"""


def verdicts(question: Question, items: list[Item], source: str = "reddit") -> list[Verdict]:
    """What the judge says of a page."""
    return LocalJudge().verdicts(question, items, source)


def test_it_keeps_what_names_the_product() -> None:
    """Posts about it pass, posts about something else do not."""
    found = probabilities("plaud.ai", ABOUT, PLAUD, "reddit")
    assert [chance >= THRESHOLD for chance in found] == [True, True, False, False]


@pytest.mark.parametrize("spelling", ["plaud ai", '"plaud.ai"', "“plaud ai”", " Plaud.AI "])
def test_spellings_of_a_name_get_the_same_verdicts(spelling: str) -> None:
    """A web ending after a blank or a dot, quoted or not, in any case."""
    texts = [*PLAUD, "Why audiences applaud at the wrong moment (explained with AI)"]
    kept = [chance >= THRESHOLD for chance in probabilities(spelling, "", texts, "youtube")]
    assert kept == [True, True, False, False, False]


def test_lower_case_changes_no_verdict() -> None:
    """Neither of the question nor of the texts."""
    as_typed = probabilities("Plaud", ABOUT, PLAUD, "reddit")
    assert probabilities("plaud", ABOUT.lower(), PLAUD, "reddit") == as_typed
    lower = probabilities("Plaud", ABOUT, [text.lower() for text in PLAUD], "reddit")
    assert [a >= THRESHOLD for a in lower] == [a >= THRESHOLD for a in as_typed]


def test_without_vectors_it_decides_by_names() -> None:
    """The lexical weights alone keep the same two."""
    judge = LocalJudge(load=lambda: None)
    items = [item(*text.split("\n")) for text in PLAUD]
    found = judge.verdicts(Question("plaud.ai", ABOUT), items, "reddit")
    assert [verdict.relevant for verdict in found] == [True, True, False, False]


async def test_verdicts_carry_name_probability_and_reason() -> None:
    """It costs nothing."""
    judge = LocalJudge()
    judgement = await judge.judge(Question("plaud.ai"), [item("My Plaud broke"), item("a cat")], "reddit")
    assert [verdict.relevant for verdict in judgement.verdicts] == [True, False]
    assert {verdict.judge for verdict in judgement.verdicts} == {judge.name, judgement.model}
    for verdict in judgement.verdicts:
        assert verdict.probability is not None
        assert verdict.relevant is (verdict.probability >= THRESHOLD)
    assert [verdict.reason for verdict in judgement.verdicts] == [
        "names plaud.ai",
        "names no plaud.ai",
    ]
    assert judgement.usage == Usage()


async def test_it_works_in_a_thread() -> None:
    """The event loop waits neither for the vectors nor for the verdicts."""
    threads = []

    def load() -> None:
        threads.append(threading.get_ident())

    await LocalJudge(load=load).judge(Question("Oura"), [item("Oura ring")], "reddit")
    assert threads[0] != threading.get_ident()


async def test_it_says_that_vectors_are_missing() -> None:
    """Where the wheel is not installed the name ends in `-lexical`."""
    judge = LocalJudge(load=lambda: None)
    judgement = await judge.judge(Question("Oura"), [item("Oura ring")], "reddit")
    assert judgement.model == "local-3-lexical" == judge.name
    assert judgement.verdicts[0].relevant


async def test_no_items_need_no_vectors() -> None:
    """An empty page has no verdicts."""
    assert (await LocalJudge().judge(Question("Oura"), [], "reddit")).verdicts == ()


@pytest.mark.parametrize("query", ["", "?", "🙂", "of the", "HP", "小米", "x" * 5000, "a b c d e f g"])
@pytest.mark.parametrize("source", ["reddit", "amazon", "elsewhere"])
def test_any_question_gets_probabilities(query: str, source: str) -> None:
    """Odd questions and texts are judged, within 0 and 1."""
    texts = ["", "\n", "🙂🙂", "小米 手机", "word " * 400, "\x00"]
    found = probabilities(query, query, texts, source)
    assert len(found) == len(texts)
    assert all(0 <= chance <= 1 for chance in found)


def test_the_same_page_gets_the_same_answer() -> None:
    """Bit by bit, and nothing is remembered between pages."""
    first = probabilities("plaud.ai", ABOUT, PLAUD, "reddit")
    probabilities("Oura", "", ["Oura ring"], "reddit")
    assert probabilities("plaud.ai", ABOUT, PLAUD, "reddit") == first


@NEEDS_VECTORS
def test_a_description_tells_namesakes_apart() -> None:
    """The same sentences change places when the description changes."""
    texts = [
        "java 11 brings a new garbage collector for the compiler",
        "the volcano is on java , west of bali and its beaches",
    ]
    items = [item("", text) for text in texts]
    code = verdicts(Question("java", "the programming language"), items)
    land = verdicts(Question("java", "the island in Indonesia"), items)
    assert (code[0].probability or 0) > (code[1].probability or 0)
    assert (land[1].probability or 0) > (land[0].probability or 0)


@NEEDS_VECTORS
def test_a_description_never_speaks_against_a_post_that_names_the_thing() -> None:
    """It may be written clumsily, or say what the post does not."""
    items = [item("Leaving Zorvex after a year", "The export is slow."), item("zorvex down again")]
    alone = verdicts(Question("Zorvex"), items)
    told = verdicts(Question("Zorvex", "a brand of left-handed garden shears"), items)
    for with_it, without in zip(told, alone, strict=True):
        assert (with_it.probability or 0) >= (without.probability or 0)


@NEEDS_VECTORS
def test_the_other_posts_of_a_page_teach() -> None:
    """A text without the name is likelier beside posts with it that sound the same."""
    nameless = item("", "the summary of the meeting is wrong and the recorder beeps")
    beside = [item(*text.split("\n")) for text in PLAUD[:2]]
    question = Question("plaud.ai")
    alone = verdicts(question, [nameless])[0].probability or 0
    assert (verdicts(question, [nameless, *beside])[0].probability or 0) > alone


async def test_a_place_named_after_it_is_about_it() -> None:
    """A post in r/PlaudNote need not name it; one by the brand itself neither."""
    post = item("Battery gone after an update", "It was at 100 % this morning.")
    kept = [
        verdicts(Question("Plaud"), [made])[0]
        for made in (
            post,
            post.edited(place="PlaudNote"),
            post.edited(place="gadgets"),
            post.edited(author="Plaud Official"),
        )
    ]
    assert [verdict.relevant for verdict in kept] == [False, True, False, True]
    assert kept[1].reason == "stands in a place of Plaud"


def test_signs_hold() -> None:
    """No weight speaks against its feature's direction, in any profile."""
    kinds = {"titled", "untitled", "listing"}
    assert set(profiles()) == kinds | {f"{kind}-lexical" for kind in kinds}
    for profile in profiles().values():
        assert set(profile.weights) <= set(FEATURES)
        assert all(profile.weights.get(name, 0) >= 0 for name in FOR)
        assert all(profile.weights.get(name, 0) <= 0 for name in AGAINST)


@NEEDS_VECTORS
def test_no_socket_is_opened() -> None:
    """From import to verdict, with sockets made impossible."""
    done = subprocess.run([sys.executable, "-c", OFFLINE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@NEEDS_VECTORS
def test_loading_leaves_logging_alone() -> None:
    """Importing the package would set up the root logger; its files are read instead."""
    code = "from api.models.local.word_vectors import vectors; import logging, sys; vectors(); "
    code += "assert not logging.getLogger().handlers and 'wordllama' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)


def test_importing_the_judge_loads_nothing_heavy() -> None:
    """Vectors and numpy come with the first question."""
    code = "import sys, api.models.local.judge; assert not {'numpy', 'tokenizers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)
