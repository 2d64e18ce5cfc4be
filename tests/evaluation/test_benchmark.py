"""The public benchmark: texts from public files, gates of strangers, and a page that says what was measured."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import make_bench_sets as making
from api.core.domain import Question, Verdict
from api.core.items import Item
from api.errors import ConfigurationError, UsageError
from api.evaluation.bench_gates import (
    CollectedBatches,
    CorrectedJudge,
    FoldedJudge,
    GivenVerdicts,
    folded_judge,
    read_verdicts,
    run_gate,
)
from api.evaluation.bench_results import BenchRun, ask_gate, measure, merged, read_results, results_of
from api.evaluation.bench_sets import (
    SHIPPED,
    BenchSets,
    FetchedTexts,
    FetchOutcome,
    fetch,
    label_digest,
    read_sets,
    revealed,
    sketch_of,
)
from api.evaluation.judge_evaluation import EvaluationOptions
from api.evaluation.judge_scores import Opinion
from api.models.local.word_vectors import vectors
from tests.interfaces.command import Ended, inside
from tests.loopback import Asked, Loopback, Reply
from tests.replay import DATA
from tests.snippets import shown

TEXTS = {
    "a": ("Zorvex after a month", "it still climbs our old stairs every morning"),
    "b": ("Rain on the hills", "nothing here speaks of robots or of stairs"),
    "c": ("Quib unboxing by Ann", "the handle of my new kettle gets hot"),
    "d": ("Quib unboxing by Ann", "first comment, greetings from the north"),
    "e": ("A thread of kettles", "somebody said that the Quib is loud at night"),
}
ITEMS = {"zorvex": ("a", "b"), "quib": ("c", "d", "e")}
FILES: dict[str, dict[str, Any]] = {
    "posts.csv": {"title": ["title"], "body": ["text"]},
    "comments.csv": {
        "title": [], "body": ["text"],
        "titles_of": {"path": "videos.csv", "key": "id", "title": "name", "by": "video"},
    },
    "threads.json": {"title": ["title"], "body": ["text", "post"]},
}  # fmt: skip
PLACES = {"a": (0, "1"), "b": (0, "7"), "c": (1, "0"), "d": (1, "1"), "e": (2, "0/comments/1")}
COMMIT = "0" * 40
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> BenchSets:
    """Two made-up sets over three files, the second a test part."""
    folder = tmp_path_factory.mktemp("sets")
    described = {"task": "about", "table": "about", "what": "", "labels": "", "salt": "s"}
    origins = [
        {"repository": "o/r", "commit": COMMIT, "path": path, "licence": "MIT", **fields}
        for path, fields in FILES.items()
    ]
    (folder / "sets.json").write_text(json.dumps({"sets": {"x-1": described, "y-1": described}, "origins": origins}))
    lines = []
    for name, part, query in (("x-1", "dev", "zorvex"), ("y-1", "test", "quib")):
        items = []
        for key in ITEMS[query]:
            label: bool | str = key in "ac"
            if part == "test":
                label = label_digest("s", query, key, key in "ac")
            items.append([key, *PLACES[key], " ".join(sketch_of("\n".join(TEXTS[key]))), "", label])
        row = {"set": name, "query": query, "about": "a robot", "aim": "about", "source": "reddit", "part": part}
        lines.append(json.dumps({**row, "items": items}))
    (folder / "queries.jsonl").write_text("\n".join(lines))
    return read_sets(folder)


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def public_files() -> dict[str, Any]:
    """The files as they are out there: with names of people, and `b` at another place than was noted."""
    a, b, e = TEXTS["a"], TEXTS["b"], TEXTS["e"]
    return {
        "posts.csv": table([
            {"title": "", "text": ""}, {"title": a[0], "text": f"@ann_b {a[1]}"}, {"title": b[0], "text": b[1]},
        ]),
        "comments.csv": table([{"video": "v", "text": TEXTS["c"][1]}, {"video": "v", "text": TEXTS["d"][1]}]),
        "videos.csv": table([{"id": "v", "name": "Quib unboxing by Ann"}]),
        "threads.json": {
            "threads": [{"title": e[0], "post": "", "comments": [{"text": "no"}, {"text": e[1]}]}], "n": 1,
        },
    }  # fmt: skip


def fetched(sets: BenchSets, folder: Path, server: Loopback) -> FetchOutcome:
    """One fetch from a server."""
    return asyncio.run(fetch(sets, folder, root=server.url))


def serving(files: Mapping[str, Any], status: Mapping[str, int] | None = None) -> Loopback:
    """A server with these files at the recorded commit, and what else it answers by path."""

    def answer(asked: Asked) -> Reply:
        name = asked.path.rpartition("/")[2]
        assert asked.path == f"/o/r/{COMMIT}/{name}"
        code = (status or {}).get(name, 200 if name in files else 404)
        return Reply(code, files.get(name, ""), {"Retry-After": "60"} if code == 429 else {})

    return Loopback(answer)


def test_texts_are_taken_out_of_public_files_and_asked_for_once(sets: BenchSets, tmp_path: Path) -> None:
    """By position or by likeness, with titles of another file, whatever people were called; nothing else is kept."""
    with serving(public_files()) as server:
        first = fetched(sets, tmp_path, server)
        requests = len(server.asked)
        again = fetched(sets, tmp_path, server)
        stored = sorted(tmp_path.iterdir())
        stored[0].write_text(stored[0].read_text("utf-8")[:-20], "utf-8")
        repaired = fetched(sets, tmp_path, server)

    assert (first.files, first.missing, first.stopped) == (3, (), "")
    assert (again.files, again.kept, requests) == (0, 3, 4)
    assert (repaired.files, repaired.kept) == (1, 2)
    texts = FetchedTexts.read(tmp_path, sets)
    assert {key: text for key, text in texts.texts.items() if key != "a"} == {
        k: v for k, v in TEXTS.items() if k != "a"
    }
    assert texts.texts["a"][1].startswith("@ann_b")
    assert texts.coverage(sets.queries, sets.sets) == {"x-1": (2, 2), "y-1": (3, 3)}
    assert "first comment" not in "".join(
        path.read_text("utf-8") for path in stored if "threads" in path.read_text("utf-8")
    )


def test_what_is_gone_is_a_sentence_and_the_rest_is_scored(sets: BenchSets, tmp_path: Path) -> None:
    """A file that is gone, one with other texts, and one that is no table cost their texts alone."""
    files = public_files()
    files["comments.csv"] = table([{"video": "v", "text": TEXTS["c"][1]}, {"video": "v", "text": "edited since"}])
    files["threads.json"] = "<html>moved</html>"
    with serving({name: files[name] for name in files if name != "posts.csv"}) as server:
        outcome = fetched(sets, tmp_path, server)

    assert [sentence.partition(": ")[::2] for sentence in outcome.missing] == [
        ("o/r posts.csv", "`posts.csv` is gone (status 404), 2 texts missing"),
        ("o/r comments.csv", "1 of 2 texts not as labelled"),
        ("o/r threads.json", "1 of 1 text not as labelled"),
    ]
    texts = FetchedTexts.read(tmp_path, sets)
    assert [len(query.items) for query in texts.joined(sets.queries)] == [1]
    assert texts.coverage(sets.queries, sets.sets) == {"x-1": (0, 2), "y-1": (1, 3)}


def test_a_busy_server_is_left_alone_and_asked_for_the_rest_later(sets: BenchSets, tmp_path: Path) -> None:
    """429 stops the fetch; the next one goes on where it stopped."""
    with serving(public_files(), {"comments.csv": 429}) as busy:
        stopped = fetched(sets, tmp_path, busy)
    with serving(public_files()) as server:
        rest = fetched(sets, tmp_path, server)

    assert stopped.files == 1
    assert "wants no more requests until" in stopped.stopped
    assert (rest.files, rest.kept, rest.stopped) == (2, 1, "")


def test_a_file_is_read_again_for_items_that_are_new(sets: BenchSets, tmp_path: Path) -> None:
    """As a later version brings them; what the file was known to lack is not looked for again."""
    first, second = sets.queries
    with serving(public_files()) as server:
        fetched(replace(sets, queries=[replace(first, items=first.items[:1]), second]), tmp_path, server)
        later = fetched(sets, tmp_path, server)
        gone = replace(first.items[1], id="z", sketch=sketch_of("words that no public file has any more"))
        more = replace(sets, queries=[replace(first, items=(*first.items, gone)), second])
        lacking = fetched(more, tmp_path, server)
        again = fetched(more, tmp_path, server)

    assert (later.files, later.kept) == (1, 2)
    assert set(FetchedTexts.read(tmp_path, sets).texts) == set(TEXTS)
    assert (lacking.files, lacking.missing) == (1, ("o/r posts.csv: 1 of 3 texts not as labelled",))
    assert (again.files, again.kept, again.missing) == (0, 3, ())


def test_labels_of_the_test_part_are_checked_not_read(sets: BenchSets) -> None:
    """A digest tells its label to the program; a damaged one is an error."""
    assert [item.relevant for item in sets.queries[1].items] == [True, False, False]
    assert sets.chosen(["y-1"], "dev") == []
    with pytest.raises(ConfigurationError, match="damaged"):
        revealed("s", "quib", "c", "0123456789abcdef")
    for line in (SHIPPED / "queries.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        assert {type(item[-1]) for item in row["items"]} == ({str} if row["part"] == "test" else {bool})
        assert len({item[0] for item in row["items"]}) == len(row["items"])


@pytest.fixture
def run(sets: BenchSets) -> BenchRun:
    """A run over the made-up sets."""
    queries = FetchedTexts(TEXTS).joined(sets.queries)
    return BenchRun(sets, sets.queries, queries, EvaluationOptions(concurrency=1))


def collected(run: BenchRun) -> CollectedBatches:
    """What a gate reads in a run."""
    batches = CollectedBatches("gate")
    asyncio.run(ask_gate(batches, run))
    return batches


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("sleep 30", "was not done after 0.5 s"),
        ("cat", "line 1: `relevant`: Field required"),
        ("echo rubbish", "line 1: `line`: Invalid JSON"),
        ("true", "gave no verdict"),
        ("sh -c 'echo {}; exit 3'", "ended with exit code 3 after 1 line of "),
        ("sh -c 'kill -9 $$'", "was ended by signal 9"),
        ("sh -c 'yes | head -c 100000000'", "wrote more than 16 MB"),
        ("no-such-gate", "cannot be started: No such file"),
        ("'", "No closing quotation"),
        ("""echo '{"id": "z", "relevant": true}'""", "judges `z`, which is no item of this run"),
        (r"""printf '{"id": "x-1/0/a/1", "relevant": true}\n%.0s' 1 2""", "two verdicts for `x-1/0/a/1`"),
        ("""echo '{"id": "x-1/0/a/1", "relevant": true, "probability": 2}'""", "line 1: `probability`"),
    ],
)  # fmt: skip
def test_a_gate_that_fails_is_one_sentence(run: BenchRun, command: str, message: str) -> None:
    """Whatever a command does, nothing hangs, nothing grows, and nothing is scored."""
    batches = collected(run)

    async def judged() -> None:
        lines, _ = await run_gate(command, batches.lines() * 200, 0.5 if "sleep" in command else 60)
        read_verdicts(lines, "gate", batches)

    with pytest.raises(UsageError, match=r"\S") as caught:
        asyncio.run(judged())

    assert message in str(caught.value)


async def test_gates_that_write_without_end_are_ended() -> None:
    """Each time, at whatever point of its output it is left."""
    command = "sh -c 'yes | head -c 100000000'"
    async with asyncio.timeout(60):
        ended = await asyncio.gather(*(run_gate(command, ["{}"], 60) for _ in range(12)), return_exceptions=True)

    assert {str(error) for error in ended} == {"`sh` wrote more than 16 MB; a verdict takes about 60 bytes"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--gate", "cat", "--name", "keyword"), "`keyword` is a gate of this program"),
        (("--gate", "/opt/my/local -v"), "`local` is a gate of this program"),
        (("--baseline", "keyword", "--model", "gpt-x"), "`--model` goes with `--baseline openai`"),
    ],
)
def test_an_option_that_would_mislead_is_refused(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    """A name that would replace a baseline's row, and a model that nobody asks."""
    ended = inside("bench", "run", *words, "--folder", str(tmp_path), env={})

    assert ended.code == 2
    assert message in ended.err


