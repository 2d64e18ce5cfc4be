"""One clearing of what a model wrote, at all four places where a model writes.

Each row is a place where report, chat, explanation and grader had gone different ways.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from itertools import product as every
from typing import Any

import pytest
from markdown_it import MarkdownIt
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from api.core.domain import Grade, Question
from api.core.items import Item
from api.features.chat.chat_agent import Chat
from api.features.chat.keyless_chat import not_searched, nothing_found
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared.csv_export import report_csv
from api.interfaces.shared.markdown_report import report_markdown
from api.models.model_calls import OpenAIExplainer, OpenAIGrader
from api.reports.draft_rules import Draft, DraftCleaner, DraftText, check
from api.reports.exhibits import Dossier, Exhibit
from api.reports.insufficient_data import Shortfall
from api.reports.keyless.theme_finding import PASSAGES
from api.reports.quotes import citable_text
from api.services import product as product_service
from api.services.product import Ask
from api.settings import ChatSettings
from tests.models.model_server import client_of, says, serving
from tests.services.fakes import FakeSource
from tests.services.kit import MUG, Author, assessed, kit, post, posts

WIKI = "https://www.example.org/wiki/Mug_(cup)"
POST = post(0, body="Keeps 40 degrees. The E27 fits.", url=WIKI)
FILLER = "People talk about other things than this one here. " * 8


async def in_chat(text: str, items: tuple[Item, ...] = (POST,)) -> str:
    """The answer of a chat whose model looks the mug up and writes this."""

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        if len(messages) == 1:
            arguments = json.dumps({"query": "ember mug"})
            yield {0: DeltaToolCall("fetch_reddit", arguments, tool_call_id="c")}
        else:
            answer = f"Cited [E1].\n{text}"
            for at in range(0, len(answer), 5):
                yield answer[at : at + 5]

    product = kit(FakeSource(list(items)))
    chat = Chat(product, FunctionModel(stream_function=stream), ChatSettings())
    turn = await chat.answer(chat.begin(), "ember mug")
    return turn.text.removeprefix("Cited [E1].").strip("\n")


def drafted(*texts: str, quote: str = "") -> DraftText:
    """A report with these findings on the post."""
    dossier = Dossier()
    dossier.show([assessed(POST)])
    evidence = [{"passage": POST.title, "cite": "E1"}]
    written = {
        "topic": "Mug",
        "summary": "",
        "findings": [{"text": text, "kind": "other", "evidence": evidence} for text in texts],
        "quotes": [{"text": quote, "cite": "E1"}],
        "suggestions": texts,
    }
    return check(Draft.model_validate(written), dossier, MUG)


async def in_report(text: str) -> str:
    """The finding that is left of it."""
    return "".join(finding.text for finding in drafted(text).findings)


async def in_explanation(text: str) -> str:
    """What an explanation keeps of it, before and between other sentences."""
    shortfall = Shortfall(Question("ember mug"), ("ember mug",), ("reddit: 40 found",),
                          (("The E27 bulb", ""),))  # fmt: skip
    body = {"explanation_text": f"{text}\n\n{FILLER}", "suggestions": []}
    async with serving() as model, client_of(model) as client:
        model.replies = [says(json.dumps(body))]
        explanation = await OpenAIExplainer(client).explain(shortfall)
    return explanation.text.partition("People talk")[0].strip()


PLACES = {"chat": in_chat, "report": in_report, "explanation": in_explanation}
ROWS: dict[str, tuple[str, tuple[str, ...] | str]] = {
    "a list's marker is no number": (
        "1. It is warm.\n2. It is big.",
        tuple(f"1. It is warm.{blank}2. It is big." for blank in ("\n", " ", "\n")),
    ),
    "a name written as a link is a citation": (
        "It is warm [E1](http://evil.example).", ("It is warm [E1].", "It is warm.", "It is warm."),
    ),
    "a word of theirs stays, in brackets too": ("It fits (E27) an E27.", "It fits (E27) an E27."),
    "an ellipsis ends a sentence": ("It costs 99… It is big.", "It is big."),
    "a line ends a sentence": ("It costs 99\nIt is big", "It is big"),
    "a quotation ends a sentence": ("“It costs 99.” It is big.", "It is big."),
    "an unknown name takes its sentence": ("As E9 says, so. It is big.", "It is big."),
    "nothing is left of brackets": ("It is big (http://evil.example).", "It is big."),
    "nothing is left of an autolink": ("It is big <http://evil.example>.", "It is big."),
    "a link's target says no number": ("[It](/dp/99) is big.", "It is big."),
    "an address without a scheme goes": ("See a-shop.com/login. It is big.", "See. It is big."),
    "an address behind an underscore goes": ("_http://evil.example it is big", "_ it is big"),
    "an address behind an ideograph goes": ("看http://evil.example。好", "看。好"),
    "a protocol-relative link goes": ("[It](//evil.example/(x)) is big.", "It is big."),
    "an address with brackets is known": (
        f"See {WIKI}. It is big.",
        ("See [E1]. It is big.", f"See {WIKI}. It is big.", "See. It is big."),
    ),
    "a link to an exhibit is a citation": (
        f"See [it]({WIKI}).", ("See it [E1].", "See it.", "See it."),
    ),
    "digits of every script are digits": ("It costs ９９. It is big.", "It is big."),
    "numbers in words are numbers": ("Seven buyers left. It is big.", "It is big."),
    "brackets of every script cite": ("很好【E1】。", ("很好[E1]。", "很好。", "很好。")),
    "small letters in brackets cite": ("Warm [e1].", ("Warm [E1].", "Warm.", "Warm.")),
    "escapes for terminals go": ("It is\x1b[31m big\u202e.", "It is big."),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("place", PLACES)
async def test_every_place_clears_alike(row: str, place: str) -> None:
    """The same words come to the same end, but for how a place shows a citation."""
    written, left = ROWS[row]
    wanted = left if isinstance(left, str) else left[list(PLACES).index(place)]

    assert (await PLACES[place](written)).strip() == wanted


async def graded(quote: str, item: Item) -> Grade:
    """The grade of an item whose passage the grader's model picked."""
    entry = {"score": 5, "explanation": "", "sentiment": 0, "aspects": [], "quote": quote}
    async with serving() as model, client_of(model) as client:
        model.replies = [says(json.dumps({"grades": [entry]}))]
        (grade,) = (await OpenAIGrader(client).grade(MUG, [item])).grades
    return grade


