"""What a model wrote is cleared sentence by sentence, in pieces or as a whole."""

from __future__ import annotations

import pytest

from api.reports.draft_rules import DraftCleaner, DraftFlaws
from api.reports.exhibits import Exhibit
from api.reports.quotes import citable_text
from tests.services.kit import assessed, post, said

HOME, TALK = "https://www.example.org/reddit/x", "https://www.example.org/reddit/x/c_(1)"
ASKED = "https://maker.example/mug"
EXHIBITS = {
    "E1": Exhibit(
        "E1",
        assessed(post(0, body="40 of 2024. E27 fits.", comments=(said("", url=TALK),))),
    ),
    "E2": Exhibit("E2", assessed(post(1, "youtube")), "YouTube"),
    "E12": Exhibit("E12", assessed(post(2))),
}
GROUND = citable_text(EXHIBITS, [f"mug {ASKED}"], ["Reddit: kept 7 of 9"])


def cleared(text: str, size: int = 7) -> tuple[str, DraftCleaner]:
    """What stands of a chat's answer that comes in small pieces."""
    clearing = DraftCleaner(lambda _: GROUND, markdown=True)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return "".join(map(clearing.feed, pieces)) + clearing.close(), clearing


SOUND = [
    "It stays warm. [E1, E2]\n\n- Heavy [E12].\n  - but solid [E1]\n",
    "1. It lasts 40 hours [E1]\n2. It was new in 2024 [E2]",
    "They call it E27 and **love** it [E1].",
    "Seven of the posts say so, 9 do not [E1].",
    "とても良い。[E1]重い。[E2]「良い。」はい。",
    "# So\n\nIt is *warm*, a < b, R&D, 40 $ | _x_ ~ [E1]",
    "",
    "\n",
]  # fmt: skip


@pytest.mark.parametrize("text", SOUND)
def test_what_is_sound_stays_as_it_is(text: str) -> None:
    """Lists, emphasis, their own words and given numbers come out as they went in."""
    told, clearing = cleared(text)

    assert told == text
    assert not clearing.flaws


def test_what_a_quote_cites_is_their_word_and_no_citation() -> None:
    """A post cannot name another as its witness; words that no post holds are the model's own."""
    post_of = {"E1": Exhibit("E1", assessed(post(0, body="Warm [E2] mug.")))}
    ground = citable_text(EXHIBITS | post_of, [])
    shown = []
    for text in ("They write “Warm [E2] mug” [E1].", "They write “Hot [E2] mug” [E1]."):
        clearing = DraftCleaner(lambda _: ground, markdown=True)
        shown.append((clearing.whole(text), clearing.cited))

    assert shown == [
        ("They write “Warm (E2) mug” [E1].", ("E1",)),
        ("They write “Hot [E2] mug” [E1].", ("E2", "E1")),
    ]


UNSOUND = [
    ("It stays warm [E1, E9].", "It stays warm [E1].", DraftFlaws(citations=("E9",))),
    ("It stays warm [E9].", "It stays warm.", DraftFlaws(citations=("E9",))),
    ("It is warm. As E9 says, yes [E1]. Yes.", "It is warm. Yes.", DraftFlaws(citations=("E9",))),
    ("See [here](http://evil.example) [E1]", "See here [E1]", DraftFlaws(links=("http://evil.example",))),
    ("![x](//evil.example/(a)/b.png)", "x", DraftFlaws(links=("//evil.example/(a)/b.png",))),
    (f"![x]({HOME})", "x", DraftFlaws(links=(HOME,))),
    ("![](//evil.example) so", " so", DraftFlaws(links=("//evil.example",))),
    ("Go to https://evil.example/a?b.", "Go to.", DraftFlaws(links=("https://evil.example/a?b",))),
    ("見てhttps://evil.example/a。はい", "見て。はい", DraftFlaws(links=("https://evil.example/a",))),
    ("_https://evil.example_ (www.evil.example)", "__", DraftFlaws(
        links=("https://evil.example", "www.evil.example"))),
    ("<https://evil.example> so, very so", " so, very so", DraftFlaws(links=("https://evil.example",))),
    ("It costs 99 dollars. It is fine. [E1]", " It is fine. [E1]", DraftFlaws(numbers=("99",))),
    ("“It costs 99.” It is fine", " It is fine", DraftFlaws(numbers=("99",))),
    ("Some say “99.” It is fine", " It is fine", DraftFlaws(numbers=("99",))),
    ("It costs ９９ or ٩٩ euros. Yes.", " Yes.", DraftFlaws(numbers=("99",))),
    ("- It costs 99\n- Fine [E1]\n", "\n- Fine [E1]\n", DraftFlaws(numbers=("99",))),
    ("Three reviewers agree. Yes.", " Yes.", DraftFlaws(numbers=("three",))),
    ("It is 99 and E9. 99 again.", "", DraftFlaws(citations=("E9",), numbers=("99",))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "left", "flaws"), UNSOUND)