def test_a_gate_that_leaves_out_items_keeps_them(run: BenchRun) -> None:
    """Half of the verdicts are scored with the rest as kept; ways that were not judged have no figures."""
    batches = collected(run)
    ids = [json.loads(line)["id"] for line in batches.lines()]
    verdicts = {key: Opinion("/a/" in key, 0.1) for key in ids if key.endswith("/1") and "/b/" not in key}
    given = GivenVerdicts("gate", batches.batches, verdicts)

    row = asyncio.run(measure(given, run, gate="gate", how="by hand", timed=False))

    assert given.missing == 1
    figures = row["described"]["groups"]
    assert (figures["x-1"]["n"], figures["x-1"]["kept"], figures["y-1"]["kept"]) == (2, 2, 0)
    assert figures["about"]["ms_per_1000"] is None
    assert figures["about"]["usd_per_1000"] is None
    assert "about, test" in figures
    assert row["alone"]["groups"] == {}
    assert row["orders"]["about"]["shuffled"]["stay"] is None


def test_results_of_other_texts_do_not_mix(run: BenchRun) -> None:
    """Rows of the same texts replace each other; those of fewer texts are refused."""
    queries: dict[str, Any] = {"described": {"queries": {}}}
    rows: list[dict[str, Any]] = [{"gate": "a", **queries}, {"gate": "b", **queries}]
    whole = results_of(rows, run, {"x-1": (2, 2)})
    new: list[dict[str, Any]] = [{"gate": "b", "how": "again", **queries}, {"gate": "c", **queries}]

    later = merged(whole, results_of(new, run, {"x-1": (2, 2)}))

    assert later["rows"] == [rows[0], *new]
    with pytest.raises(UsageError, match="other texts"):
        merged(whole, results_of([], run, {"x-1": (1, 2)}))


