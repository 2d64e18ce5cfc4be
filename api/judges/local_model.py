"""The fitted weights of the local judge, and how they become probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp

from api.judges.local_features import AGAINST_ALL, FOR_ALL, Row
from api.judges.local_reading import Topic
from api.services.gate.excerpt import Shown

THRESHOLD = 0.5
"""Probability from which an item is kept."""
RULED_OUT, RULED_IN = 0.05, 0.6
"""Probability of what a rule decides against, and the least of what one decides for."""
LISTING = 6
"""Words of a name above which the question is a title copied from a shop."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One logistic model."""

    bias: float
    weights: Mapping[str, float]

    def probability(self, row: Row) -> float:
        """How likely a text with these features is relevant."""
        if any(row[rule] for rule in AGAINST_ALL):
            return RULED_OUT
        score = self.bias + sum(weight * row[name] for name, weight in self.weights.items())
        chance = 1 / (1 + exp(-score))
        return max(chance, RULED_IN) if any(row[rule] for rule in FOR_ALL) else chance


def profile_name(topic: Topic, shown: Shown, *, lexical: bool) -> str:
    """Which profile judges a text: by the kind of question, and whether the text has a title."""
    kind = "titled" if shown.title else "untitled"
    if len(topic.name.words) > LISTING:
        kind = "listing"
    return f"{kind}-lexical" if lexical else kind


@cache
def profiles() -> Mapping[str, Profile]:
    """The shipped weights: `titled`, `untitled`, `listing`, each also `-lexical`."""
    text = files("api.judges").joinpath("local_weights.json").read_text("utf-8")
    return parse(json.loads(text)["profiles"])


def parse(stored: Mapping[str, Mapping[str, float]]) -> Mapping[str, Profile]:
    """Profiles out of their JSON form, in which the bias stands among the weights."""
    return {
        name: Profile(weights["bias"], {k: v for k, v in weights.items() if k != "bias"})
        for name, weights in stored.items()
    }