def test_what_is_unsound_goes_and_is_noted(text: str, left: str, flaws: DraftFlaws) -> None:
    """Unknown names, foreign links and numbers that nobody gave, each noted once."""
    told, clearing = cleared(text)

    assert told == left
    assert clearing.flaws == flaws


WRITTEN = [
    ("Good [E1](http://evil.example).", "Good [E1]."),
    ("Good [E1, E2](#cites) and [e1](e1).", "Good [E1, E2] and [E1]."),
    (f"See [the post]({HOME}) or <{TALK}>.", "See the post [E1] or [E1]."),
    (f"See [**{HOME}**]({HOME} 'title').", "See **[E1]** [E1]."),
    ("As E2 says [E12; E2] (E1 and E12): no.", "As E2 says [E12, E2] [E1, E12]\\: no."),
    ("很好【E1、E2】（E12）", "很好[E1, E2][E12]"),
    ("The bulb (E27) is an E27.", "The bulb (E27) is an E27."),
    ("[E1 - E2] and [E27, E1]", "[E1, E2] and [E1]"),
    (f"Ask {ASKED}, or a@b.example.", "Ask https\u200b://maker.example/mug, or a\u200b@b.example."),
    ("[x] `y` \\[z] &lt; &lbrack; <b> <!-- -->",
     "\\[x\\] \\`y\\` \\\\\\[z\\] &amp;lt; &amp;lbrack; &lt;b> &lt;!-- -->"),
    ("It is\x1b[31m red\u202e [E1]", "It is red [E1]"),
    ("[E1](no", "[E1]\\(no"),
    ("[E1]: https:evil", "[E1]\\: https\u200b:evil"),
    ("[E1][E2]{a}", "[E1][E2]\\{a}"),
    ("Good!\n[E1]\n(no)", "Good!\n[E1]\n(no)"),
    ("[a]()", "a"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "left"), WRITTEN)
def test_what_could_become_markup_is_ours_or_text(text: str, left: str) -> None:
    """A link to an exhibit is its citation; every other sign of a link, code or HTML is escaped."""
    assert cleared(text)[0] == left


@pytest.mark.parametrize("text", [*SOUND, *(case[0] for case in UNSOUND), *(case[0] for case in WRITTEN)])
def test_pieces_and_a_whole_are_cleared_alike(text: str) -> None:
    """Wherever the model's words are cut."""
    whole, clearing = cleared(text, len(text) or 1)

    for size in (1, 2, 3, 5):
        told, pieces = cleared(text, size)
        assert (told, pieces.cited) == (whole, clearing.cited)
        assert pieces.flaws == clearing.flaws


def test_citations_are_in_the_order_of_first_mention() -> None:
    """In brackets of any kind, in the middle of a sentence, and none of a sentence that went."""
    clearing = cleared("As E2 says [E12; E2], 99. So E2 says [E12; E2] and (E1): no. E27")[1]

    assert clearing.cited == ("E2", "E12", "E1")