ABOUT = ("described", "groups", "about")


@pytest.mark.parametrize("part", [(*ABOUT, "mcc"), (*ABOUT, "intervals"), ("orders", "about")], ids=str)
def test_damaged_results_are_one_sentence(run: BenchRun, tmp_path: Path, part: tuple[str, ...]) -> None:
    """Results come from strangers, too."""
    given = GivenVerdicts("gate", collected(run).batches, {"x-1/0/a/1": Opinion(True), "y-1/1/c/1": Opinion(True)})
    row = asyncio.run(measure(given, run, gate="gate", how="by hand", timed=False))
    results, path = results_of([row], run, {"x-1": (2, 2), "y-1": (3, 3)}), tmp_path / "results.json"
    path.write_text(json.dumps(results), "utf-8")
    assert read_results(path) == results

    place: Any = row
    for name in part[:-1]:
        place = place[name]
    del place[part[-1]]
    path.write_text(json.dumps(results), "utf-8")

    with pytest.raises(UsageError, match="holds no results of the benchmark"):
        read_results(path)


def test_nobody_is_judged_with_its_own_correction(run: BenchRun) -> None:
    """Of each query one half is judged with the labels of the other, and each item once."""
    taught: list[tuple[set[str], list[str]]] = []

    class Noting:
        def verdicts(self, question: Question, items: Sequence[Item], source: str) -> list[Verdict]:
            taught.append(({known.key for known in question.corrections}, [item.id for item in items]))
            return [Verdict(True) for _ in items]

    class Folded(FoldedJudge):
        def of(self, question: Question) -> Any:
            return Noting()

    judge = CorrectedJudge(Folded({}, [], None), run.queries)
    for query in run.queries:
        judged = asyncio.run(judge.judge(query.question(), query.shown(), query.source))
        assert len(judged.verdicts) == len(query.items)

    assert any(known for known, _ in taught)
    assert all(known.isdisjoint(items) for known, items in taught)


