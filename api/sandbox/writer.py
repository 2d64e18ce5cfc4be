"""The deterministic report writer: reads the quoted exhibits, groups them by what they talk about.

It knows nothing but the prompt. Its sentences are its own, hold no numbers, and each finding cites
only exhibits in which the aspect was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from api.sandbox.lexicon import Aspect, lexicon, sentences
from api.sandbox.quoted import Prompt, Quoted
from api.sandbox.world import Probabilities

_MOST, _LEAST, _CITES, _QUOTES = 7, 3, 4, 4
_ON_TOPIC, _ASKED_FOR = 0.35, 2.0
_SHORT = "starting point"
"""What the instructions of a short report say: one sentence of summary, two findings."""
QUESTION_WORDS = frozenset(
    "a about and any are best but can could do does for from good has have how i in is it its me "
    "my of on or people review reviews say saying should tell that the their them there they thing "
    "things think thinks this to use users versus vs want was what when where which who why will "
    "with worth would you your really actually like love hate complain complaints opinion "
    "opinions".split()
)
"""Words of asking, which are no part of a product's name."""
_KINDS = ("praise", "complaint", "request")


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of an exhibit about one aspect."""

    label: str
    aspect: Aspect
    kind: str
    """praise, complaint or request."""
    text: str
    weight: float
    """How likely the exhibit is about the product."""


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences of one aspect and kind."""

    aspect: Aspect
    kind: str
    said: tuple[Said, ...]

    @property
    def cites(self) -> list[str]:
        """The exhibits to cite, the most on-topic first."""
        return list(dict.fromkeys(one.label for one in self.said))[:_CITES]

    @property
    def weight(self) -> float:
        """How much stands behind it: its exhibits, each once."""
        best: dict[str, float] = {}
        for one in self.said:
            best[one.label] = max(one.weight, best.get(one.label, 0))
        return sum(best.values())


def name_of(question: str) -> str:
    """The product's name: what is left without the words of asking; "" when unsure."""
    words = [word.strip("?!,;:\"“”'()") for word in question.split()]
    kept = [w for w in words if w and w.casefold().removesuffix("'s") not in QUESTION_WORDS]
    topics = [w for w in kept if lexicon().about(w) and len(kept) > 1]
    kept = [w.removesuffix("'s").removesuffix("’s") for w in kept if w not in topics] or kept
    return " ".join(kept) if 0 < len(kept) <= 4 else ""


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def report(prompt: Prompt, judge: Probabilities) -> dict[str, Any]:
    """Topic, summary, findings, quotes and next questions for the exhibits in the prompt."""
    name = name_of(prompt.question) or "the product"
    weights = _weights(prompt, judge)
    short = _SHORT in prompt.plain
    most = 2 if short else _MOST
    groups = _chosen(_groups(prompt, weights, prompt.question), most)
    findings = [_finding(group, name) for group in groups]
    findings = _with_difference(findings, groups, name)
    findings += _rest(prompt, findings, weights, name)
    summary = _summary(groups, name)
    if short:
        summary = sentences(summary)[0] if summary else summary
    return {
        "topic": f"What people say about {name}",
        "summary": summary,
        "findings": findings[:most],
        "quotes": _quotes(groups),
        "suggestions": [g.aspect.question.format(name=name) for g in _distinct(groups)][:3]
        or [f"What made people choose {name}?"],
    }


def _weights(prompt: Prompt, judge: Probabilities) -> dict[str, float]:
    """Exhibit label -> how likely it is on topic; the clearly off-topic are left out."""
    sources, by_source = prompt.sources, dict[str, list[Quoted]]()
    for exhibit in prompt.exhibits:
        by_source.setdefault(sources.get(exhibit.label, ""), []).append(exhibit)
    weights: dict[str, float] = {}
    for source, exhibits in by_source.items():
        texts = [" | ".join(exhibit.parts[:2]) for exhibit in exhibits]
        chances = judge(prompt.question, prompt.about, texts, source)
        weights |= {exhibit.label: float(p) for exhibit, p in zip(exhibits, chances, strict=True)}
    sound = {label: weight for label, weight in weights.items() if weight >= _ON_TOPIC}
    return sound if len(sound) >= _LEAST else weights


def _groups(prompt: Prompt, weights: dict[str, float], question: str) -> list[Group]:
    """Every aspect and kind with its sentences, the best supported first."""
    asked = {aspect.name for aspect in lexicon().about(question)}
    everything = " ".join(exhibit.text for exhibit in prompt.exhibits)
    fitting = {aspect.name for aspect in lexicon().aspects if aspect.fits(everything)}
    found: dict[tuple[str, str], list[Said]] = {}
    for exhibit in prompt.exhibits:
        if exhibit.label in weights:
            shop = prompt.sources.get(exhibit.label) == "amazon"
            texts = exhibit.comments if shop else exhibit.parts
            for one in _said(exhibit.label, texts, weights[exhibit.label]):
                found.setdefault((one.aspect.name, one.kind), []).append(one)
    groups = [
        Group(said[0].aspect, kind, tuple(sorted(said, key=lambda one: -one.weight)))
        for (name, kind), said in found.items()
        if name in fitting
    ]
    boost = {g.aspect.name: _ASKED_FOR if g.aspect.name in asked else g.aspect.rank for g in groups}
    order = {aspect.name: at for at, aspect in enumerate(lexicon().aspects)}
    return sorted(
        groups, key=lambda g: (-g.weight * boost[g.aspect.name], order[g.aspect.name], g.kind)
    )


