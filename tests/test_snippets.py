"""The Python of the pages does what they say: with keys, which lead to a sandbox, and without."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from api.sandbox.server import Sandbox
from tests.snippets import cells, run

CITED = re.compile(r"\[E\d+\]")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """What the keys lead to."""
    with Sandbox.start() as started:
        yield started


def test_an_agent_with_a_key(sandbox: Sandbox) -> None:
    """It answers and cites, its program reads what came, and each label leads to a post."""
    agent, data = cells("docs/agents.md", "## A pydantic-ai agent")[:2]

    out = run([agent, data, "print(*sorted(posts.items()))"], sandbox.environment)

    assert CITED.search(out)
    assert re.findall(r"^fetch_(\w+)_tool ok [01]\.", out, re.M) == ["reddit", "youtube", "amazon"]
    assert set(CITED.findall(out)) <= {f"[{label}]" for label, _ in re.findall(r"\('(E\d+)', '(https://\S+)'\)", out)}


def test_an_agent_without_a_key() -> None:
    """From nothing at all: an answer that cites made-up posts, and the same data."""
    (keyless,) = cells("docs/agents.md", "### Without a key")
    _, data, again = cells("docs/agents.md", "## A pydantic-ai agent")

    out = run([keyless, data, "print(answer.all_messages()[2].parts[0].metadata['sample'])"])

    assert again == keyless
    assert CITED.search(out)
    assert len(re.findall(r"^fetch_\w+_tool ok [01]\.", out, re.M)) == 3
    assert out.endswith("True\n")


def test_python_without_a_key() -> None:
    """Every block of the page, in one notebook."""
    codes = cells("docs/python.md")

    out = run([*codes, "print(report.sample, sorted(rows[0])[:2])"])

    assert len(codes) == 5
    assert re.search(r"^(praise|complaint|request|difference|other): .+ \('\w+:", out, re.M)
    assert re.search(r"^ok \d+ of \d+$", out, re.M)
    assert "plaud.ai full_report 0.0\nNotion full_report 0.0\n" in out
    assert "Say which product" in out
    assert out.endswith("1 0.5 ok 0.0\nTrue ['aspects', 'body']\n")


def test_the_readme(sandbox: Sandbox) -> None:
    """What people try first."""
    out = run(
        [
            *cells("README.md"),
            "print(report.decision, stories.outcome, answer.output, yield_ratio)",
        ],
        sandbox.environment,
    )

    assert re.match(r"full_report ok ", out)
    assert CITED.search(out)
    assert out.endswith(" 1.0\n")
