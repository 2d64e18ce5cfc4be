"""The sample corpus as labelled queries, for `eval` alone."""

from __future__ import annotations

import json
from collections import defaultdict
from importlib import resources

from api.lab.labelled import LabelledItem, LabelledQuery, labelled
from api.sandbox import corpus


def labelled_corpus() -> list[LabelledQuery]:
    """One query per product and source, with what a judge would see at the gate.

    That is a title and the first 200 characters; on Amazon, where the gate sees tiles, the title.
    The family is the product's short name.
    """
    data = resources.files("api.sandbox") / "data" / "products.json"
    return [
        query
        for product in json.loads(data.read_text("utf-8"))
        for query in _product(product["slug"], product["query"], product["about"])
    ]


def _product(slug: str, query: str, about: str) -> list[LabelledQuery]:
    labels = corpus.labels(slug)
    parts: dict[str, list[LabelledItem]] = defaultdict(list)
    for post in corpus.load(slug):
        if (label := labels.get(post.key)) is not None:
            body = "" if post.source == "amazon" else post.body
            item = LabelledItem(post.title, body, label["relevant"], kind=label["kind"])
            parts[post.source].append(item)
    return [
        labelled(LabelledQuery(query, source, (), slug, about), items)
        for source, items in parts.items()
    ]