def test_every_query_has_a_fold() -> None:
    """No query of the benchmark is judged by weights that were fitted on it."""
    folds = folded_judge().folds

    assert {query.query for query in read_sets().queries} == set(folds)


def test_the_page_and_the_readme_say_what_was_measured() -> None:
    """The page holds the tables of the committed results, and each figure of the README's gate is a line of them."""
    page = (ROOT / "docs" / "bench.md").read_text("utf-8")
    shown_again = inside("bench", "show", str(ROOT / "evaluation/bench/results.json"), "--format", "markdown", env={})
    gate = (ROOT / "README.md").read_text("utf-8").partition("## How good the gate is")[2].partition("\n## ")[0]
    rows = [line for line in gate.splitlines() if line.startswith("|")]

    assert f"<!-- results -->\n{shown_again.out.strip()}\n<!-- end of results -->" in page
    assert len(rows) >= 4
    assert [row for row in rows if row not in page] == []
    coverage = read_results(ROOT / "evaluation/bench/results.json")["coverage"]
    assert all(have == of for have, of in coverage.values())


def test_a_new_file_is_in_no_set_that_there_is() -> None:
    """A set never changes under its name: which one a file belongs to is written down."""
    assert making.set_of("real_posts_brand.jsonl") == "posts-1"
    assert making.set_of("real_posts_cjk.jsonl") == "cjk-1"
    assert making.set_of("real_shop_youtube-search.jsonl") == "shop-1"
    assert making.set_of("real_shop_youtube-comments.jsonl") == "comments-1"
    with pytest.raises(KeyError):
        making.set_of("real_forums.jsonl")


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The labelled texts as files with the layout of the public ones, on this machine."""
    if not (DATA / "relevance-real").is_dir():
        pytest.skip(f"no labelled sets in {DATA}; set LISTENPOST_TEST_DATA")
    folder = tmp_path_factory.mktemp("mirror")
    making.mirror(DATA, folder)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_what_is_shipped_holds_no_text(mirror: str) -> None:
    """No title and no sentence of a labelled text stands in the shipped files."""
    shipped = "".join((SHIPPED / name).read_text("utf-8") for name in ("queries.jsonl", "sets.json", "folds.json"))
    texts = [
        text for _, row in making.labelled(DATA) for item in row["items"] for text in (item["title"], item["body"])
    ]
    lines = {line.strip() for text in texts for line in text.splitlines() if len(line.strip()) > 30}

    assert len(lines) > 1000
    assert [line for line in lines if json.dumps(line, ensure_ascii=False)[1:-1] in shipped] == []


@pytest.mark.skipif(vectors() is None, reason="word vectors have no wheel here")
def test_the_commands_of_the_page_work(mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the page has them, on the smallest set from a mirror; its gate of ten lines takes part."""
    monkeypatch.chdir(tmp_path)
    blocks = shown((ROOT / "docs" / "bench.md").read_text("utf-8"))
    item, verdict = (json.loads(code) for language, code in blocks if language == "json")
    Path("first_word.awk").write_text(next(code for language, code in blocks if language == "awk"), "utf-8")
    results: list[Ended] = []
    for line in next(code for language, code in blocks if language == "sh").splitlines():
        words = shlex.split(line, comments=True)[1:]
        target = words.pop() if ">" in words else None
        words = [word for word in words if word != ">"]
        if words[1] == "fetch":
            words += ["--mirror", mirror, "--set", "cjk-1"]
        if "--verdicts" in words:
            done = inside(
                "bench", "run", "--gate", "awk -f first_word.awk", "--set", "cjk-1", "--format", "json", env={}
            )
            opinions = [
                {"id": json.loads(line)["id"], "relevant": True}
                for line in Path("items.jsonl").read_text().splitlines()
            ]
            Path("verdicts.jsonl").write_text("\n".join(map(json.dumps, opinions)))
            assert done.json["rows"][0]["unanswered"] == 0
        ended = inside(*words, env={})
        assert ended.code == 0, ended.err
        if target:
            Path(target).write_bytes(ended.raw)
        results.append(ended)

    fetched_, all_gates, mine, items, by_hand, shown_again = results
    assert "cjk-1 57 of 57" in fetched_.err
    assert all(f"\n{name} " in all_gates.out for name in ("keyword", "bm25", "hybrid", "local", "corrected"))
    assert "posts-1: 0 of 363 texts" in all_gates.out
    assert "first-word" in mine.out
    assert shown_again.out == mine.out
    assert set(json.loads(items.out.splitlines()[0])) == set(item)
    assert set(verdict) == {"id", "relevant", "probability"}
    assert "verdicts.jsonl" in by_hand.out
    labelled = inside("eval", "--bench", "cjk-1", "--judge", "keyword", "--format", "json", env={})
    assert set(labelled.json["families"]) == {"cjk-1"}
