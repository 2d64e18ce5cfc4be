"""A watch's runs as a feed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from api.features.watches.notification import run_text
from api.features.watches.watch_run import WatchRun
from api.interfaces.shared.watch_view import atom
from tests.features.comparisons.made import PLACES
from tests.features.watches.example_run import POST, run
from tests.features.watches.made import MONDAY, WATCH

ATOM = "{http://www.w3.org/2005/Atom}"
MINE = replace(WATCH, id="3f" * 16, name="Ember <&> co")
FIRST, SECOND = "a1" * 16, "b2" * 16


def feed(*runs: WatchRun) -> ElementTree.Element:
    """As a reader reads it."""
    return ElementTree.fromstring(atom(MINE, runs, PLACES))


def words(element: ElementTree.Element, name: str) -> str:
    """Of the only child of this name."""
    (child,) = element.findall(f"{ATOM}{name}")
    return child.text or ""


def test_feed_has_what_the_standard_asks() -> None:
    """An id, a title, a time and an author; each entry an id, a title, a time and words."""
    runs = (
        run(id=SECOND, new=(POST,), created_at=MONDAY + timedelta(days=7)),
        run(id=FIRST, new=(POST,)),
    )
    read = feed(*runs)
    assert read.tag == f"{ATOM}feed"
    assert words(read, "id") == "urn:uuid:3f3f3f3f-3f3f-3f3f-3f3f-3f3f3f3f3f3f"
    assert words(read, "title") == "Ember <&> co"
    assert words(read, "updated") == "2026-11-09T08:00:00Z"
    assert words(read.find(f"{ATOM}author") or read, "name") == "Listenpost"
    newest, oldest = read.findall(f"{ATOM}entry")
    assert words(oldest, "id") == "urn:uuid:a1a1a1a1-a1a1-a1a1-a1a1-a1a1a1a1a1a1"
    assert words(oldest, "title") == "Ember <&> co: 1 new post since 2026-11-02 08:00Z"
    assert [words(entry, "updated") for entry in (newest, oldest)] == [
        "2026-11-09T08:00:00Z", "2026-11-02T08:00:00Z",
    ]  # fmt: skip
    (link,) = oldest.findall(f"{ATOM}link")
    assert link.attrib == {"rel": "related", "href": "https://r.example/1"}
    assert atom(MINE, runs, PLACES) == atom(MINE, runs, PLACES)


def test_words_are_those_of_the_message() -> None:
    """As HTML, a line each, in which an address opens and a stranger's tag is text."""
    hostile = run(id=FIRST, new=(POST.model_copy(update={"title": "<script>x</script> ]]> &lt;"}),))
    (entry,) = feed(hostile).findall(f"{ATOM}entry")
    html = words(entry, "content").splitlines()
    assert (entry.find(f"{ATOM}content") or entry).get("type") in {"html", None}
    assert html[1] == "- &lt;script&gt;x&lt;/script&gt; ]]&gt; &amp;lt; (Reddit, 2026-11-02)<br>"
    assert html[2] == "“I hate the battery.”<br>"
    assert html[3] == '<a href="https://r.example/1">https://r.example/1</a><br>'
    assert len(html) == len(run_text(MINE, hostile, PLACES).splitlines())


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", 'https://a.example/"onclick=x', "//a.example"],
)
def test_nothing_but_the_web_is_linked(url: str) -> None:
    """Whatever a post calls its address."""
    (entry,) = feed(run(id=FIRST, new=(POST.model_copy(update={"url": url}),))).findall(f"{ATOM}entry")
    assert entry.findall(f"{ATOM}link") == []
    assert "href" not in words(entry, "content")


def test_a_feed_names_no_setting_of_the_server() -> None:
    """Whoever has its address may read it."""
    heard = run(id=FIRST, state="not_asked", reason="reddit: set `REDDIT_CLIENT_ID`")
    assert "REDDIT" not in atom(MINE, [heard], PLACES).decode()


def test_any_title_makes_a_feed() -> None:
    """Also of characters that XML cannot hold; what is made up opens nothing."""
    odd = POST.model_copy(update={"title": "a\x00\x0b\x1b\ufffe\uffff\u202eb\U0001f600"})
    (entry,) = feed(run(id=FIRST, new=(odd,), sample=True)).findall(f"{ATOM}entry")
    assert "- ab\U0001f600 (Reddit" in words(entry, "content")
    assert entry.findall(f"{ATOM}link") == []
    assert feed().findall(f"{ATOM}entry") == []
    assert words(feed(), "updated") == "2026-11-02T08:00:00Z"


def test_nothing_secret_is_in_it() -> None:
    """Neither who is told nor what reads it."""
    secretive = replace(MINE, secret="whsec_x", feed="digest-y", about="z")
    body = atom(secretive, [run(id=FIRST, new=(POST,))], PLACES).decode()
    assert "whsec_x" not in body
    assert "digest-y" not in body
