"""What a description excludes, and which words, authors and sites a question leaves out."""

from __future__ import annotations

import pytest

from api.choices import MAX_BLOCKED, MAX_BLOCKED_LENGTH, MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS
from api.core.items import Comment, Item, pseudonym
from api.errors import UsageError
from api.pipeline.question.exclusions import Blocklist, exclusions_of, split_exclusions


@pytest.mark.parametrize(
    ("about", "left", "excluded"),
    [
        ("the payments company; not a crochet square", "the payments company", ["crochet square"]),
        ("the browser (not Arc Raiders)", "the browser", ["Arc Raiders"]),
        ("the notes app, not the PreSonus program or the philosophy term", "the notes app",
         ["PreSonus program", "philosophy term"]),
        ("the browser — not the game Arc Raiders, electric arcs (of light), or architecture",
         "the browser", ["game Arc Raiders", "electric arcs (of light)", "architecture"]),
        ("the soap, not a bird, made by Unilever", "the soap, made by Unilever", ["bird"]),
        ("not the fruit", "", ["fruit"]),
        ("the maker of phones but not the fruit", "the maker of phones", ["fruit"]),
        ("der Bezahldienst, nicht die Häkelform", "der Bezahldienst", ["Häkelform"]),
        ("an app that does not sync", "an app that does not sync", []),
        ("the notes app", "the notes app", []),
        ("", "", []),
    ],
)  # fmt: skip
def test_negated_clauses_are_exclusions(about: str, left: str, excluded: list[str]) -> None:
    """A clause that begins with a negation goes; a negation inside a sentence stays."""
    assert split_exclusions(about) == (left, tuple(excluded))


def test_exclusions_are_bounded_and_each_stands_once() -> None:
    """However many and long they are."""
    texts = ["the fruit", "The fruit."[4:], "x" * 999, *(f"thing {n}" for n in range(99))]

    excluded = exclusions_of(texts)

    assert excluded[0] == "fruit"
    assert len(excluded) == MAX_EXCLUSIONS
    assert max(map(len, excluded)) <= MAX_EXCLUSION_LENGTH
    assert len(set(excluded)) == MAX_EXCLUSIONS


def post(title: str = "Ember mug", body: str = "", **fields: str | None) -> Item:
    """A post on Reddit."""
    return Item(key="reddit:1", id="1", source="reddit", title=title, body=body, **fields)


def reason(blocklist: Blocklist, item: Item) -> str:
    """Why the blocklist leaves an item out."""
    return blocklist.reason(item, blocklist.word_pattern())


@pytest.mark.parametrize(
    ("word", "text", "is_out"),
    [
        ("giveaway", "GIVEAWAY: win a mug", True),
        ("giveaway", "Giveaways are fun", False),
        ("credit card", "my credit-card was charged", True),
        ("credit card", "my credit and my card", False),
        ("#ad", "So warm #ad", True),
        ("#ad", "an ad for it", False),
        ("C++", "written in C++.", True),
        ("C++", "written in C", False),
        ("cafe", "im Café getrunken", True),
        ("手环", "小米手环很好", True),
        ("🎁", "free 🎁 inside", True),
        ("a.b", "axb", False),
        ("Q & A", "a Q & A with them", True),
        ("Ring - Doorbell", "the Ring - Doorbell", True),
        ("50 € off", "now 50 € off", True),
        ("& co", "Ember & co", True),
    ],
)
def test_a_word_is_whole_in_any_case(word: str, text: str, is_out: bool) -> None:
    """In the title as in the text; no character of it is a pattern."""
    blocklist = Blocklist.of([word], [], [])

    wanted = f"has “{word}”" if is_out else ""
    assert reason(blocklist, post(text)) == reason(blocklist, post(body=text)) == wanted
    comment = Comment(id="c", body=text)
    assert blocklist.leaves_out(comment, None, blocklist.word_pattern()) is is_out


