"""Verbs x interfaces x options: what one interface offers of a verb, all do, or a reason is here.

The table is read from what each interface really publishes: the options of the Typer commands, the
OpenAPI document, the input schemas of the MCP tools, the fields of the rendered forms, and the
signatures of the Python functions.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import api
from api.features.analyses.api_keys import LOCAL
from api.interfaces.cli.main import app
from api.interfaces.mcp.mcp_tools import tools
from api.interfaces.shared import listing_requests, requests, watch_requests
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.hostile_report import Tags
from tests.store.made import item, report, typed


@dataclass(frozen=True)
class Verb:
    """Where a verb is offered; empty or None: not there."""

    cli: str = ""
    """Words of the command."""
    http: str = ""
    """Method and path in the OpenAPI document."""
    mcp: str = ""
    """Name of the tool."""
    page: str = ""
    """Address of the page with the form, and behind `#` where the form leads to."""
    python: Callable[..., Any] | None = None


VERBS = {
    "analyze": Verb("analyze", "post /v1/analyses", "analyze_product", "/#/ask", api.analyze),
    "compare": Verb("compare", "post /v1/comparisons", "compare_products", "/compare#/compare"),
    "fetch": Verb("fetch", "post /v1/fetch/{source}", "fetch_reddit", python=api.fetch),
    "relevance": Verb("filter", "post /v1/relevance", "relevance_filter", python=api.relevance_filter),
    "chat": Verb("chat", "post /v1/chat", page="/analyses/a1/chat#/analyses/a1/chat"),
    "search": Verb("search", "get /v1/search", "search_archive", "/search#"),
    "watch add": Verb("watch add", "post /v1/watches", "watch_product", "/watches#/watches"),
    "watch change": Verb("watch change", "patch /v1/watches/{watch_id}", page="/watches/Oura/edit#/watches/{id}/edit"),
    "watch runs": Verb("watch history", "get /v1/watches/{watch_id}/runs"),
    "watch trend": Verb("watch history", "get /v1/watches/{watch_id}/trend"),
    "feeds add": Verb("feeds add", "post /v1/feeds"),
    "stats": Verb("stats", "get /v1/stats", page="/gate#"),
    "feedback": Verb("feedback", "post /v1/analyses/{analysis_id}/feedback"),
    "correct": Verb("correct", "put /v1/analyses/{analysis_id}/items/{key}/correction", "correct_item"),
    "replay": Verb("replay", "post /v1/analyses/{analysis_id}/replay", page="/analyses/a1/replay#/analyses/a1/replay"),
    "list reports": Verb("reports list", "get /v1/analyses", page="/history#"),
}
"""Every verb that more than one interface offers. Which feeds are read, and whether another judge is better, is decided
by a person, not by a model, and no page has a form for feeds. A program compares two reports of `ask_again` itself.
`import`, `eval`, `keys`, `langfuse`, `doctor` and the servers are commands only; removing, exporting and the like take
an id and nothing else."""
ANSWER_ONLY = {
    "format": "HTTP chooses by `Accept` or the address; a tool always gives text and a record",
    "output": "a command writes the answer to a file; others hand it to their caller",
    "verbose": "a command may say more on stderr; others report progress as events",
    "estimate": "a command or form shows the price; no caller of HTTP or MCP waits for a person",
    "dropped": "prints a part of the answer that the JSON of HTTP and Python always holds",
    "include_dropped": "the same for MCP, whose record goes to a model",
    "csrf": "proves that a form came from a page of this server",
    "often": "common times in a list beside `every`, in which a form also takes others",
    "sure": "a form repeats a question whose name is an everyday word",
    "step": "the button of a form that asks for the price",
}
"""Options that say how one interface shows its answer; they change nothing in what is asked."""
NAMES = {
    "source": "sources", "session": "session_id", "report": "report_id", "question": "message",
    "item": "item_key", "not": "not_about", "mentions": "aim", "q": "query",
    "product": "products", "id": "session_id", "exclude_author": "exclude_authors", "exclude_site": "exclude_sites",
    "note": "notes",
}  # fmt: skip
"""Options of the command line and of forms whose name is another one in the request."""
FILES = "the command line reads a person's own items from a file, a pipe or stdin"
PAGE_SERVER = "a page answers from what its server is configured for"
PAGE_DEPTH = "a form has the depth, which sets the limit"
PYTHON_SETTINGS = "a program chooses the sandbox with `LISTENPOST_MODE`"
AGAIN = "`POST /v1/analyses/{id}/again` and buttons on the page judge a stored report again"
ITEM_PLACE = "says where the items of a file and their fields stand; an object elsewhere has their names"
PERSON = "which meaning of a name is taken from now on is decided by a person"
UNSTORED = "a program's reports are not stored"
RECEIVERS = "whom to notify is decided by a person, not by a model"
PLOT = "`watch history` shows both the runs and, with `--plot`, the trend"
ONE_SCREEN = "the page shows the best hits of one search and has no fields for the rest"
HERE = "the command line shows the newest analyses; who looks for one uses the page or HTTP"
ABSENT: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("analyze", "http"): {
        "again": AGAIN, "sense": AGAIN, "products": ITEM_PLACE, "map": ITEM_PLACE, "encoding": ITEM_PLACE,
    },
    ("analyze", "mcp"): {
        "items": "a model judges own items with `relevance_filter`",
        "again": PERSON, "sense": PERSON, "products": ITEM_PLACE, "map": ITEM_PLACE, "encoding": ITEM_PLACE,
    },
    ("analyze", "page"): {
        "limit": PAGE_DEPTH, "sandbox": PAGE_SERVER, "items": FILES, "again": AGAIN, "sense": AGAIN,
        "products": ITEM_PLACE, "map": ITEM_PLACE, "encoding": ITEM_PLACE,
    },
    ("analyze", "python"): {
        "items": "a program calls `relevance_filter`", "sandbox": PYTHON_SETTINGS,
        "again": UNSTORED, "sense": UNSTORED, "products": ITEM_PLACE, "map": ITEM_PLACE, "encoding": ITEM_PLACE,
    },
    ("compare", "page"): {"limit": PAGE_DEPTH, "sandbox": PAGE_SERVER},
    ("fetch", "python"): {"sandbox": PYTHON_SETTINGS},
    ("relevance", "cli"): {"items": FILES, "judge": "a judge is a Python object"},
    ("relevance", "http"): {"judge": "a judge is a Python object"},
    ("relevance", "mcp"): {"judge": "a judge is a Python object"},
    ("chat", "cli"): {"items": FILES},
    ("chat", "http"): {"depth": "a turn's price is reserved for quick look-ups", "list": "`GET /v1/chats` does it"},
    ("chat", "page"): {
        "list": "the pages of a report and of its conversations list them",
        "depth": "as over HTTP", "items": FILES, "sandbox": PAGE_SERVER,
        "report_id": "it stands in the address of the page",
    },
    ("search", "page"): {
        "language": ONE_SCREEN, "kept": ONE_SCREEN, "k": ONE_SCREEN,
        "sandbox": PAGE_SERVER,
    },
    ("watch add", "mcp"): {"notify": RECEIVERS, "tell_first": RECEIVERS, "as_it_happens": RECEIVERS},
    ("watch add", "page"): {"limit": PAGE_DEPTH, "sandbox": PAGE_SERVER},
    ("watch change", "cli"): {"paused": "`watch pause` and `watch resume` do it"},
    ("watch change", "page"): {
        "paused": "buttons on the watch's page do it", "limit": PAGE_DEPTH,
    },
    ("watch runs", "http"): {"plot": PLOT, "weeks": PLOT},
    ("watch trend", "http"): {"plot": PLOT, "limit": PLOT},
    ("correct", "http"): {"remove": "`DELETE` of the same path removes it"},
    ("correct", "mcp"): {"remove": "null as `relevant` removes it"},
    ("list reports", "cli"): dict.fromkeys(
        ("cursor", "decision", "sources", "since", "until", "text"), HERE
    ),
    ("list reports", "http"): {"text": "a program searches with `/v1/search`"},
    ("list reports", "page"): {
        "limit": "a page has 20 analyses", "cursor": "the link to the next page holds it",
    },
}  # fmt: skip
"""By verb and interface, each option that another interface has, with the reason."""
OWN: Mapping[tuple[str, str], Collection[str]] = {
    ("fetch", "cli"): ("sources",),
    ("fetch", "python"): ("sources",),
    ("watch change", "cli"): (
        "watch",
        "no_source",
        "no_notify",
        "no_limit",
        "no_not",
        "no_exclude",
        "no_exclude_author",
        "no_exclude_site",
        "no_note",
    ),
    ("watch change", "page"): ("kept", "offered"),
    ("watch runs", "cli"): ("name",),
    ("watch trend", "cli"): ("name",),
    ("feedback", "cli"): ("report_id", "up", "down", "labels"),
    ("feedback", "http"): ("rating",),
    ("correct", "cli"): ("analysis", "key"),
    ("correct", "mcp"): ("report_id", "key"),
    ("replay", "cli"): ("report_id",),
}
"""What an interface needs to say the same: what stands in the address elsewhere, the forms that
empty an option, a thumb as two flags, and the marks of receivers whose addresses stay secret."""


def written_in(names: Collection[str]) -> set[str]:
    """Options by their names in the request, without what only shapes the answer."""
    return {NAMES.get(name, name) for name in names} - ANSWER_ONLY.keys()


def of_command(words: str) -> set[str]:
    """Every parameter of a command."""
    command: Any = get_command(app)
    for word in words.split():
        command = command.commands[word]
    return {parameter.opts[0].lstrip("-").replace("-", "_") for parameter in command.params}


def of_document(document: Mapping[str, Any], operation: str) -> set[str]:
    """The fields of the body and the parameters of the address; of several bodies the first."""
    method, path = operation.split()
    described = document["paths"][path][method]
    fields = {p["name"] for p in described.get("parameters", ()) if p["in"] == "query"}
    if body := described.get("requestBody"):
        schema = body["content"]["application/json"]["schema"]
        reference = (schema.get("oneOf") or [schema])[0]["$ref"]
        fields |= document["components"]["schemas"][reference.split("/")[-1]]["properties"].keys()
    return fields


async def of_form(served: Served, address: str) -> set[str]:
    """The named fields of a form that a page shows."""
    path, _, target = address.partition("#")
    watches = await served.app_context.store.watches(LOCAL.id)
    target = target.format(id=watches[0].id)
    answer = await served.client.get(path.replace("Oura", watches[0].id))
    assert answer.status_code == 200, answer.text
    fields: set[str] = set()
    within = False
    for tag, attributes in Tags(answer.text).tags:
        if tag == "form":
            within = (attributes.get("action") or "") == target
        elif within and tag in {"input", "select", "textarea", "button"}:
            fields |= {name} if (name := attributes.get("name")) else set()
    return fields


async def offered(served: Served, name: str) -> dict[str, set[str]]:
    """What each interface takes of a verb, by the names of the request."""
    verb, table = VERBS[name], dict[str, set[str]]()
    if verb.cli:
        table["cli"] = written_in(of_command(verb.cli))
    if verb.http:
        document = (await served.client.get("/openapi.json")).json()
        table["http"] = written_in(of_document(document, verb.http))
    if verb.mcp:
        schema = tools(served.app_context)[verb.mcp].arguments.model_json_schema()
        table["mcp"] = written_in(schema["properties"])
    if verb.page:
        table["page"] = written_in(await of_form(served, verb.page))
    if verb.python:
        table["python"] = written_in(inspect.signature(verb.python).parameters)
    return {door: options - {*OWN.get((name, door), ())} for door, options in table.items()}


@pytest.fixture
async def stored(served: Served) -> Served:
    """A server that holds a report that was asked with a description, and a watch, which has not run."""
    made = typed(report("a1", item("reddit:t3_1"), about="a mug"))
    await served.app_context.store.finish(LOCAL.id, made)
    added = await served.client.post("/v1/watches", json={"query": "Oura"})
    assert added.status_code == 201
    return served


@pytest.mark.parametrize("name", VERBS)
async def test_each_option_is_offered_everywhere_or_its_absence_has_a_reason(stored: Served, name: str) -> None:
    """
    What one interface has of a verb the others have too, under the same name.
    """
    table = await offered(stored, name)
    every = set().union(*table.values())
    lacking = {interface: every - options for interface, options in table.items()}
    reasons = {interface: set(ABSENT.get((name, interface), ())) for interface in table}

    assert lacking == reasons


def test_every_reason_is_for_a_verb_and_an_interface_that_there_are() -> None:
    """A line of the table that nothing needs any more is removed."""
    there = {
        (name, interface)
        for name, verb in VERBS.items()
        for interface in ("cli", "http", "mcp", "page", "python")
        if getattr(verb, interface)
    }

    assert ABSENT.keys() <= there
    assert OWN.keys() <= there


async def test_what_can_be_set_of_a_watch_can_be_changed(stored: Served) -> None:
    """
    Only the world that a watch asks stays: what was seen in another one would be no past.
    """
    added, changed = await offered(stored, "watch add"), await offered(stored, "watch change")

    for interface, options in changed.items():
        assert added[interface] - options <= {"sandbox"}, interface


def test_no_option_is_accepted_and_ignored() -> None:
    """
    Each field of a request is read somewhere in the package: by its name, or with all others of its model.
    """
    models = {
        value
        for module in (requests, watch_requests, listing_requests)
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, requests.RequestBody)
    }
    read = {
        node.attr
        for path in Path(api.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }

    assert {name for model in models for name in model.model_fields} <= read
