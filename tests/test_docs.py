"""The documentation cannot lag: what the code has, a page has."""

from __future__ import annotations

import ast
import os
import re
import shlex
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from api import errors, settings
from api.core.display_names import MODEL_REASONS
from api.core.domain import Outcome
from api.core.work import Defect
from api.interfaces.cli.main import app
from api.sources import SOURCES
from tests.snippets import commands_in, shown
from tests.usual import USUAL

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PLACE = re.compile(r"`((?:api|docs|scripts|tests|\.ci)/[\w./{},*-]+)`")


def headings(path: Path) -> list[str]:
    """The headings of a page, without their marks."""
    return re.findall(r"^#{1,6} (.+)$", path.read_text("utf-8"), re.MULTILINE)


def sections(path: Path) -> dict[str, set[str]]:
    """The headings in backticks below each section of a page."""
    parts = re.split(r"^## (.+)$", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {
        name: set(re.findall(r"^### `(\w+)`$", text, re.MULTILINE))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def anchors(path: Path) -> set[str]:
    """What can be linked to on a page, as GitHub names it."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(path))
    return {heading.replace(" ", "-") for heading in plain}


def pages(root: Path) -> list[Path]:
    """Every page that a reader may open."""
    named = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    return [*(root / name for name in named), *sorted((root / "docs").rglob("*.md"))]


def errors_of(kind: type[errors.ListenpostError]) -> list[type[errors.ListenpostError]]:
    """An error and all below it."""
    return [kind, *(found for below in kind.__subclasses__() for found in errors_of(below))]


def written(value: object) -> str:
    """A default as the pages write it."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def test_every_setting_has_a_heading_and_its_default(root: Path) -> None:
    """`docs/settings.md` has exactly the variables there are, with the defaults they have."""
    page = (root / "docs" / "settings.md").read_text("utf-8")
    stated = dict(re.findall(r"^### `(\w+)`\n\nDefault: (unset|`[^`]*`)", page, re.MULTILINE))

    assert stated == {
        name: written(group.model_fields[field].default) for name, (group, field) in settings.variables().items()
    }


def test_the_example_environment_explains_every_setting(root: Path) -> None:
    """Each variable of `.env.example` is known, commented out and explained in the lines above."""
    text = (root / ".env.example").read_text("utf-8")
    named = re.findall(r"(?:^# \S.*\n)+#(\w+)=", text, re.MULTILINE)

    assert named == list(settings.variables())


def test_the_example_environment_holds_the_defaults(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uncommenting everything in `.env.example` changes nothing."""
    for name in USUAL:
        monkeypatch.delenv(name)
    expected = settings.load()
    text = (root / ".env.example").read_text("utf-8")
    for name, value in re.findall(r"^#(\w+)=(.*)$", text, re.MULTILINE):
        monkeypatch.setenv(name, value)

    assert len(set(os.environ) & set(settings.variables())) == len(settings.variables())
    assert settings.load() == expected


def test_every_error_code_outcome_and_model_reason_has_a_heading(root: Path) -> None:
    """`docs/errors.md` explains, section by section, whatever a program has to tell apart."""
    kinds = errors_of(errors.ListenpostError)
    assert Defect in kinds
    page = sections(root / "docs" / "errors.md")

    outcomes = set(Outcome)
    assert page["Errors"] == {kind.code for kind in kinds} - outcomes
    assert page["Outcomes"] == outcomes
    assert page["Reasons"] == set(MODEL_REASONS)
    assert {kind.code for kind in errors_of(errors.SourceError)} - {"source_error"} < outcomes


def test_every_source_has_a_page(root: Path) -> None:
    """A source is found in the docs where its spec says, with the settings it needs."""
    for spec in SOURCES.values():
        page = (root / spec.page).read_text("utf-8")
        assert spec.title in headings(root / spec.page)[0]
        assert [name for name in (*spec.variables, spec.address) if f"`{name}`" not in page] == []


def test_every_command_has_a_heading_with_its_options(root: Path) -> None:
    """`docs/cli.md` has exactly the commands there are, and names each option of each."""
    page = (root / "docs" / "cli.md").read_text("utf-8")
    parts = dict(re.findall(r"^## `listenpost (\w+)`\n(.*?)(?=^## |\Z)", page, re.M | re.S))
    commands = getattr(get_command(app), "commands")  # noqa: B009

    assert set(parts) == set(commands)
    for name, command in commands.items():
        options = {option for one in command.params for option in one.opts if option[0] == "-"}
        assert {option for option in options if f"`{option}" not in parts[name]} == set(), name


def test_links_lead_somewhere(root: Path) -> None:
    """Every link within the project names a file, and a heading in it."""
    broken = []
    for page in pages(root):
        for target in LINK.findall(page.read_text("utf-8")):
            path, _, anchor = target.partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            aimed = (page.parent / path).resolve() if path else page
            if not aimed.exists() or (anchor and anchor not in anchors(aimed)):
                broken.append(f"{page.relative_to(root)}: {target}")

    assert broken == []


def test_places_that_pages_name_exist(root: Path) -> None:
    """A file or folder in backticks is where the page says it is."""
    missing = [
        f"{page.relative_to(root)}: {place}"
        for page in pages(root)
        if page.name != "CHANGELOG.md"
        for place in PLACE.findall(page.read_text("utf-8"))
        if not list(root.glob(place.rstrip("/"))) and "{" not in place
    ]

    assert missing == []


def test_the_layers_name_every_package(root: Path) -> None:
    """Each folder and file of `api` has its row, and each part of a divided folder its word."""
    page = (root / "docs" / "architecture.md").read_text("utf-8")
    layers = page.partition("## The layers\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(?:api/)?([\w.]+)/?`", layers))
    divided = ("interfaces", "pipeline", "features")
    there = {
        path.name
        for folder in (root / "api", *(root / "api" / name for name in divided))
        for path in folder.iterdir()
        if path.stem[0] not in "_." and path.suffix != ".typed"
    }

    assert there - named == set()


def test_the_readme_starts_with_its_two_commands(root: Path) -> None:
    """Both are on the first screen, and both exist; the first thing there is a real question."""
    first_screen = (root / "README.md").read_text("utf-8").splitlines()[:40]
    first = first_screen.index("```sh")

    assert first_screen[first + 2] == '.venv/bin/listenpost analyze "Obsidian"'

    for command in ("scripts/demo", "scripts/test"):
        assert command in first_screen
        assert (root / command).stat().st_mode & 0o111


def test_the_thresholds_in_prose_are_those_of_the_code(root: Path) -> None:
    """Every number in the threshold and decision tables is the setting's default."""
    page = (root / "docs" / "relevance-scoring.md").read_text("utf-8")
    known = settings.variables()
    stated = re.findall(r"^\| [^|]+ \| (off|[\d.]+)[ %]* \| `(\w+)`", page, re.MULTILINE)
    depths = re.findall(r"^\| (quick|standard|deep) \| (\d) \| (\d) \|$", page, re.MULTILINE)

    assert len(stated) == 7
    for number, name in stated:
        group, field = known[name]
        assert (number if number == "off" else float(number)) == (
            "off" if group.model_fields[field].default is None else group.model_fields[field].default
        ), name
    assert {name: (int(full), int(short)) for name, full, short in depths} == {
        name: (depth.min_sources_full_report, depth.min_sources_short_report)
        for name, depth in settings.load().depths.items()
    }


def test_the_rubric_is_the_one_the_grader_reads(root: Path) -> None:
    """The prompt's five lines stand in the docs, word for word."""
    prompt = (root / "api" / "core" / "prompts" / "grades.md").read_text("utf-8")
    page = (root / "docs" / "relevance-scoring.md").read_text("utf-8")
    rubric = re.findall(r"^- (\d): (.+)$", prompt, re.MULTILINE)

    assert [score for score, _ in rubric] == ["5", "4", "3", "2", "1"]
    assert all(f"| {score} | {words} | " in page for score, words in rubric)


def test_the_names_that_stayed_are_in_the_code(root: Path) -> None:
    """What `docs/lineage.md` calls by its old name has that name here."""
    page = (root / "docs" / "lineage.md").read_text("utf-8")
    names = re.findall(r"`(\w+)`", page.partition("## Names that stayed")[2])
    code = "".join(path.read_text("utf-8") for path in (root / "api").rglob("*.py"))

    assert len(names) > 20
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []


def test_the_python_of_the_pages_compiles_and_imports(root: Path) -> None:
    """Every example is valid, and what it imports exists, as far as it is installed here."""
    imported = 0
    for page in pages(root):
        for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            tree = compile(code, str(page), "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and find_spec(str(node.module).split(".")[0]):
                    module = import_module(str(node.module))
                    assert all(hasattr(module, alias.name) for alias in node.names)
                    imported += len(node.names)
    assert imported > 5


RUN_BY: dict[str, dict[str, str]] = {
    "README.md": {
        "sh": "tests/interfaces/test_page_commands.py", "python": "tests/test_snippets.py",
        "bash": "tests/interfaces/http/test_examples.py",
    },
    "docs/agents.md": {
        "python": "tests/test_snippets.py",
        "tsx": "tests/clients/test_browser.py",
        "ts": "tests/clients/test_browser.py",
    },
    "docs/bench.md": dict.fromkeys(("sh", "json", "awk"), "tests/evaluation/test_benchmark.py"),
    "docs/chat.md": {
        "sh": "tests/interfaces/test_page_commands.py",
        "python": "tests/interfaces/test_chat_examples.py",
    },
    "docs/clients.md": dict.fromkeys(("bash", "python", "ts"), "tests/clients/test_openapi.py"),
    "docs/compare.md": {"sh": "tests/interfaces/test_page_commands.py"},
    "docs/deploy.md": dict.fromkeys(("sh", "yaml"), "tests/test_deploy.py"),
    "docs/evaluation.md": {
        "sh": "tests/interfaces/test_page_commands.py",
        "json": "tests/interfaces/test_page_commands.py",
    },
    "docs/http.md": {
        "bash": "tests/interfaces/http/test_examples.py",
        "python": "tests/interfaces/http/test_examples.py",
        "js": "tests/clients/test_openapi.py",
        "json": "tests/interfaces/http/test_examples.py",
    },
    "docs/langfuse.md": {
        "python": "tests/acceptance/test_host_programs.py", "sh": "tests/interfaces/test_langfuse.py",
        "yaml": "tests/test_docs.py",
    },
    "docs/local-judge.md": {"sh": "tests/models/test_local_training.py"},
    "docs/mcp.md": dict.fromkeys(
        ("json", "sh", "python", "js"), "tests/interfaces/test_mcp_clients.py"
    ),
    "docs/python.md": {"python": "tests/test_snippets.py"},
    "docs/quickstart.md": {"sh": "tests/interfaces/test_page_commands.py"},
    "docs/stats.md": {"sh": "tests/interfaces/test_stats_commands.py"},
    "docs/store.md": {"python": "tests/interfaces/test_page_commands.py"},
    "docs/watches.md": {"sh": "tests/interfaces/test_page_commands.py"},
}  # fmt: skip
"""The test that runs, or type-checks, the blocks of a page in each language."""


def test_every_block_of_code_is_run(root: Path) -> None:
    """A page with code in a language that no test takes from it, or in none, is found here."""
    languages: dict[str, set[str]] = {}
    unnamed = []
    for page in (root / "README.md", *sorted((root / "docs").rglob("*.md"))):
        text, name = page.read_text("utf-8"), page.relative_to(root).as_posix()
        blocks = shown(text)
        assert len(re.findall("^ *(?:```|~~~)", text, re.M)) == 2 * len(blocks), name
        for language, code in blocks:
            if language in {"", "text", "mermaid"}:
                unnamed += [f"{name}: {line}" for line in commands_in(code)]
            else:
                languages.setdefault(name, set()).add(language)

    assert unnamed == []  # a command in a block that is not named `sh` is run by nobody
    assert languages == {page: set(tests) for page, tests in RUN_BY.items()}
    for name, tests in RUN_BY.items():
        for test in tests.values():
            assert Path(name).name in (root / test).read_text("utf-8"), (name, test)


def test_a_command_is_seen_for_what_it_is() -> None:
    """By how its line begins, with a prompt or without; words about commands are none."""
    lines = [
        "listenpost eval --corpus", ".venv/bin/listenpost doctor", "python scripts/table.py",
        "$ curl -s x", "scripts/demo", "uvx --from . listenpost", "npx a", "pip install .",
    ]  # fmt: skip
    words = ["scripts/          demo, test", "listenposts are many", "support   of curl"]

    assert commands_in("\n".join((*lines, *words))) == lines


def test_the_workflow_of_the_page_is_one_and_its_commands_exist(root: Path) -> None:
    """It parses, its variables are settings, and the command line takes every command in it."""
    page = (root / "docs" / "langfuse.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    workflow = import_module("yaml").safe_load(text)
    (job,) = workflow["jobs"].values()
    commands = getattr(get_command(app), "commands")  # noqa: B009
    taken = []
    for step in job["steps"]:
        program, *words = shlex.split(step.get("run", "uses").partition(">")[0])
        if program == "listenpost":
            taken.append(commands[words[0]].make_context(words[0], words[1:]).params)

    paths = workflow[True]["pull_request"]["paths"]
    assert paths == ["api/models/**", "api/core/prompts/**", "labels.jsonl"]
    assert all(list((root / path.removesuffix("/**")).iterdir()) for path in paths[:-1])
    assert set(job["env"]) <= set(settings.variables())
    measured, compared = taken
    assert (measured["judge"], measured["langfuse"]) == ("openai", "gate")
    assert (compared["compare"], compared["fail_below"]) == (Path("before.json"), -0.03)