@pytest.mark.parametrize(
    ("name", "author", "place"),
    [
        ("u/ada", pseudonym("redditor", "ada"), "r/mugs"),
        ("@ada", pseudonym("hn", "ada"), None),
        ("ada", pseudonym("gh", "ada"), "ember/mug"),
        ("ada", pseudonym("member", "ada@discuss.example.org"), "discuss.example.org"),
        ("@ada@lemmy.world", pseudonym("lemming", "https://lemmy.world/u/ada"), "mugs@lemmy.ml"),
        ("https://lemmy.world/u/ada", pseudonym("lemming", "https://lemmy.world/u/ada"), "mugs@lemmy.ml"),
        ("ada", pseudonym("viewer", "@ada"), "Mugs on film"),
        ("Ada B.", "Ada B.", None),
        ("ada b.", "Ada B.", None),
        ("U/ADA", pseudonym("redditor", "Ada"), "r/mugs"),
        ("ada", pseudonym("gh", "Ada"), "ember/mug"),
        ("@Ada@Lemmy.World", pseudonym("lemming", "https://lemmy.world/u/ada"), "mugs@lemmy.ml"),
    ],
)
def test_an_author_is_named_as_the_place_writes_them(name: str, author: str | None, place: str | None) -> None:
    """The pseudonym is made of the name in each form that a source makes one from; somebody else stays."""
    blocklist = Blocklist.of([], [name], [])
    item = post(author=author, place=place)

    assert reason(blocklist, item) == "its author is left out"
    assert blocklist.leaves_out(Comment(id="c", body="warm", author=author), place, None)
    assert reason(blocklist, post(author=pseudonym("redditor", "bob"), place=place)) == ""
    assert reason(blocklist, post(author=None, place=place)) == ""


@pytest.mark.parametrize(
    ("site", "address", "is_out"),
    [
        ("example.com", "https://example.com/x", True),
        ("https://www.Example.com/", "http://shop.example.com/x?y=1", True),
        ("example.com", "https://notexample.com/x", False),
        ("example.com/deals", "https://www.example.com/deals/7", True),
        ("example.com/deals", "https://www.example.com/dealsplus", False),
        ("reddit.com/r/deals", "https://old.reddit.com/r/Deals/comments/1/x/", True),
        ("example.com", "https://example.com?utm=1", True),
        ("example.com", "https://example.com#a", True),
        ("example.com:8080", "https://somebody@example.com:443/x", True),
        ("example.com", "https://example.com.elsewhere.example/x", False),
    ],
)
def test_a_site_is_left_out_with_its_subdomains(site: str, address: str, is_out: bool) -> None:
    """By the post's own address as by that of a link post."""
    blocklist = Blocklist.of([], [], [site])

    assert bool(reason(blocklist, post(url=address))) is is_out
    assert bool(reason(blocklist, post(link=address, url="https://reddit.com/r/mugs"))) is is_out


def test_a_place_is_a_site() -> None:
    """A subreddit, channel or forum by its name, with or without the first slash."""
    blocklist = Blocklist.of([], [], ["/r/Deals"])

    assert reason(blocklist, post(place="r/deals")) == "from r/deals"
    assert reason(blocklist, post(place="r/deal")) == reason(blocklist, post(place=None)) == ""


@pytest.mark.parametrize(
    ("lists", "field"),
    [
        ((["\u200b"], [], []), "exclude"),
        (([], ["@"], [" "]), "exclude_sites"),
        (([], [], ["https://"]), "exclude_sites"),
        (([f"word {n}" for n in range(MAX_BLOCKED + 1)], [], []), "exclude"),
        (([], ["a" * (MAX_BLOCKED_LENGTH + 1)], []), "exclude_authors"),
    ],
)
def test_what_names_nothing_is_refused(lists: tuple[list[str], list[str], list[str]], field: str) -> None:
    """It would leave out nothing, or everything; so is more than the bounds."""
    with pytest.raises(UsageError) as caught:
        Blocklist.of(*lists)

    assert caught.value.field == field


def test_a_long_text_is_searched_in_one_pass() -> None:
    """Fifty phrases over a text of a million characters that begins each of them again and again."""
    blocklist = Blocklist.of([f"mug {'very ' * 10}{n}" for n in range(MAX_BLOCKED)], [], [])

    assert reason(blocklist, post(body="mug very very " * 20_000)) == ""