def test_nothing_is_passed_on_before_its_sentence_is_complete() -> None:
    """A citation may still come apart, so a piece waits for the end of its sentence."""
    clearing = DraftCleaner(lambda _: GROUND, markdown=True)

    assert clearing.feed("It stays warm [E") == ""
    assert clearing.feed("1]. It is hea") == "It stays warm [E1]."
    assert clearing.close() == " It is hea"


def test_a_citation_in_one_piece_is_no_link_with_the_next() -> None:
    """What follows in another sentence's piece is guarded too."""
    clearing = DraftCleaner(lambda _: GROUND, markdown=True)

    told = clearing.feed("良い。[E1]。") + clearing.close() + clearing.feed("(no)") + clearing.close()
    bare = clearing.feed("[E1]") + clearing.close() + clearing.feed("(no)") + clearing.close()

    assert told == "良い。[E1]。(no)"
    assert bare == "[E1]\\(no)"


def test_plain_text_names_places_and_no_exhibits() -> None:
    """What a report says is read without labels; line breaks stay for who wants them."""
    clearing = DraftCleaner(lambda _: GROUND, markdown=False)

    told = clearing.whole(f"Warm [E1].\nAs E2 says <b> (E27), see {HOME} or [it]({TALK}).")

    assert told == f"Warm.\nAs YouTube says <b> (E27), see {HOME} or it."
    assert (clearing.cited, bool(clearing.flaws)) == (("E1", "E2"), False)


def test_the_numbers_of_cited_exhibits_alone_can_count() -> None:
    """An exhibit that is not cited may be named still."""
    ground = citable_text(EXHIBITS, ["mug"], cited=["E2"])

    assert ground.addresses[HOME] == "E1"
    assert (ground.holds("40"), GROUND.holds("40"), GROUND.holds("seven")) == (False, True, True)


@pytest.mark.parametrize("size", [1, 3, 7, 999])
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is warm [E2]. It is heavy [E1].", " It is heavy [E1]."),
        ("It is warm [E2, E1].", "It is warm [E1]."),
        ("It is warm. [E2] [E2] It is heavy. [E1]\nYes.", " It is heavy. [E1]\nYes."),
        ("Heavy. [Er] (Ernst) (E2) No. [E1]", "Heavy. \\[Er\\] (Ernst) No. [E1]"),
        ("良い。[E2]重い。[E1]", "重い。[E1]"),
        ("It is as E2 says. Yes.", " Yes."),
    ],
)
def test_a_sentence_that_rests_on_something_else_goes(text: str, kept: str, size: int) -> None:
    """With its citation, which may stand behind its full stop."""
    ground = citable_text({"E1": EXHIBITS["E1"]}, [], ["[E2] was said"], elsewhere=["E2"])
    clearing = DraftCleaner(lambda _: ground, markdown=True)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]

    told = "".join(map(clearing.feed, pieces)) + clearing.close()

    assert told == kept
    assert clearing.flaws == DraftFlaws(citations=("E2",))


def test_each_sentence_has_its_own_ground() -> None:
    """Whoever gives it reads the sentence."""
    empty = citable_text({}, [])
    clearing = DraftCleaner(lambda text: GROUND if "mug" in text else empty, markdown=True)

    assert clearing.whole("A mug [E1]. A pen [E1].") == "A mug [E1]. A pen."


def test_what_a_model_is_told_is_bounded() -> None:
    """
    Of thousands of wrong things the first few, each cut, and how many more there are.
    """
    many = tuple(f"E{number}: {'word ' * 200}" for number in range(2000))
    advice = DraftFlaws(citations=("E8", "E9"), numbers=many, passages=many).advice

    assert len(advice) < 3000
    assert "these are no exhibits: E8, E9;" in advice
    assert advice.count("and 1990 more") == 2
