"""Prompts: the files are the source, and what is in production is a person's choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from api.core.prompts import packaged
from api.langfuse.dashboards.definitions import Definitions
from tests.langfuse.dashboards.kit import Project, few

NAME = "listenpost/relevance"


def reworded(text: str) -> Definitions:
    """The package with another text of one prompt."""
    definitions = few()
    prompts = (replace(p, text=text) if p.title == NAME else p for p in definitions.prompts)
    return replace(definitions, prompts=tuple(prompts))


def versions(project: Project, **query: Any) -> Any:
    """One version of the prompt."""
    return project.call("GET", f"/v2/prompts/{NAME.replace('/', '%2F')}", **query)


def test_a_prompt_is_pushed_with_its_labels(project: Project) -> None:
    """The first version is ours and in production."""
    project.apply()

    prompt = versions(project)
    assert sorted(prompt["labels"]) == ["latest", "listenpost", "production"]
    assert prompt["prompt"] == packaged("relevance").text
    assert (prompt["version"], prompt["type"], prompt["tags"]) == (1, "text", ["listenpost"])


def test_a_changed_text_is_a_new_version(project: Project) -> None:
    """One POST; production follows as long as nobody chose another version."""
    project.apply()
    project.sandbox.forget()

    (step,) = project.apply(reworded("Is it about the question?"))

    assert (step.verb, step.differences[0].wanted) == ("push", "Is it about the question?")
    assert len(project.writes()) == 1
    assert versions(project)["version"] == 2
    assert project.apply(reworded("Is it about the question?")) == []


def test_what_a_person_put_in_production_stays_there(project: Project) -> None:
    """A new text of the package gets our label alone."""
    project.apply()
    theirs = {"name": NAME, "prompt": "Mine", "labels": ["production"]}
    project.call("POST", "/v2/prompts", theirs)
    assert project.apply() == []

    project.apply(reworded("Is it about the question?"))

    assert versions(project)["prompt"] == "Mine"
    assert versions(project, label="listenpost")["prompt"] == "Is it about the question?"


def test_a_prompt_of_that_name_which_is_in_production_is_not_replaced(project: Project) -> None:
    """Before the first run somebody had one."""
    theirs = {"name": NAME, "prompt": "Mine", "labels": ["production"]}
    project.call("POST", "/v2/prompts", theirs)

    project.apply()

    assert versions(project)["prompt"] == "Mine"
    assert versions(project, label="listenpost")["version"] == 2
