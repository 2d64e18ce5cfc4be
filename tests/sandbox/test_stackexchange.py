"""The sandbox's Stack Exchange: sites, paging, answers of many questions, its quota and words."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import Options

ROWS: list[dict[str, Any]] = [
    {
        "source": "stackexchange", "place": "superuser", "title": "Lumo's lamp flickers",
        "body": "It <b> hums\n\nand glows", "votes": 3, "views": 90, "age_days": 5,
        "comments": [
            {"body": "Update it", "votes": 2}, {"body": "Return it", "votes": 7},
            {"body": "gone", "deleted": True},
        ],
    },
    {"source": "stackexchange", "place": "superuser", "title": "Any lamp", "age_days": 400},
    {"source": "stackexchange", "place": "diy", "title": "Wiring a lamp", "age_days": 2},
    {"source": "stackexchange", "place": "diy", "title": "Lamp digest", "bot": True},
]  # fmt: skip


def ask(sandbox: Sandbox, path: str = "search/advanced", **params: Any) -> httpx.Response:
    """The answer to one call, of superuser if no other site is named."""
    given = {"site": "superuser", "q": "lamp", "filter": "withbody"} | params
    return httpx.get(f"{sandbox.url}/2.3/{path}", params=given)


def test_one_site_is_searched() -> None:
    """Titles and texts as the site writes them, with owners; bodies where the filter asks."""
    with Sandbox.start(ROWS) as sandbox:
        (first, second) = ask(sandbox, sort="votes").json()["items"]
        plain = ask(sandbox, filter="default").json()["items"][0]
        bot = next(q for q in ask(sandbox, site="diy").json()["items"] if "digest" in q["title"])

    assert first["title"] == "Lumo&#39;s lamp flickers"
    assert first["body"] == "<p>It &lt;b&gt; hums</p>\n\n<p>and glows</p>"
    assert first["link"].startswith("https://superuser.com/questions/")
    assert first["owner"]["link"].startswith("https://superuser.com/users/")
    assert second["answer_count"] == 0
    assert "body" not in plain
    assert bot["owner"]["user_id"] == -1


def test_pages_and_windows() -> None:
    """One of two, and whether there is more; since a moment."""
    with Sandbox.start(ROWS) as sandbox:
        first, last = (ask(sandbox, pagesize=1, page=page).json() for page in (1, 2))
        recent = ask(sandbox, fromdate=int(sandbox.world.created(30)), sort="creation").json()

    assert [len(page["items"]) for page in (first, last, recent)] == [1, 1, 1]
    assert (first["has_more"], last["has_more"]) == (True, False)


def test_answers_to_several_questions_share_a_page() -> None:
    """Best voted first; ids of another site are none of this one's."""
    with Sandbox.start(ROWS) as sandbox:
        ids = ";".join(post.id for post in sandbox.world.of("stackexchange"))
        answers = ask(sandbox, f"questions/{ids}/answers").json()["items"]
        wrong = ask(sandbox, "questions/x/answers")

    assert [answer["score"] for answer in answers] == [7, 2]
    assert answers[0]["body"] == "<p>Return it</p>"
    assert wrong.json()["error_name"] == "bad_parameter"


def test_the_quota_ends_at_midnight() -> None:
    """Each call counts and says what is left; with a key there are 10,000."""
    options = Options(stackexchange_quota=2)
    with Sandbox.start(ROWS, options=options, clock=lambda: 1_790_035_200.0) as sandbox:
        left = [ask(sandbox).json()["quota_remaining"], ask(sandbox, "info").json()]
        refused = ask(sandbox)
        keyed = ask(sandbox, key="k").json()

    assert (left[0], left[1]["quota_remaining"], left[1]["quota_max"]) == (1, 0, 2)
    assert left[1]["items"][0]["total_questions"] == 2
    assert (refused.status_code, refused.json()["error_id"]) == (400, 502)
    seconds = 86_400 - 1_790_035_200 % 86_400 + 1
    assert f"available in {seconds} seconds" in refused.json()["error_message"]
    assert (keyed["quota_max"], keyed["quota_remaining"]) == (10_000, 9_999)


FAULTS = [
    ("throttle", 400, "throttle_violation"),
    ("bad_site", 400, "bad_parameter"),
    ("429", 429, None),
    ("500", 500, None),
]


@pytest.mark.parametrize(("kind", "status", "name"), FAULTS)
def test_trouble_in_its_words(kind: str, status: int, name: str | None) -> None:
    """Named errors are HTTP 400; what stands before it answers with a page."""
    with Sandbox.start(ROWS, faults=[f"stackexchange={kind}"]) as sandbox:
        answer = ask(sandbox)

    assert answer.status_code == status
    assert name is None or answer.json()["error_name"] == name


def test_a_backoff_comes_with_the_answer() -> None:
    """And a site that does not exist is said to be none."""
    with Sandbox.start(ROWS, faults=["stackexchange.search=backoff"]) as sandbox:
        answer = ask(sandbox).json()
        missing = ask(sandbox, "info", site="nowhere").json()

    assert (answer["backoff"], len(answer["items"])) == (10, 2)
    assert missing["error_message"] == "No site found for name `nowhere`"