@pytest.mark.parametrize(
    ("quote", "held"),
    [
        ("eeps 40 degr", ""),
        ("“Keeps 40 degrees.”", "Keeps 40 degrees."),
        ("Keeps 40 degrees", "Keeps 40 degrees"),
        ("Keeps\u200b ４０ degrees", "Keeps 40 degrees"),
        ("40", ""),
        ("The E27 fits.", "The E27 fits."),
    ],
)
async def test_grader_and_report_quote_by_one_rule(quote: str, held: str) -> None:
    """Whole words in any notation, as they stand in the post."""
    assert (await graded(quote, POST)).quote == held
    assert "".join(one.text for one in drafted(quote=quote).quotes) == held


async def test_an_address_of_what_may_not_be_cited_is_foreign() -> None:
    """A shown post's own address leads to it; one that nobody was shown leads nowhere."""
    other = "https://www.example.org/reddit/xx"

    assert await in_chat(f"See {WIKI} or {other}.") == "See [E1] or."
    assert await in_chat(f"See {other}.", (POST, post(1))) == "See [E2]."


FORMS = (
    "[a]({u})", "![a]({u})", "[a](<{u}>)", "[a]({u} 't')", '![a]({u} "t")', "[a]( {u} )",
    "[a][b]\n\n[b]: {u}", "[a][]\n\n[a]: {u}", "![a]\n\n[a]: {u}", "[a]: <{u}>\n\n[a]",
    "[E1]: {u}\n\n[E1]", "[E1]({u})", "![E1]({u})", "[E1]\\({u})", "[E1, E1]({u})", "E1[a]({u})",
    "<{u}>", "{u}", "({u})", "*{u}*", '<a href="{u}">x</a>', "<img src={u}>", "<!-- {u} -->",
    "[![a]({u})]({u})", "[a [b]({u})]({u})", "[a\n]({u})", "\\[a]({u})", "\\\\[a]({u})",
    "\\\\\\\\[a]({u})", "`x`[a]({u})", "`[a]({u})", "**[a]({u})**", "- ![a]({u})", "> [a]({u})",
    "1. [a]({u})", "# [a]({u})", "[a]: {u}\n[a]", "&#x5b;a]({u})", "[a&#x5d;({u})", "[a. b]({u})",
    "[a。b]({u})", "[a](\n{u}\n)", "| a |\n| --- |\n| ![a]({u}) |", "~~![a]({u})~~", "[a\\]]({u})",
    "[^a]: {u}\n\n[^a]", "[E9][E1]({u})", "<\n{u}>", "[a]({u}", "]({u})[a]({u})", "!\\[a]({u})",
)  # fmt: skip
TARGETS = (
    "http://evil.top/x",
    "//evil.top/(x)?d=secret",
    "https:evil",
    "javascript:alert(a)",
    "mailto:a@evil.top",
    "www.evil.top",
    "/evil",
    "evil.top/x",
    "HTTPS://EVIL.TOP",
)
WRITTEN = [form.format(u=target) for form, target in every(FORMS, TARGETS)]
MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def links(text: str) -> list[str]:
    """Everything in a markdown text that a renderer would make a link, an image or HTML of."""
    tokens = [*MARKDOWN.parse(text)]
    tokens += [child for token in tokens for child in token.children or ()]
    return [token.type for token in tokens
            if token.type in {"link_open", "image", "html_inline", "html_block"}]  # fmt: skip


