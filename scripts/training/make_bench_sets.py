"""Makes what the benchmark ships, or a server with its texts.

    python scripts/training/make_bench_sets.py --data DIR            # labels, ids, origins, weights of five folds
    python scripts/training/make_bench_sets.py --data DIR --mirror 8099

DIR holds the labelled sets with their texts, none of which is shipped. `--mirror PORT` serves them on this machine
as files with the layout, fields and positions of the public ones, so that `listenpost bench` can be run without
the internet; rows that have no label are empty there.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import train_local_judge as training
from api.core.text import cut
from api.evaluation.bench_sets import TEXT_LENGTH, PublicFile, label_digest, part_of, read_sets, sketch_of
from api.models.local.word_vectors import vectors

SHIPPED = Path(__file__).parents[2] / "api" / "evaluation" / "bench_data"
GUIDELINE = "two readings by docs/labelling.md, settled by it; both readers are language models"
SETS = {
    "posts-1": ("about", "about", "posts of Reddit, Hacker News and GitHub in English", GUIDELINE),
    "shop-1": ("about", "about", "tiles and reviews of Amazon, titles of videos and news", GUIDELINE),
    "comments-1": ("about", "about", "comments under videos", GUIDELINE),
    "cjk-1": ("about", "about", "posts and comments in Chinese and Japanese", GUIDELINE),
    "mention-1": ("mention", "mention", "Reddit posts for brands whose names are everyday words", "a language model"),
    "tweets-1": ("about", "events", "tweets collected during eleven disasters", "paid workers"),
}
"""By name: task, table of results, what it holds, who labelled it."""
FILES = {
    "real_posts": "posts-1",
    "real_posts_cjk": "cjk-1",
    "real_shop": "shop-1",
    "real_shop_youtube-comments": "comments-1",
}
"""Set of a file by the beginning of its name; the longest counts."""
CJK = {"リングフィット アドベンチャー"}
TWEETS_PER_EVENT = 40
EVENTS = {
    "Colorado wildfires": "2012_Colorado_wildfires", "Guatemala earthquake": "2012_Guatemala_earthquake",
    "Philippines floods": "2012_Philipinnes_floods", "Venezuela refinery explosion": "2012_Venezuela_refinery",
    "Brazil nightclub fire": "2013_Brazil_nightclub_fire", "LAX airport shooting": "2013_LA_airport_shootings",
    "Queensland floods": "2013_Queensland_floods", "Savar building collapse": "2013_Savar_building_collapse",
    "Typhoon Yolanda": "2013_Typhoon_Yolanda", "Bohol earthquake": "2013_Bohol_earthquake",
    "Sardinia floods": "2013_Sardinia_floods",
}  # fmt: skip
TWEET_COMMIT = "f8f71376afbe72868ddcadec227e78b159e43c28"
MENTION = {
    "repository": "TheWeiHu/redlens", "commit": "1d8473befb91f0dd3cd545aa42d467088d6a9d7c",
    "path": "tests/fixtures/filter_gold.csv", "licence": "MIT", "title": ["title"], "body": ["selftext"],
}  # fmt: skip
FIELDS: Mapping[str, tuple[list[str], list[str]]] = {
    "umbrae/reddit-top-2.5-million": (["title"], ["selftext"]),
    "ashpai2504/Signal-Hunter": (["title"], ["excerpt"]),
    "fabricio44445-jpg/pulseboard-brand-intelligence": (["title"], ["summary"]),
    "mwc2150/everlane-sustainability-analysis": (["title"], ["text"]),
    "SeanKim8864/diablo4-dashboard": (["title"], ["body"]),
    "GayatriShinde9/Hacker-News-Posts": (["title"], []),
    "assafelovic/gpt-researcher": (["title"], ["body"]),
    "YuHsunWang/cvs-radar": (["title"], ["text", "review_text"]),
    "roshna18/SocialMindAI": (["text"], []),
    "verdugo-danieML/improvado-marketing-intelligence": (["video_title"], ["text"]),
    "cnyoka/revolution-nlp-analysis": (["video_title"], ["text"]),
    "tejas99gajjar-ops/AITP_Tesla_assign": ([], ["comment_text"]),
    "Seriphap/BYD_YouTubeComment_AI": (["video_title"], ["comment"]),
    "SatoshiOhashi1998/vspo-comments": (["Title"], ["Comment"]),
    "laurahallaman1/final_project": (["reviews.title"], ["reviews.text"]),
    "ctang0416/parsehub": (["product_name"], []),
    "anhvi02/TextAnalysis_WH1000-XM5 youtube_videos.csv": (["title"], ["description"]),
    "anhvi02/TextAnalysis_WH1000-XM5 youtube_comments.csv": ([], ["comment"]),
}
TITLES = {
    "tejas99gajjar-ops/AITP_Tesla_assign": {
        "path": "data/youtube_videos.csv", "key": "video_id", "title": "title", "by": "video_id",
    },
    "anhvi02/TextAnalysis_WH1000-XM5 youtube_comments.csv": {
        "path": "youtube_videos.csv", "key": "id", "title": "title", "by": "videoId",
    },
}  # fmt: skip
LICENCES = {
    "umbrae/reddit-top-2.5-million": "PDDL-1.0", "assafelovic/gpt-researcher": "Apache-2.0",
    "verdugo-danieML/improvado-marketing-intelligence": "MIT", "sajao/CrisisLex": "MIT",
}  # fmt: skip
Row = dict[str, Any]


def labelled(data: Path) -> Iterator[tuple[str, Row]]:
    """Every labelled query with the name of its set; its items have an `origin`."""
    for path in sorted(data.rglob("real_*.jsonl")):
        for row in _rows(path):
            yield ("cjk-1" if row["query"] in CJK else set_of(path.name)), row
    for path in sorted(data.rglob("mention_*.jsonl")):
        for row in _rows(path):
            yield "mention-1", _with_origin(row, MENTION)
    for row in _rows(next(iter(data.rglob("dev_event.jsonl")))):
        if folder := EVENTS.get(row["query"]):
            tweets = f"data/CrisisLexT26/{folder}/{folder}-tweets_labeled.csv"
            origin = {"repository": "sajao/CrisisLex", "commit": TWEET_COMMIT, "path": tweets}
            row["items"] = list({item["id"]: item for item in row["items"]}.values())[:TWEETS_PER_EVENT]
            yield "tweets-1", _with_origin(row, origin)


def set_of(name: str) -> str:
    """The set that a file belongs to; raises `KeyError` for one that `FILES` does not place."""
    return FILES[max((start for start in FILES if name.startswith(start)), key=len, default=name)]


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line]


def _with_origin(row: Row, origin: Mapping[str, Any]) -> Row:
    for item in row["items"]:
        item["origin"] = {"repo": origin["repository"], "commit": origin["commit"], "path": origin["path"]}
    return row


def origin_of(found: Mapping[str, Any]) -> Row:
    """A public file as `sets.json` describes it."""
    repository, path = found["repo"], found["path"]
    both = f"{repository} {path}"
    origin = {
        "repository": repository,
        "commit": found["commit"],
        "path": path,
        "licence": LICENCES.get(repository, "none stated"),
    }
    if repository == MENTION["repository"]:
        return dict(MENTION)
    if repository == "sajao/CrisisLex":
        return origin | {"title": [], "body": ["Tweet Text"], "tweets": True}
    title, body = FIELDS.get(both) or FIELDS.get(repository) or (["title"], [])
    titles = TITLES.get(both) or TITLES.get(repository)
    return origin | {"title": title, "body": body} | ({"titles_of": titles} if titles else {})


def make(data: Path, folder: Path, *, folds: bool = True) -> None:
    """Write everything that is shipped."""
    folder.mkdir(exist_ok=True)
    origins: dict[str, int] = {}
    described, lines = list[Row](), list[str]()
    for name, row in labelled(data):
        part, items = part_of(name, row["query"]), []
        for item in row["items"]:
            origin = origin_of(item["origin"])
            number = origins.setdefault(json.dumps(origin), len(origins))
            if number == len(described):
                described.append(origin)
            label: bool | str = item["relevant"]
            if part == "test":
                label = label_digest(f"listenpost {name}", row["query"], item["id"], item["relevant"])
            position = str(item["origin"].get("position", ""))
            sketch = " ".join(sketch_of(f"{item['title']}\n{cut(item['body'], TEXT_LENGTH)}"))
            items.append([item["id"], number, position, sketch, item.get("place") or "", label])
        about = row.get("about", "")
        fields = {
            "set": name,
            "query": row["query"],
            "about": about,
            "aim": SETS[name][0],
            "source": row["source_hint"],
        }
        lines.append(json.dumps({**fields, "part": part, "items": items}, ensure_ascii=False))
    sets = {
        name: {"task": task, "table": table, "what": what, "labels": labels, "salt": f"listenpost {name}"}
        for name, (task, table, what, labels) in SETS.items()
    }
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    head = {"sets": sets, "origins": described}
    (folder / "sets.json").write_text(json.dumps(head, ensure_ascii=False, indent=1) + "\n", "utf-8")
    if folds:
        queries = training.load(data)
        samples = training.samples(queries, vectors())
        known = {json.loads(line)["query"] for line in lines}  # some queries of other sets are texts of shops
        shipped = {
            "folds": {text: fold for text, fold in training.folds_of(queries).items() if text in known},
            "weights": [training.fitted(samples, fold) for fold in range(training.FOLDS)],
        }
        (folder / "folds.json").write_text(json.dumps(shipped, ensure_ascii=False, indent=1) + "\n", "utf-8")


def mirror(data: Path, folder: Path, shipped: Path = SHIPPED) -> None:
    """Write the texts as files with the layout of the public ones."""
    texts = {item["id"]: item for _, row in labelled(data) for item in row["items"]}
    sets = read_sets(shipped)
    wanted: dict[int, dict[str, str]] = defaultdict(dict)
    for query in sets.queries:
        for item in query.items:
            wanted[item.origin][item.id] = item.position
    files: dict[str, list[Row]] = defaultdict(list)
    for number, positions in sorted(wanted.items(), key=lambda entry: bool(sets.origins[entry[0]].titles_of)):
        origin = sets.origins[number]
        rows, titles = _placed(origin, positions, texts)
        files[origin.address] += rows
        if origin.titles_of:  # behind the rows of that file, which may be an origin, too
            files[origin.address_of(origin.titles_of["path"])] += titles
    for address, rows in files.items():
        _write(folder / address[1:], rows)


def _placed(origin: PublicFile, positions: Mapping[str, str], texts: Mapping[str, Row]) -> tuple[list[Row], list[Row]]:
    """Rows of a file at their positions, and those of the file with the titles."""
    rows: list[Row] = []
    titles: dict[str, str] = {}
    for key, position in positions.items():
        row, title = {}, texts[key]["title"]
        if origin.titles_of:
            row[origin.titles_of["by"]] = titles.setdefault(title, f"v{len(titles)}")
        elif origin.title:
            row[origin.title[0]] = title
        at, *inner = position.split("/")
        if origin.body:
            row[origin.body[0] if inner else origin.body[-1]] = texts[key]["body"]
        place = int(at) if at else len(rows)
        rows += ({} for _ in range(place + 1 - len(rows)))
        if inner:
            nested = rows[place].setdefault(inner[0], [])
            nested += ({} for _ in range(int(inner[1]) + 1 - len(nested)))
            nested[int(inner[1])] = row
        else:
            rows[place] |= row
    spec = origin.titles_of
    return rows, [{spec["key"]: key, spec["title"]: title} for title, key in titles.items()] if spec else []


def _write(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        names = list(dict.fromkeys(name for row in rows for name in row))
        with io.StringIO(newline="") as table:
            writer = csv.DictWriter(table, names)
            writer.writeheader()
            writer.writerows({name: row.get(name, "") for name in names} for row in rows)
            path.write_text(table.getvalue(), "utf-8", newline="")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        path.write_text(json.dumps(rows), "utf-8")


def main() -> None:
    """Write the shipped files, or serve the mirror until it is interrupted."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--out", type=Path, default=SHIPPED)
    options.add_argument("--no-folds", action="store_true")
    options.add_argument("--mirror", type=int, metavar="PORT")
    given = options.parse_args()
    if given.mirror is None:
        make(given.data, given.out, folds=not given.no_folds)
        return
    with TemporaryDirectory() as folder:
        mirror(given.data, Path(folder))
        handler = partial(SimpleHTTPRequestHandler, directory=folder)
        with ThreadingHTTPServer(("127.0.0.1", given.mirror), handler) as server:
            print(f"listenpost bench run --fetch --mirror http://127.0.0.1:{server.server_port}", flush=True)
            server.serve_forever()


if __name__ == "__main__":
    main()
