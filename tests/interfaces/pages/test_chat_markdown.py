"""An answer's Markdown on the page: its lists and emphasis, and strangers' words as text."""

from __future__ import annotations

from api.features.chat.chat_history import PastTurn
from api.features.chat.chat_turn import Citation
from api.interfaces.pages.templates_rendering import answer_markup


def markup(text: str, *labels: str) -> str:
    """Of a third turn that cites these."""
    citations = [Citation(label, f"reddit:{label}", "A mug", "https://a.example") for label in labels]
    return answer_markup(PastTurn("?", text, citations, 3, (), stopped=False, sample=False))


def test_lists_emphasis_and_headings_are_what_they_are() -> None:
    """A heading stands below the question, and a line that ends does so."""
    assert markup("**Warm**:\n- a\n- *b*") == (
        "<p><strong>Warm</strong>:</p>\n<ul>\n<li>a</li>\n<li><em>b</em></li>\n</ul>\n"
    )
    assert markup("# Battery\nlasts\nlong, say `x`") == (
        "<h3>Battery</h3>\n<p>lasts<br>\nlong, say <code>x</code></p>\n"
    )


def test_what_was_escaped_is_read() -> None:
    """No backslash of ours stands on the page."""
    assert markup(r"“\$179 \(with tax\) \*gone\*” &lt;b> &amp;lt;") == (
        "<p>“$179 (with tax) *gone*” &lt;b&gt; &amp;lt;</p>\n"
    )


def test_no_link_image_or_tag_comes_of_it() -> None:
    """Whatever a stranger or a model wrote, and wherever."""
    text = "<script>x</script> [a](https://b.example) ![i](//c) <https://d.example> &lt;img src=x>"
    shown = markup(f"{text}\n\n- {text}\n\n<div>\n\n[E1]: https://e.example", "E1")

    assert shown.count("<a ") == shown.count('href="#turn-3-E1"') == 1
    for tag in ("<script", "<img", "<div"):
        assert tag not in shown


def test_a_citation_leads_to_what_stands_below() -> None:
    """Where nothing does, it is text."""
    assert markup("Warm. [E1, E12] Red. [E2]", "E1", "E12") == (
        '<p>Warm. <a class="cite" href="#turn-3-E1">[1]</a><a class="cite" href="#turn-3-E12">[12]</a> Red. [2]</p>\n'
    )