def self_linking(text: str) -> list[str]:
    """Addresses that a renderer would link where they stand."""
    return re.findall(r"(?i)(?<![a-z0-9])(?:(?:https?|ftp|mailto):|www\.)\S+|[^\s\u200b]@\S+", text)


def test_the_forms_are_many_and_hostile() -> None:
    """Most of them are links, images or HTML when nobody clears them."""
    assert len(set(WRITTEN)) == len(FORMS) * len(TARGETS) > 300
    assert sum(bool(links(text)) for text in WRITTEN) > 250


async def test_no_form_is_a_link_in_a_chat() -> None:
    """Alone, after a citation, and all of them in one answer."""
    ground = citable_text({"E1": Exhibit("E1", assessed(POST))}, ["ember mug"])
    for text, lead, size in every(WRITTEN, ("", "Warm [E1]"), (1, 400)):
        clearing = DraftCleaner(lambda _: ground, markdown=True)
        whole = lead + text
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        shown = "".join(map(clearing.feed, pieces)) + clearing.close()
        assert (links(shown), self_linking(shown)) == ([], []), text
    answer = await in_chat("\n\n".join(WRITTEN))
    assert len(answer) > 1000
    assert (links(answer), self_linking(answer)) == ([], [])


async def test_no_form_is_a_link_in_a_report() -> None:
    """The links are those of the kept items, whatever findings and questions say."""
    draft = drafted(*WRITTEN)
    plain = drafted("It is big.")
    reports = [
        await product_service.analyze(kit(FakeSource(posts(6)), writer=Author(draft=written)), Ask("ember mug"))
        for written in (draft, plain)
    ]

    hostile, harmless = (report_markdown(report, True) for report in reports)

    assert len(draft.findings) > 300
    cited = len(draft.findings) - len(plain.findings)
    assert len(links(hostile)) == len(links(harmless)) + cited
    assert set(links(hostile)) == {"link_open"}
    assert self_linking(hostile.replace("](<https://www.example.org", "")) == []


class Anchors(HTMLParser):
    """The tags of a page, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.targets: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.targets += [str(value) for name, value in attrs if name in {"href", "src"}]


async def test_no_form_is_a_link_on_a_page_or_runs_in_a_spreadsheet() -> None:
    """Written by a model or by strangers: the page leads to kept items, a cell is text."""
    titled = [post(n, title=f"ember mug {text}") for n, text in enumerate(WRITTEN[:60])]
    cells = [
        post(n, title=f"{lead}ember mug", body=f"{lead}HYPERLINK(A1) ember mug")
        for n, lead in enumerate(("=", "+", "-", "@", "\t=", " =", "'=", '"=', "＝"), len(titled))
    ]
    report = await product_service.analyze(
        kit(FakeSource([*titled, *cells]), writer=Author(draft=drafted(*WRITTEN))),
        Ask("ember mug", limit=100),
    )
    page = Anchors(report_html(report))
    rows = [*csv.reader(io.StringIO(report_csv(report)))]

    urls = {item.url for item in report.items} | {item.url for item in report.dropped}
    assert len(urls) == len(titled) + len(cells)
    assert {target for target in page.targets if not target.startswith("#source-")} <= urls
    assert page.tags.isdisjoint({"img", "script", "iframe", "object", "form"})
    assert len(rows) == 1 + len(titled) + len(cells)
    running = [cell for row in rows for cell in row if cell.lstrip("\"' \t")[:1] in set("=+@＝")]
    assert len(running) >= len(cells)
    assert all(cell.startswith("'") for cell in running)


async def test_no_form_is_a_link_in_an_explanation() -> None:
    """Neither in the text nor among the questions to ask next."""
    for start in range(0, len(WRITTEN), 20):
        texts = WRITTEN[start : start + 20]
        body: Any = {"explanation_text": "\n\n".join([*texts, FILLER]), "suggestions": texts[:3]}
        async with serving() as model, client_of(model) as client:
            model.replies = [says(json.dumps(body))]
            product = kit(FakeSource([]), explainer=OpenAIExplainer(client))
            report = await product_service.analyze(product, Ask("ember mug"))
        shown = report_markdown(report, True)
        assert "People talk" in shown
        assert (links(shown), self_linking(shown)) == ([], [])


async def test_no_form_is_a_link_where_nothing_was_found() -> None:
    """An answer that repeats a query, and posts that speak for themselves."""
    titles = [post(n, title=f"mug {text}") for n, text in enumerate(WRITTEN[:60])]
    for start in range(0, len(titles), PASSAGES):
        few = titles[start : start + PASSAGES]
        chat = Chat(kit(FakeSource(few)), None, ChatSettings())
        spoken = (await chat.answer(chat.begin(), "ember mug")).text

        assert spoken.count("] “") == len(few) - 1
        assert links(spoken) == []
    for text in WRITTEN:
        assert links(nothing_found(text, [text])) == []
        assert links(not_searched(text, [text])) == []