def _said(label: str, texts: Iterable[str], weight: float) -> Iterable[Said]:
    """Opinions in texts; what a shop says about its own product is none, so it is not passed."""
    words = lexicon()
    for sentence in (sentence for text in texts for sentence in sentences(text)):
        if words.wishes(sentence):
            kind = "request"
        elif sentence.endswith(("?", "？")) or not (feeling := words.polarity(sentence)):
            continue
        else:
            kind = "praise" if feeling > 0 else "complaint"
        for aspect in words.about(sentence)[:2]:
            yield Said(label, aspect, kind, sentence, weight)


def _chosen(groups: Sequence[Group], most: int) -> list[Group]:
    """The best supported, at most two of an aspect, and something of each kind there is."""
    chosen: list[Group] = []
    for kind in _KINDS:
        chosen += [group for group in groups if group.kind == kind][:1]
    for group in groups:
        same = [other for other in chosen if other.aspect is group.aspect]
        new = not same or (len(same) == 1 and not set(group.cites) <= set(same[0].cites))
        if len(chosen) < most - 1 and group not in chosen and new:
            chosen.append(group)
    return sorted(chosen, key=groups.index)


def _finding(group: Group, name: str) -> dict[str, Any]:
    text = str(getattr(group.aspect, group.kind)).format(name=name)
    shades = dict.fromkeys(
        shade
        for one in group.said
        if one.label in group.cites
        for shade in group.aspect.shades(one.text)
    )
    if shades:
        text += f" What comes up: {listed(list(shades)[:3])}."
    text = text[0].upper() + text[1:]
    if len(group.cites) == 1:
        text = f"Said in one place only: {text}"
    return {"text": text, "kind": group.kind, "cites": group.cites}


def _with_difference(
    findings: list[dict[str, Any]], groups: Sequence[Group], name: str
) -> list[dict[str, Any]]:
    """Add what people disagree about, when one aspect is both praised and criticised."""
    for group in groups:
        other = next(
            (g for g in groups if g.aspect is group.aspect and g.kind == "complaint"), None
        )
        if group.kind == "praise" and other is not None and other.cites != group.cites:
            cites = list(dict.fromkeys([*group.cites[:2], *other.cites[:2]]))
            text = f"Opinions on {group.aspect.noun} differ: what some praise, others criticise."
            return [*findings, {"text": text, "kind": "difference", "cites": cites}]
    return findings


def _rest(
    prompt: Prompt, findings: Sequence[dict[str, Any]], weights: dict[str, float], name: str
) -> list[dict[str, Any]]:
    """What fills a report with too few opinions: the exhibits not cited yet, plainly described."""
    cited = {label for finding in findings for label in finding["cites"]}
    made: list[dict[str, Any]] = []
    for exhibit in sorted(prompt.exhibits, key=lambda e: -weights.get(e.label, 0)):
        if len(findings) + len(made) >= _LEAST:
            break
        if exhibit.label in weights and exhibit.label not in cited:
            made.append(
                {"text": _described(exhibit, name), "kind": "other", "cites": [exhibit.label]}
            )
    return made


def _described(exhibit: Quoted, name: str) -> str:
    topics = listed([aspect.noun for aspect in lexicon().about(" ".join(exhibit.parts))[:3]])
    if exhibit.parts and "?" in exhibit.parts[0]:
        more = f", above all about {topics}" if topics else ""
        return f"People ask each other about {name} before they decide{more}."
    more = f"with an eye on {topics}" if topics else "without a clear verdict"
    return f"{name[0].upper()}{name[1:]} is talked about {more}."


def _summary(groups: Sequence[Group], name: str) -> str:
    if not groups:
        return f"People mention {name}, but few of them say what they think of it."
    topics = [group.aspect.noun for group in _distinct(groups)][:3]
    said = [f"Talk about {name} turns on {listed(topics)}."]
    for kind, opening in (
        ("praise", "Praise goes to"),
        ("complaint", "Complaints concern"),
        ("request", "Wishes concern"),
    ):
        nouns = list(dict.fromkeys(g.aspect.noun for g in groups if g.kind == kind))[:2]
        if nouns:
            said.append(f"{opening} {listed(nouns)}.")
    return " ".join(said)


def _distinct(groups: Iterable[Group]) -> list[Group]:
    return list({group.aspect.name: group for group in groups}.values())


def _quotes(groups: Sequence[Group]) -> list[dict[str, str]]:
    """One telling sentence per finding, each exhibit once."""
    quotes: dict[str, str] = {}
    for group in groups:
        for one in group.said:
            fits = 5 <= len(one.text.split()) <= 40 or (len(one.text) > 12 and " " not in one.text)
            if one.label in group.cites and one.label not in quotes and fits:
                quotes[one.label] = one.text
                break
    return [{"text": text, "cite": label} for label, text in quotes.items()][:_QUOTES]
