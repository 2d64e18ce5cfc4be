"""The fitted weights of the local judge and how they become probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp

from api.judges.local_features import Page, Row

THRESHOLD = 0.5
"""Probability from which an item is kept."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One logistic model."""

    bias: float
    weights: Mapping[str, float]

    def probability(self, row: Row) -> float:
        """How likely a text with these features is relevant; what is not measured counts as 0."""
        score = self.bias + sum(
            weight * row.get(feature, 0.0) for feature, weight in self.weights.items()
        )
        return 1 / (1 + exp(-score))


@dataclass(frozen=True, slots=True)
class Profile:
    """A first opinion, which says what to learn from, and the one that counts."""

    seed: Layer
    main: Layer

    def probabilities(self, page: Page) -> list[float]:
        """One probability per text of the page, in order."""
        trust = [trusted(self.seed.probability(row)) for row in page.rows]
        return [
            self.main.probability({**row, "feedback": feedback})
            for row, feedback in zip(page.rows, page.feedback(trust), strict=True)
        ]


def trusted(probability: float) -> float:
    """How much a text teaches about the topic: nothing when it is more likely off-topic."""
    return max(0.0, 2 * probability - 1)


@cache
def profiles() -> Mapping[str, Profile]:
    """The shipped weights: `social`, `amazon`, and both without word vectors (`-lexical`)."""
    text = files("api.judges").joinpath("local_weights.json").read_text("utf-8")
    return parse(json.loads(text)["profiles"])


def parse(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Mapping[str, Profile]:
    """Profiles out of their JSON form, in which the bias stands among the weights."""
    return {
        name: Profile(*(_layer(layers[layer]) for layer in ("seed", "main")))
        for name, layers in found.items()
    }


def profile_name(source: str, *, lexical: bool) -> str:
    """Which profile judges texts of this source."""
    kind = "amazon" if source == "amazon" else "social"
    return f"{kind}-lexical" if lexical else kind


def _layer(weights: Mapping[str, float]) -> Layer:
    return Layer(weights["bias"], {k: v for k, v in weights.items() if k != "bias"})
